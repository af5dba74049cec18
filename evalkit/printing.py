"""One PDF of the whole book: rendered as a single page, given a page of contents, and printed by Chromium."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from evalkit.report import PROJECT, render
from evalkit.tables import EvalkitError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync --no-pdf-header-footer --generate-pdf-document-outline"
PATIENCE = 120_000  # milliseconds of the page's own clock, for its formulas and figures
HEADERLINK = re.compile(r'<a class="headerlink".*?</a>')
CHAPTER = re.compile(r'<span id="(document-[^"]*)"> *</span>\s*<section[^>]*>\s*(?:<span[^>]*></span>\s*)*<h2>(.*?)</h2>')


def print_book(project: Path = PROJECT) -> Path:
    """Print the book whose notebooks were run last, and return the path of the PDF, ``_build/evalkit.pdf``.

    It is printed twice, the second time with the page numbers of the first in its contents. Raises EvalkitError where no book
    was made, Chromium is missing or fails, and for any warning of the build.
    """
    project = Path(project).resolve()
    if not (project / "_build" / "html").is_dir() or not any((project / "book" / "executed").glob("*.ipynb")):
        raise EvalkitError(f"{project}: there is no book to print; make one first (make book)")
    browser = find_browser()
    fresh = render(project, project / "_build.print", builder="singlehtml")
    # the addresses in the page are those of a page at the root
    page, printed = fresh / "_build" / "singlehtml" / "index.html", fresh / "evalkit.pdf"
    text = article((page.parent / "book" / "index.html").read_text("utf-8"))
    chapters = CHAPTER.findall(text)
    numbers = [""] * len(chapters)
    for last in (False, True):
        page.write_text(add_contents(text, chapters, numbers), "utf-8")
        _print(browser, page, printed)
        if not last:
            numbers = chapter_pages(printed)
    out = project / "_build" / printed.name
    os.replace(printed, out)
    shutil.rmtree(fresh, ignore_errors=True)
    return out


def find_browser() -> str:
    """The Chromium to print with: ``$CHROMIUM`` or one on the path. Raises EvalkitError if there is none."""
    found = next((path for name in (os.environ.get("CHROMIUM"), *BROWSERS) if name and (path := shutil.which(name))), None)
    if found is None:
        raise EvalkitError("no Chromium found to print with; install it (Debian: chromium) or set CHROMIUM to its path")
    return found


def article(text: str) -> str:
    """The page without what surrounds its article, and without the marks that link a heading to itself."""
    head, body = text[: text.index("</head>")], text[text.index('<article class="bd-article"') :]
    body = HEADERLINK.sub("", body[: body.rindex("</article>")])
    return f'{head}</head><body><main class="bd-main bd-content">{body}</article></main></body></html>'


def add_contents(text: str, chapters: list[tuple[str, str]], numbers: list[str]) -> str:
    """The page with a list of its chapters before the first of them."""
    rows = [
        f'<li><a href="#{html.escape(anchor)}"><span>{title}</span><span>{number}</span></a></li>'
        for (anchor, title), number in zip(chapters, numbers, strict=True)
    ]
    contents = f'<nav id="contents" aria-label="Contents"><p class="rubric">Contents</p><ol>{"".join(rows)}</ol></nav>'
    place = text.index('<div class="toctree-wrapper')
    return text[:place] + contents + text[place:]


def chapter_pages(printed: Path) -> list[str]:
    """The page on which each chapter starts, from the outline of the PDF, whose second level are the chapters."""
    from pypdf import PdfReader

    reader = PdfReader(printed)
    _, inner = reader.outline  # the title, and what is under it
    return [str(reader.get_destination_page_number(item) + 1) for item in inner if not isinstance(item, list)]


def _print(browser: str, page: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory() as profile:
        options = [f"--user-data-dir={profile}", f"--virtual-time-budget={PATIENCE}", f"--print-to-pdf={out}", page.as_uri()]
        done = subprocess.run([browser, *FLAGS.split(), *options], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode or not out.is_file():
        raise EvalkitError(f"{browser} did not print the book: {done.stderr.strip()[-500:]}")


def main() -> None:
    try:
        print(f"written: {print_book()}")
    except EvalkitError as error:
        sys.exit(f"evalkit: {error}")


if __name__ == "__main__":
    main()

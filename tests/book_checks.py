"""Opens every page of a built book in Chromium, from its file, and lists what is wrong with it.

    python tests/book_checks.py _build/html [--shots DIR]

Each check returns its findings as lines of text; an empty list is a good book. `--shots` keeps a picture of each page
in both themes and both widths.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

import yaml

from evalkit import report

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
LOOKS = {"desktop": "light", "phone": "dark"}  # the theme of each width that is checked
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
UNWANTED = ("np.float64(", "np.int64(", "Traceback (most recent call last)", "<class '")
MOST_BYTES = 3_000_000  # of a page, with what is drawn in it
UNFOLD = """() => {
  const still = document.createElement('style');
  still.textContent = '* {animation: none !important; transition: none !important}';
  document.head.append(still);
  document.querySelectorAll('details').forEach(part => part.open = true);
}"""
ALIKE = """() => {
  document.querySelectorAll('tbody').forEach(body => [...body.rows].slice(6).forEach(row => row.remove()));
  const seen = new Set();
  document.querySelectorAll('.highlight span, dt.sig span').forEach(span => {
    const kind = [span.className, span.closest('.highlight, dt').parentElement.className].join();
    seen.has(kind) ? span.replaceWith(...span.childNodes) : seen.add(kind);
  });
}"""
HEADLESS = """() => [...document.querySelectorAll('.bd-article table:not(.highlighttable, .autosummary, .indextable)')]
  .filter(table => !table.querySelector('th')).map(table => table.textContent.trim().slice(0, 40))"""
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
MATHS_DONE = """() => [...document.querySelectorAll('.math')].every(element => element.querySelector('mjx-container'))"""
PAPER = (672, 900)  # A4 less its margins, in pixels
CUT = """() => [...document.querySelectorAll('.bd-article :is(td, th, pre, code, p, img, svg, summary)')]
  .filter(part => part.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(part => `<${part.tagName}> ${part.textContent.trim().slice(0, 60)}`)"""
OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return null;
  const wide = [...document.querySelectorAll('.bd-article *')].find(e => e.getBoundingClientRect().right > width + 1);
  return `${document.documentElement.scrollWidth} px in ${width} px` + (wide ? `, <${wide.tagName} ${wide.className}>` : '');
}"""


def pages(html: Path) -> list[Path]:
    return sorted(page for page in html.rglob("*.html") if "_static" not in page.parts)


@contextmanager
def chromium() -> Iterator:
    """A browser that the system has; the ones that playwright downloads are not asked for."""
    from playwright.sync_api import sync_playwright

    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if name and (found := shutil.which(name))), None)
    assert path, "no Chromium found; install it or set CHROMIUM to its path"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@contextmanager
def watched(browser, size: tuple[int, int], problems: list[str], theme: str = "light") -> Iterator:
    """A page whose console errors and requests to anywhere but files are added to `problems`."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page.add_init_script(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")
    page.on("console", lambda message: message.type == "error" and problems.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    page.on("requestfailed", lambda request: problems.append(f"not loaded: {request.url}"))
    page.on(
        "request",
        lambda request: urlsplit(request.url).scheme in ("file", "data", "blob") or problems.append(f"outside: {request.url}"),
    )
    yield page
    page.close()


def check_pages(
    html: Path, browser, some: list[Path] | None = None, *, looks: Iterable[str] = LOOKS, accessible: bool = False
) -> list[str]:
    """Console errors, outside requests, pages wider than the window, formulas not set, raw Python in the text; and axe."""
    found = []
    for name in looks:
        for path in some or pages(html):
            problems, forwards = [], 'http-equiv="Refresh"' in path.read_text("utf-8")
            with watched(browser, WIDTHS[name], problems, LOOKS[name]) as page:
                page.goto(path.as_uri(), wait_until="load")
                if forwards:
                    page.wait_for_url(re.compile("/book/"))
                try:
                    page.wait_for_function(MATHS_DONE, timeout=10_000)
                except Exception:
                    problems.append("formulas are not set")
                problems += ["formula: " + text for text in page.locator("mjx-merror").all_inner_texts()]
                if overflow := page.evaluate(OVERFLOW):
                    problems.append(f"wider than the window: {overflow}")
                text = page.evaluate("document.body.textContent")
                problems += [f"text: {word}" for word in UNWANTED if word in text]
                problems += [f"table without heads: {text}" for text in page.evaluate(HEADLESS)]
                page.evaluate(UNFOLD)
                if overflow := page.evaluate(OVERFLOW):
                    problems.append(f"wider than the window when unfolded: {overflow}")
                if accessible and not forwards:
                    problems += _axe(page)
            found += [f"{path.relative_to(html)} ({name}): {problem}" for problem in problems]
    return found


def check_sizes(html: Path) -> list[str]:
    """Pages that are larger than what opens at once."""
    sizes = {path.relative_to(html): path.stat().st_size for path in pages(html)}
    return [f"{path}: {size:,} bytes" for path, size in sizes.items() if size > MOST_BYTES]


def _axe(page) -> list[str]:
    """Violations of axe-core's rules of WCAG, levels A and AA, on a page with all that is folded open.

    Of long tables the first rows are looked at, and of code the first word of each kind, since the others are made alike and
    would take minutes.
    """
    page.evaluate(ALIKE)
    page.wait_for_timeout(100)  # what can be scrolled is told one frame later
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    result = page.evaluate("tags => axe.run({runOnly: tags, resultTypes: ['violations'], preload: false})", WCAG)
    return [
        f"{broken['id']}, {len(broken['nodes'])} times, first {broken['nodes'][0]['html'][:120]}"
        for broken in result["violations"]
    ]


def check_desktop(html: Path, browser) -> list[str]:
    """Every page on a desktop, in the light theme."""
    return check_pages(html, browser, looks=["desktop"], accessible=True)


def check_phone(html: Path, browser) -> list[str]:
    """Every page on a phone, in the dark theme."""
    return check_pages(html, browser, looks=["phone"], accessible=True)


def check_print(html: Path, browser, some: list[Path] | None = None) -> list[str]:
    """What the edge of the paper would cut when a page is printed."""
    found = []
    for path in some or sorted((html / "book").rglob("*.html")):
        with watched(browser, PAPER, []) as page:
            page.goto(path.as_uri(), wait_until="load")
            page.emulate_media(media="print")
            page.evaluate(UNFOLD)
            found += [f"{path.relative_to(html)} (print): cut: {text}" for text in page.evaluate(CUT)[:3]]
    return found


def check_search(html: Path, browser) -> list[str]:
    """The search finds each page of the contents by its title, opened from a file and without an error."""
    problems = []
    for path in sorted((html / "book").rglob("*.html")):
        with watched(browser, WIDTHS["desktop"], problems) as page:
            page.goto(path.as_uri(), wait_until="domcontentloaded")
            title = page.locator("h1").first.evaluate("head => head.firstChild.textContent")
            page.goto((html / "search.html").as_uri() + f"?q={quote(title)}")
            try:
                page.wait_for_selector(f"#search-results li a[href*='{path.name}']", timeout=10_000)
            except Exception:
                problems.append(f"nothing found for {title!r}")
    return [f"search: {problem}" for problem in problems]


class _Links(HTMLParser):
    """The ids of a page and the addresses it points to."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.ids.update(value for name in ("id", "name") if (value := values.get(name)))
        for name in ("href", "src", "data"):
            if value := values.get(name):
                self.targets.append(value)


def check_links(html: Path) -> list[str]:
    """Local links, pictures, scripts and anchors that lead nowhere."""
    read, found = cache(_Links), []
    for path in pages(html):
        for target in dict.fromkeys(read(path).targets):
            parts = urlsplit(urljoin(path.as_uri(), target))
            goal, anchor = Path(unquote(parts.path)), unquote(parts.fragment)
            if parts.scheme != "file":
                continue
            if not goal.is_file():
                found.append(f"{path.relative_to(html)}: dead link {target}")
            elif anchor and goal.suffix == ".html" and anchor not in read(goal).ids:
                found.append(f"{path.relative_to(html)}: dead anchor {target}")
    return found


def check_executed(project: Path) -> list[str]:
    """Code cells that did not run, and paths of this machine in notebooks that readers download."""
    found = []
    for path in sorted((project / "book" / "executed").rglob("*.ipynb")):
        text = path.read_text("utf-8")
        for number, cell in enumerate(json.loads(text)["cells"]):
            if cell["cell_type"] == "code" and "".join(cell["source"]).strip() and not cell["execution_count"]:
                found.append(f"{path.name}: cell {number} did not run")
        if re.search(rf"{re.escape(str(project))}|{re.escape(str(Path.home()))}/", text):
            found.append(f"{path.name}: holds an absolute path")
    return found


def check_contents(project: Path) -> list[str]:
    """The contents file, the notebooks, the runner's steps and the executed copies are one list."""
    toc = yaml.safe_load((project / "_toc.yml").read_text("utf-8"))
    files = [Path(chapter["file"]) for part in toc["parts"] for chapter in part["chapters"]]
    notebooks, executed = project / "notebooks", project / "book" / "executed"
    lists = {
        "contents": {file.relative_to("book/executed").as_posix() for file in files if "executed" in file.parts},
        "notebooks": {path.relative_to(notebooks).with_suffix("").as_posix() for path in notebooks.rglob("*.md")},
        "steps": {report.step_name(path) for path in report.steps(project)},
        "executed": {path.relative_to(executed).with_suffix("").as_posix() for path in executed.rglob("*.ipynb")},
    }
    every = set.union(*lists.values())
    return [f"{name}: lacks {missing}" for name, have in lists.items() for missing in sorted(every - have)]


def check_files(html: Path) -> list[str]:
    """All that needs no browser."""
    return check_sizes(html) + check_links(html) + check_executed(html.parents[1]) + check_contents(html.parents[1])


IN_BROWSER = (check_desktop, check_phone, check_search, check_print)


def check(html: Path, checks: Sequence[Callable] = (*IN_BROWSER, check_files)) -> list[str]:
    """The findings about a book that lies at `_build/html` of its project."""
    html = html.resolve()
    if not pages(html):
        return [f"{html}: no pages"]
    with chromium() as browser:
        return [finding for one in checks for finding in (one(html, browser) if one in IN_BROWSER else one(html))]


def check_results(html: Path) -> list[str]:
    """What data can do to a book: the findings on its front page and its pages of results, and all that needs no browser.

    For books that differ from a checked one in nothing but their benchmark.
    """
    html = html.resolve()
    some = [html / "book" / "index.html", *sorted((html / "book" / "executed").glob("*.html"))]
    with chromium() as browser:
        return check_pages(html, browser, some) + check_print(html, browser, some) + check_files(html)


def shoot(html: Path, folder: Path) -> None:
    """Save a picture of each page, in both themes and both widths."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for theme in ("light", "dark"):
            for name, size in WIDTHS.items():
                for path in pages(html.resolve()):
                    with watched(browser, size, [], theme) as page:
                        page.goto(path.as_uri(), wait_until="load")
                        page.wait_for_timeout(500)
                        page.screenshot(path=folder / f"{path.stem}-{name}-{theme}.png", full_page=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check a built book in Chromium.")
    parser.add_argument("html", type=Path)
    parser.add_argument("--shots", type=Path, metavar="DIR", help="save pictures of the pages here")
    arguments = parser.parse_args()
    if arguments.shots:
        shoot(arguments.html, arguments.shots)
    found = check(arguments.html)
    print("\n".join(found) or f"{len(pages(arguments.html))} pages, nothing wrong")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import yaml

from evalkit import report

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
FLAGS += " --disable-component-update --disable-sync"
UNWANTED = ("np.float64(", "np.int64(", "Traceback (most recent call last)", "<class '")
MATHS_DONE = """() => [...document.querySelectorAll('.math')].every(element => element.querySelector('mjx-container'))"""
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


def check_pages(html: Path, browser) -> list[str]:
    """Console errors, outside requests, pages wider than the window, formulas not set, raw Python in the text."""
    found = []
    for name, size in WIDTHS.items():
        for path in pages(html):
            problems = []
            with watched(browser, size, problems) as page:
                page.goto(path.as_uri(), wait_until="load")
                if 'http-equiv="Refresh"' in path.read_text("utf-8"):
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
            found += [f"{path.relative_to(html)} ({name}): {problem}" for problem in problems]
    return found


def check_search(html: Path, browser) -> list[str]:
    """The search finds a word of the protocol page, without an error."""
    problems = []
    with watched(browser, WIDTHS["desktop"], problems) as page:
        page.goto((html / "search.html").as_uri() + "?q=matching")
        try:
            page.wait_for_selector("#search-results li a", timeout=10_000)
        except Exception:
            problems.append("nothing found")
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


def check(html: Path) -> list[str]:
    """All findings about a book that lies at `_build/html` of its project."""
    html = html.resolve()
    project = html.parents[1]
    if not pages(html):
        return [f"{html}: no pages"]
    with chromium() as browser:
        found = check_pages(html, browser) + check_search(html, browser)
    return found + check_links(html) + check_executed(project) + check_contents(project)


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

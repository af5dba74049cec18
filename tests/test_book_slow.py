"""Whole books, opened in a browser."""

import book_checks
import pytest
from helpers import copy_project

from evalkit import report
from evalkit.sample import write_sample

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    project = copy_project(folder / "project")
    front = report.build(write_sample(folder / "toytown", images=60), project=project, progress=False)
    return front.parent


def test_the_sample_book_is_sound_in_the_browser(book):
    assert book_checks.check(book) == []


def test_the_checks_find_what_they_look_for(book, tmp_path):
    """A page with one fault of each kind: a check that finds nothing there would find nothing anywhere."""
    head = "<html><head><meta charset='utf-8'></head><body>"
    faults = {
        "console: ": "<script>console.error('a word')</script>",
        "script: ": "<script>undefined.x</script>",
        "outside: ": "<img src='http://127.0.0.1:9/x.png'>",
        "wider than the window": "<div style='width: 3000px'>wide</div>",
        "text: np.float64(": "<p>np.float64(0.5)</p>",
        "formulas are not set": "<span class='math'>x</span>",
        "dead link": "<a href='nowhere.html'>x</a>",
        "dead anchor": "<a href='#nowhere'>x</a>",
    }
    html = tmp_path / "_build" / "html"
    html.mkdir(parents=True)
    (html / "index.html").write_text(head + "".join(faults.values()))
    with book_checks.chromium() as browser:
        found = book_checks.check_pages(html, browser) + book_checks.check_links(html)
    for fault in faults:
        assert any(fault in line for line in found), fault

"""The book's own scripts in a browser: the interactive figure against evalkit, tables that sort and filter, and the PDF."""

import json
import re
import unicodedata

import book_checks
import pytest
import small

import evalkit
from evalkit import printing

pytestmark = pytest.mark.slow
DESKTOP = book_checks.WIDTHS["desktop"]
NAMES = ("tp", "fp", "fn", "precision", "recall", "f")


@pytest.fixture(scope="module")
def browser():
    with book_checks.chromium() as browser:
        yield browser


# -- the interactive figure


@pytest.fixture
def figure(book, browser):
    problems = []
    with book_checks.watched(browser, DESKTOP, problems) as page:
        page.goto((book / "book" / "explore.html").as_uri())
        yield page
    assert problems == []


def positions(page, slider):
    """Every position of a slider, reached with the keyboard alone, as numbers."""
    page.locator(slider).focus()
    page.keyboard.press("Home")
    last = None
    while (value := page.locator(slider).input_value()) != last:
        yield float(value)
        last = value
        page.keyboard.press("ArrowRight")


def shown(page):
    return {name: float(page.locator(f"#explore-{name}").get_attribute("value")) for name in NAMES}


def test_the_figure_shows_the_numbers_of_evalkit_at_every_position(figure, make_benchmark):
    scene = json.loads(figure.locator("#explore script").text_content())
    gold, said = ([[*one["box"], one["class"]] for one in scene[side]] for side in ("gold", "predicted"))
    benchmark = make_benchmark({"scene": gold}, {"model": {"scene": said}})
    thresholds, betas = list(positions(figure, "#explore-iou")), list(positions(figure, "#explore-beta"))
    assert len(thresholds) == 20
    assert {0.3, 0.4, 0.5, 1.0} <= set(thresholds)
    assert {1.0, 2.0} <= set(betas)
    counts = evalkit.count(benchmark, iou=thresholds)
    seen = set()
    for beta in positions(figure, "#explore-beta"):
        for threshold in positions(figure, "#explore-iou"):
            tp, fp, fn = (
                int(small.rows(counts, task="localisation", iou=threshold)[name].sum()) for name in ("tp", "fp", "fn")
            )
            ratios = evalkit.precision(tp, fp), evalkit.recall(tp, fn), evalkit.fbeta(tp, fp, fn, beta=beta)
            expected = dict(zip(NAMES, [tp, fp, fn, *map(float, ratios)], strict=True))
            assert shown(figure) == pytest.approx(expected, abs=1e-12), (threshold, beta)
            seen.add(tp)
    assert seen == {0, 1, 2, 3, 4}  # the scene shows something at each step


def test_the_figure_tells_what_it_shows(figure):
    """The pictures have a text, which follows the sliders, and so has each slider's position."""
    picture, curve = figure.locator("#explore svg").all()
    before = picture.get_attribute("aria-label"), curve.get_attribute("aria-label")
    figure.locator("#explore-iou").focus()
    figure.keyboard.press("Home")
    after = picture.get_attribute("aria-label"), curve.get_attribute("aria-label")
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert "looser" in figure.locator("#explore-iou").get_attribute("aria-valuetext")


# -- tables


@pytest.fixture
def by_class(book, browser):
    problems = []
    with book_checks.watched(browser, DESKTOP, problems) as page:
        page.goto((book / "book" / "executed" / "20_scores.html").as_uri())
        yield page.locator("table.sortable").first
    assert problems == []


def column(table, at):
    return table.locator(f"tbody tr:visible td:nth-child({at})").all_inner_texts()


def test_a_table_sorts_by_the_keyboard_and_back(by_class):
    first = column(by_class, 1)
    head = by_class.locator("th").nth(1)
    head.locator("button").focus()
    states = []
    for order in (lambda numbers: sorted(numbers, reverse=True), sorted):
        by_class.page.keyboard.press("Enter")
        cells = column(by_class, 2)
        numbers = [float(cell) for cell in cells if cell != "–"]
        assert numbers == order(numbers)
        assert cells == [f"{number:.3f}" for number in numbers] + ["–"] * cells.count("–")
        states.append(head.get_attribute("aria-sort"))
    by_class.page.keyboard.press("Enter")
    assert column(by_class, 1) == first
    assert [*states, head.get_attribute("aria-sort")] == ["descending", "ascending", "none"]


def test_a_table_sorts_by_names(by_class):
    by_class.locator("th button").first.click()
    names = column(by_class, 1)
    assert names == sorted(names, reverse=True)
    assert len(set(names)) == len(names) > 8


def test_a_table_filters(by_class):
    everything = column(by_class, 1)
    field = by_class.page.locator(".table-filter input").first
    field.fill("LAMP")
    assert column(by_class, 1) == [name for name in everything if "lamp" in name] != []
    assert f"of {len(everything)}" in by_class.page.locator(".table-filter output").first.inner_text()
    field.fill("")
    assert column(by_class, 1) == everything


# -- on paper


@pytest.fixture(scope="module")
def printed(book):
    from pypdf import PdfReader

    project = book.parents[1]
    before = sorted(path.name for path in project.iterdir())
    reader = PdfReader(printing.print_book(project))
    assert sorted(path.name for path in project.iterdir()) == before
    return reader


def test_the_pdf_has_contents_and_each_chapter_begins_a_page(book, printed):
    # a page's text begins with its number, and in a bibliography with the labels; ff and fi may be one sign
    words = [unicodedata.normalize("NFKC", " ".join(page.extract_text().split())) for page in printed.pages]
    texts = [re.sub(r"^\d+ (\[\d+\] )*", "", text) for text in words]
    titles = {}
    for path in sorted((book / "book").rglob("*.html")):
        found = re.search(r"<h1>(.*?)<a", path.read_text("utf-8"))
        titles[path.stem] = re.sub(r"<[^>]*>", "", found[1])
    contents = next(text for text in texts if text.startswith("Contents"))
    for name, title in titles.items():
        starts = [number for number, text in enumerate(texts, 1) if text.startswith(title)]
        if name != "index":
            assert any(f"{title} {number}" in contents for number in starts), title
    assert len(printed.outline) == 2  # the title, and everything under it


def test_the_pdf_is_whole(printed):
    """Folded tables are open, folded code is left out, and formulas are set."""
    texts = [" ".join(page.extract_text().split()) for page in printed.pages]
    everything = " ".join(texts)
    assert "How this page was made" in everything
    assert "kind name value" in everything  # the head of the provenance, which is folded
    assert "Show code cell" not in everything
    assert "\\frac" not in everything


def test_a_book_that_was_not_made_is_not_printed(tmp_path):
    with pytest.raises(evalkit.EvalkitError, match="there is no book to print"):
        printing.print_book(tmp_path)

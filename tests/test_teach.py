"""The teaching pages: one pattern, nothing but evalkit needed, no number in prose that a cell could compute."""

import inspect
import re
import subprocess
import sys
from fractions import Fraction

import jupytext
import papermill
import pytest
import yaml
from helpers import PROJECT
from traitlets.config import Config

import evalkit
from evalkit import report, teach
from evalkit.tables import EvalkitError

STEPS = {path.stem: path for path in report.steps(PROJECT)}
LESSONS = {path.stem: path for path in report.steps(PROJECT) if path.parent.name == "teach"}
SECTIONS = [
    "The question",
    "Definition and formula",
    "A picture",
    "Worked by hand",
    "Computed with evalkit",
    "What it hides",
    "Exercises",
    "Where it is in the code, and further reading",
]
PAGE_OF = {  # every public function that computes something, and the page that teaches or shows it
    "accepted_pairs": "semantic",
    "add_intervals": "bootstrap",
    "add_rate_intervals": "bootstrap",
    "agree": "agreement",
    "agree_by_pair": "agreement",
    "axis_swap": "15_answers",
    "bootstrap": "bootstrap",
    "compare": "bootstrap",
    "confusion": "26_errors",
    "count": "counts",
    "coverage": "scopes",
    "error_counts": "26_errors",
    "explain": "26_errors",
    "fbeta": "fbeta",
    "gains": "semantic",
    "iou": "iou",
    "match": "matching",
    "point_intervals": "40_points",
    "point_scores": "points",
    "precision": "fbeta",
    "recall": "fbeta",
    "related_pairs": "semantic",
    "relaxed_counts": "semantic",
    "score_annotators": "agreement",
    "scores": "counts",
    "slice_scores": "averages",
    "undefined_as_nan": "undefined",
    "worst_images": "26_errors",
}
NO_METRIC = {  # they read, list, check or write
    "benchmark_from",
    "convert",
    "data_check",
    "data_notes",
    "fault_table",
    "load_check",
    "overlaps",
    "point_samples",
    "read_answers",
    "read_benchmark",
    "read_classes",
    "read_first_pass",
    "read_point_runs",
    "read_point_samples",
    "read_stream",
}
FAST = "undefined"

# What digits in prose may be: names of scores, years of what is cited, and the marks of an undefined ratio or of a scale's ends
NAMES = r"\b(?:F[12]|AC1)\b"
YEARS = r"\b(?:18|19|20)[0-9]{2}\b"
RULES = r"0/0|\bfrom 0 to 1\b|\bn\^\(5/2\)"
LISTS = r"(?m)^[0-9]\. "
PROSE_EXCEPTIONS = {  # further ones, page by page
    "10_data": [r"Clean images, at 0,"],
    "30_agreement": [r"0 is chance, 1 is perfect", r"alpha below 0", r"[Tt]he line at 0"],
    "points": [r"Quarterly 2,"],
    "undefined": [r"what 0/0 should be", r"most write 0", r"uses 0 unless told otherwise"],
}


def cells(path, kind):
    return [cell for cell in jupytext.read(path).cells if cell.cell_type == kind]


def prose(path) -> str:
    """The words of a page that a reader sees, captions too, without code, formulas and addresses."""
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(), flags=re.DOTALL)
    captions = re.findall(r"^    (?:caption|alt): (.*(?:\n      .*)*)", text, re.MULTILINE)
    for hidden in (r"```.*?```", r"\$\$.*?\$\$", r"\$[^$]*\$", r"`[^`]*`", r"\]\([^)]*\)", r"\{[a-z:]+\}`[^`]*`", r"<[^>]*>"):
        text = re.sub(hidden, " ", text, flags=re.DOTALL)
    return "\n".join([text, *captions])


def run(path, folder, **values):
    """Run a page as a reader would who downloaded it: plain papermill, in this folder; ``values`` replace lines of code."""
    notebook = jupytext.read(path)
    for name, value in values.items():
        changed = 0
        for cell in notebook.cells:
            cell.source, n = re.subn(rf"(?m)^{name} = [^#\n]*", f"{name} = {value}  ", cell.source)
            changed += n
        assert changed == 1, f"{name} is set {changed} times"
    return papermill.execute_notebook(
        notebook,
        None,
        kernel_name="python3",
        progress_bar=False,
        cwd=str(folder),
        config=Config({"KernelManager": {"transport_encryption": "auto"}}),
    )


@pytest.mark.parametrize("name", LESSONS)
def test_a_page_has_all_sections_in_order(name):
    text = "\n".join(cell.source for cell in cells(LESSONS[name], "markdown"))
    assert re.findall(r"^# .*$", text, re.MULTILINE) == [text.splitlines()[0]]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("name", LESSONS)
def test_a_page_is_told_nothing_and_names_no_file_of_its_readers(name):
    notebook = jupytext.read(LESSONS[name])
    assert not any("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)
    code = "\n".join(cell.source for cell in cells(LESSONS[name], "code"))
    assert not re.search(r"toytown|glue\(|\bopen\(|(?<!tempfile\.)\b__file__|\.\./|[\"']/", code)
    if re.search(r"write_text|read_\w+\(", code):
        assert "tempfile.TemporaryDirectory()" in code


@pytest.mark.parametrize("name", LESSONS)
def test_a_page_works_by_hand_and_compares(name):
    code = "\n".join(cell.source for cell in cells(LESSONS[name], "code"))
    assert "teach.same(" in code or "assert " in code
    folded = [cell for cell in cells(LESSONS[name], "code") if "hide-cell" in cell.metadata.get("tags", [])]
    assert code.count("teach.answer(") + len(folded) >= 2


@pytest.mark.parametrize("name", LESSONS)
def test_figures_have_captions_and_words_for_those_who_do_not_see_them(name):
    drawn = 0
    for cell in cells(LESSONS[name], "code"):
        mystnb = cell.metadata.get("mystnb", {})
        if re.search(r"plt\.(subplots|figure)\(|^(teach\.(scene|cells|graph)|figures\.dots)\(", cell.source, re.MULTILINE):
            drawn += 1
            assert len(mystnb["figure"]["caption"]) > 20
            assert len(mystnb["image"]["alt"]) > 20
    assert drawn >= 1


@pytest.mark.parametrize("name", LESSONS)
def test_code_that_is_shown_fits_the_page(name):
    for cell in cells(LESSONS[name], "code"):
        if "remove-input" not in cell.metadata.get("tags", []):
            assert [line for line in cell.source.splitlines() if len(line) > 79] == []


def test_every_public_function_of_a_metric_has_a_page():
    public = {name for name in evalkit.__all__ if inspect.isfunction(getattr(evalkit, name))}
    assert public - NO_METRIC <= set(PAGE_OF), "give the new function a page"
    for name in public - NO_METRIC:
        text = STEPS[PAGE_OF[name]].read_text()
        assert re.search(rf"\b{name}\b", text), f"{PAGE_OF[name]} does not speak of evalkit.{name}"


def test_contents_file_lists_every_lesson():
    toc = yaml.safe_load((PROJECT / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    assert sorted(file.removeprefix("book/executed/teach/") for file in files if "/teach/" in file) == sorted(LESSONS)


PAGES = [*sorted((PROJECT / "notebooks").rglob("*.md")), PROJECT / "book" / "exercises.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_digit_in_prose_that_no_cell_made(path):
    text = prose(path)
    for known in (NAMES, YEARS, RULES, LISTS, *PROSE_EXCEPTIONS.get(path.stem, [])):
        text = re.sub(known, " ", text)
    assert re.findall(r"[^\n]{0,30}[0-9][^\n]{0,30}", text) == []


def test_the_check_of_prose_finds_a_typed_number(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nThe F2 is 0.625, as `x = 1` and $5TP$ of 1979 say, {glue:text}`f2:.3f`.\n")
    assert re.findall(r"[0-9]+", re.sub(f"{NAMES}|{YEARS}", " ", prose(page))) == ["0", "625"]


# Running


def test_a_page_runs_in_an_empty_folder_and_leaves_it_empty(tmp_path):
    done = run(LESSONS[FAST], tmp_path)
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LESSONS if name != FAST])
def test_every_page_runs_in_an_empty_folder_and_leaves_it_empty(name, tmp_path):
    done = run(LESSONS[name], tmp_path)
    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("beta", ["0.5", "1", "3"])
def test_a_reader_may_change_beta(beta, tmp_path):
    done = run(LESSONS["fbeta"], tmp_path, beta=beta)
    assert f"F{float(beta):g}" in str(done.cells)


@pytest.mark.slow
def test_a_reader_may_change_the_seed(tmp_path):
    run(LESSONS["bootstrap"], tmp_path, **{"SEED, REPLICATES, LEVEL": "11, 500, 0.9"})


# What the pages call


def test_same_shows_both_and_refuses_what_differs():
    shown = teach.same({"F2": Fraction(5, 14), "TP": 1}, {"F2": 5 / 14, "TP": 1, "FP": 9}).to_html()
    assert "5/14" in shown
    assert "FP" not in shown
    for by_hand, computed in [({"F2": 0.357}, {"F2": 5 / 14}), ({"F2": 1}, {"F2": float("nan")})]:
        with pytest.raises(EvalkitError, match=r"F2: .* by hand, .* from evalkit"):
            teach.same(by_hand, computed)


def test_answers_and_code_are_folded_and_escaped():
    answer = teach.answer("a < b\n\nsecond").data
    assert answer.startswith("<details")
    assert "<p>a &lt; b</p><p>second</p>" in answer
    code = teach.where(evalkit.fbeta, evalkit.iou).data
    assert "evalkit/metrics.py: fbeta" in code
    assert "evalkit/boxes.py: iou" in code
    assert str(PROJECT) not in code


def test_the_tables_of_tests_name_what_is_there():
    assert set(PAGE_OF.values()) <= set(STEPS)
    assert NO_METRIC.isdisjoint(PAGE_OF)


def test_importing_evalkit_does_not_load_what_only_pages_need():
    code = "import evalkit, sys; sys.exit('matplotlib' in sys.modules or 'IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

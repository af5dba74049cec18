import json
import re
import shutil
from importlib import metadata
from pathlib import Path, PurePosixPath

import book_checks
import jupytext
import numpy as np
import pytest
import yaml
from helpers import PROJECT, copy_project
from packaging.requirements import Requirement

import evalkit
from evalkit import pages, report, reproduction
from evalkit.formats import options_from, read_benchmark
from evalkit.sample import write_sample
from evalkit.tables import CheckFailed, EvalkitError

NOTEBOOKS = sorted((PROJECT / "notebooks").rglob("*.md"))
HEADER = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n  language: python\n---\n\n# A step\n"
PARAMETERS = 'benchmark = "benchmark.yml"\nmodels = []  # names, [] for all\nout = "out"'


def cell(source: str, *tags: str) -> str:
    return f"\n```{{code-cell}} ipython3\n:tags: [{', '.join(tags)}]\n\n{source}\n```\n"


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Path:
    return write_sample(tmp_path_factory.mktemp("sample") / "toytown", images=20)


@pytest.fixture
def project(tmp_path) -> Path:
    """A project of one notebook and a front page, with an earlier book."""
    root = tmp_path / "project"
    (root / "notebooks").mkdir(parents=True)
    (root / "book" / "static").mkdir(parents=True)
    (root / "book" / "static" / "evalkit.css").write_text("")
    for name in ("_config.yml", "book/sphinx_fields.py", "book/references.bib"):
        shutil.copy(PROJECT / name, root / name)
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n- file: book/executed/10_step\n")
    (root / "book" / "index.md").write_text("# Front\n")
    (root / "_build" / "html").mkdir(parents=True)
    (root / "_build" / "html" / "index.html").write_text("earlier")
    write_step(root)
    return root


def write_step(project: Path, *sources: str, kernel: str = "python3") -> None:
    cells = cell(PARAMETERS, "parameters") + "".join(map(cell, sources))
    (project / "notebooks" / "10_step.md").write_text(HEADER.replace("python3", kernel) + cells)


def kept(project: Path) -> bool:
    return (project / "_build" / "html" / "index.html").read_text() == "earlier"


def executed(project: Path) -> dict:
    return json.loads((project / "book" / "executed" / "10_step.ipynb").read_text())


@pytest.fixture
def unrendered(monkeypatch) -> None:
    monkeypatch.setattr(report, "_render", lambda project: None)


# The book of this project, built once from a small sample


@pytest.fixture(scope="module")
def built(tmp_path_factory, sample) -> Path:
    project = copy_project(tmp_path_factory.mktemp("copy"))
    report.build(sample, project=project, progress=False)
    return project


def test_small_book_has_its_front_page_and_all_steps(built):
    front = (built / "_build" / "html" / "book" / "index.html").read_text()
    assert "Toytown" in front
    assert "not published results" in front
    assert book_checks.check_contents(built) == []
    assert book_checks.check_executed(built) == []
    assert book_checks.check_links(built / "_build" / "html") == []
    assert not list(built.glob("_build.*"))


def test_bok_06_every_page_of_results_names_the_data_the_note_and_what_it_was_made_from(built, sample):
    inputs = [sample, sample.parent / "gold.jsonl"]
    for page in (built / "_build" / "html" / "book" / "executed").glob("*.html"):
        text = page.read_text()
        assert 'class="run"><strong>Toytown</strong>' in text, page.name
        assert "not published results" in text, page.name
        assert all(reproduction.digest(file) in text for file in inputs), page.name
        assert metadata.version("numpy") in text, page.name


def test_every_teaching_page_downloads_as_a_notebook(built):
    html = built / "_build" / "html"
    lessons = [path.stem for path in report.steps(PROJECT) if path.parent.name == "teach"]
    assert lessons
    for name in lessons:
        page = (html / "book" / "executed" / "teach" / f"{name}.html").read_text()
        address = f"_sources/book/executed/teach/{name}.ipynb"
        assert f'href="../../../{address}"' in page, name
        cells = json.loads((html / address).read_text())["cells"]
        assert not any("injected-parameters" in one["metadata"].get("tags", []) for one in cells), name


def test_bok_04_numbers_on_pages_are_plain(built):
    for page in book_checks.pages(built / "_build" / "html"):
        assert "np.float64(" not in page.read_text()


# Published values


@pytest.mark.slow
def test_a_build_fails_where_a_published_value_differs_unless_that_is_allowed(project, tmp_path):
    """One answer of one model is altered after its scores were published."""
    page = project / "notebooks" / "60_reproduction.md"
    page.write_text(
        (PROJECT / "notebooks" / page.name).read_text().replace("{doc}`the protocol\n<../protocol>`", "the protocol")
    )
    (project / "notebooks" / "10_step.md").unlink()
    (project / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n- file: book/executed/60_reproduction\n")
    benchmark = write_sample(tmp_path / "toytown", images=20)
    data = read_benchmark(benchmark)
    counts = evalkit.count(data)
    evalkit.scores(data, counts).drop(columns=["f2_low", "f2_high"]).to_csv(benchmark.parent / "scores.csv", index=False)
    said = re.sub(r"^published:.*\n", "", benchmark.read_text(), flags=re.MULTILINE)
    benchmark.write_text(f"{said}published: {{scores: scores.csv}}\n")
    options = {"project": project, "progress": False}

    report.build(benchmark, parameters={"replicates": 100}, **options)
    book = project / "_build" / "html" / "book" / "executed" / "60_reproduction.html"
    assert "Published values are reproduced" in book.read_text()

    answers = benchmark.parent / "predictions" / "eager.jsonl"
    lines = answers.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if json.loads(line)["boxes"])
    answers.write_text("\n".join([*lines[:at], json.dumps(json.loads(lines[at]) | {"boxes": []}), *lines[at + 1 :], ""]))
    with pytest.raises(CheckFailed, match=r"60_reproduction.md: published values are not reproduced;\nscores: .* differ"):
        report.build(benchmark, parameters={"replicates": 100}, **options)
    assert "Published values are reproduced" in book.read_text()  # the earlier book stays

    report.build(benchmark, parameters={"replicates": 100, "allow_differences": True}, **options)
    assert "Published values are not reproduced" in book.read_text()
    assert "eager, valid, localisation, 0.5, exact, overall, micro, overall" in book.read_text()


# Failing


def test_bok_04_an_unconverted_number_stops_the_build_and_the_earlier_book_stays(project, sample):
    write_step(project, "import numpy as np\nfrom myst_nb import glue\nglue('f2', np.float64(0.625), display=False)")
    (project / "book" / "index.md").write_text("# Front\n\nF2 {glue:text}`executed/10_step.ipynb::f2:.3f`\n")
    with pytest.raises(EvalkitError, match=r"did not build:\n.*index.md.*WARNING: Failed to format"):
        report.build(sample, project=project, progress=False)
    assert kept(project)
    assert not (project / "_build.new").exists()


def test_bok_01_nbk_07_a_failing_cell_stops_everything_with_one_line(project, sample):
    write_step(project, "f2 = 0.5", "raise ValueError('two\\nlines')", "print(f2)")
    with pytest.raises(EvalkitError) as caught:
        report.build(sample, project=project, progress=False)
    assert re.fullmatch(r"notebooks/10_step.md, cell 4: ValueError: two lines; .* \S+10_step.ipynb", str(caught.value))
    cells = [one for one in executed(project)["cells"] if one["cell_type"] == "code"]
    assert cells[-2]["outputs"][0]["output_type"] == "error"
    assert cells[-1]["execution_count"] is None
    assert kept(project)


def test_a_notebook_that_leaves_early_has_failed(project, sample):
    write_step(project, "import sys\nsys.exit(0)", "print('never')")
    with pytest.raises(EvalkitError, match=r"10_step.md: stopped before its last cell"):
        report.build(sample, project=project, progress=False)
    assert kept(project)


def test_a_kernel_that_dies_is_told(project, sample):
    write_step(project, "import os\nos._exit(1)")
    with pytest.raises(EvalkitError, match=r"10_step.md: the kernel died"):
        report.build(sample, project=project, progress=False)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"modles": []}, "no notebook has a parameter 'modles'; known are: models, out"),
        ({"benchmark": "x.yml"}, "parameter benchmark: the benchmark has an argument of its own"),
        ({"models": "cautious"}, "parameter models: must be a list of names"),
        ({"out": {1, 2}}, "parameter out: must be a plain JSON value, not {1, 2}"),
        ({"out": float("nan")}, "parameter out: must be a plain JSON value, not nan"),
    ],
)
def test_parameters_are_refused_before_anything_runs(project, sample, parameters, message):
    with pytest.raises(EvalkitError, match=re.escape(message)):
        report.build(sample, project=project, parameters=parameters, progress=False)
    assert not (project / "book" / "executed").exists()
    assert kept(project)


def test_a_missing_benchmark_is_told_before_anything_is_removed(project, tmp_path):
    (project / "book" / "executed").mkdir()
    with pytest.raises(EvalkitError, match=r"nowhere\.yml"):
        report.build(tmp_path / "nowhere.yml", project=project, progress=False)
    assert (project / "book" / "executed").exists()
    assert kept(project)


def test_a_folder_without_notebooks_is_told(tmp_path, sample):
    with pytest.raises(EvalkitError, match=r"no notebooks/\*.md here"):
        report.build(sample, project=tmp_path, progress=False)


def test_a_missing_kernel_is_told(project, sample, monkeypatch):
    monkeypatch.setattr(report, "KERNEL", "no-such-kernel")
    with pytest.raises(EvalkitError, match=r"no Jupyter kernel named no-such-kernel: run `.* pip install ipykernel`"):
        report.build(sample, project=project, progress=False)


# Parameters


def test_nbk_01_types_that_the_shell_guessed_wrong_are_refused():
    for parameters, message in [
        ({"image_ids": [12]}, "parameter image_ids: must be a list of ids, each of them text, not [12]"),
        (
            {"image_ids": 12},
            "parameter image_ids: must be a list of ids, each of them text, not 12 (in the shell: ",
        ),
        ({"models": '["a","b"]'}, "parameter models: must be a list of names"),
        ({"benchmark": 1.1}, "parameter benchmark: must be text"),
        ({"iou": [True]}, "parameter iou: must be a list of numbers above 0, up to 1, not [True]"),
        ({"iou": []}, "parameter iou: must be a list of numbers"),
        ({"headline_iou": float("nan")}, "parameter headline_iou: must be a number above 0, up to 1, not nan"),
        ({"iou": [0.3], "headline_iou": 0.5}, "parameter headline_iou: must be one of iou [0.3], not 0.5"),
        ({"modles": []}, "parameter modles: not known; known are: benchmark, models"),
    ]:
        with pytest.raises(EvalkitError, match=re.escape(message)):
            pages.check_parameters(**parameters)
    pages.check_parameters(image_ids=["00012"], models=[], iou=[0.3, 0.5], headline_iou=0.5)


def test_nbk_03_the_callers_folder_does_not_matter(project, sample, tmp_path, monkeypatch, unrendered):
    write_step(project, "from evalkit import read_benchmark\nprint(len(read_benchmark(benchmark).images), benchmark)")
    seen = []
    for folder, name in [(sample.parent, sample.name), (sample.parent.parent, "toytown/benchmark.yml"), (tmp_path, sample)]:
        monkeypatch.chdir(folder)
        report.build(name, project=project, progress=False)
        seen.append([one["outputs"] for one in executed(project)["cells"] if one.get("outputs")])
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0][0]["text"] == ["20 benchmark.yml\n"]


def test_nbk_04_shipped_notebooks_name_the_common_kernel():
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert jupytext.read(path).metadata.kernelspec.name == "python3", path.name


def test_nbk_04_the_runner_does_not_need_a_notebooks_own_kernel(project, sample, unrendered):
    write_step(project, "print(1)", kernel="conda-env-mybox-py")
    report.build(sample, project=project, progress=False)


def test_nbk_06_numpy_values_and_paths_arrive_as_plain_ones(project, sample, unrendered):
    write_step(project, "print(repr(out))")
    given = {"out": PurePosixPath("out"), "thr": np.float64(0.5), "ids": np.array([1, 2]), "n": np.int64(3)}
    report.build(sample, project=project, parameters={"out": given}, progress=False)
    assert executed(project)["cells"][-1]["outputs"][0]["text"] == ["{'out': 'out', 'thr': 0.5, 'ids': [1, 2], 'n': 3}\n"]


def test_a_run_leaves_no_path_of_the_machine_and_no_notice(project, sample, tmp_path, capfd, unrendered):
    report.build(sample, project=project, progress=False)
    assert str(tmp_path) not in json.dumps(executed(project))
    assert str(sample.parent) not in json.dumps(executed(project))
    assert capfd.readouterr() == ("", "")


# Notebooks and contents as they stand in the repository


def test_bok_06_notebooks_are_kept_without_outputs_and_in_one_form():
    assert not list((PROJECT / "notebooks").rglob("*.ipynb"))
    for path in NOTEBOOKS:
        notebook = jupytext.read(path)
        assert not any(one.get("outputs") for one in notebook.cells), path.name
        assert jupytext.writes(notebook, "md:myst") == path.read_text(), f"{path.name}: run jupytext --to md:myst on it"


def test_every_step_has_a_parameters_cell_and_checks_it():
    for path in (PROJECT / "notebooks").glob("*.md"):
        code = [one for one in jupytext.read(path).cells if one.cell_type == "code"]
        assert code[0].metadata.tags == ["parameters"], path.name
        assert "check_parameters(" in code[1].source, path.name
        assert set(report._declared(jupytext.read(path))) <= set(pages.PARAMETERS), path.name


def test_contents_file_lists_every_step():
    text = (PROJECT / "_toc.yml").read_text()
    assert sorted(re.findall(r"book/executed/([\w/]+)", text)) == [report.step_name(path) for path in report.steps(PROJECT)]


def test_config_never_executes():
    assert yaml.safe_load((PROJECT / "_config.yml").read_text())["execute"]["execute_notebooks"] == "off"


def test_bok_03_requirements_hold_the_book_below_its_second_version():
    lines = [line for line in (PROJECT / "requirements.txt").read_text().splitlines() if line and line[0] not in "#-"]
    needed = {Requirement(line).name: str(Requirement(line).specifier) for line in lines}
    declared = [Requirement(text) for text in metadata.requires("evalkit") if "extra ==" not in text]
    assert needed == {one.name: str(one.specifier) for one in declared}
    assert "2.0" not in Requirement(f"jupyter-book{needed['jupyter-book']}").specifier
    assert metadata.version("jupyter-book") in Requirement(f"jupyter-book{needed['jupyter-book']}").specifier


# What notebooks show


def test_names_are_data_and_not_markup(sample):
    assert "&lt;i&gt;" in pages.banner(read_benchmark(sample), models=["<i>"]).data


def test_the_note_is_shown_if_there_is_one(sample):
    from dataclasses import replace

    benchmark = replace(read_benchmark(sample), note="one < two")
    assert "one &lt; two" in pages.note(benchmark).data
    assert "admonition" in pages.banner(benchmark).data
    assert "admonition" not in pages.banner(replace(benchmark, note="")).data


def test_a_picture_is_the_same_bytes_each_time():
    from matplotlib.figure import Figure

    def drawn() -> str:
        figure = Figure(figsize=(2, 1))
        figure.subplots().plot([1, 2], label="<x>")
        return pages.picture(figure, alt='bars "of" F2').data

    assert drawn() == drawn()
    assert 'alt="bars &quot;of&quot; F2"' in drawn()


def test_a_benchmark_without_predictions_is_told_before_anything_runs(project, sample, tmp_path):
    path = tmp_path / "bare" / "benchmark.yml"
    path.parent.mkdir()
    for name in ("classes.csv", "gold.jsonl"):
        shutil.copy(sample.parent / name, path.parent)
    path.write_text("classes: classes.csv\ngold: gold.jsonl\n")
    with pytest.raises(EvalkitError, match=r"benchmark\.yml: there are no predictions to report on"):
        report.build(path, project=project, progress=False)


def test_inputs_are_told_apart_by_their_role_and_the_names_in_a_folder(tmp_path):
    for name in ("x/preds.jsonl", "y/preds.jsonl", "labels/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    said = {
        "gold": str(tmp_path / "x/preds.jsonl"),
        "predictions": {"m": str(tmp_path / "y/preds.jsonl"), "folder": "labels"},
    }
    inputs = dict(reproduction.input_hashes(options_from(said, source="test"), tmp_path))
    assert list(inputs) == ["gold: preds.jsonl", "predictions m: preds.jsonl", "predictions folder: labels"]
    (tmp_path / "labels/a.txt").rename(tmp_path / "labels/b.txt")
    assert reproduction.digest(tmp_path / "labels") != inputs["predictions folder: labels"]

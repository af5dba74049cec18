"""Fixtures: the shared folder, and small benchmarks that are written as files and come in through the door."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import helpers
import hypothesis
import pytest
import small

import evalkit
from evalkit import report
from evalkit.sample import write_sample

# The same examples on every machine, so that a green run is green elsewhere; `--hypothesis-profile=search` looks for new ones.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("search", derandomize=False)
hypothesis.settings.load_profile("same")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder ``../shared``; the test is skipped where it is absent, and fails with EVALKIT_REQUIRE_SHARED set."""
    return helpers.shared("")


@pytest.fixture(scope="session", autouse=True)
def lessons_run_once(tmp_path_factory):
    """Teaching pages depend on the code only: what one build of a session made of them, the next one takes."""
    made, run = tmp_path_factory.mktemp("lessons"), report._run

    def run_once(name, notebook, parameters, folder, executed):
        digest = hashlib.sha256("\0".join(cell.source for cell in notebook.cells).encode()).hexdigest()
        kept, out = made / f"{digest}.ipynb", executed / f"{name}.ipynb"
        if name.startswith("teach/") and kept.exists():
            out.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(kept, out)
            return
        run(name, notebook, parameters, folder, executed)
        if name.startswith("teach/"):
            shutil.copy(out, kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "_run", run_once)
        yield


@pytest.fixture(scope="session")
def cases(shared) -> dict[str, dict]:
    """The shared cases by their ids."""
    lines = (shared / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


@pytest.fixture
def case(request, cases) -> SimpleNamespace:
    """The case after whose id the test is named: ``test_geo_01_...`` has GEO-01."""
    area, number = re.match(r"test_([a-z]+)_(\d\d)_", request.node.name).groups()
    found = cases[f"{area.upper()}-{number}"]
    return SimpleNamespace(given=found["minimal_input"], expected=found["expected"])


@pytest.fixture
def write_benchmark(tmp_path_factory):
    """A function that writes a benchmark of JSON lines and a class list, and returns the path of ``benchmark.yml``.

    ``gold`` is ``{image_id: boxes}`` and ``predictions`` ``{model: {image_id: boxes}}``, or lists of pairs, with boxes as
    ``small.as_row`` has them; ``classes`` is a list of names or ``{name: domain}``, by default the classes of gold.
    """

    def write(gold, predictions, *, classes=None) -> Path:
        folder = tmp_path_factory.mktemp("benchmark")
        if classes is None:
            pairs = gold.items() if isinstance(gold, dict) else gold
            classes = sorted({box[4] for _, boxes in pairs for box in boxes})
        return small.write_yml(
            folder,
            name="small",
            classes=small.write_classes(folder / "classes.csv", classes),
            gold=small.write_lines(folder / "gold.jsonl", gold),
            predictions={model: small.write_lines(folder / f"{model}.jsonl", said) for model, said in predictions.items()},
        )

    return write


@pytest.fixture
def make_benchmark(write_benchmark):
    """As ``write_benchmark``, and reads it."""
    return lambda *args, **options: evalkit.read_benchmark(write_benchmark(*args, **options))


@pytest.fixture(scope="session")
def book(tmp_path_factory) -> Path:
    """The folder of the pages of a book of the sample, made once for all tests that open it."""
    folder = tmp_path_factory.mktemp("book")
    project = helpers.copy_project(folder / "project")
    return report.build(write_sample(folder / "toytown", images=60), project=project, progress=False).parent

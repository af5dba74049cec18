"""Notebooks → papermill → book.

`build` checks what is cheap first, runs every notebook of the project on one benchmark and has jupyter-book render
the executed copies.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.formats.writing import replace_folder
from evalkit.pages import PARAMETERS, check_parameters
from evalkit.tables import CheckFailed, EvalkitError

if TYPE_CHECKING:
    from nbformat import NotebookNode

PROJECT = Path(__file__).resolve().parents[1]
KERNEL = "python3"
# The "full" file: the plain one fetches further parts, and one missing part stops all formulas of a page
MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js"
FOLDED = {"parameters": "Parameters and their defaults", "injected-parameters": "Parameters of this run"}  # cells by their tag
AT_A_TIME = 2  # notebooks; a kernel with the scientific stack takes a core and about 200 MB


def steps(project: Path = PROJECT) -> list[Path]:
    """List the notebooks of a project in the order of their numbers, and after them the teaching pages."""
    folder = Path(project) / "notebooks"
    return [*sorted(folder.glob("*.md")), *sorted((folder / "teach").glob("*.md"))]


def step_name(step: Path) -> str:
    """What a notebook is called: its path below ``notebooks`` without the ending."""
    return f"teach/{step.stem}" if step.parent.name == "teach" else step.stem


def build(
    benchmark: str | Path, *, project: Path = PROJECT, parameters: dict[str, Any] | None = None, progress: bool = True
) -> Path:
    """Run every notebook on a benchmark and render the book; return the path of its front page.

    Raises EvalkitError for an unreadable benchmark, an unknown or ill-typed parameter, a cell that fails and a
    warning of the book build. A book that was there before stays as it was until the new one is complete.
    """
    from tqdm import tqdm

    from evalkit.formats import read_benchmark

    project, path = Path(project).resolve(), Path(benchmark).resolve()
    notebooks = _read_notebooks(project)
    values = _plain(parameters or {}, notebooks)
    data = read_benchmark(path, models=values.get("models", ()))
    if not data.models:
        raise EvalkitError(f"{path.name}: there are no predictions to report on")
    if unknown := sorted(set(values.get("image_ids", ())) - set(data.images["image_id"].cat.categories)):
        raise EvalkitError(f"parameter image_ids: gold has no image {unknown[0]!r}")

    with (
        _alone(project),
        tqdm(total=len(notebooks) + 1, desc="report", unit="page", disable=not progress) as bar,
        ThreadPoolExecutor(AT_A_TIME) as pool,
    ):
        executed = _fresh(project / "book" / "executed")
        runs = [
            pool.submit(_run, name, notebook, {**values, "benchmark": path.name}, path.parent, executed)
            for name, notebook in notebooks.items()
        ]
        try:
            for run in as_completed(runs):
                run.result()
                bar.update()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        _render(project)
        bar.update()
    return project / "_build" / "html" / "index.html"


# What runs before a kernel starts


def _read_notebooks(project: Path) -> dict[str, NotebookNode]:
    import jupytext
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    notebooks = {step_name(step): jupytext.read(step) for step in steps(project)}
    if not notebooks:
        raise EvalkitError(
            f"{project}: no notebooks/*.md here; run `evalkit report` from a checkout of the project (pip install -e .)"
        )
    try:
        KernelSpecManager().get_kernel_spec(KERNEL)
    except NoSuchKernel:
        raise EvalkitError(f"no Jupyter kernel named {KERNEL}: run `{sys.executable} -m pip install ipykernel`") from None
    return notebooks


def _plain(parameters: dict[str, Any], notebooks: dict[str, NotebookNode]) -> dict[str, Any]:
    """Turn parameters into plain JSON values and check their names and types."""
    if "benchmark" in parameters:
        raise EvalkitError("parameter benchmark: the benchmark has an argument of its own")
    known = {name for notebook in notebooks.values() for name in _declared(notebook)} - {"benchmark"}
    if unknown := sorted(set(parameters) - known):
        raise EvalkitError(f"no notebook has a parameter {unknown[0]!r}; known are: {', '.join(sorted(known))}")
    values = {}
    for name, value in parameters.items():
        try:
            values[name] = json.loads(json.dumps(value, allow_nan=False, default=_to_json))
        except (TypeError, ValueError):
            raise EvalkitError(f"parameter {name}: must be a plain JSON value, not {value!r}") from None
    check_parameters(**{name: value for name, value in values.items() if name in PARAMETERS})
    return values


def _to_json(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError


def _declared(notebook: NotebookNode) -> list[str]:
    import papermill

    return list(papermill.inspect_notebook(notebook))


@contextlib.contextmanager
def _alone(project: Path) -> Iterator[None]:
    """Keep a second report out of the same folders; the lock ends with the process that holds it."""
    with (project / "book" / ".report.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EvalkitError(f"another report is being made in {project}") from None
        yield


def _fresh(folder: Path) -> Path:
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise EvalkitError(f"{folder}: cannot be written: {error.strerror}") from error
    return folder


# Running and rendering


def _run(name: str, notebook: NotebookNode, parameters: dict[str, Any], folder: Path, executed: Path) -> None:
    """Run one notebook in the benchmark's folder, with those parameters that it declares."""
    import nbformat
    import papermill
    from jupyter_core.utils import ensure_event_loop
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    out = executed / f"{name}.ipynb"
    out.parent.mkdir(exist_ok=True)
    where = f"notebooks/{name}.md"
    kept = f"the notebook with the trace is {out}"
    known = _declared(notebook)
    try:
        with contextlib.closing(ensure_event_loop()):  # this thread's own, which nbclient would leave open
            done = papermill.execute_notebook(
                notebook,
                str(out),
                {key: value for key, value in parameters.items() if key in known},
                kernel_name=KERNEL,
                progress_bar=False,
                # papermill's own cwd changes the folder of this whole process, which two runs at a time would share
                resources={"metadata": {"path": str(folder)}},
                shutdown_kernel="immediate",  # asked gently, ipykernel 7 may still print that it was interrupted
                # without it ipykernel 7 prints a notice about its transport for each kernel
                config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            )
    except papermill.PapermillExecutionError as error:
        if error.ename == CheckFailed.__name__:
            raise CheckFailed(f"{where}: {error.evalue}") from error
        message = " ".join(str(error.evalue).split())
        raise EvalkitError(f"{where}, cell {error.exec_count}: {error.ename}: {message}; {kept}") from error
    except DeadKernelError as error:
        raise EvalkitError(f"{where}: the kernel died, perhaps out of memory; {kept}") from error
    for cell in done.cells:
        if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None:
            raise EvalkitError(f"{where}: stopped before its last cell; {kept}")
        for tag in FOLDED.keys() & set(cell.metadata.get("tags", [])):
            cell.metadata.tags.append("hide-input")
            cell.metadata.mystnb = dict.fromkeys(["code_prompt_show", "code_prompt_hide"], FOLDED[tag])
    for key in ("input_path", "output_path"):  # readers download the notebook: no path of this machine in it
        done.metadata.papermill.pop(key, None)
    nbformat.write(done, out)


def _render(project: Path) -> None:
    """Render the book beside the present one and put it in its place once it is complete and without a warning."""
    fresh = render(project, project / "_build.new")
    book, before = project / "_build", project / "_build.old"
    shutil.rmtree(before, ignore_errors=True)
    replace_folder(fresh / "_build", book, before)
    for folder in (before, fresh):
        shutil.rmtree(folder, ignore_errors=True)


def render(project: Path, fresh: Path, *, builder: str = "html") -> Path:
    """Render the executed notebooks and the other pages into an emptied folder; raise EvalkitError for any warning."""
    mathjax = _fresh(project / "book" / "vendor" / "mathjax")
    shutil.copy(metadata.distribution("sphinx-mathjax-offline").locate_file(MATHJAX), mathjax)
    _fresh(fresh)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(project)]
    options = ["--path-output", str(fresh), "--builder", builder, "-W", "-n", "--keep-going"]
    done = subprocess.run(
        command + options,
        cwd=project,
        env={**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).replace(f"{project}{os.sep}", "").replace("rror:\n", "rror: ")
        told = re.findall(r"^.*(?:WARNING|ERROR|CRITICAL|rror:).*$", text, re.MULTILINE) or text.splitlines()[-5:]
        rest = [f"... and {len(told) - 5} more"] if len(told) > 5 else []
        shutil.rmtree(fresh, ignore_errors=True)
        raise EvalkitError("\n".join(["the book did not build:", *told[:5], *rest]))
    return fresh

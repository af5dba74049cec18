"""Notebooks → papermill → book.

`build` checks what is cheap first, runs every notebook of the project on one benchmark and has jupyter-book render
the executed copies. The functions below it are what the notebooks themselves call.
"""

from __future__ import annotations

import base64
import html
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from importlib import metadata
from numbers import Real
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.tables import Benchmark, EvalkitError

if TYPE_CHECKING:
    from IPython.display import HTML
    from matplotlib.figure import Figure
    from nbformat import NotebookNode

PROJECT = Path(__file__).resolve().parents[1]
KERNEL = "python3"
# The "full" file: the plain one fetches further parts, and one missing part stops all formulas of a page
MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg-full.js"
AT_A_TIME = 2  # notebooks; a kernel with the scientific stack takes a core and about 200 MB


def steps(project: Path = PROJECT) -> list[Path]:
    """List the notebooks of a project in the order of their numbers."""
    return sorted((Path(project) / "notebooks").glob("*.md"))


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
    read_benchmark(path)
    executed = _fresh(project / "book" / "executed")

    with (
        tqdm(total=len(notebooks) + 1, desc="report", unit="page", disable=not progress) as bar,
        ThreadPoolExecutor(AT_A_TIME) as pool,
    ):
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

    notebooks = {step.stem: jupytext.read(step) for step in steps(project)}
    if not notebooks:
        raise EvalkitError(f"{project}: no notebooks/*.md here; give the folder of the project")
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
    where = f"notebooks/{name}.md"
    kept = f"the notebook with the trace is {out}"
    known = _declared(notebook)
    try:
        with closing(ensure_event_loop()):  # this thread's own, which nbclient would leave open
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
        message = " ".join(str(error.evalue).split())
        raise EvalkitError(f"{where}, cell {error.exec_count}: {error.ename}: {message}; {kept}") from error
    except DeadKernelError as error:
        raise EvalkitError(f"{where}: the kernel died, perhaps out of memory; {kept}") from error
    for cell in done.cells:
        if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None:
            raise EvalkitError(f"{where}: stopped before its last cell; {kept}")
    for key in ("input_path", "output_path"):  # readers download the notebook: no path of this machine in it
        done.metadata.papermill.pop(key, None)
    nbformat.write(done, out)


def _render(project: Path) -> None:
    """Render the book beside the present one and put it in its place once it is complete and without a warning."""
    mathjax = _fresh(project / "book" / "vendor" / "mathjax")
    shutil.copy(metadata.distribution("sphinx-mathjax-offline").locate_file(MATHJAX), mathjax)
    fresh = _fresh(project / "_build.new")
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(project)]
    options = ["--path-output", str(fresh), "-W", "-n", "--keep-going"]
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
    book, before = project / "_build", project / "_build.old"
    shutil.rmtree(before, ignore_errors=True)
    if book.exists():
        book.rename(before)
    (fresh / "_build").rename(book)
    for folder in (before, fresh):
        shutil.rmtree(folder, ignore_errors=True)


# What the notebooks call


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_threshold(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and 0 < value <= 1


def _each(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(test, value))


# Every parameter a notebook may declare: its test, and the rule in words
PARAMETERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "benchmark": (_is_text, "must be text, the path of a benchmark.yml"),
    "models": (_each(_is_text), "must be a list of names, [] for all models"),
    "image_ids": (_each(_is_text), "must be a list of ids, each of them text"),
    "iou": (lambda value: bool(_each(_is_threshold)(value) and value), "must be a list of numbers above 0, up to 1"),
    "headline_iou": (_is_threshold, "must be a number above 0, up to 1"),
    "require_complete": (lambda value: isinstance(value, bool), "must be true or false"),
}


def check_parameters(**parameters: Any) -> None:
    """Check the values that a notebook runs with; its first cell after the parameters calls this.

    The shell guesses types (`-p image_id 00012` arrives as the number 12, a list arrives as text), and a wrong type
    would otherwise show as a wrong table. Raises EvalkitError with the parameter, the rule and the value.
    """
    for name, value in parameters.items():
        if name not in PARAMETERS:
            raise EvalkitError(f"parameter {name}: not known; known are: {', '.join(PARAMETERS)}")
        test, rule = PARAMETERS[name]
        if not test(value):
            hint = f" (in the shell: papermill -y '{{{name}: …}}' keeps types)" if isinstance(value, str | int) else ""
            raise EvalkitError(f"parameter {name}: {rule}, not {value!r}{hint}")
    if {"iou", "headline_iou"} <= set(parameters) and parameters["headline_iou"] not in parameters["iou"]:
        raise EvalkitError(
            f"parameter headline_iou: must be one of iou {list(parameters['iou'])}, not {parameters['headline_iou']!r}"
        )


def note(benchmark: Benchmark) -> HTML:
    """Show the benchmark's note as a box that stands out; nothing if it has none."""
    from IPython.display import HTML

    if not benchmark.note:
        return HTML("<!-- no note -->")
    text = html.escape(benchmark.note)
    return HTML(f'<div class="admonition note"><p class="admonition-title">About these data</p><p>{text}</p></div>')


def banner(benchmark: Benchmark, **parameters: Any) -> HTML:
    """Show what a page reports on: the benchmark's name and size, the parameters of the run, and the note."""
    from IPython.display import HTML

    parts = [f"<strong>{html.escape(benchmark.name)}</strong>", f"{len(benchmark.images):,} images"]
    parts += [f"{name} <code>{html.escape(json.dumps(value, ensure_ascii=False))}</code>" for name, value in parameters.items()]
    return HTML(f'<p class="run">{" · ".join(parts)}</p>{note(benchmark).data}')


def picture(figure: Figure, *, alt: str) -> HTML:
    """Show a figure as SVG with a text for those who do not see it; the same figure gives the same bytes.

    Unlike a figure itself, whose SVG stays on its page, the result can be glued into other pages.
    """
    import matplotlib as mpl
    from IPython.display import HTML

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "evalkit"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return HTML(f'<img class="figure" alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}">')

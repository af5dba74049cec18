"""Files to tables: one module for each kind of file, and one door through which all of them come.

``read_benchmark`` is that door. A reader turns one file into :class:`evalkit.tables.Annotations`; the checks of
:mod:`evalkit.tables` turn those into tables or say what is wrong.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from evalkit.first_pass import FirstPass, first_pass_tables
from evalkit.formats import answers, beside, coco, first_pass, folders, jsonl, long, memory, openimages, xmlfiles
from evalkit.formats.decoding import one_finding, stays_inside
from evalkit.formats.options import BenchmarkOptions, Context, FileOptions, options_from, read_options
from evalkit.formats.sizes import with_picture_sizes
from evalkit.responses import reader
from evalkit.tables import (
    Annotations,
    Benchmark,
    DataError,
    EvalkitError,
    Finding,
    Response,
    checked_response,
    classes_table,
    gold_tables,
    response_tables,
)


class Format(NamedTuple):
    """A kind of file: its reader, the endings that tell it, and the options it has beside those of every file."""

    read: Callable[[Path, FileOptions, Context], Annotations]
    endings: tuple[str, ...]
    options: frozenset[str] = frozenset()


FORMATS: dict[str, Format] = {
    "jsonl": Format(jsonl.read, (".jsonl", ".jsonl.gz"), frozenset({"reader"})),
    "coco": Format(coco.read, (".json", ".json.gz"), frozenset({"crowd"})),
    "yolo": Format(folders.read, (), frozenset({"names", "sizes", "units", "columns"})),
    "csv": Format(long.read, (".csv",), frozenset({"columns", "where"})),
    "parquet": Format(long.read, (".parquet",), frozenset({"columns", "where"})),
    "voc": Format(xmlfiles.read_voc, ()),
    "cvat": Format(xmlfiles.read_cvat, (".xml",)),
    "openimages": Format(openimages.read, (), frozenset({"sizes", "crowd"})),
}
CONVERTIBLE = ("jsonl", "csv", "parquet", "coco", "yolo")  # what :mod:`evalkit.formats.export` writes
SILENT_GOLD = {"yolo", "openimages"}  # what lists its images elsewhere may be silent about some

__all__ = ["benchmark_from", "options_from", "read_answers", "read_benchmark", "read_classes", "read_first_pass"]


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Decoded rows hold no cycles, and looking for some costs more than the decoding."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_collector_off()
def read_benchmark(source: str | Path | BenchmarkOptions, *, models: Sequence[str] = (), folder: str | Path = ".") -> Benchmark:
    """Read a benchmark and check it, once.

    Parameters
    ----------
    source : path of ``benchmark.yml``, or its contents as BenchmarkOptions (then paths are relative to ``folder``)
    models : names of the models to read, in this order; all of the file by default

    Raises
    ------
    DataError
        With everything that is wrong in the first of these that has faults: the class list, gold, all predictions.
    EvalkitError
        For a ``benchmark.yml`` that is not there or not understood, and for a model that it does not name.
    """
    if isinstance(source, BenchmarkOptions):
        options, folder, name = source, Path(folder), "benchmark"
    else:
        options, folder, name = read_options(Path(source)), Path(source).parent, Path(source).name
    if isinstance(models, str):
        raise EvalkitError(f"models must be a list of names, not {models!r}")
    absent = [model for model in models if model not in options.predictions]
    if absent:
        known = ", ".join(options.predictions) or "none"
        raise EvalkitError(f"{name}: there is no model {absent[0]!r}; it has {known}")
    if options.gold is None:
        raise EvalkitError(f"{name}: `gold` is needed, a file of annotations")
    classes = read_classes(folder / options.classes) if options.classes else None
    names = {} if classes is None else dict(zip(classes["class_id"], classes["class_name"], strict=True))
    categories = names
    said = _read(options.gold, Context(folder, names, categories))
    if said.categories is not None:
        listed = classes_table(said.categories, file=said.file, place="categories[{}]".format)
        categories = dict(zip(listed["class_id"], listed["class_name"], strict=True))
        classes, names = (listed, categories) if classes is None else (classes, names)
    if classes is None:
        raise EvalkitError(f"{name}: `classes` is needed, a CSV class_id,class_name,domain (only COCO gold brings its own)")
    readers = {
        model: reader(text)
        for model in models or options.predictions
        if (text := options.predictions[model].reader) is not None
    }
    if options.images:
        _refuse_pictures_outside(said)
    if options.images and any(convention.scale for convention in readers.values()):
        said = with_picture_sizes(said, folder / options.images)
    images, gold = gold_tables(said, classes)
    more = {}
    if options.semantic:
        cutoff = beside.read_cutoff(options.semantic.cutoff, where=f"{name}, semantic")
        more["relation"] = beside.read_relation(folder / options.semantic.path, classes, cutoff=cutoff)
    if options.slices:
        more["slices"] = beside.read_slices(folder / options.slices, images)
    notes = [(said.file, *note) for note in said.notes]

    context = Context(folder, names, categories, images)
    row_of = {name: row for row, name in enumerate(said.image_id)}
    responses: dict[str, Response] = {}
    findings: list[Finding] = []
    relative: list[str] = []
    for model in models or options.predictions:
        one = options.predictions[model]
        try:
            said = _read(one, context)
            responses[model] = checked_response(said, images, absent=one.absent, bad_box=one.bad_box, row_of=row_of)
            notes += [(said.file if one.reader is None else model, *note) for note in said.notes]
            relative += [model] * said.relative
        except DataError as error:
            findings += error.findings
    if findings:
        raise DataError(findings)
    return _benchmark(
        classes,
        images,
        gold,
        responses,
        name=options.name or (folder.resolve().name if name == "benchmark.yml" else Path(name).stem),
        note=options.note,
        image_folder=folder / options.images if options.images else None,
        notes=tuple(notes),
        readers={model: str(convention) for model, convention in readers.items()},
        relative=tuple(relative),
        **more,
    )


def benchmark_from(
    gold: Mapping[Any, Any] | pd.DataFrame,
    predictions: Mapping[str, Mapping[Any, Any] | pd.DataFrame] | None = None,
    *,
    classes: Sequence[str] | Mapping[str, str] | pd.DataFrame,
    sizes: Mapping[Any, tuple[float, float]] | None = None,
    absent: str = "missing",
    relation: Mapping[str, Mapping[str, float]] | pd.DataFrame | None = None,
    cutoff: float | None = None,
    slices: pd.DataFrame | None = None,
    name: str = "benchmark",
    note: str = "",
) -> Benchmark:
    """Make a benchmark from what is in memory, without any file; checked as :func:`evalkit.formats.read_benchmark` does.

    Parameters
    ----------
    gold : ``{image id: [(class, x_min, y_min, x_max, y_max), ...]}``, or a table with these columns and ``image_id``, a row for
        each box; an image without boxes has an empty list, or a row without class and coordinates. Pixels.
    predictions : for each model the same, where a box may end with a score. In a mapping, None stands for a missing answer
        and ``{"status": "invalid", "reason": "..."}`` for one that could not be read.
    classes : names, or ``{name: domain}``, or a table ``class_name[, class_id, domain]``
    sizes : width and height of images in pixels, where they are known
    absent : what an image means that a model's predictions lack, ``missing`` or ``empty``
    relation, cutoff : which predicted class is accepted for which gold class, ``{gold class: {predicted class: value}}`` with 0
        for what is not named and 1 on the diagonal, or a table of all cells; both or neither
    slices : table ``image_id, attribute, value``

    Raises
    ------
    DataError
        With everything that is wrong in the first of these that has faults: the class list, gold, all predictions.
    EvalkitError
        For an argument of the wrong kind.

    Examples
    --------
    >>> gold = {"a1": [("litter", 0, 0, 10, 10), ("pothole", 20, 0, 30, 10)], "a2": []}
    >>> said = {"a1": [("litter", 0, 0, 10, 5)], "a2": None}
    >>> benchmark = benchmark_from(gold, {"model": said}, classes=["litter", "pothole"])
    >>> benchmark.responses["state"].tolist()
    ['valid', 'missing']
    """
    if absent not in ("missing", "empty"):
        raise EvalkitError(f"absent must be missing or empty, not {absent!r}")
    if (relation is None) != (cutoff is None):
        raise EvalkitError("relation and cutoff come together")
    if not isinstance(predictions or {}, Mapping) or not all(isinstance(model, str) for model in predictions or {}):
        raise EvalkitError("predictions must be a mapping of models to what each predicted")
    rows, place = memory.class_rows(classes)
    listed = classes_table(rows, file="classes", place=place)
    images, boxes = gold_tables(memory.read(gold, file="gold", is_gold=True, sizes=sizes), listed)
    more = {}
    if relation is not None:
        cells = memory.relation_cells(relation, list(listed["class_name"]))
        more["relation"] = beside.relation_from(cells, listed, cutoff=beside.read_cutoff(str(cutoff), where="relation"))
    if slices is not None:
        more["slices"] = beside.slices_from(slices.astype(str), images, file="slices", place="row {}".format)
    said: dict[str, Response] = {}
    findings: list[Finding] = []
    for model, one in (predictions or {}).items():
        try:
            told = memory.read(one, file=f"predictions of {model}", is_gold=False)
            said[model] = checked_response(told, images, absent=absent)
        except DataError as error:
            findings += error.findings
    if findings:
        raise DataError(findings)
    return _benchmark(listed, images, boxes, said, name=name, note=note, **more)


def _benchmark(
    classes: pd.DataFrame,
    images: pd.DataFrame,
    gold: pd.DataFrame,
    said: Mapping[str, Response],
    **more: Any,
) -> Benchmark:
    """Join the models; names outside the class list become classes of all tables."""
    responses, predictions = response_tables(said, images, classes)
    gold["class"] = gold["class"].cat.set_categories(predictions["class"].cat.categories)
    return Benchmark(classes=classes, images=images, gold=gold, responses=responses, predictions=predictions, **more)


def read_answers(source: str | Path, model: str) -> dict[str, str]:
    """The raw text of a model's answers by image id, read anew: the tables of a benchmark do not keep it.

    ``source`` is the path of ``benchmark.yml``. A row with ``error`` has its message, a null response is empty.

    Raises EvalkitError for a model that is not there or has no ``reader``, and DataError as for any file.
    """
    one = read_options(Path(source)).predictions.get(model)
    if one is None or one.reader is None:
        raise EvalkitError(f"{Path(source).name}: there is no model {model!r} whose own text is read")
    return answers.read_texts(Path(source).parent / one.path)


@_collector_off()
def read_first_pass(
    source: str | Path | BenchmarkOptions, *, folder: str | Path = ".", benchmark: Benchmark | None = None
) -> FirstPass | None:
    """Read the first pass of a benchmark and check it; None where the benchmark has none.

    Parameters
    ----------
    source : path of ``benchmark.yml``, or its contents (then paths are relative to ``folder``)
    benchmark : the benchmark, if it is read already; else its classes and gold are read, and no predictions

    Without gold the images are those that the first pass names.

    Raises DataError and EvalkitError as :func:`read_benchmark`, and as :func:`evalkit.first_pass.first_pass_tables`.
    """
    if isinstance(source, BenchmarkOptions):
        options, folder = source, Path(folder)
        name = options.name
    else:
        options, folder = read_options(Path(source)), Path(source).parent
        name = options.name or (folder.resolve().name if Path(source).name == "benchmark.yml" else Path(source).stem)
    if options.first_pass is None:
        return None
    if options.gold is not None and benchmark is None:
        benchmark = read_benchmark(msgspec.structs.replace(options, name=name, predictions={}), folder=folder)
    classes = benchmark.classes if benchmark else read_classes(folder / options.classes) if options.classes else None
    names = {} if classes is None else dict(zip(classes["class_id"], classes["class_name"], strict=True))
    context = Context(folder, names, names, benchmark.images if benchmark else None)
    path = context.path(options.first_pass.path)
    said = first_pass.read(path, options.first_pass.format or format_of(path), options.first_pass, context)
    if classes is None and said.annotations.categories is not None:
        classes = classes_table(said.annotations.categories, file=said.annotations.file, place="categories[{}]".format)
    if classes is None:
        raise EvalkitError(f"{path.name}: `classes` is needed, a CSV class_id,class_name,domain (only COCO brings its own)")
    return first_pass_tables(*said, classes, benchmark=benchmark, name=name)


def read_classes(path: str | Path) -> pd.DataFrame:
    """Read ``class_id,class_name,domain`` (``domain`` may be left out); every cell is text.

    Raises DataError as :func:`evalkit.tables.classes_table` does, and for a header without the two first columns.
    """
    path = Path(path)
    rows = long.read_text_table(path)
    lacking = [name for name in ("class_id", "class_name") if name not in rows]
    if lacking:
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(rows.columns)}"
        raise one_finding(path.name, "columns", text, place="line 1")
    return classes_table(rows, file=path.name, place=lambda row: f"line {rows.index[row]}")


def _read(options: FileOptions, context: Context) -> Annotations:
    """Read one file by its format, which is told by its ending unless it is given."""
    path = context.path(options.path)
    kind = options.format or format_of(path)
    form = FORMATS[kind]
    special = frozenset().union(*(one.options for one in FORMATS.values()))
    wrong = sorted(name for name in special - form.options if getattr(options, name) is not None)
    wrong += ["assignments"] * (options.assignments is not None)
    if context.is_gold:
        wrong += ["reader"] * (options.reader is not None)
        wrong += ["bad_box"] * (options.bad_box != "invalid") + ["absent"] * (
            options.absent is not None and kind not in SILENT_GOLD
        )
    if wrong:
        whose = "gold in " if context.is_gold else ""
        raise EvalkitError(f"{options.path}: `{wrong[0]}` is no option of {whose}the format {kind}")
    if options.reader is not None and options.bad_box != "invalid":
        raise EvalkitError(f"{options.path}: `bad_box` is no option of a file with `reader`")
    try:
        return (form.read if options.reader is None else answers.read)(path, options, context)
    except DataError as error:
        if context.is_gold or kind != "jsonl":
            raise
        raise DataError(answers.name_wrong_reader(error.findings)) from None


def _refuse_pictures_outside(said: Annotations) -> None:
    """Raise for a file name that leaves the folder of pictures; where there is no such folder, a name is just a name."""
    text = "file_name {!r} leaves the folder of the pictures"
    findings = [
        Finding(said.file, said.place(row), said.image_id[row], "path.outside", text.format(name))
        for row, name in enumerate(said.file_name or ())
        if name and not stays_inside(name)
    ]
    if findings:
        raise DataError(findings)


def format_of(path: Path) -> str:
    """The format that the ending of a path tells. Raises EvalkitError for one that tells none, DataError for no file."""
    for kind, form in FORMATS.items():
        if path.name.endswith(form.endings or ("\0",)):
            return kind
    if path.is_dir():
        return "voc" if any(path.rglob("*.xml")) and not any(path.rglob("*.txt")) else "yolo"
    if not path.exists():
        raise one_finding(path.name, "file.absent", f"there is no file {str(path)!r}")
    raise EvalkitError(f"{path.name}: the format is not told by the ending; set `format` to one of {', '.join(FORMATS)}")

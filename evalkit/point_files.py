"""Files of point benchmarks: samples (JSON lines, Parquet shards), models' answers, and the counts of samples."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import UNSET, UnsetType
from PIL import Image

from evalkit.formats.decoding import decode_lines, one_finding
from evalkit.formats.sizes import displayed_size
from evalkit.masks import MaskFault, rings_of
from evalkit.point_benchmarks import NO_OBJECT, OBJECTS, PointBenchmark
from evalkit.tables import DataError, Finding, broken, close_ids, hint, image_ids

GOLD_SCALE = 100  # of gold points in Parquet, as PixMo has them; in JSON lines they are pixels
ROWS_AT_A_TIME = 8  # of a Parquet file, whose pictures are held in memory


class Sample(NamedTuple):
    """One sample as its file has it; masks are read when they are needed.

    ``count`` is G, ``points`` are gold points in pixels, ``yes`` the right answer of a yes/no sample, and ``place`` says where
    the sample stands, in words.
    """

    sample_id: str
    file: str
    place: str
    subset: str
    size: tuple[int, int]
    targets: tuple[Any, ...] = ()  # masks as bytes, paths or arrays; or the rings of polygons
    count: int = 0
    points: np.ndarray | None = None
    yes: bool | None = None
    question: str = ""
    image: bytes | Path | None = None
    notes: tuple[str, ...] = ()


class AnswerRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    sample_id: str | int
    response: str | UnsetType | None = UNSET
    error: str | UnsetType = UNSET


@dataclass(frozen=True)
class Answers:
    """One model's answers: by sample, the text, or None for a call that failed; and where each stands."""

    file: str
    texts: Mapping[str, str | None]
    places: Mapping[str, str]


class _Fault(Exception):
    """What is wrong with a sample: the rule, and the message."""


def read_samples(paths: Sequence[Path], benchmark: PointBenchmark) -> Iterator[Sample | Finding]:
    """The samples of a benchmark one by one, or what is wrong with one; masks are not opened.

    A folder stands for its Parquet files, in the order of their names. A field has our name or the data set's own. The id is
    ``sample_id`` or the data set's own id; where it has none, the number of the row, counted from 0 through all files (with one
    file a subset: within each, after the subset's name and a slash, which then stands before the data set's own ids too).

    Raises DataError for a file that cannot be read.
    """
    rows = 0
    seen: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for path in _files(paths):
        for place, row in _rows(path):
            rows += 1
            sample_id, subset, fault = "", "", None
            try:
                try:
                    subset = _subset(row, benchmark, path)
                except _Fault as found:
                    fault = found  # told when the id is known
                sample_id = _sample_id(row, benchmark, subset, numbers, is_parquet=path.suffix == ".parquet")
                if fault:
                    raise fault
                where = f"{path.name}, {place}"
                if sample_id in seen:
                    raise _Fault("sample.twice", f"duplicate sample: {sample_id!r} was there at {seen[sample_id]}")
                seen[sample_id] = where
                yield _sample(row, benchmark, path, place, sample_id, subset)
            except _Fault as fault:
                yield sample_finding(path.name, place, sample_id, *fault.args)
            except MaskFault as fault:
                yield sample_finding(path.name, place, sample_id, fault.rule, fault.text)
    if not rows:
        yield Finding(", ".join(path.name for path in paths), "", "", "samples.empty", "there is no sample in it")


def sample_finding(file: str, place: str, sample_id: str, rule: str, text: str) -> Finding:
    where = ", ".join(part for part in (place, sample_id and f"sample {sample_id}") if part)
    return Finding(file, where, "", rule, text)


def read_answers(path: Path) -> Answers:
    """One model's answers, JSON lines of ``sample_id`` and ``response`` or ``error``; a null response is none.

    Raises DataError for a line that is not that, and for a sample that has two.
    """
    rows, place = decode_lines(path, AnswerRow, lenient_boxes=False)
    ids = image_ids([row.sample_id for row in rows])
    texts: dict[str, str | None] = {}
    places: dict[str, str] = {}
    findings = []
    for number, (sample_id, row) in enumerate(zip(ids, rows, strict=True)):
        if (row.response is UNSET) == (row.error is UNSET):
            text = "an answer needs either `response` or `error`, and just one of them"
            findings.append(sample_finding(path.name, place(number), sample_id, "row.answer", text))
        if sample_id in places:
            text = f"duplicate answer: {sample_id!r} was there at {places[sample_id]}"
            findings.append(sample_finding(path.name, place(number), sample_id, "answer.twice", text))
        places.setdefault(sample_id, place(number))
        if row.error is not UNSET:
            texts[sample_id] = None
        elif row.response is not None:
            texts[sample_id] = row.response
    if findings:
        raise DataError(findings)
    return Answers(path.name, texts, places)


def unknown_answers(answers: Answers, known: Sequence[str]) -> Iterator[Finding]:
    """A finding for each answer whose sample is not there."""
    there = set(known)
    absent = [one for one in answers.places if one not in there]
    near = close_ids(absent, known) if absent else {}
    for sample_id in absent:
        text = f"there is no sample {sample_id!r}" + (f" ({hint(sample_id, near[sample_id])})" if sample_id in near else "")
        yield sample_finding(answers.file, answers.places[sample_id], sample_id, "answer.unknown", text)


# -- rows -------------------------------------------------------------------------------------------------------------


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        found = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not found:
            raise one_finding(path.name, "file.absent", f"there is no Parquet file in the folder {str(path)!r}")
        yield from found


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, each with its place in words."""
    if path.suffix != ".parquet":
        rows, place = decode_lines(path, dict, lenient_boxes=False)
        yield from ((place(number), row) for number, row in enumerate(rows))
        return
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_A_TIME):
                for at in range(len(batch)):
                    yield f"row {number}", {name: _plain(batch[name][at]) for name in batch.schema.names}
                    number += 1
    except FileNotFoundError:
        raise one_finding(path.name, "file.absent", f"there is no file {str(path)!r}") from None
    except (OSError, pa.ArrowException) as error:
        raise one_finding(path.name, "file.unreadable", f"cannot read it: {error}") from None


def _plain(value: pa.Scalar) -> Any:
    """A cell as Python has it; rows of whole numbers or booleans become arrays, which hold them in less."""
    kind = value.type
    if value.is_valid and pa.types.is_list(kind) and pa.types.is_list(kind.value_type):
        inner = kind.value_type.value_type
        if _is_level(inner):
            return _array(value)
        if pa.types.is_list(inner) and _is_level(inner.value_type):
            return [_array(rows) for rows in value.values]
    return value.as_py()


def _is_level(kind: pa.DataType) -> bool:
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind)


def _array(rows: pa.ListScalar) -> Any:
    """An array of shape (rows, columns); the lists themselves where rows differ in length or a value is null."""
    lengths = rows.values.value_lengths().to_numpy(zero_copy_only=False) if rows.is_valid else []
    if not len(lengths) or (lengths != lengths[0]).any() or (flat := rows.values.flatten()).null_count:
        return rows.as_py()
    return flat.to_numpy(zero_copy_only=False).reshape(len(lengths), -1)


def _get(row: Mapping[str, Any], benchmark: PointBenchmark, field: str) -> Any:
    """The value of one of our fields, under our name or the data set's; None where it is absent."""
    found = row.get(field)
    return row.get(benchmark.fields.get(field, "")) if found is None else found


def _subset(row: Mapping[str, Any], benchmark: PointBenchmark, path: Path) -> str:
    """The subset of a sample: from gold points, its category, or the name of its file."""
    if benchmark.target == "masks":
        return OBJECTS if len(_points(row, benchmark)) else NO_OBJECT
    said = _get(row, benchmark, "category")
    if said is None and benchmark.splits:
        said = next((one for one in benchmark.subsets if path.stem.casefold().startswith(one)), None)
    if said is None and not benchmark.subsets and "category" not in benchmark.fields:
        return ""
    if not isinstance(said, str) or not said.strip() or broken(said):
        raise _Fault("sample.category", f"a sample of {benchmark.name} needs a category, not {said!r}")
    spelt = {one.casefold(): one for one in benchmark.subsets}
    if benchmark.subsets and said.strip().casefold() not in spelt:
        known = ", ".join(benchmark.subsets)
        raise _Fault("sample.category", f"{benchmark.name} has no category {said!r}; it has {known}")
    return spelt.get(said.strip().casefold(), said.strip())


def _sample_id(
    row: Mapping[str, Any], benchmark: PointBenchmark, subset: str, numbers: dict[str, int], *, is_parquet: bool
) -> str:
    given, theirs = row.get("sample_id"), benchmark.fields.get("mask", "mask")
    own = row.get(benchmark.fields.get("sample_id", ""))
    before = f"{subset}/" if benchmark.splits and is_parquet and given is None else ""
    is_the_data_set = is_parquet or (theirs != "mask" and theirs in row)
    if given is None and "sample_id" not in benchmark.fields and is_the_data_set:
        own = numbers[before] = numbers.get(before, -1) + 1
    value = own if given is None else given
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _Fault("sample.id", f"a sample needs an id that is text or a whole number, not {value!r}")
    (sample_id,) = image_ids([value])
    if not sample_id.strip() or broken(sample_id):
        raise _Fault("sample.id", f"a sample needs an id, not {value!r}")
    return before + sample_id


def _sample(row: Mapping[str, Any], benchmark: PointBenchmark, path: Path, place: str, sample_id: str, subset: str) -> Sample:
    image = _source(_get(row, benchmark, "image"), path.parent, "image")
    question = _get(row, benchmark, "question")
    about = {"question": question if isinstance(question, str) else "", "image": image}
    size, notes = _size(row, benchmark, image, needed=subset not in benchmark.binary)
    head = sample_id, path.name, place, subset, size
    if subset in benchmark.binary:
        return Sample(*head, yes=_yes(_get(row, benchmark, "answer")), notes=notes, **about)
    if benchmark.target == "polygons":
        targets: Sequence[Any] = rings_of(_json(_get(row, benchmark, "polygons")))
        return Sample(*head, targets=tuple(targets), count=1, notes=notes, **about)
    if benchmark.target == "masks":
        points = _points(row, benchmark) * (np.array(size) / GOLD_SCALE if path.suffix == ".parquet" else 1)
        said = _get(row, benchmark, "masks")
        targets = [_source(one, path.parent, "mask") for one in (said if isinstance(said, list) else [])]
        if len(targets) != len(points):
            text = f"each gold point needs a mask of its instance: there are {len(points)} points and {len(targets)} masks"
            raise _Fault("sample.masks", text)
        return Sample(*head, targets=tuple(targets), count=max(1, len(points)), points=points, notes=notes, **about)
    mask = _source(_get(row, benchmark, "mask"), path.parent, "mask")
    if mask is None:
        raise _Fault("mask.absent", "the sample has no mask")
    count = _whole(_get(row, benchmark, "expected_count"), "expected_count") if "expected_count" in benchmark.fields else 1
    return Sample(*head, targets=(mask,), count=count, notes=notes, **about)


# -- fields -----------------------------------------------------------------------------------------------------------


def _json(value: Any) -> Any:
    """A value that may be written as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise _Fault("json.malformed", f"this is not JSON: {value[:40]!r}") from None


def _source(value: Any, folder: Path, what: str) -> Any:
    """A picture as bytes, a path or an array, from the ways in which files hold one; None where there is none."""
    if isinstance(value, Mapping):
        value = value.get("path") if value.get("bytes") is None else value["bytes"]
    if isinstance(value, str):
        if not value.strip() or "\0" in value:
            raise _Fault("sample.path", f"the path of the {what} is {value!r}")
        return folder / value
    if value is None or isinstance(value, bytes) or (what == "mask" and isinstance(value, list | np.ndarray)):
        return value
    may = "a path, bytes or rows of numbers" if what == "mask" else "a path or bytes"
    raise _Fault("sample.kind", f"the {what} must be {may}, not {type(value).__name__}")


def _whole(value: Any, what: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise _Fault("sample.number", f"{what} must be a whole number from 1 on, not {value!r}")
    return value


def _size(
    row: Mapping[str, Any], benchmark: PointBenchmark, image: Any, *, needed: bool
) -> tuple[tuple[int, int], tuple[str, ...]]:
    """Width and height of the image, given or looked up in the picture, and what was noticed about it."""
    given = [_get(row, benchmark, name) for name in ("width", "height")]
    if any(value is not None for value in given):
        width, height = (_whole(value, name) for value, name in zip(given, ("width", "height"), strict=True))
        return (width, height), ()
    if not needed:
        return (0, 0), ()
    if not isinstance(image, bytes | Path):
        raise _Fault("image.no_size", "the sample needs `width` and `height`, or an image that has them")
    try:
        with Image.open(io.BytesIO(image) if isinstance(image, bytes) else image) as picture:
            size, turned = displayed_size(picture)
    except Exception as error:  # Pillow's decoders raise all kinds of errors on broken files
        raise _Fault("image.unreadable", f"cannot read the size of the image: {error}") from None
    return size, ("picture_turned",) if turned else ()


def _points(row: Mapping[str, Any], benchmark: PointBenchmark) -> np.ndarray:
    """Gold points as written, shape (n, 2)."""
    said = _get(row, benchmark, "points")
    said = said.tolist() if isinstance(said, np.ndarray) else said
    listed = said if isinstance(said, list) else [None]
    pairs = [[one.get("x"), one.get("y")] if isinstance(one, Mapping) else one for one in listed]
    if not all(isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair)) for pair in pairs):
        raise _Fault("sample.points", f"`points` must be a list of [x, y], not {str(said)[:40]}")
    return np.array(pairs, float).reshape(-1, 2)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9 and math.isfinite(value)


def _yes(value: Any) -> bool:
    said = value.strip().strip(".").casefold() if isinstance(value, str) else value
    if said not in ("yes", "no"):
        raise _Fault("sample.answer", f"the answer of a yes/no sample must be yes or no, not {value!r}")
    return said == "yes"

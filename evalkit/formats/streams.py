"""JSON lines as a stream in constant memory, and a summary of it that the tables of the same file must have too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from evalkit.formats import format_of, jsonl, read_classes
from evalkit.formats.options import BenchmarkOptions, Context, FileOptions
from evalkit.tables import BOX_COLUMNS, Benchmark, categorical, checked_response, gold_tables, response_tables

PIECE = 1_000_000  # bytes of a file at a time; as tables they take some ten times that
BYTES = 16  # of a digest: among a million ids two share one with a chance of 1 in 10^26

Tables = tuple[pd.DataFrame, pd.DataFrame]  # of images and gold boxes, or of responses and predictions


class Summary(NamedTuple):
    """What a file holds. ``digest`` covers every id, size, state and box, in whatever order they stand."""

    rows: int
    unique_ids: int
    boxes: int
    classes: int
    empty: int
    digest: str


def read_stream(
    path: str | Path, classes: pd.DataFrame | str | Path, *, gold: bool = True, bad_box: str = "invalid", size: int = PIECE
) -> Iterator[Tables]:
    """Read JSON lines piece by piece, checked as :func:`evalkit.formats.read_benchmark` does but for what needs all.

    Memory is that of a piece of about ``size`` bytes, whatever the length of the file. That an id stands once is checked within
    a piece only; :func:`summary` counts the ids of all. Predictions are not compared with gold: their responses are the rows
    of the file.

    Yields the tables of images and gold boxes, or with ``gold=False`` of responses and predictions.

    Raises DataError with everything that is wrong in the first piece that has faults.
    """
    classes = classes if isinstance(classes, pd.DataFrame) else read_classes(classes)
    names = dict(zip(classes["class_id"], classes["class_name"], strict=True))
    nothing = pd.DataFrame({"image_id": [], "width": [], "height": [], "file_name": []})
    context = Context(Path(path).parent, names, names, None if gold else nothing)
    for said in jsonl.read_pieces(Path(path), context, size=size):
        if gold:
            yield gold_tables(said, classes)
        else:
            ids = list(dict.fromkeys(said.image_id))
            images = nothing.reindex(range(len(ids))).assign(image_id=categorical(np.arange(len(ids)), ids))
            tables = response_tables({"": checked_response(said, images, bad_box=bad_box)}, images, classes)
            yield tuple(table.drop(columns="model") for table in tables)


def summary(pieces: Iterable[Tables], *, silent: str = "missing") -> Summary:
    """Count and digest tables, given whole or in pieces.

    ``silent`` is the state of an image that a file of predictions leaves out; rows that say no more than that are passed over.
    """
    ids, total, rows, boxes_seen, empty, names = bytearray(), 0, 0, 0, 0, set()
    for about, boxes in pieces:
        about = about.reset_index(drop=True)
        here = np.bincount(boxes["image_id"].cat.codes, minlength=len(about["image_id"].cat.categories))
        count = here[about["image_id"].cat.codes]
        says = _says(about, count, silent)
        for name, digest in _digests(about, boxes, says):
            ids += hashlib.blake2b(name.encode(), digest_size=BYTES).digest()
            total += digest
        rows += int(says.sum())
        boxes_seen += len(boxes)
        answered = says if "state" not in about else says & (about["state"] == "valid").to_numpy()
        empty += int((count[answered] == 0).sum())
        names |= set(boxes["class"].astype(str).unique())
    return Summary(rows, _different(ids), boxes_seen, len(names), empty, f"{total % 2 ** (8 * BYTES):0{2 * BYTES}x}")


def load_check(benchmark: Benchmark, options: BenchmarkOptions, folder: str | Path) -> pd.DataFrame:
    """What each file of a benchmark holds, and whether reading it as a stream agrees with its tables.

    Returns
    -------
    DataFrame ``source, rows, unique_ids, boxes, classes, empty, digest, stream``: gold, then each model; ``empty`` counts clean
    images, or valid answers without a box. ``stream`` is ``agrees`` or ``differs``, and empty for a file that is not JSON lines
    of the structured kind, which is read as a whole.
    """
    folder, rows = Path(folder), []
    for source, one, tables in _sources(benchmark, options):
        silent = "valid" if one.absent == "empty" else "missing"
        whole, stream = summary([tables], silent=silent), ""
        path = folder / one.path
        if one.reader is None and (one.format or format_of(path)) == "jsonl":
            pieces = read_stream(path, benchmark.classes, gold=source == "gold", bad_box=one.bad_box)
            stream = "agrees" if summary(pieces, silent=silent) == whole else "differs"
        rows.append((source, *whole, stream))
    return pd.DataFrame(rows, columns=["source", *Summary._fields, "stream"])


def _sources(benchmark: Benchmark, options: BenchmarkOptions) -> Iterator[tuple[str, FileOptions, Tables]]:
    yield "gold", options.gold, (benchmark.images, benchmark.gold)
    for model in benchmark.models:
        tables = (table[table["model"] == model] for table in (benchmark.responses, benchmark.predictions))
        yield model, options.predictions[model], tuple(tables)


def _says(about: pd.DataFrame, count: np.ndarray, silent: str) -> np.ndarray:
    if "state" not in about:
        return np.ones(len(about), bool)
    return ((about["state"] != silent) | (about["reason"] != "") | (about["repairs"] != "")).to_numpy() | (count > 0)


def _digests(about: pd.DataFrame, boxes: pd.DataFrame, says: np.ndarray) -> Iterator[tuple[str, int]]:
    """The id and a digest of each image that says something: of its row and of its boxes, sorted."""
    label, names = boxes["class"].cat.codes.to_numpy(), np.array(boxes["class"].cat.categories, dtype=object)
    rank = np.argsort(np.argsort(names))[label] if len(names) else label
    numbers = boxes[[*BOX_COLUMNS, *(["score"] if "score" in boxes else [])]].to_numpy("<f8")
    image = boxes["image_id"].cat.codes.to_numpy()
    order = np.lexsort([*numbers.T[::-1], rank, image])
    label, numbers = names[label][order], np.ascontiguousarray(numbers[order])
    code = about["image_id"].cat.codes.to_numpy()
    low, high = (np.searchsorted(image[order], code, side=side) for side in ("left", "right"))
    columns = [about[name].astype(object).where(about[name].notna(), "") for name in about if name not in ("image_id", "model")]
    row_of = zip(*columns, strict=True)
    for at, (image_id, row) in enumerate(zip(about["image_id"], row_of, strict=True)):
        if says[at]:
            here = slice(low[at], high[at])
            text = "\0".join([image_id, *map(str, row), *label[here]])
            found = hashlib.blake2b(text.encode() + b"\0" + numbers[here].tobytes(), digest_size=BYTES)
            yield image_id, int.from_bytes(found.digest(), "little")


def _different(digests: bytearray) -> int:
    """How many different digests there are; sorted as two columns, which needs no more than a few copies of them."""
    halves = np.frombuffer(digests, "<u8").reshape(-1, BYTES // 8)
    halves = halves[np.lexsort(halves.T)]
    return len(halves) and 1 + int((halves[1:] != halves[:-1]).any(axis=1).sum())

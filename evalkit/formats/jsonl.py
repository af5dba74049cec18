"""JSON lines, one image a line: gold and predictions (``.jsonl``, ``.jsonl.gz``)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from evalkit.formats.decoding import box_array, decode_lines, factorise
from evalkit.formats.options import Context, FileOptions
from evalkit.tables import Annotations, DataError, Finding, image_ids

Box = tuple[float, float, float, float]


class BoxRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    box: Box
    class_name: str | None = msgspec.field(default=None, name="class")
    class_id: str | int | None = None
    score: float | None = None


class GoldRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    image_id: str | int
    boxes: list[BoxRow]
    width: float | None = None
    height: float | None = None
    file_name: str | None = None


class PredictionRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    image_id: str | int
    boxes: list[BoxRow] | UnsetType | None = UNSET
    status: Literal["valid", "invalid", "missing"] = "valid"
    reason: str = ""
    error: str | UnsetType = UNSET


def read(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read gold or predictions. A predicted row of null boxes is ``missing``, one with ``error`` is ``invalid`` (failed).

    Raises DataError for a line that is not JSON or breaks the types, for a box without a class and a valid row without boxes.
    """
    row_type = GoldRow if context.is_gold else PredictionRow
    rows, place = decode_lines(path, row_type, lenient_boxes=not context.is_gold)
    ids = image_ids([row.image_id for row in rows])
    lists = [row.boxes or () for row in rows]
    sizes = np.fromiter(map(len, lists), np.int64, len(rows))
    boxes = list(itertools.chain.from_iterable(lists))
    box_image = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum(sizes) - sizes

    def box_place(box: int) -> str:
        row = int(box_image[box])
        return f"{place(row)}, boxes[{box - first[row]}]"

    findings = [
        Finding(path.name, box_place(box), ids[box_image[box]], "box.class", text)
        for box, row in enumerate(boxes)
        if (text := class_fault(row, context))
    ]
    state = reason = None
    if not context.is_gold:
        state, reason = _states(rows)
        for row, one in enumerate(rows):
            if state[row] == "valid" and one.boxes is UNSET:
                text = "a valid row needs `boxes`; an empty list says that there is nothing"
                findings.append(Finding(path.name, place(row), ids[row], "row.boxes", text))
    if findings:
        raise DataError(findings)
    codes, names = factorise([row.class_name if row.class_id is None else context.class_of(row.class_id) for row in boxes])
    return Annotations(
        file=path.name,
        image_id=ids,
        box_image=box_image,
        class_code=codes,
        class_names=names,
        boxes=box_array([row.box for row in boxes]),
        score=_floats([row.score for row in boxes]),
        place=place,
        box_place=box_place,
        width=_floats([row.width for row in rows]) if context.is_gold else None,
        height=_floats([row.height for row in rows]) if context.is_gold else None,
        file_name=[row.file_name for row in rows] if context.is_gold else None,
        state=state,
        reason=reason,
    )


def class_fault(row: BoxRow, context: Context) -> str:
    if (row.class_name is None) == (row.class_id is None):
        return "a box needs either `class` or `class_id`, and just one of them"
    if context.is_gold and row.class_id is not None and str(row.class_id) not in context.names:
        return f"class_id {row.class_id!r} is not in the class list"
    return ""


def _states(rows: list[PredictionRow]) -> tuple[list[str], list[str]]:
    states = [
        "invalid" if row.error is not UNSET else "missing" if row.boxes is None and row.status == "valid" else row.status
        for row in rows
    ]
    reasons = [f"failed: {row.error}" if row.error is not UNSET else row.reason for row in rows]
    return states, reasons


def _floats(values: list[float | None]) -> np.ndarray:
    return np.array(values, dtype=float)  # None becomes NaN

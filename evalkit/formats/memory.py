"""Gold and predictions that are in memory already: mappings and tables, taken as a file of them would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from evalkit.formats.decoding import MISSING_BOX, box_array, factorise, one_finding
from evalkit.tables import BOX_COLUMNS, STATES, Annotations, DataError, EvalkitError, Finding, class_name, image_ids

Sizes = Mapping[Any, tuple[float, float]]


def read(said: Mapping[Any, Any] | pd.DataFrame, *, file: str, is_gold: bool, sizes: Sizes | None = None) -> Annotations:
    """Gold or one model's predictions; ``file`` is what messages call them.

    A mapping gives each image its boxes, ``(class, x_min, y_min, x_max, y_max[, score])``. In predictions an image may have
    None (missing) or ``{"status": "invalid", "reason": "…"}`` instead. A table has a row for each box and the columns
    ``image_id, class, x_min, y_min, x_max, y_max[, score]``; a row without class and coordinates is an empty image.

    Raises DataError for a class that is no text, a coordinate that is no number, an id that is neither text nor an integer, a
    status that is not known and a gold box of wrong length.
    """
    if isinstance(said, pd.DataFrame):
        read = _of_table(said, file)
    elif isinstance(said, Mapping):
        read = _of_mapping(said, file, is_gold)
    else:
        raise EvalkitError(f"{file}: must be a mapping of images to boxes or a table, not {type(said).__name__}")
    return read if sizes is None else _sized(read, sizes)


def _sized(read: Annotations, sizes: Sizes) -> Annotations:
    known = dict(zip(_ids(sizes, "sizes", []), sizes.values(), strict=True))
    if unknown := [image_id for image_id in known if image_id not in set(read.image_id)]:
        raise one_finding("sizes", "image.unknown", "gold has no such image", image_id=unknown[0])
    for image_id, size in known.items():
        if not isinstance(size, tuple | list) or len(size) != 2 or not all(isinstance(one, Real) for one in size):
            raise one_finding("sizes", "image.size", f"a size is (width, height), not {size!r}", image_id=image_id)
    width, height = np.array([known.get(image_id, (np.nan, np.nan)) for image_id in read.image_id], float).reshape(-1, 2).T
    return replace(read, width=width, height=height)


def _of_mapping(said: Mapping[Any, Any], file: str, is_gold: bool) -> Annotations:
    state, reason, box_image, labels, boxes, scores = [], [], [], [], [], []
    first: list[int] = []
    findings: list[Finding] = []
    for row, (image_id, answer) in enumerate(said.items()):
        first.append(len(labels))
        is_state = not is_gold and (answer is None or isinstance(answer, Mapping))
        status, why, problem = _status(answer) if is_state else ("valid", "", "")
        state.append(status)
        reason.append(why)
        if not is_state and (isinstance(answer, str) or not isinstance(answer, Iterable)):
            problem = f"the boxes of an image are a list, not {answer!r}"
        if problem:
            findings.append(Finding(file, "", str(image_id), "row.boxes", problem))
        for number, box in enumerate(() if is_state or problem else answer):
            if problem := _box_problem(box, any_length=not is_gold):
                findings.append(Finding(file, f"box {number}", str(image_id), "box.row", problem))
                continue
            label, *rest = box
            box_image.append(row)
            labels.append(label)
            whole = len(rest) in (4, 5)
            boxes.append(rest[:4] if whole else MISSING_BOX)
            scores.append(rest[4] if whole and len(rest) == 5 and rest[4] is not None else np.nan)
    ids = _ids(said, file, findings)
    codes, names = factorise(labels)
    return Annotations(
        file=file,
        image_id=ids,
        box_image=np.array(box_image, np.int64),
        class_code=codes,
        class_names=names,
        boxes=box_array(boxes),
        score=np.array(scores, float),
        state=None if is_gold else state,
        reason=None if is_gold else reason,
        place=lambda row: "",
        box_place=lambda box: f"box {box - first[box_image[box]]}",
    )


def _of_table(table: pd.DataFrame, file: str) -> Annotations:
    lacking = [name for name in ("image_id", "class", *BOX_COLUMNS) if name not in table]
    if lacking:
        text = f"the table lacks {', '.join(lacking)}; it has {', '.join(map(str, table.columns))}"
        raise one_finding(file, "columns", text)
    wanted = [*BOX_COLUMNS, *(["score"] if "score" in table else [])]
    numbers = table[wanted].apply(pd.to_numeric, errors="coerce").astype(float)
    wrong = numbers.isna() & table[wanted].notna()
    place = "row {}".format
    findings = [
        Finding(file, place(row), str(table["image_id"].iloc[row]), "number", f"{name} must be a number, not {value!r}")
        for name in wanted
        for row in np.flatnonzero(wrong[name])
        for value in [table[name].iloc[row]]
    ]
    boxed = np.flatnonzero(~(table[["class", *BOX_COLUMNS]].isna().all(axis=1)))
    labels = table["class"].to_numpy(object)[boxed]
    for box, label in zip(boxed, labels, strict=True):
        if not isinstance(label, str):
            text = "a box needs a class" if pd.isna(label) else f"class must be text, not {label!r}"
            findings.append(Finding(file, place(box), str(table["image_id"].iloc[box]), "box.class", text))
    image_code, ids = factorise(_ids(table["image_id"], file, findings))
    codes, names = factorise(labels)
    return Annotations(
        file=file,
        image_id=ids,
        box_image=image_code[boxed],
        class_code=codes,
        class_names=names,
        boxes=numbers[BOX_COLUMNS].to_numpy()[boxed],
        score=numbers["score"].to_numpy()[boxed] if "score" in table else None,
        place=lambda row: place(np.flatnonzero(image_code == row)[0]),
        box_place=lambda box: place(boxed[box]),
        several_rows=True,
    )


def _status(answer: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """State and reason of an answer without boxes, and what is wrong with it."""
    if answer is None:
        return "missing", "", ""
    status, why = answer.get("status"), answer.get("reason", "")
    if set(answer) - {"status", "reason"} or status not in STATES[1:] or not isinstance(why, str):
        return (
            "valid",
            "",
            f"instead of boxes there may be {{'status': 'invalid' or 'missing', 'reason': text}}, not {answer!r}",
        )
    return status, why, ""


def _box_problem(box: Any, *, any_length: bool) -> str:
    """What is wrong with a box; with ``any_length`` one of too few or too many numbers is left to the rules of validation."""
    form = f"a box is (class, x_min, y_min, x_max, y_max[, score]), not {box!r}"
    if not isinstance(box, Sequence) or isinstance(box, str):
        return form
    label, *numbers = box or [None]
    if not isinstance(label, str):
        return form
    if not all(isinstance(one, Real) and not isinstance(one, bool) for one in numbers[:4]):
        return form
    if len(numbers) == 5 and not (numbers[4] is None or isinstance(numbers[4], Real)):
        return form
    return "" if any_length or len(numbers) in (4, 5) else form


def _ids(values: Iterable[Any], file: str, findings: list[Finding]) -> list[str]:
    """Ids as text. Raises DataError with these findings and those of ids that are neither text nor integers."""
    values = list(values)
    for row, value in enumerate(values):
        if not isinstance(value, str | int | np.integer) or isinstance(value, bool):
            text = f"an image id is text or an integer, not {value!r}"
            findings.append(Finding(file, f"image {row}", "", "image.id", text))
    if findings:
        raise DataError(findings)
    return image_ids(values)


def class_rows(classes: Any) -> tuple[pd.DataFrame, Callable[[int], str]]:
    """The rows of a class list, and where each stands: from names, a mapping of names to domains, or a table."""
    if isinstance(classes, pd.DataFrame):
        if "class_name" not in classes:
            raise EvalkitError(f"classes: the table lacks class_name; it has {', '.join(map(str, classes.columns))}")
        rows = classes if "class_id" in classes else classes.assign(class_id=np.arange(len(classes)))
        rows = rows[[name for name in ("class_id", "class_name", "domain") if name in rows]].astype(object)
        return rows.where(rows.notna(), "").astype(str).reset_index(drop=True), "row {}".format
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise EvalkitError(f"classes must be names, a mapping of names to domains, or a table, not {classes!r}")
    domains = classes if isinstance(classes, Mapping) else dict.fromkeys(names := list(classes), "")
    names = list(domains) if isinstance(classes, Mapping) else names
    if wrong := [one for pair in zip(names, map(domains.get, names), strict=True) for one in pair if not isinstance(one, str)]:
        raise EvalkitError(f"classes: names and domains are text, not {wrong[0]!r}")
    rows = {"class_id": list(map(str, range(len(names)))), "class_name": names, "domain": [domains[name] for name in names]}
    return pd.DataFrame(rows, dtype=str), "class {}".format


def relation_cells(relation: Any, classes: list[str]) -> pd.DataFrame:
    """A relation as a table of cells, a row for each gold class.

    A table stands as it is. A mapping ``{gold class: {predicted class: value}}`` names cells; others are 0, the diagonal 1.
    """
    if isinstance(relation, pd.DataFrame):
        return relation
    if not isinstance(relation, Mapping) or not all(isinstance(row, Mapping) for row in relation.values()):
        raise EvalkitError("relation must be a table or a mapping {gold class: {predicted class: value}}")
    cells = pd.DataFrame(np.eye(len(classes)), index=classes, columns=classes, dtype=object)
    for gold_class, row in relation.items():
        for predicted_class, value in row.items():
            for name in (gold_class, predicted_class):
                if class_name(str(name)) not in classes:
                    raise one_finding("relation", "relation.class", f"class {name!r} is not in the class list")
            cells.loc[class_name(gold_class), class_name(predicted_class)] = value
    return cells

"""OpenImages: one box a row of a CSV, edges relative to the image."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from evalkit.formats.decoding import factorise, one_finding
from evalkit.formats.long import as_numbers, read_text_table
from evalkit.formats.options import Context, FileOptions
from evalkit.formats.sizes import file_names, images_of, rows_of_images, silent_images, stem_of
from evalkit.tables import Annotations, DataError, Finding, Note, nfc

EDGES = ["XMin", "YMin", "XMax", "YMax"]
NEEDED = ["ImageID", "LabelName", *EDGES]
MACHINE_ID = re.compile(r"/[a-z]/\w+")  # such as /m/01g317


def read(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read a CSV with ``ImageID, LabelName, XMin, XMax, YMin, YMax[, Confidence, IsGroupOf]``; other columns are passed over.

    An image's id is ``ImageID`` without the ending of a picture. A label such as ``/m/01g317`` is a ``class_id`` of the class
    list, any other is a name. Numbers may have a decimal comma. ``sizes`` is that of a text folder. A group box is treated as
    a crowd box of COCO: refused unless ``crowd: drop``.

    Raises DataError for a missing column, a number that is none, a group box, an image that is unknown or has no size.
    """
    table = read_text_table(path)
    if lacking := [name for name in NEEDED if name not in table]:
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise one_finding(path.name, "columns", text, place="line 1")
    findings: list[Finding] = []
    numbers = {name: _numbers(table, name, path, findings) for name in [*EDGES, "Confidence"] if name in table}
    for line, image_id in table["ImageID"][table["ImageID"].str.strip() == ""].items():
        findings.append(Finding(path.name, f"line {line}", image_id, "image.blank", "the image id is empty"))
    for line, image_id in table["ImageID"][table["LabelName"].str.strip() == ""].items():
        findings.append(Finding(path.name, f"line {line}", image_id, "box.class", "a box needs a class"))
    if findings:
        raise DataError(findings)
    boxed, notes = _single_objects(table, path, options)
    code, names = factorise([nfc(text) for text in table["ImageID"]])
    stems = [stem_of(name) for name in names]
    images, more = images_of(path, options, context, stems, relative=True)
    rows, findings = rows_of_images(path.name, stems, images)
    findings += silent_images(path, options, context, images, rows, "has no row")
    if findings:
        raise DataError(findings)
    is_gold = context.is_gold
    said_rows = np.arange(len(images)) if is_gold else rows
    size = images[["width", "height"]].to_numpy(float)
    edges = np.column_stack([numbers[name] for name in EDGES])[boxed]
    class_code, labels = factorise(table["LabelName"].str.strip().to_numpy()[boxed])
    lines = table.index.to_numpy()[boxed]
    return Annotations(
        file=path.name,
        image_id=list(images["image_id"].iloc[said_rows]),
        box_image=(rows[code] if is_gold else code)[boxed],
        class_code=class_code,
        class_names=[context.class_of(label) if MACHINE_ID.fullmatch(label) else label for label in labels],
        boxes=edges * np.tile(size[rows[code[boxed]]], 2),
        score=None if is_gold or "Confidence" not in numbers else numbers["Confidence"][boxed],
        place=lambda row: f"image {images['image_id'].iloc[said_rows[row]]}",
        box_place=lambda box: f"line {lines[box]}",
        width=size[:, 0] if is_gold else None,
        height=size[:, 1] if is_gold else None,
        file_name=_file_names(images, names, rows) if is_gold else None,
        notes=[*notes, *more],
    )


def _single_objects(table: pd.DataFrame, path: Path, options: FileOptions) -> tuple[np.ndarray, list[Note]]:
    """The rows that are one object each; group boxes are refused, or left out as asked and counted."""
    group = (table["IsGroupOf"].str.strip() == "1").to_numpy() if "IsGroupOf" in table else np.zeros(len(table), bool)
    if not group.any():
        return np.arange(len(table)), []
    if options.crowd != "drop":
        text = "a group box (IsGroupOf 1) is neither one object nor none; set `crowd: drop` to leave such boxes out"
        rows = table["ImageID"][group].items()
        raise DataError(Finding(path.name, f"line {line}", image_id, "box.crowd", text) for line, image_id in rows)
    examples = ", ".join(list(dict.fromkeys(table["ImageID"][group]))[:3])
    return np.flatnonzero(~group), [("crowd_dropped", int(group.sum()), examples)]


def _numbers(table: pd.DataFrame, name: str, path: Path, findings: list[Finding]) -> np.ndarray:
    """A column as numbers, where a comma may stand for the decimal point; an empty confidence is none."""
    text = table[name].str.strip()
    values = as_numbers(text.where(~text.str.fullmatch(r"[+-]?\d*,\d+"), text.str.replace(",", ".")))
    wrong = np.isnan(values) & ~((text == "").to_numpy() & (name == "Confidence"))
    for row in np.flatnonzero(wrong):
        said = f"{name} must be a number, not {table[name].iloc[row]!r}"
        findings.append(Finding(path.name, f"line {table.index[row]}", table["ImageID"].iloc[row], "number", said))
    return values


def _file_names(images: pd.DataFrame, names: list[str], rows: np.ndarray) -> list[str | None]:
    """The file names that the list of sizes gives, or the ids of the file where they are names of pictures."""
    found = file_names(images)
    for name, row in zip(names, rows, strict=True):
        if found[row] is None and stem_of(name) != name:
            found[row] = name
    return found

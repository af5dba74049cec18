"""YOLO-like folders: one text file an image, one box a line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from evalkit.formats.decoding import factorise, one_finding, read_text
from evalkit.formats.options import Context, FileOptions, outside_id
from evalkit.formats.sizes import read_sizes, rows_of_images
from evalkit.tables import BOX_COLUMNS, Annotations, DataError, EvalkitError, Finding, Note, nfc

CENTRE_SIZE, CORNER_SIZE = ["cx", "cy", "w", "h"], ["x_min", "y_min", "w", "h"]


def read(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read a folder of text files. An image's id is its relative path without extension.

    ``columns`` names the fields of a line, ``class cx cy w h [score]`` if left out; boxes are given by ``cx cy w h``,
    ``x_min y_min w h`` or ``x_min y_min x_max y_max``. ``units`` are ``relative`` to the image or ``pixels``. ``names`` is a
    file with one class name a line to which numbers in the class field point, from 0; without it the field is a name.
    ``sizes`` is ``gold`` (the default for predictions), a CSV ``image_id,width,height`` or a folder of pictures.

    Raises DataError for a line that does not fit, an id that is ambiguous or unknown, and an image without a size.
    """
    if not path.is_dir():
        raise one_finding(path.name, "file.absent", f"there is no folder {str(path)!r}")
    columns, optional = _columns(options)
    files = sorted(path.rglob("*.txt"))
    if not files:
        raise one_finding(path.name, "file.empty", "the folder holds no .txt file")
    stems = [nfc(file.relative_to(path).with_suffix("").as_posix()) for file in files]
    images, notes = _images(path, options, context, stems)
    rows, findings = rows_of_images(path.name, stems, images, ending=".txt")
    if context.is_gold and options.absent != "empty":
        for row in sorted(set(range(len(images))) - set(rows.tolist())):
            text = "this image has no file of boxes; set `absent: empty` if that says that there is nothing on it"
            findings.append(Finding(path.name, "", images["image_id"].iloc[row], "gold.absent", text))

    values, labels, box_row, places = [], [], [], []
    for file, stem, row in zip(files, stems, rows, strict=True):
        name = file.relative_to(path).as_posix()
        for number, line in enumerate(read_text(file, may_be_empty=True).splitlines(), 1):
            fields = line.split()
            if not fields:
                continue
            try:
                said = _fields(fields, columns, optional, lenient=not context.is_gold)
            except ValueError as error:
                findings.append(Finding(f"{path.name}/{name}", f"line {number}", stem, "line", str(error)))
                continue
            labels.append(said.pop("class"))
            values.append(said)
            box_row.append(row)
            places.append(f"{name}, line {number}")
    if findings:
        raise DataError(findings)
    box_row = np.array(box_row, np.int64)
    numbers = pd.DataFrame(values, columns=[name for name in columns if name not in ("class", "-")], dtype=float)
    size = images[["width", "height"]].to_numpy(float)
    codes, names = factorise(labels)
    said_rows = np.arange(len(images)) if context.is_gold else rows
    position = {row: at for at, row in enumerate(said_rows.tolist())}
    return Annotations(
        file=path.name,
        image_id=list(images["image_id"].iloc[said_rows]),
        box_image=np.array([position[row] for row in box_row], np.int64),
        class_code=codes,
        class_names=_class_names(names, options, context, path),
        boxes=_corners(numbers, size[box_row], relative=_relative(options)),
        score=numbers["score"].to_numpy() if "score" in numbers else None,
        place=lambda row: f"image {images['image_id'].iloc[said_rows[row]]}",
        box_place=lambda box: places[box],
        width=size[:, 0] if context.is_gold else None,
        height=size[:, 1] if context.is_gold else None,
        file_name=list(images["file_name"]) if context.is_gold else None,
        notes=notes,
        relative=_relative(options),
    )


def _columns(options: FileOptions) -> tuple[list[str], set[str]]:
    if options.columns is None:
        return ["class", *CENTRE_SIZE, "score"], {"score"}
    if not isinstance(options.columns, list):
        raise EvalkitError(f"{options.path}: `columns` of a text folder is a list of names in the order of a line")
    columns = options.columns
    geometry = set(columns) - {"class", "score", "-"}
    named = [name for name in columns if name != "-"]
    if (
        len(set(named)) < len(named)
        or "class" not in columns
        or geometry not in (set(CENTRE_SIZE), set(CORNER_SIZE), set(BOX_COLUMNS))
    ):
        raise EvalkitError(
            f"{options.path}: `columns` must name class, optionally score, and one of cx cy w h, x_min y_min w h or "
            f"x_min y_min x_max y_max; a field to pass over is '-'; got {' '.join(columns)}"
        )
    return columns, set()


def _relative(options: FileOptions) -> bool:
    return options.units != "pixels"


def _fields(fields: list[str], columns: list[str], optional: set[str], *, lenient: bool) -> dict:
    """The fields of a line by name. A ``lenient`` one of wrong length is a class whose box has no numbers."""
    needed = [name for name in columns if name not in optional]
    if len(fields) not in (len(needed), len(columns)):
        if lenient and len(fields) > columns.index("class"):
            return {"class": fields[columns.index("class")]}
        raise ValueError(f"a line holds {' '.join(columns)}; this one has {len(fields)} fields")
    said: dict = {}
    for name, text in zip(columns, fields, strict=False):
        if name == "class":
            said[name] = text
        elif name != "-":
            try:
                said[name] = float(text)
            except ValueError:
                raise ValueError(f"{name} must be a number, not {text!r}") from None
    return said


def _corners(numbers: pd.DataFrame, size: np.ndarray, *, relative: bool) -> np.ndarray:
    """Boxes as corners in pixels."""
    if "cx" in numbers:
        half = numbers[["w", "h"]].to_numpy() / 2
        centre = numbers[["cx", "cy"]].to_numpy()
        boxes = np.hstack([centre - half, centre + half])
    elif "w" in numbers:
        corner = numbers[["x_min", "y_min"]].to_numpy()
        boxes = np.hstack([corner, corner + numbers[["w", "h"]].to_numpy()])
    else:
        boxes = numbers[BOX_COLUMNS].to_numpy()
    return boxes * np.tile(size, 2) if relative else boxes


def _class_names(labels: list[str], options: FileOptions, context: Context, path: Path) -> list[str]:
    if options.names is None:
        return labels
    listed = [line.strip() for line in read_text(context.path(options.names)).rstrip().splitlines()]
    for label in labels:
        if not re.fullmatch(r"[0-9]{1,9}", label) or (context.is_gold and int(label) >= len(listed)):
            text = f"class {label!r} must be a line number of {options.names}, 0 to {len(listed) - 1}"
            raise one_finding(path.name, "line", text)
    return [listed[int(label)] if int(label) < len(listed) else outside_id(label) for label in labels]


def _images(path: Path, options: FileOptions, context: Context, stems: list[str]) -> tuple[pd.DataFrame, list[Note]]:
    """The images that the folder may speak of, with their sizes, and what was noticed."""
    notes: list[Note] = []
    from_gold = not context.is_gold and options.sizes in (None, "gold")
    if from_gold:
        images = context.images
    elif options.sizes:
        images, notes = read_sizes(context.path(options.sizes))
        if not context.is_gold:
            rows, findings = rows_of_images(Path(options.sizes).name, list(images["image_id"]), context.images)
            if findings:
                raise DataError(findings)
            sizes = np.full((len(context.images), 2), np.nan)
            sizes[rows] = images[["width", "height"]]
            images = context.images.assign(width=sizes[:, 0], height=sizes[:, 1])
    elif _relative(options):
        raise EvalkitError(f"{options.path}: relative gold boxes need `sizes`: a CSV image_id,width,height or pictures")
    else:
        images = pd.DataFrame({"image_id": stems, "width": np.nan, "height": np.nan, "file_name": None})
    if _relative(options) and images[["width", "height"]].isna().any(axis=None):
        lacking = images.loc[images["width"].isna() | images["height"].isna(), "image_id"]
        raise DataError(Finding(path.name, "", name, "image.size", "relative boxes need the image's size") for name in lacking)
    return images, notes

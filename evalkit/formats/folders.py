"""YOLO-like folders: one text file an image, one box a line, and the sizes of pictures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, UnidentifiedImageError

from evalkit.formats.decoding import factorise, one_finding, read_bytes
from evalkit.formats.options import Context, FileOptions
from evalkit.tables import BOX_COLUMNS, Annotations, DataError, EvalkitError, Finding, image_ids, nfc

PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"}
CENTRE_SIZE, CORNER_SIZE = ["cx", "cy", "w", "h"], ["x_min", "y_min", "w", "h"]
ORIENTATION, TURNED = 0x0112, {5, 6, 7, 8}  # EXIF orientations that swap width and height when shown


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
    images = _images(path, options, context)
    rows, findings = _rows_of(path, files, stems, images)
    if context.is_gold and options.absent != "empty":
        for stem in sorted(set(images["image_id"]) - set(stems)):
            text = "this image has no file of boxes; set `absent: empty` if that says that there is nothing on it"
            findings.append(Finding(path.name, "", stem, "gold.absent", text))

    values, labels, box_row, places = [], [], [], []
    for file, stem, row in zip(files, stems, rows, strict=True):
        name = file.relative_to(path).as_posix()
        for number, line in enumerate(_text(file).splitlines(), 1):
            fields = line.split()
            if not fields:
                continue
            try:
                said = _fields(fields, columns, optional)
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
    numbers = pd.DataFrame(values, columns=[name for name in columns if name != "class"], dtype=float)
    size = images[["width", "height"]].to_numpy(float)
    codes, names = factorise(labels)
    said_rows = np.arange(len(images)) if context.is_gold else rows
    position = {row: at for at, row in enumerate(said_rows)}
    return Annotations(
        file=path.name,
        image_id=[images["image_id"].iloc[row] for row in said_rows],
        box_image=np.array([position[row] for row in box_row], np.int64),
        class_code=codes,
        class_names=_class_names(names, options, context, path),
        boxes=_corners(numbers, size[box_row], relative=_relative(options)),
        score=numbers["score"].to_numpy() if "score" in numbers else None,
        place=lambda row: stems[row] + ".txt",
        box_place=lambda box: places[box],
        width=size[:, 0] if context.is_gold else None,
        height=size[:, 1] if context.is_gold else None,
        file_name=list(images["file_name"]) if context.is_gold else None,
    )


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height of a picture as it is shown: an EXIF orientation that turns it swaps the stored ones.

    Raises DataError for a file that is no picture.
    """
    try:
        with Image.open(path) as picture:
            turned = picture.getexif().get(ORIENTATION) in TURNED
            return picture.size[::-1] if turned else picture.size
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise one_finding(path.name, "picture", f"cannot read its size: {error}") from None


def _columns(options: FileOptions) -> tuple[list[str], set[str]]:
    if options.columns is None:
        return ["class", *CENTRE_SIZE, "score"], {"score"}
    if not isinstance(options.columns, list):
        raise EvalkitError(f"{options.path}: `columns` of a text folder is a list of names in the order of a line")
    columns = options.columns
    geometry = set(columns) - {"class", "score", "-"}
    if "class" not in columns or geometry not in (set(CENTRE_SIZE), set(CORNER_SIZE), set(BOX_COLUMNS)):
        raise EvalkitError(
            f"{options.path}: `columns` must name class, optionally score, and one of cx cy w h, x_min y_min w h or "
            f"x_min y_min x_max y_max; a field to pass over is '-'; got {' '.join(columns)}"
        )
    return columns, set()


def _relative(options: FileOptions) -> bool:
    return options.units != "pixels"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise one_finding(file.name, "file.unreadable", f"cannot read it: {error}") from None


def _fields(fields: list[str], columns: list[str], optional: set[str]) -> dict:
    needed = [name for name in columns if name not in optional]
    if len(fields) not in (len(needed), len(columns)):
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
    listed = read_bytes(context.path(options.names)).decode("utf-8").splitlines()
    listed = [name for name in (line.strip() for line in listed) if name]
    for label in labels:
        if not re.fullmatch(r"\d+", label) or (context.is_gold and int(label) >= len(listed)):
            text = f"class {label!r} must be a line number of {options.names}, 0 to {len(listed) - 1}"
            raise one_finding(path.name, "line", text)
    return [listed[int(label)] if int(label) < len(listed) else f"class id {label}" for label in labels]


def _images(path: Path, options: FileOptions, context: Context) -> pd.DataFrame:
    """The images that the folder may speak of, with their sizes."""
    source = options.sizes or ("" if context.is_gold else "gold")
    if source == "gold" and not context.is_gold:
        images = context.images
    elif not source:
        raise EvalkitError(f"{options.path}: gold in a text folder needs `sizes`: a CSV image_id,width,height or pictures")
    elif context.path(source).is_dir():
        images = _pictures(context.path(source))
    else:
        images = _size_file(context.path(source))
    if not context.is_gold and images is not context.images:
        sizes = images.set_index("image_id")
        images = context.images.assign(
            **{name: context.images["image_id"].map(sizes[name]).to_numpy() for name in ("width", "height")}
        )
    if _relative(options) and images[["width", "height"]].isna().any(axis=None):
        lacking = images.loc[images["width"].isna() | images["height"].isna(), "image_id"]
        raise DataError(Finding(path.name, "", name, "image.size", "relative boxes need the image's size") for name in lacking)
    return images


def _pictures(folder: Path) -> pd.DataFrame:
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in PICTURES)
    rows = [(nfc(file.relative_to(folder).with_suffix("").as_posix()), *picture_size(file), file) for file in files]
    images = pd.DataFrame(rows, columns=["image_id", "width", "height", "file_name"])
    twice = images["image_id"].duplicated(keep=False)
    if twice.any():
        paths = ", ".join(file.name for file in images.loc[twice, "file_name"][:4])
        raise one_finding(folder.name, "image.ambiguous", f"two pictures have one id: {paths}")
    images["file_name"] = [file.relative_to(folder).as_posix() for file in images["file_name"]]
    return images


def _size_file(path: Path) -> pd.DataFrame:
    read_bytes(path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    if not {"image_id", "width", "height"} <= set(table.columns):
        raise one_finding(path.name, "columns", "a file of sizes has the columns image_id, width, height")
    images = pd.DataFrame({"image_id": image_ids(table["image_id"]), "file_name": table.get("file_name")})
    for name in ("width", "height"):
        images[name] = pd.to_numeric(table[name], errors="coerce")
    return images


def _rows_of(path: Path, files: list[Path], stems: list[str], images: pd.DataFrame) -> tuple[list[int], list[Finding]]:
    """The image of each file: by id, by file name without extension, or by a base name that only one image has."""
    by_name: dict[str, set[int]] = {}
    by_base: dict[str, set[int]] = {}
    for row, (image_id, file_name) in enumerate(zip(images["image_id"], images["file_name"], strict=True)):
        stem = nfc(Path(file_name).with_suffix("").as_posix()) if isinstance(file_name, str) else image_id
        for name in {image_id, stem}:
            by_name.setdefault(name, set()).add(row)
        by_base.setdefault(stem.rpartition("/")[2], set()).add(row)
    rows, findings = [], []
    for file, stem in zip(files, stems, strict=True):
        found = sorted(by_name.get(stem) or by_base.get(stem, ()))
        if len(found) > 1:
            both = " and ".join(images["file_name"].iloc[row] or images["image_id"].iloc[row] for row in found[:2])
            text = f"ambiguous id: {stem!r} may be {both}; use the relative path"
            findings.append(Finding(path.name, file.name, stem, "image.ambiguous", text))
        elif not found:
            findings.append(Finding(path.name, file.name, stem, "image.unknown", f"there is no image {stem!r}"))
        rows.append(found[0] if found else -1)
    return rows, findings

"""Which images a folder may speak of, and their sizes: from gold, a CSV, or the pictures."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image, ImageOps, UnidentifiedImageError

from evalkit.formats.decoding import files_in, one_finding, within
from evalkit.formats.long import as_numbers, read_text_table
from evalkit.formats.options import Context, FileOptions
from evalkit.tables import Annotations, DataError, EvalkitError, Finding, Note, image_ids, nfc

PICTURES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"}
ORIENTATION, TURNED = 0x0112, {5, 6, 7, 8}  # EXIF orientations that swap width and height when shown


def read_sizes(path: Path) -> tuple[pd.DataFrame, list[Note]]:
    """A table ``image_id, width, height, file_name`` from a CSV or from a folder of pictures, and what was noticed.

    A picture's id is its relative path without extension; its size is the one that is shown, after an EXIF orientation.

    Raises DataError for a file that is no picture, an id that two pictures share, and a size that is no number.
    """
    return _pictures(path) if path.is_dir() else (_size_file(path), [])


def picture_size(path: Path) -> tuple[int, int, bool]:
    """Width and height of a picture as it is shown, and whether an EXIF orientation swapped the stored ones.

    Raises DataError for a file that is no picture.
    """
    with _opened(path, "its size") as picture:
        size, turned = displayed_size(picture)
        return *size, turned


def pixels(folder: Path | None, file_name: str | None) -> np.ndarray | None:
    """The pixels of a picture as it is shown, uint8 of shape (height, width, 3); None if there is no such file.

    Raises DataError for a name or a link that leaves the folder, for a file that is no picture and for a giant one.
    """
    if folder is None or not isinstance(file_name, str):
        return None
    path = within(folder, file_name)
    if path is None:
        raise one_finding(folder.name, "path.outside", f"the picture {file_name!r} is not in this folder")
    if not os.path.isfile(path):  # unlike Path.is_file it takes a name that is too long for one that is not there
        return None
    with _opened(path, "it") as picture:
        return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))


@contextlib.contextmanager
def _opened(path: Path, what: str) -> Iterator[Image.Image]:
    """A picture, opened; one that Pillow finds suspiciously large is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                yield picture
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise one_finding(path.name, "picture", f"cannot read {what}: {error}") from None


def stem_of(name: str) -> str:
    """A file name without the ending of a picture; any other dot is part of the name.

    >>> stem_of("street/v1.2.JPG"), stem_of("street/v1.2")
    ('street/v1.2', 'street/v1.2')
    """
    stem, dot, ending = name.rpartition(".")
    return stem if f"{dot}{ending}".lower() in PICTURES else name


def images_of(
    path: Path, options: FileOptions, context: Context, stems: Sequence[str], *, relative: bool
) -> tuple[pd.DataFrame, list[Note]]:
    """The images that a file or folder without sizes of its own may speak of, with their sizes, and what was noticed.

    ``stems`` are those that it does speak of; they are gold's images where nothing lists them.

    Raises DataError for an image whose size ``relative`` boxes need, EvalkitError where nothing could give it.
    """
    notes: list[Note] = []
    if not context.is_gold and options.sizes in (None, "gold"):
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
    elif relative:
        raise EvalkitError(f"{options.path}: relative gold boxes need `sizes`: a CSV image_id,width,height or pictures")
    else:
        images = pd.DataFrame({"image_id": stems, "width": np.nan, "height": np.nan, "file_name": None})
    if relative and images[["width", "height"]].isna().any(axis=None):
        lacking = images.loc[images["width"].isna() | images["height"].isna(), "image_id"]
        raise DataError(Finding(path.name, "", name, "image.size", "relative boxes need the image's size") for name in lacking)
    return images, notes


def file_names(images: pd.DataFrame) -> list[str | None]:
    """The names of the pictures, None where there is none."""
    return [name if isinstance(name, str) else None for name in images["file_name"]]


def silent_images(
    path: Path, options: FileOptions, context: Context, images: pd.DataFrame, rows: np.ndarray, how: str
) -> Iterator[Finding]:
    """A finding for each image of which gold says nothing, unless ``absent: empty`` says what that means."""
    if context.is_gold and options.absent != "empty":
        for row in sorted(set(range(len(images))) - set(rows.tolist())):
            text = f"this image {how}; set `absent: empty` if that says that there is nothing on it"
            yield Finding(path.name, "", images["image_id"].iloc[row], "gold.absent", text)


def displayed_size(picture: Image.Image) -> tuple[tuple[int, int], bool]:
    """Width and height of an opened picture as it is shown, and whether an EXIF orientation swapped the stored ones."""
    turned = picture.getexif().get(ORIENTATION) in TURNED
    return (picture.size[::-1] if turned else picture.size), turned


def with_picture_sizes(said: Annotations, folder: Path) -> Annotations:
    """Gold with the sizes that it lacks taken from its pictures, as they are shown; those that EXIF turns are a note.

    The picture of an image is its ``file_name``, or else the one whose relative path is the id, with or without its
    extension. A size stays unknown where there is no picture.

    Raises DataError for a file that is no picture, and an id that two pictures have.
    """
    size = [np.full(len(said.image_id), np.nan) if one is None else one.copy() for one in (said.width, said.height)]
    lacking = np.flatnonzero(np.isnan(size[0]) | np.isnan(size[1]))
    names = said.file_name or [None] * len(said.image_id)
    by_id = _pictures_by_id(folder) if any(names[row] is None for row in lacking) else {}
    findings, turned = [], []
    for row in lacking:
        image_id = said.image_id[row]
        files = by_id.get(image_id, []) if names[row] is None else [within(folder, names[row])]
        files = [file for file in files if file is not None and file.is_file()]
        if len(files) > 1:
            text = f"two pictures have one id: {' and '.join(file.relative_to(folder).as_posix() for file in files[:2])}"
            findings.append(Finding(folder.name, "", image_id, "image.ambiguous", text))
        elif files:
            try:
                size[0][row], size[1][row], is_turned = picture_size(files[0])
                turned += [image_id] * is_turned
            except DataError as error:
                findings += error.findings
    if findings:
        raise DataError(findings)
    notes = [*said.notes, *_turned_note(turned)]
    return dataclasses.replace(said, width=size[0], height=size[1], notes=notes)


def _pictures_by_id(folder: Path) -> dict[str, list[Path]]:
    """The pictures of a folder by relative path, with and without extension."""
    found: dict[str, list[Path]] = {}
    for file in files_in(folder, PICTURES):
        name = file.relative_to(folder)
        for image_id in (name.with_suffix("").as_posix(), name.as_posix()):
            found.setdefault(nfc(image_id), []).append(file)
    return found


def _turned_note(turned: Sequence[str]) -> list[Note]:
    return [("picture_turned", len(turned), ", ".join(turned[:3]))] if len(turned) else []


def rows_of_images(
    file: str, stems: Sequence[str], images: pd.DataFrame, *, ending: str = ""
) -> tuple[np.ndarray, list[Finding]]:
    """The image of each relative path without extension: by id, by file name, or by a base name that only one image has.

    ``ending`` completes a path in messages. Returns row numbers, -1 where there is none, and a finding for each path that is
    unknown, ambiguous, or stands for an image that another one stands for already.
    """
    by_name: dict[str, set[int]] = {}
    by_base: dict[str, set[int]] = {}
    for row, (image_id, file_name) in enumerate(zip(images["image_id"], images["file_name"], strict=True)):
        stem = nfc(Path(file_name).with_suffix("").as_posix()) if isinstance(file_name, str) else image_id
        for name in {image_id, stem}:
            by_name.setdefault(name, set()).add(row)
        by_base.setdefault(stem.rpartition("/")[2], set()).add(row)
    rows, findings, taken = [], [], {}
    for stem in stems:
        found = sorted(by_name.get(stem) or by_base.get(stem, ()))
        rows.append(found[0] if len(found) == 1 else -1)
        rule, text = "", ""
        if len(found) > 1:
            both = " and ".join(images[["file_name", "image_id"]].iloc[found[:2]].bfill(axis=1)["file_name"])
            rule, text = "image.ambiguous", f"ambiguous id: {stem!r} may be {both}; use the relative path"
        elif not found:
            rule, text = "image.unknown", f"there is no image {stem!r}"
        elif found[0] in taken:
            other = taken[found[0]]
            rule, text = (
                "image.twice",
                f"duplicate image: {other!r} and {stem!r} are both image {images['image_id'].iloc[found[0]]!r}",
            )
        else:
            taken[found[0]] = stem
        if rule:
            findings.append(Finding(file, stem + ending, stem, rule, text))
    return np.array(rows, np.int64), findings


def _pictures(folder: Path) -> tuple[pd.DataFrame, list[Note]]:
    files = files_in(folder, PICTURES)
    sizes = [picture_size(file) for file in files]
    names = [file.relative_to(folder) for file in files]
    images = pd.DataFrame(
        {
            "image_id": pd.Series([nfc(name.with_suffix("").as_posix()) for name in names], dtype=str),
            "width": np.array([width for width, _, _ in sizes], float),
            "height": np.array([height for _, height, _ in sizes], float),
            "file_name": pd.Series([name.as_posix() for name in names], dtype=str),
        }
    )
    twice = images["image_id"].duplicated(keep=False)
    if twice.any():
        paths = " and ".join(images.loc[twice, "file_name"][:2])
        raise one_finding(folder.name, "image.ambiguous", f"two pictures have one id: {paths}")
    return images, _turned_note(list(images["image_id"][[one for _, _, one in sizes]]))


def _size_file(path: Path) -> pd.DataFrame:
    table = read_text_table(path)
    lacking = [name for name in ("image_id", "width", "height") if name not in table]
    if lacking:
        text = f"the header lacks {', '.join(lacking)}; it has {', '.join(table.columns)}"
        raise one_finding(path.name, "columns", text, place="line 1")
    images = pd.DataFrame({"image_id": pd.Series(image_ids(table["image_id"]), dtype=str)})
    findings = [
        Finding(path.name, f"line {table.index[row]}", images["image_id"].iloc[row], "image.twice", "duplicate image row")
        for row in np.flatnonzero(images["image_id"].duplicated())
    ]
    for name in ("width", "height"):
        images[name] = as_numbers(table[name])
        for row in np.flatnonzero(~(images[name] > 0)):
            text = f"{name} must be a positive number of pixels, not {table[name].iloc[row]!r}"
            findings.append(Finding(path.name, f"line {table.index[row]}", images["image_id"].iloc[row], "image.size", text))
    if findings:
        raise DataError(findings)
    images["file_name"] = [name or None for name in table["file_name"]] if "file_name" in table else None
    return images

"""Bytes of a file to typed rows: fast when all is well, row by row with line numbers when it is not."""

from __future__ import annotations

import contextlib
import functools
import gzip
import itertools
import json
import math
import os
import posixpath
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from evalkit.tables import DataError, Finding

BOM = b"\xef\xbb\xbf"
MISSING_BOX = [math.nan] * 4  # stands for a predicted box that has not four numbers


def stays_inside(name: str) -> bool:
    """Whether a relative path stays in the folder that it is relative to, by its words alone.

    >>> stays_inside("a/../b.png"), stays_inside("../b.png"), stays_inside("/b.png")
    (True, False, False)
    """
    name = posixpath.normpath(name.replace("\\", "/"))
    return name != ".." and not name.startswith(("../", "/")) and not re.match("[A-Za-z]:/", name)


def within(folder: Path, name: str) -> Path | None:
    """The path of a name in a folder; None if it leaves the folder, be it through a link."""
    if "\0" in name or not stays_inside(name):
        return None
    path = folder / name
    return path if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)) else None


def files_in(folder: Path, endings: Iterable[str] | None = None) -> list[Path]:
    """The files in a folder and the folders in it, sorted; those with one of these endings, whatever their case, or all.

    Raises DataError for a link that leads out of the folder.
    """
    files = sorted(file for file in folder.rglob("*") if endings is None or file.suffix.lower() in endings)
    names = [file.relative_to(folder).as_posix() for file in files if file.is_symlink()]
    out = [name for name in names if within(folder, name) is None]
    if out:
        text = "a link that leads out of the folder is not followed; put the file itself there"
        raise DataError(Finding(folder.name, name, "", "path.outside", text) for name in out)
    return [file for file in files if endings or file.is_file()]


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unzipped if it ends in ``.gz``, without a UTF-8 mark.

    Raises DataError for a file that is not there, cannot be read, is not gzip or holds nothing.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except FileNotFoundError:
        raise one_finding(path.name, "file.absent", f"there is no file {str(path)!r}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise one_finding(path.name, "file.unreadable", f"cannot read it: {error}") from None
    data = data.removeprefix(BOM)
    if not data or data.isspace():
        raise one_finding(path.name, "file.empty", "the file is empty")
    return data


def read_text(path: Path, *, may_be_empty: bool = False) -> str:
    """The text of a file, as :func:`read_bytes` reads it; UTF-8."""
    try:
        data = path.read_bytes().removeprefix(BOM) if may_be_empty else read_bytes(path)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise one_finding(path.name, "file.unreadable", f"this is not UTF-8: {error}") from None
    except OSError as error:
        raise one_finding(path.name, "file.unreadable", f"cannot read it: {error}") from None


def pieces(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a file in pieces of about ``size`` bytes, each with the number of its first line.

    As :func:`read_bytes` it unzips, skips a UTF-8 mark and raises DataError, but never holds more than a piece.
    """
    line, empty = 1, True
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while lines := file.readlines(size):
                data = b"".join(lines).removeprefix(BOM if line == 1 else b"")
                if data and not data.isspace():
                    empty = False
                    yield line, data
                line += len(lines)
    except FileNotFoundError:
        raise one_finding(path.name, "file.absent", f"there is no file {str(path)!r}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise one_finding(path.name, "file.unreadable", f"cannot read it: {error}") from None
    if empty:
        raise one_finding(path.name, "file.empty", "the file is empty")


def one_finding(file: str, rule: str, message: str, *, place: str = "", image_id: str = "") -> DataError:
    return DataError([Finding(file, place, image_id, rule, message)])


def decode_lines(path: Path, row_type: type, *, lenient_boxes: bool) -> tuple[list[Any], Callable[[int], str]]:
    """Decode JSON lines into ``row_type`` and say in words where a row stands.

    ``lenient_boxes`` lets a box of wrong length through as four NaN, for the rules of validation to judge.

    Raises DataError with a finding for each line that does not decode.
    """
    return decode_rows(path.name, read_bytes(path), row_type, lenient_boxes=lenient_boxes)


def decode_rows(
    file: str, data: bytes, row_type: type, *, lenient_boxes: bool, first_line: int = 1
) -> tuple[list[Any], Callable[[int], str]]:
    """Decode whole lines of a file as :func:`decode_lines` does; ``first_line`` is the number of the first."""

    @functools.cache
    def numbers() -> list[int]:
        return [number for number, line in enumerate(data.split(b"\n"), first_line) if line.strip()]

    def place(row: int) -> str:
        return f"line {numbers()[row]}"

    decoder, rows, findings = msgspec.json.Decoder(row_type), [], []
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        rows = decoder.decode_lines(data)
    lines = [line for line in map(bytes.strip, data.split(b"\n")) if line]
    if len(rows) == len(lines) and all(line[:1] == b"{" and line[-1:] == b"}" for line in lines):
        return rows, place  # else a line fails, or holds not just one row
    rows = []
    for number, line in enumerate(data.split(b"\n"), first_line):
        if not line.strip():
            continue
        try:
            rows.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            row, problem = _second_try(line, row_type, error, lenient_boxes)
            rows.append(row)
            if problem:
                findings.append(Finding(file, f"line {number}", *problem))
    if findings:
        raise DataError(findings)
    return rows, place


def _whole_number(text: str) -> int:
    """Digits as an integer; Python refuses very many, and any beyond what a float holds will do for them."""
    return int(text) if len(text) < 4000 else 10**4000


def _second_try(line: bytes, row_type: type, error: Exception, lenient_boxes: bool) -> tuple[Any, tuple | None]:
    """Read a line with Python's parser, which takes NaN and Infinity, and soften its boxes."""
    try:
        row = json.loads(line.decode("utf-8", "surrogatepass"), parse_int=_whole_number)
    except (ValueError, RecursionError):
        return None, ("", "json.malformed", f"this is not JSON: {error}")
    image_id = str(row.get("image_id", "")) if isinstance(row, dict) else ""
    if isinstance(row, dict) and isinstance(row.get("boxes"), list):
        for box in row["boxes"]:
            soften(box, "box", lenient_boxes)
    try:
        return msgspec.convert(row, row_type), None
    except (msgspec.ValidationError, OverflowError) as problem:
        return None, (image_id, "json.type", str(problem))


def soften(row: Any, key: str, any_length: bool) -> None:
    """Make a box with null or giant numbers one of NaN and infinities, in place, for the rules of validation to judge.

    With ``any_length`` a null box or one of another length becomes four NaN. All else is left to the type check.
    """
    box = row.get(key) if isinstance(row, dict) else None
    if box is None and any_length and isinstance(row, dict) and key in row:
        row[key] = MISSING_BOX
    if not isinstance(box, list) or not all(value is None or type(value) in (int, float) for value in box):
        return
    if len(box) == 4:
        row[key] = [_number(value) for value in box]
    elif any_length:
        row[key] = MISSING_BOX


def _number(value: float | int | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def decode_document(path: Path, data: bytes, document_type: type, *, lenient_boxes: bool) -> Any:
    """Decode one JSON document; if that fails, find every entry of its lists that is wrong and name its place.

    ``lenient_boxes`` is that of :func:`decode_lines`.

    Raises DataError with the line of broken JSON, or a finding for each entry that breaks the type.
    """
    try:
        return msgspec.json.decode(data, type=document_type)
    except RecursionError:
        raise one_finding(path.name, "json.malformed", "it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        try:
            document = json.loads(data.decode("utf-8", "surrogatepass"), parse_int=_whole_number)
        except json.JSONDecodeError as problem:
            place = f"line {problem.lineno}, column {problem.colno}"
            raise one_finding(path.name, "json.malformed", f"this is not JSON: {problem.msg}", place=place) from None
        except RecursionError:
            raise one_finding(path.name, "json.malformed", "it is nested too deeply") from None
        except UnicodeDecodeError as problem:
            raise one_finding(path.name, "file.unreadable", f"this is not UTF-8: {problem}") from None
        except ValueError as problem:
            raise one_finding(path.name, "json.malformed", f"this is not JSON: {problem}") from None
        if isinstance(document, dict) and isinstance(document.get("annotations"), list):
            entries = document["annotations"]
        else:
            entries = document if isinstance(document, list) else []
        for entry in entries:
            soften(entry, "bbox", lenient_boxes)
        try:
            return msgspec.convert(document, document_type)
        except msgspec.ValidationError:
            raise DataError(list(_entry_findings(path.name, document, document_type, error))) from None


def _entry_findings(file: str, document: Any, document_type: type, error: Exception) -> Iterable[Finding]:
    """A finding for each wrong entry of a document, at least one."""
    found = False
    parts: list[tuple[str, list, type]] = []
    if isinstance(document, list):
        parts = [("entry ", document, document_type.__args__[0])]
    elif isinstance(document, dict):
        hints = {field.encode_name: field.type for field in msgspec.structs.fields(document_type)}
        parts = [(name, document[name], hints[name].__args__[0]) for name in hints if isinstance(document.get(name), list)]
    for name, entries, entry_type in parts:
        for row, entry in enumerate(entries):
            try:
                msgspec.convert(entry, entry_type)
            except (msgspec.ValidationError, OverflowError) as problem:
                found = True
                image_id = str(entry.get("image_id", "")) if isinstance(entry, dict) else ""
                yield Finding(file, f"{name}[{row}]", image_id, "json.type", str(problem))
    if not found:
        yield Finding(file, "", "", "json.type", re.sub(r"\s+", " ", str(error)))


def box_array(boxes: Sequence[Sequence[float]]) -> np.ndarray:
    """Boxes as an array of shape (n, 4), also for n = 0."""
    flat = np.fromiter(itertools.chain.from_iterable(boxes), float, 4 * len(boxes))
    return flat.reshape(len(boxes), 4)


def factorise(labels: Sequence[Any] | np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """Codes of labels, and the different labels."""
    values = np.array(labels) if len(labels) and type(labels[0]) in (int, np.int64) else np.empty(0)
    if values.dtype == np.int64 and (span := int(values.max()) - int(values.min())) < 10 * len(values):
        offset = values - values.min()
        present = np.bincount(offset, minlength=span + 1) > 0
        return (np.cumsum(present) - 1)[offset], (np.flatnonzero(present) + values.min()).tolist()
    distinct = list(dict.fromkeys(labels))
    return positions(labels, dict(zip(distinct, range(len(distinct)), strict=True))), distinct


def positions(labels: Sequence[Any], position_of: Mapping[Any, int]) -> np.ndarray:
    """The position of each label, or -1 for one that is not there."""
    return np.fromiter(map(position_of.get, labels, itertools.repeat(-1)), np.int64, len(labels))

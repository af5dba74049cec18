"""Tables to files. A file is written beside its place and renamed, so none is ever half there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from evalkit.tables import EvalkitError

FORMATS = ("csv", "parquet", "json")


def write_files(out: str | Path, files: Mapping[str, pd.DataFrame | dict | list[dict] | bytes]) -> list[Path]:
    """Write all files into the folder ``out``, which is made if need be; the ending of a name is its format, bytes are as is.

    All of them are complete before the first takes its place; what else the folder holds stays as it is.

    Raises EvalkitError if the folder cannot be written.
    """
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=out) as scratch:
            fresh, old = Path(scratch, "fresh"), Path(scratch, "old")
            fresh.mkdir()
            old.mkdir()
            for name, content in files.items():
                _write(fresh / name, content)
            _swap(out, fresh, old, list(files))
    except OSError as error:
        raise EvalkitError(f"out: cannot write to {out}: {error.strerror or error}") from None
    return [out / name for name in files]


def _swap(out: Path, fresh: Path, old: Path, names: list[str]) -> None:
    """Put the fresh files in place of those of the same names; if one cannot, all the old ones come back."""
    blocked = [name for name in names if (out / name).is_dir()]
    if blocked:
        raise IsADirectoryError(0, f"a folder stands where {blocked[0]} goes")
    try:
        for name in names:
            if (out / name).exists():
                os.replace(out / name, old / name)
            os.replace(fresh / name, out / name)
    except BaseException:
        for name in names:
            if (old / name).exists():
                os.replace(old / name, out / name)
            elif not (fresh / name).exists():  # it is in its place, where nothing stood
                (out / name).unlink(missing_ok=True)
        raise


def replace_folder(fresh: Path, target: Path, old: Path) -> None:
    """Put the folder ``fresh`` in the place of ``target``; what stood there goes to ``old``, and comes back if that fails."""
    try:
        if target.exists():
            target.rename(old)
        fresh.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise


def _write(path: Path, content: pd.DataFrame | dict | list[dict] | bytes) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".jsonl":
        path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in content))
    elif path.suffix == ".parquet":
        content.to_parquet(path, index=False)
    elif path.suffix == ".csv":
        content.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
    else:
        path.write_text(to_json(content), encoding="utf-8", newline="\n")


def to_json(content: pd.DataFrame | dict) -> str:
    """JSON that every parser reads: what is undefined is null, never NaN."""
    if isinstance(content, pd.DataFrame):
        content = content.to_dict("records")
    return json.dumps(_plain(content), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _plain(value: Any) -> Any:
    """Containers and scalars as JSON has them: NaN becomes None, numpy's scalars Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or value is pd.NA or value != value:
        return None
    return value.item() if hasattr(value, "item") else value

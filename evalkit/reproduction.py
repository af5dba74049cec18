"""What ran: the inputs by hash, an inventory of them, the rules in force, the versions, the commit of the code."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import posixpath
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pandas as pd
from msgspec import Meta

from evalkit.boxes import TOLERANCE
from evalkit.formats.decoding import files_in, read_bytes, stays_inside
from evalkit.formats.options import BenchmarkOptions, PointOptions, read_options
from evalkit.point_benchmarks import PROTOCOL
from evalkit.responses import reader
from evalkit.tables import EvalkitError, printable

INVENTORY = "inventory.json"
PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = (
    *("evalkit", "numpy", "scipy", "pandas", "pyarrow", "Pillow", "opencv-python-headless", "matplotlib", "msgspec"),
    *("papermill", "jupyter-book"),
)
RULES = {
    "iou": f"intersection over union of half-open boxes; a match needs IoU >= threshold - {TOLERANCE:g}",
    "matcher": "maximum cardinality, one-to-one, within image and class",
    "confidence": "carried, never used",
    "scope valid": "each model's own valid images",
    "scope common": "images that are valid for every compared model",
    "view all": "all images, invalid and missing taken as empty",
    "macro": "mean over the classes with any TP, FP or FN in the scope; names outside the class list are not among them",
    "macro_gold": "mean over the classes with gold in the scope",
}
AGREEMENT_RULES = {
    **{name: RULES[name] for name in ("iou", "matcher", "confidence")},
    "unit": "the image; the raters are its annotators, and an annotator without a row did not see it",
    "domain, overall": "ratio of sums over the classes that some annotator of the group marked",
    "box_alpha": "largest number of pairs whatever the class, among those the most of equal class",
    "bootstrap": "images of the group in the order of their ids, or blocks in the order of their names",
}

POINT_RULES = {
    "strict": "TP = min(M, P, G), FP = P - TP, FN = G - TP, micro; exact counts and empty answers have rules of their own",
    "non-strict": "precision = sum of hits / sum of P, recall = strict recall, F1 = their harmonic mean",
    "pixels": "min(size - 1, int(value / scale * size)); a point out of range stays in P and hits nothing",
    "mask": "foreground is every value but 0; the size is the image's",
    "polygons": "vertices truncated, OpenCV fillPoly",
}


def run_record(options: BenchmarkOptions, folder: Path, parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The contents of ``run.json``: parameters, rules, inputs with their SHA-256, versions, time, and ``more``.

    Where models' own answers were read, ``readers`` has the convention of each.
    """
    readers = {name: str(reader(one.reader)) for name, one in options.predictions.items() if one.reader is not None}
    return {
        "parameters": dict(parameters),
        "rules": RULES,
        "inputs": dict(input_hashes(options, folder)),
        **({"readers": readers} if readers else {}),
        "versions": versions(),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        **more,
    }


def point_record(
    points: Mapping[str, PointOptions], folder: Path, parameters: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """The contents of ``run.json`` for point benchmarks, as :func:`run_record`; ``protocol`` has the protocol's name."""
    readers = {
        name: {model: str(reader(file.reader, kind="points")) for model, file in one.predictions.items()}
        for name, one in points.items()
    }
    return {
        "protocol": PROTOCOL,
        "parameters": dict(parameters),
        "rules": POINT_RULES,
        "inputs": dict(_hashes(_point_files(points), folder)),
        "readers": readers,
        "versions": versions(),
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        **more,
    }


def provenance(benchmark: str | Path, **parameters: Any) -> pd.DataFrame:
    """What a page was made from, as a table ``kind, name, value`` without any absolute path.

    ``benchmark`` is the path of ``benchmark.yml``; the rest are the parameters of the page.
    """
    path = Path(benchmark)
    rows = [("parameter", "benchmark", path.name)]
    rows += [("parameter", name, json.dumps(value, ensure_ascii=False)) for name, value in parameters.items()]
    rows.append(("input", path.name, digest(path)))
    rows += [("input", name, value) for name, value in input_hashes(read_options(path), path.parent)]
    rows += [("version", name, value) for name, value in versions().items()]
    rows.append(("run", "time", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))
    return pd.DataFrame(rows, columns=["kind", "name", "value"])


def input_hashes(options: BenchmarkOptions, folder: Path) -> Iterator[tuple[str, str]]:
    """What a benchmark reads, by its role, and SHA-256 of each file (or folder of files), but for the pictures."""
    said = [("classes", options.classes), ("slices", options.slices)]
    said += [("semantic", options.semantic.path)] if options.semantic else []
    files = {"gold": options.gold, **{f"predictions {name}": one for name, one in options.predictions.items()}}
    files["first pass"] = options.first_pass
    for role, one in ((role, one) for role, one in files.items() if one is not None):
        said += [(role, one.path)] + [(f"{role}, {name}", getattr(one, name)) for name in ("names", "sizes", "assignments")]
    published = msgspec.structs.asdict(options.published)
    said += [(f"published {table}", one.path) for table, one in published.items() if one is not None]
    yield from _hashes([*said, *_point_files(options.points)], folder)


def _point_files(points: Mapping[str, PointOptions]) -> list[tuple[str, str | None]]:
    said: list[tuple[str, str | None]] = []
    for name, one in points.items():
        said += [(f"points {name}", path) for path in one.samples]
        said += [(f"points {name}, predictions {model}", file.path) for model, file in one.predictions.items()]
    return said


def _hashes(said: Iterable[tuple[str, str | None]], folder: Path) -> Iterator[tuple[str, str]]:
    for role, text in said:
        path = folder / text if text else folder
        is_labels = path.is_dir() and not role.endswith("sizes")  # a folder of sizes holds pictures
        if text and (path.is_file() or is_labels):
            name = path.name if Path(text).is_absolute() else text
            yield f"{role}: {name}", digest(path)


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, that of the relative names and bytes of its files, in order."""
    found = hashlib.sha256()
    for file in sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]:
        if path.is_dir():
            found.update(f"{file.relative_to(path).as_posix()}\0".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def inventory(folder: str | Path, *, name: str = INVENTORY) -> dict[str, str]:
    """SHA-256 of every file below a folder by its relative path, but for hidden ones and the inventory ``name`` itself.

    It is written with ``evalkit.formats.writing.write_files``.

    Raises DataError for a link that leads out of the folder.
    """
    folder = Path(folder)
    names = {file.relative_to(folder): file for file in files_in(folder)}
    hidden = {path for path in names if any(part.startswith(".") for part in path.parts)}
    return {path.as_posix(): digest(file) for path, file in names.items() if path not in hidden and path.as_posix() != name}


def compare_inventory(path: str | Path, folder: str | Path) -> pd.DataFrame:
    """Compare an inventory with the files below a folder: ``path, state, expected, found``, one row a file.

    ``state`` is ``same``, ``changed`` (the file has another SHA-256), ``missing`` (it is not there) or ``extra`` (the
    inventory does not name it).

    Raises EvalkitError for an inventory that is not there, or is not ``{"path": "sha256"}`` with paths below its folder.
    """
    path, folder = Path(path), Path(folder)
    name = os.path.relpath(path, folder)
    expected, found = _read_inventory(path), inventory(folder, name=name)
    states = {(True, False): "missing", (False, True): "extra"}
    rows = []
    for name in sorted(expected.keys() | found.keys()):
        one, other = expected.get(name, ""), found.get(name, "")
        state = states.get((bool(one), bool(other)), "same" if one.lower() == other else "changed")
        rows.append((name, state, one, other))
    return pd.DataFrame(rows, columns=["path", "state", "expected", "found"])


def _read_inventory(path: Path) -> dict[str, str]:
    try:
        said = msgspec.json.decode(read_bytes(path), type=dict[str, Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvalkitError(f'{path.name}: an inventory is {{"path": "sha256", …}}: {error}') from None
    if outside := [name for name in said if not stays_inside(name) or posixpath.normpath(name) != name]:
        raise EvalkitError(f"{path.name}: {printable(repr(outside[0]))} is no path below the folder")
    return said


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers and pages depend on, and the commit of the code if known."""
    found = {"python": platform.python_version()}
    found |= {name: metadata.version(name) for name in PACKAGES if any(metadata.distributions(name=name))}
    if (PROJECT / ".git").exists() and shutil.which("git"):  # not the commit of some other project around an installed copy
        git = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty", "--abbrev=12"]
        commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
        found |= {"commit": commit} if commit else {}
    return found

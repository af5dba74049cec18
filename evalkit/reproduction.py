"""What ran: the inputs by hash, the rules in force, the versions, the commit of the code."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from evalkit.boxes import TOLERANCE
from evalkit.formats.options import BenchmarkOptions, read_options

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("evalkit", "numpy", "scipy", "pandas", "matplotlib", "msgspec", "papermill", "jupyter-book")
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


def run_record(options: BenchmarkOptions, folder: Path, parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The contents of ``run.json``: parameters, rules, inputs with their SHA-256, versions, time, and ``more``."""
    return {
        "parameters": dict(parameters),
        "rules": RULES,
        "inputs": dict(input_hashes(options, folder)),
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
    rows.append(("input", path.name, digest([path])))
    rows += [("input", name, value) for name, value in input_hashes(read_options(path), path.parent)]
    rows += [("version", name, value) for name, value in versions().items()]
    rows.append(("run", "time", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))
    return pd.DataFrame(rows, columns=["kind", "name", "value"])


def input_hashes(options: BenchmarkOptions, folder: Path) -> Iterator[tuple[str, str]]:
    """Name and SHA-256 of every file (or folder of files) that a benchmark reads, but for the pictures."""
    said = [options.classes, *(text for one in (options.gold, *options.predictions.values()) for text in _paths(one))]
    for text in dict.fromkeys(text for text in said if text):
        path = folder / text
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        if all(file.is_file() for file in files):  # `sizes: gold` is no file
            yield (Path(text).name if Path(text).is_absolute() else text), digest(files)


def _paths(one: Any) -> tuple[str | None, ...]:
    return one.path, one.names, one.sizes


def digest(files: list[Path]) -> str:
    """SHA-256 of the bytes of the files, one after another."""
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers and pages depend on, and the commit of the code if known."""
    found = {"python": platform.python_version()}
    found |= {name: metadata.version(name) for name in PACKAGES if any(metadata.distributions(name=name))}
    if (PROJECT / ".git").exists() and shutil.which("git"):  # not the commit of some other project around an installed copy
        git = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty", "--abbrev=12"]
        commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
        found |= {"commit": commit} if commit else {}
    return found

"""Small benchmarks as files, and rows of their scores asked for in one line."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

import pandas as pd

import evalkit
from evalkit import Benchmark

HEADLINE = {"task": "localisation", "iou": 0.5, "scope": "valid", "level": "overall", "average": "micro"}


def as_row(image_id, said) -> dict:
    """A JSON row from a list of ``[x_min, y_min, x_max, y_max, class(, score)]``; None is null, a dict stands for itself."""
    if isinstance(said, dict):
        return {"image_id": image_id, **said}
    keys = ("class", "score")
    boxes = None if said is None else [{"box": box[:4], **dict(zip(keys, box[4:], strict=False))} for box in said]
    return {"image_id": image_id, "boxes": boxes}


def write_lines(path: Path, images) -> str:
    """Write images, ``{image_id: boxes}`` or a list of such pairs, as JSON lines; return the file's name."""
    pairs = images.items() if isinstance(images, dict) else images
    path.write_text("".join(json.dumps(as_row(*pair)) + "\n" for pair in pairs), encoding="utf-8")
    return path.name


def write_classes(path: Path, classes) -> str:
    """Write a class list from names or ``{name: domain}``; ids count from 0. Return the file's name."""
    domains = classes if isinstance(classes, dict) else dict.fromkeys(classes, "")
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [(number, name, domain) for number, (name, domain) in enumerate(domains.items())]
        csv.writer(file).writerows([("class_id", "class_name", "domain"), *rows])
    return path.name


def write_yml(folder: Path, **said) -> Path:
    """Write a ``benchmark.yml`` (JSON is YAML) and return its path; what stands elsewhere is copied into the folder first."""
    path = folder / "benchmark.yml"
    path.write_text(json.dumps(_brought(folder, said)), encoding="utf-8")
    return path


def _brought(folder: Path, said):
    """The same, with each absolute path as one in the folder."""
    if isinstance(said, dict):
        return {key: _brought(folder, one) for key, one in said.items()}
    if not isinstance(said, str) or not Path(said).is_absolute():
        return said
    if not Path(said).is_relative_to(folder):
        place = folder / "brought" / hashlib.sha256(said.encode()).hexdigest()[:8] / Path(said).name
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(said).is_dir():
            shutil.copytree(said, place, dirs_exist_ok=True, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(said, place)
        said = str(place)
    return Path(said).relative_to(folder).as_posix()


def rows(table: pd.DataFrame, **where) -> pd.DataFrame:
    """The rows that have these values; None asks for an empty cell."""
    for name, value in where.items():
        table = table[table[name].isna() if value is None else table[name] == value]
    return table


def the_row(table: pd.DataFrame, **where) -> pd.Series:
    """The one row that has these values."""
    found = rows(table, **where)
    assert len(found) == 1, f"{len(found)} rows for {where}"
    return found.iloc[0]


def headline(table: pd.DataFrame, **where) -> pd.Series:
    """A row of a scores table: overall micro, valid scope, boxes at IoU 0.50, unless ``where`` says otherwise."""
    where = HEADLINE | where
    return the_row(table, **(where | {"iou": None} if where["task"] == "classification" else where))


def score(benchmark: Benchmark, *, zero_division: float = 0.0, **where) -> pd.Series:
    """Score a benchmark and return that row."""
    thresholds = [where.get("iou") or HEADLINE["iou"]]
    table = evalkit.scores(benchmark, evalkit.count(benchmark, iou=thresholds), zero_division=zero_division)
    return headline(table, **where)


def counts(benchmark: Benchmark, **where) -> dict[str, int]:
    """TP, FP and FN of that row."""
    row = score(benchmark, **where)
    return {name: int(row[name]) for name in ("tp", "fp", "fn")}


def coverage(benchmark: Benchmark, *, scope: str = "valid") -> pd.Series:
    """The one row of the coverage table."""
    return the_row(evalkit.coverage(benchmark), scope=scope)


def f2(tp: int, fp: int, fn: int) -> float:
    """F2 from counts, for expected values."""
    return 5 * tp / (5 * tp + fp + 4 * fn)

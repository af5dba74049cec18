"""Tables to files of any written format, as a whole benchmark that reads back as it was.

A format that cannot hold something refuses and says what. Before the new benchmark takes its place it is read and compared with
the tables, so that what is written is what was there. Another kind of table is one more :class:`Part`.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from evalkit.formats import read_benchmark
from evalkit.formats.decoding import one_finding, stays_inside
from evalkit.formats.sizes import rows_of_images, stem_of
from evalkit.formats.writing import replace_folder
from evalkit.tables import BOX_COLUMNS, Benchmark, EvalkitError, Relation, printable

PRECISION = 1e-12  # of an edge that is written as a size, relative to the largest number of its box and image
DROPPABLE = {
    "reasons": "why responses are invalid or missing, and what was mended in a model's own text",
    "invalid": "that responses are invalid; they become missing",
}
ABOUT = ["width", "height", "file_name"]
EXACT = 2**53  # below it a float may be written as the integer that it is


class Part(NamedTuple):
    """Gold, or one model's answers: the images (with the state of the answer), and their boxes, image by image."""

    name: str
    images: pd.DataFrame
    boxes: pd.DataFrame

    @property
    def is_gold(self) -> bool:
        return "state" not in self.images

    def rows(self, *, every: bool = False) -> Iterator[tuple[Any, list[tuple[str, list[float], float]]]]:
        """Each image with its boxes as (class, edges, score); of a model's those that it answered validly, or ``every``."""
        score = np.full(len(self.boxes), np.nan) if self.is_gold else self.boxes["score"]
        boxes = list(zip(self.boxes["class"].astype(str), self.boxes[BOX_COLUMNS].to_numpy().tolist(), score, strict=True))
        edges = np.searchsorted(self.boxes["image_id"].cat.codes, np.arange(len(self.images) + 1))
        for row, image in enumerate(self.images.itertuples(index=False)):
            if every or self.is_gold or image.state == "valid":
                yield image, boxes[edges[row] : edges[row + 1]]


Write = Callable[[Part, Path, pd.DataFrame], dict[str, Any]]


def convert(benchmark: Benchmark, out: str | Path, *, to: str, drop: Sequence[str] = ()) -> Path:
    """Write gold, every model's answers and the tables beside them into the new or empty folder ``out``; the pictures stay.

    JSON lines, CSV and Parquet keep every digit; COCO and YOLO hold a box by its size, and its edges to :data:`PRECISION`.
    ``drop`` gives up what :data:`DROPPABLE` says. Returns the path of the new ``benchmark.yml``.

    Raises EvalkitError for what the format cannot hold, and for a folder that holds something or cannot be written.
    """
    out = Path(out)
    for what, given, known in (("to", [to], WRITERS), ("drop", drop, DROPPABLE)):
        if unknown := [name for name in given if name not in known]:
            raise EvalkitError(f"{what}: {unknown[0]!r} is none of {', '.join(known)}")
    parts = [_without(part, drop) for part in _parts(benchmark)]
    if to != "jsonl":
        _refuse_states(parts, to)
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise EvalkitError(f"out: must be a new or empty folder, got {out}")
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=out.parent) as scratch:
            fresh = Path(scratch, "fresh")
            try:
                _write(benchmark, parts, fresh, to)
                changed = _changes(benchmark, parts, read_benchmark(fresh / "benchmark.yml"), exact=to not in BY_SIZE)
            except EvalkitError as error:
                raise EvalkitError(f"{to} cannot hold it: {error}") from None
            if changed:
                raise EvalkitError(f"{to} cannot hold it: {' and '.join(changed)} would change")
            replace_folder(fresh, out, Path(scratch, "old"))
    except OSError as error:
        raise EvalkitError(f"out: cannot write to {out}: {error.strerror or error}") from None
    return out / "benchmark.yml"


# -- parts: what there is to write, and whether it came back


def _parts(benchmark: Benchmark) -> Iterator[Part]:
    yield Part("gold", benchmark.images, _by_image(benchmark.gold))
    about = benchmark.images[ABOUT].reset_index(drop=True)
    for model in benchmark.models:
        answers, boxes = (
            table[table["model"] == model].drop(columns="model").reset_index(drop=True)
            for table in (benchmark.responses, benchmark.predictions)
        )
        yield Part(model, pd.concat([answers, about], axis=1), _by_image(boxes))


def _by_image(boxes: pd.DataFrame) -> pd.DataFrame:
    order = np.argsort(boxes["image_id"].cat.codes, kind="stable")
    return boxes.iloc[order].reset_index(drop=True)


def _without(part: Part, drop: Sequence[str]) -> Part:
    if part.is_gold:
        return part
    images = part.images.copy()
    invalid = images["state"] == "invalid" if "invalid" in drop else np.zeros(len(images), bool)
    images.loc[invalid, "state"] = "missing"
    images.loc[invalid | ("reasons" in drop), ["reason", "repairs"]] = ""
    return part._replace(images=images)


def _refuse_states(parts: Iterable[Part], to: str) -> None:
    """Raise for invalid responses and for reasons, for which only JSON lines have a place."""
    held, names = [], []
    for part in parts:
        if part.is_gold:
            continue
        invalid = part.images["state"] == "invalid"
        reasons = (part.images[["reason", "repairs"]] != "").any(axis=1) & ~invalid
        for name, what, mask in (("invalid", "invalid responses", invalid), ("reasons", "reasons or repairs", reasons)):
            if mask.any():
                held.append(f"{part.name}: {mask.sum():,} {what}")
                names.append(name)
    if held:
        give_up = " ".join(f"--drop {name}" for name in dict.fromkeys(names))
        raise EvalkitError(f"{to} cannot hold it: {'; '.join(held)} (jsonl can; {give_up} gives them up)")


def _changes(benchmark: Benchmark, parts: Sequence[Part], found: Benchmark, *, exact: bool) -> list[str]:
    """What of a benchmark is not the same in the one that was read back."""
    changed = [] if found.classes.equals(benchmark.classes) else ["the class list"]
    changed += [] if _same_relation(benchmark.relation, found.relation) else ["the semantic relation"]
    changed += [] if found.slices.astype(str).equals(benchmark.slices.astype(str)) else ["the slices"]
    longest = benchmark.images[["width", "height"]].max(axis=1).fillna(0).to_numpy()
    for old, new in zip(parts, _parts(found), strict=True):
        if not old.images.astype({"image_id": str}).equals(new.images.astype({"image_id": str})):
            changed.append(f"images of {old.name}")
        labels = [table[["image_id", "class"]].astype(str).to_numpy() for table in (old.boxes, new.boxes)]
        numbers = [table.iloc[:, 2:].to_numpy(float) for table in (old.boxes, new.boxes)]
        if not np.array_equal(*labels) or (exact and not np.array_equal(*numbers, equal_nan=True)):
            changed.append(f"boxes of {old.name}")
        elif not exact and len(numbers[0]):
            largest = np.maximum(np.abs(numbers[0][:, :4]).max(axis=1), longest[old.boxes["image_id"].cat.codes])
            moved = np.abs(numbers[0][:, :4] - numbers[1][:, :4]).max(axis=1) > PRECISION * largest
            if moved.any() or not np.array_equal(numbers[0][:, 4:], numbers[1][:, 4:], equal_nan=True):
                changed.append(f"boxes of {old.name}")
    return changed


def _same_relation(one: Relation | None, other: Relation | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.cutoff == other.cutoff and one.values.equals(other.values)


# -- writers: a part to a path without ending; what comes back is how benchmark.yml names it


def _write(benchmark: Benchmark, parts: Sequence[Part], folder: Path, to: str) -> None:
    (folder / "predictions").mkdir(parents=True)
    _table(benchmark.classes, folder / "classes.csv")
    said: dict[str, Any] = {"name": benchmark.name, "note": benchmark.note, "classes": "classes.csv"}
    if benchmark.relation is not None:
        _table(benchmark.relation.values.rename_axis("").reset_index(), folder / "semantic.csv")
        said["semantic"] = {"path": "semantic.csv", "cutoff": repr(benchmark.relation.cutoff)}
    if len(benchmark.slices):
        _table(benchmark.slices, folder / "slices.csv")
        said["slices"] = "slices.csv"
    taken: set[str] = set()
    for part in parts:
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", part.name).strip(".-")[:60] or "model"
        name += f"-{len(taken)}" * (name.casefold() in taken)
        taken.add(name.casefold())
        path = folder / "gold" if part.is_gold else folder / "predictions" / name
        options = WRITERS[to](part, path, benchmark.classes)
        options = {key: one.relative_to(folder).as_posix() if isinstance(one, Path) else one for key, one in options.items()}
        said |= {"gold": options} if part.is_gold else {"predictions": {**said.get("predictions", {}), part.name: options}}
    _text(folder / "benchmark.yml", yaml.safe_dump(said, allow_unicode=True, sort_keys=False))


def _jsonl(part: Part, path: Path, classes: pd.DataFrame) -> dict[str, Any]:
    rows = []
    for image, boxes in part.rows(every=True):
        row: dict[str, Any] = {"image_id": image.image_id}
        if part.is_gold:
            row |= _known(width=image.width, height=image.height, file_name=image.file_name)
        elif image.state != "valid":
            row["status"] = image.state
        row |= {} if part.is_gold else {name: text for name, text in _answer(image).items() if text}
        if part.is_gold or image.state == "valid":
            row["boxes"] = [{"class": name, "box": list(map(_plain, box)), **_known(score=score)} for name, box, score in boxes]
        rows.append(row)
    return {"path": _text(path.with_name(path.name + ".jsonl"), "".join(f"{_json(row)}\n" for row in rows))}


def _answer(image: Any) -> dict[str, str]:
    return {"reason": image.reason, "repairs": image.repairs}


def _long(part: Part) -> pd.DataFrame:
    """One box a row, and one with blank box columns for an image that was seen and is empty."""
    rows = []
    for image, boxes in part.rows():
        about = (image.width, image.height, image.file_name) if part.is_gold else ()
        for name, box, score in boxes or [(None, [None] * 4, None)]:
            rows.append((image.image_id, name, *box, *(about if part.is_gold else (score,))))
    more = ABOUT if part.is_gold else ["score"]
    table = pd.DataFrame(rows, columns=["image_id", "class", *BOX_COLUMNS, *more])
    text = {"image_id", "class", "file_name"}
    return table.astype({name: str if name in text else float for name in table})


def _csv(part: Part, path: Path, classes: pd.DataFrame) -> dict[str, Any]:
    path = path.with_name(path.name + ".csv")
    _table(_long(part), path)
    return {"path": path}


def _parquet(part: Part, path: Path, classes: pd.DataFrame) -> dict[str, Any]:
    path = path.with_name(path.name + ".parquet")
    _long(part).to_parquet(path, index=False)
    return {"path": path}


def _coco(part: Part, path: Path, classes: pd.DataFrame) -> dict[str, Any]:
    """An object; a model's has the images that it answered and a ``score`` in its annotations.

    Ids are numbers where all of them are, as other tools want them.
    """
    names = _names(part, classes)
    class_ids = _numbers_if_all(classes["class_id"]) or list(range(1, len(classes) + 1))
    first = max(class_ids, default=0) + 1
    id_of = dict(zip(names, [*class_ids, *range(first, first + len(names))], strict=False))
    image_ids = dict(
        zip(part.images["image_id"], _numbers_if_all(part.images["image_id"]) or part.images["image_id"], strict=True)
    )
    domains = dict(zip(classes["class_name"], classes["domain"], strict=True))
    images, annotations = [], []
    for image, boxes in part.rows():
        key = {"id": image_ids[image.image_id]}
        images.append(key | _known(width=image.width, height=image.height, file_name=image.file_name) if part.is_gold else key)
        for name, (x_min, y_min, x_max, y_max), score in boxes:
            box = [x_min, y_min, x_max - x_min, y_max - y_min]
            about = {"iscrowd": 0} if part.is_gold else _known(score=score)
            place = {"id": len(annotations) + 1, "image_id": key["id"], "category_id": id_of[name]}
            annotations.append(place | {"bbox": list(map(_plain, box)), "area": _plain(box[2] * box[3])} | about)
    categories = [{"id": id_of[name], "name": name, "supercategory": domains.get(name, "")} for name in names]
    document = {"images": images, "annotations": annotations, "categories": categories}
    return {"path": _text(path.with_name(path.name + ".json"), _json(document))}


def _yolo(part: Part, path: Path, classes: pd.DataFrame) -> dict[str, Any]:
    """A folder of text files, one an image that was answered, named as the picture or else as the image."""
    lacking = part.images["image_id"][part.images[["width", "height"]].isna().any(axis=1)]
    if len(lacking):
        raise one_finding(part.name, "image.size", f"{len(lacking)} images have no size", image_id=lacking.iloc[0])
    stems = part.images["image_id"].astype(str).tolist()
    if part.images["file_name"].notna().all():
        stems = [stem_of(name) for name in part.images["file_name"]]
    rows, findings = rows_of_images(part.name, stems, part.images)
    bad = [stem for stem in stems if not stays_inside(stem) or Path(f"{stem}.txt").as_posix() != f"{stem}.txt" or "\0" in stem]
    if bad or findings or not np.array_equal(rows, np.arange(len(stems))):
        what = printable(repr(bad[0])) if bad else findings[0].message if findings else "another image"
        raise one_finding(part.name, "image.path", f"the ids or file names are no paths that tell the images apart: {what}")
    names = _names(part, classes)
    number = {name: place for place, name in enumerate(names)}
    stem_of_id = dict(zip(part.images["image_id"], stems, strict=True))
    path.mkdir()
    for image, boxes in part.rows():
        lines = []
        for name, (x_min, y_min, x_max, y_max), score in boxes:
            centre = (x_min / 2 + x_max / 2) / image.width, (y_min / 2 + y_max / 2) / image.height
            values = [*centre, (x_max - x_min) / image.width, (y_max - y_min) / image.height]
            values += [] if np.isnan(score) else [score]
            lines.append(" ".join([str(number[name]), *map(repr, map(float, values))]) + "\n")
        file = path / f"{stem_of_id[image.image_id]}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        _text(file, "".join(lines))
    listed = _text(path.with_name(path.name + ".names"), "".join(f"{name}\n" for name in names))
    options = {"path": path, "format": "yolo", "names": listed}
    if part.is_gold:
        options["sizes"] = path.with_name("sizes.csv")
        _table(part.images, options["sizes"])
    return options


WRITERS: dict[str, Write] = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet, "coco": _coco, "yolo": _yolo}
BY_SIZE = {"coco", "yolo"}  # they hold a box by its size, so its edges are rounded


def _names(part: Part, classes: pd.DataFrame) -> list[str]:
    """The class list, and after it the names that a model gives beside it."""
    return list(dict.fromkeys([*classes["class_name"], *sorted(set(part.boxes["class"].astype(str)))]))


def _numbers_if_all(texts: pd.Series) -> list[int]:
    """Ids as integers if that is what all of them are, else none."""
    numbers = [int(text) if re.fullmatch("0|[1-9][0-9]{0,14}", text) else None for text in texts]
    return [] if None in numbers else numbers


def _known(**values: Any) -> dict[str, Any]:
    """The values that are there."""
    return {name: _plain(value) for name, value in values.items() if isinstance(value, str) or not pd.isna(value)}


def _plain(value: Any) -> Any:
    """A float that is a whole number as an integer, which reads the same and is easier on the eye."""
    return int(value) if isinstance(value, float) and abs(value) < EXACT and value == int(value) else value


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise EvalkitError("JSON has no numbers that are infinite") from None


def _table(table: pd.DataFrame, path: Path) -> None:
    """Write a CSV; a carriage return in a cell ends a line for readers unless it is quoted, which csv does not see to."""
    held = any("\r" in value for name in table for value in table[name] if isinstance(value, str))
    table.to_csv(path, index=False, lineterminator="\n", encoding="utf-8", quoting=csv.QUOTE_NONNUMERIC * held)


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path

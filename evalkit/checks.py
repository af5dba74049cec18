"""The check of the data in layers: structure, values, distribution, gold against predictions.

Each finding has a code, a count and examples. Faults stop the reading of a benchmark; everything else is noticed and accepted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from evalkit.boxes import candidate_pairs
from evalkit.counts import overlaps
from evalkit.first_pass import FirstPass, as_models
from evalkit.formats import read_benchmark
from evalkit.formats.decoding import within
from evalkit.formats.sizes import picture_size
from evalkit.tables import BOX_COLUMNS, NOTES, OUTSIDE_TOLERANCE, Benchmark, DataError, Finding, data_notes, printable

STRUCTURE, VALUES, DISTRIBUTION, AGAINST = LAYERS = ["structure", "values", "distribution", "gold against predictions"]
RARE = 5  # images; below it a class's scores say little
ALIKE = 0.9  # IoU from which two gold boxes of one class may be one object
NEAR, HARDLY = 0.1, 0.5  # an overlap at all, and the share of images below which a convention is doubtful
SHOWN = 3  # examples
COLUMNS = ["layer", "source", "code", "count", "examples", "meaning"]
# The layer of what readers and tables note; what is not here is of gold against predictions
NOTED = dict.fromkeys(("crowd_dropped", "ignore_flag_not_used", "difficult", "picture_turned"), STRUCTURE)
NOTED |= dict.fromkeys(("zero_area", "outside_image", "repeated_box"), VALUES)
# The layer and the meaning of what is found here
CODES = {
    "size_unknown": (STRUCTURE, "images without a size: whether a box is inside is not known"),
    "picture_absent": (STRUCTURE, "images whose picture is not in the folder"),
    "picture_turned": (STRUCTURE, NOTES["picture_turned"]),
    "picture_unreadable": (STRUCTURE, "pictures that cannot be opened, or lie outside the folder"),
    "picture_size_differs": (STRUCTURE, "pictures of another size than gold says: boxes may be on another scale"),
    "gold_over_edge": (VALUES, f"gold boxes up to {OUTSIDE_TOLERANCE} pixels outside their image: taken as rounding"),
    "gold_repeated": (VALUES, "gold boxes that repeat another of their image and class: each must be found"),
    "gold_alike": (VALUES, f"gold boxes that overlap another of their class with IoU {ALIKE} or more: perhaps one object"),
    "gold_below_a_pixel": (VALUES, "gold boxes with a side below one pixel"),
    "class_without_gold": (DISTRIBUTION, "classes of the list that no image shows: only false positives can count there"),
    "class_rare": (DISTRIBUTION, f"classes on fewer than {RARE} images: their scores say little"),
    "class_dominant": (DISTRIBUTION, "a class with more than half of all gold boxes, which decides a micro average"),
    "no_clean_image": (DISTRIBUTION, "no image without gold: false alarms on clean images cannot be told"),
    "class_never_predicted": (AGAINST, "classes with gold that the model never names"),
    "hardly_overlaps": (
        AGAINST,
        f"images and classes that gold and model share, and no box overlaps with IoU {NEAR}: perhaps another scale or order",
    ),
}
FAULTS = {"box": VALUES, "number": VALUES, "gold.class": VALUES, "coco.category": VALUES}  # all others are of the structure


def data_check(source: Benchmark | str | Path) -> pd.DataFrame:
    """What the check of the data finds, layer by layer: ``layer, source, code, count, examples, meaning``.

    ``source`` is a benchmark, or the path of a ``benchmark.yml``; if that cannot be read because its data break rules, the
    table has those faults instead, one row a file and rule. ``examples`` are up to three images or names.

    Raises EvalkitError for a ``benchmark.yml`` that is not there or not understood.
    """
    if not isinstance(source, Benchmark):
        try:
            source = read_benchmark(source)
        except DataError as error:
            return fault_table(error.findings)
    rows = [
        (NOTED.get(code, AGAINST), where, code, count, examples, NOTES[code])
        for where, code, count, examples in data_notes(source).itertuples(index=False)
        if code != "picture_turned" or source.image_folder is None  # else all pictures are looked at below
    ]
    for check in (_pictures, _gold, _classes, _against):
        for where, code, count, names in check(source):
            layer, meaning = CODES[code]
            rows += [(layer, where, code, count, _examples(names), meaning)] if count else []
    return _by_layer(rows)


def first_pass_check(first: FirstPass) -> pd.DataFrame:
    """What annotators marked that was noticed and accepted, in the columns of ``data_check``; it needs gold's images."""
    notes = data_notes(as_models(first))
    notes = notes[notes["code"].map(NOTED) == VALUES]
    notes = notes.assign(layer=VALUES, source="annotator " + notes["source"], meaning=notes["code"].map(NOTES))
    return notes[COLUMNS]


def fault_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Faults by file and rule, in the columns of ``data_check``; ``meaning`` is the first message. Text is printable."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.file.partition("/")[0], one.rule), []).append(one)
    rows = []
    for (file, rule), some in groups.items():
        layer = FAULTS.get(rule, FAULTS.get(rule.partition(".")[0], STRUCTURE))
        examples = _examples(one.image_id or one.place for one in some)
        meaning = some[0].message.partition(" (box [")[0]
        rows.append((layer, printable(file), rule, len(some), printable(examples), printable(meaning)))
    return _by_layer(rows)


def _by_layer(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(sorted(rows, key=lambda row: LAYERS.index(row[0])), columns=COLUMNS)


Rows = Iterator[tuple[str, str, int, Sequence[str]]]  # source, code, count, examples


def _examples(names: Iterable) -> str:
    return ", ".join(list(dict.fromkeys(filter(None, map(str, names))))[:SHOWN])


def _pictures(benchmark: Benchmark) -> Rows:
    """Sizes that are not known, and pictures that are not what gold says of them."""
    images = benchmark.images
    unknown = images["image_id"][images[["width", "height"]].isna().any(axis=1)]
    yield "gold", "size_unknown", len(unknown), unknown
    folder = benchmark.image_folder
    if folder is None:
        return
    said: dict[str, list[str]] = {name: [] for name in ("absent", "turned", "unreadable", "size_differs")}
    for image in images.dropna(subset="file_name").itertuples():
        path = within(folder, image.file_name)
        if path is None or not os.path.isfile(path):
            said["unreadable" if path is None else "absent"].append(image.image_id)
            continue
        try:
            width, height, turned = picture_size(path)
        except DataError:
            said["unreadable"].append(image.image_id)
            continue
        said["turned"] += [image.image_id] * turned
        known = not np.isnan(image.width) and not np.isnan(image.height)
        said["size_differs"] += [image.image_id] * (known and (image.width, image.height) != (width, height))
    for name, ids in said.items():
        yield folder.name, f"picture_{name}", len(ids), ids


def _gold(benchmark: Benchmark) -> Rows:
    """Gold boxes that are allowed and yet odd."""
    gold = benchmark.gold
    image = gold["image_id"].cat.codes.to_numpy(np.int64)
    width, height = benchmark.images[["width", "height"]].to_numpy()[image].T
    boxes = gold[BOX_COLUMNS].to_numpy()
    x_min, y_min, x_max, y_max = boxes.T
    repeated = gold.duplicated(["image_id", "class", *BOX_COLUMNS]).to_numpy()
    key = image * len(gold["class"].cat.categories) + gold["class"].cat.codes.to_numpy()
    one, other, _ = candidate_pairs(key, boxes, key, boxes, minimum_iou=ALIKE)
    apart = (one < other) & (boxes[one] != boxes[other]).any(axis=1)
    alike = np.zeros(len(gold), bool)
    alike[other[apart]] = True
    masks = {
        "gold_over_edge": (x_min < 0) | (y_min < 0) | (x_max > width) | (y_max > height),
        "gold_repeated": repeated,
        "gold_alike": alike,
        "gold_below_a_pixel": np.minimum(x_max - x_min, y_max - y_min) < 1,
    }
    for code, mask in masks.items():
        yield "gold", code, int(mask.sum()), gold["image_id"][mask]


def _classes(benchmark: Benchmark) -> Rows:
    """How gold is spread over the classes and images."""
    listed = list(benchmark.classes["class_name"])
    boxes = benchmark.gold["class"].value_counts().reindex(listed)
    images = benchmark.gold.drop_duplicates(["image_id", "class"])["class"].value_counts().reindex(listed)
    absent, rare = boxes[boxes == 0], images[(images > 0) & (images < RARE)]
    dominant = boxes[boxes > boxes.sum() / 2] if len(listed) > 2 else boxes[:0]
    yield "gold", "class_without_gold", len(absent), absent.index
    yield "gold", "class_rare", len(rare), rare.sort_values(kind="stable").index
    yield "gold", "class_dominant", len(dominant), dominant.index
    yield "gold", "no_clean_image", int((benchmark.gold_boxes_per_image > 0).all()), ()


def _against(benchmark: Benchmark) -> Rows:
    """Models that miss whole classes, or whose boxes are hardly ever near gold of their class."""
    gold, classes = benchmark.gold, len(benchmark.gold["class"].cat.categories)
    with_gold = set(gold["class"].cat.codes)

    def cells(boxes: pd.DataFrame) -> np.ndarray:
        """Image and class of each box as one number."""
        return boxes["image_id"].cat.codes.to_numpy(np.int64) * classes + boxes["class"].cat.codes.to_numpy()

    gold_cells = cells(gold)
    pairs = overlaps(benchmark, iou=[NEAR])
    for model in benchmark.models:
        boxes = benchmark.predictions[benchmark.predictions["model"] == model]
        names = [benchmark.classes["class_name"][code] for code in sorted(with_gold - set(boxes["class"].cat.codes))]
        yield model, "class_never_predicted", len(names), names
        shared = np.intersect1d(gold_cells, cells(boxes))
        near = np.unique(gold_cells[pairs["gold_row"][pairs["model"] == model]])
        far = np.setdiff1d(shared, near)
        if len(near) < HARDLY * len(shared):
            yield model, "hardly_overlaps", len(far), benchmark.images["image_id"].iloc[far // classes]

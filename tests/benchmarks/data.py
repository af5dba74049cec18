"""The benchmark-shaped set: made from a seed as columns, written as COCO and as evalkit JSON lines.

A set of columns is a dict of arrays, one row a box: `image` and `class` (codes from 0), `box` (n x 4:
x_min, y_min, x_max, y_max in pixels, two decimals) and, for predictions, `score`.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np

IMAGES, CLASSES, GOLD, PREDICTED, MODELS = 11_534, 40, 20_000, 25_000, 6
SIZE = np.array([1280.0, 720.0])
CHARACTERS = [(0.85, 6), (0.75, 8), (0.70, 14), (0.60, 10), (0.55, 25), (0.40, 18)]  # share found, jitter in pixels


def image_name(code):
    return str(code + 1)


def class_name(code):
    return f"class {code + 1}"


def model_names(count=MODELS):
    return [f"m{code + 1}" for code in range(count)]


def make_gold(*, factor=1, seed=0):
    """Columns of `factor` times the gold boxes on `factor` times the images; boxes of a class cluster on an image."""
    rng = np.random.default_rng(seed)
    images, n = IMAGES * factor, GOLD * factor
    crowding = rng.gamma(2.0, size=images)
    image = rng.choice(images, n, p=crowding / crowding.sum())
    usual = _classes(rng, images)
    label = np.where(rng.random(n) < 0.5, usual[image], _classes(rng, n))
    return {"image": image, "class": label, "box": _random_boxes(rng, n)}


def make_predictions(gold, *, model=0, factor=1, seed=0):
    """Columns of one model: the gold boxes that it found, jittered, some of them twice, and boxes of its own."""
    rng = np.random.default_rng([seed, model + 1])
    found, jitter = CHARACTERS[model]
    share = rng.random(len(gold["image"]))
    rows = np.concatenate([np.flatnonzero(share < found), np.flatnonzero(share < 0.05)])
    own = PREDICTED * factor - len(rows)
    moved = gold["box"][rows] + rng.normal(0, jitter, (len(rows), 4))
    label = np.where(rng.random(len(rows)) < 0.05, _classes(rng, len(rows)), gold["class"][rows])
    order = rng.permutation(PREDICTED * factor)
    return {
        "image": np.concatenate([gold["image"][rows], rng.integers(0, IMAGES * factor, own)])[order],
        "class": np.concatenate([label, _classes(rng, own)])[order],
        "box": np.concatenate([_inside(moved), _random_boxes(rng, own)])[order],
        "score": rng.uniform(0.1, 1, len(order)).round(3),
    }


def make_annotators(gold, *, annotators=3, images=IMAGES, seed=0):
    """A first pass in which everybody saw every image: most gold boxes, drawn by hand, some confused, few invented.

    Returns evalkit's table, made from columns without any file.
    """
    import pandas as pd

    from evalkit.first_pass import first_pass_tables
    from evalkit.tables import Annotations

    rng = np.random.default_rng([seed, annotators, images])
    gold = {name: column[gold["image"] < images] for name, column in gold.items()}
    row, label, box = [], [], []
    for code in range(annotators):
        kept = np.flatnonzero(rng.random(len(gold["image"])) < 0.9)
        own = len(kept) // 20
        moved = _inside(gold["box"][kept] + rng.normal(0, 5, (len(kept), 4)))
        named = np.where(rng.random(len(kept)) < 0.05, _classes(rng, len(kept)), gold["class"][kept])
        row.append(code * images + np.concatenate([gold["image"][kept], rng.integers(0, images, own)]))
        label.append(np.concatenate([named, _classes(rng, own)]))
        box.append(np.concatenate([moved, _random_boxes(rng, own)]))
    names = [class_name(code) for code in range(CLASSES)]
    said = Annotations(
        file="first pass", image_id=[image_name(code) for code in range(images)] * annotators, box_image=np.concatenate(row),
        class_code=np.concatenate(label), class_names=names, boxes=np.concatenate(box), place=str, box_place=str,
    )  # fmt: skip
    domains = [f"domain {code % 4 + 1}" for code in range(CLASSES)]
    classes = pd.DataFrame(
        {"class_id": [str(k + 1) for k in range(CLASSES)], "class_name": names, "domain": domains}, dtype=str
    )
    who = [f"annotator {code + 1}" for code in range(annotators) for _ in range(images)]
    return first_pass_tables(said, who, *[[None] * len(who)] * 2, classes)


def make_dense(*, images=20_000, boxes=100, classes=10, seed=0):
    """Gold and predicted columns with `boxes` of each on every image."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(images), boxes)
    gold = {"image": image, "class": rng.integers(0, classes, len(image)), "box": _random_boxes(rng, len(image))}
    moved = _inside(gold["box"] + rng.normal(0, 6, (len(image), 4)))
    return gold, {**gold, "box": moved, "score": np.ones(len(image))}


def make_crowd(n=5_000):
    """One image, one class, n gold and n predicted boxes, every pair with an IoU of at least 0.30.

    Squares overlap squares, and slabs overlap slabs, by far more than half; a slab and a square overlap by
    between 0.34 and 0.36. So at 0.30 everything can be matched, at 0.50 only like with like:
    min(squares) + min(slabs).
    """
    shift = np.linspace(0, 1, n)[:, None] * np.ones(4)
    square, slab = np.array([0, 0, 100, 100.0]), np.array([0, 0, 100, 36.0])
    sides = [np.where(np.arange(n)[:, None] % 10 < squares, square, slab) + shift for squares in (5, 6)]
    gold, predicted = ({"image": np.zeros(n, int), "class": np.zeros(n, int), "box": box} for box in sides)
    expected = {0.30: n, 0.50: n * 5 // 10 + n * 4 // 10}
    return gold, {**predicted, "score": np.ones(n)}, expected


def make_copies(gold=50, copies=5_000):
    """One image, one class, a few gold boxes and thousands of copies of one box that overlaps them all."""
    box = np.array([0, 0, 100, 100.0]) + np.linspace(0, 5, gold)[:, None]
    few = {"image": np.zeros(gold, int), "class": np.zeros(gold, int), "box": box}
    many = {
        "image": np.zeros(copies, int),
        "class": np.zeros(copies, int),
        "box": np.tile(box[:1], (copies, 1)),
        "score": np.ones(copies),
    }
    return few, many, {0.50: gold}


def as_benchmark(gold, predicted):
    """evalkit's tables of two sets of columns, without any file."""
    import pandas as pd

    from evalkit.tables import BOX_COLUMNS, Benchmark

    names = [image_name(code) for code in range(gold["image"].max() + 1)]
    labels = [class_name(code) for code in range(CLASSES)]

    def table(columns):
        cells = {
            "image_id": pd.Categorical.from_codes(columns["image"], categories=pd.Index(names, dtype=str)),
            "class": pd.Categorical.from_codes(columns["class"], categories=pd.Index(labels, dtype=str)),
        }
        return pd.DataFrame({**cells, **dict(zip(BOX_COLUMNS, columns["box"].T, strict=True))})

    images = pd.DataFrame({"image_id": names, "width": np.nan, "height": np.nan, "file_name": None})
    classes = pd.DataFrame({"class_id": [str(k + 1) for k in range(CLASSES)], "class_name": labels, "domain": ""})
    model = pd.Categorical(["m1"])
    responses = pd.DataFrame(
        {
            "model": model.repeat(len(names)),
            "image_id": pd.Categorical.from_codes(np.arange(len(names)), categories=pd.Index(names, dtype=str)),
            "state": pd.Categorical.from_codes(np.zeros(len(names), int), categories=["valid", "invalid", "missing"]),
            "reason": "",
        }
    )
    predictions = table(predicted).assign(score=predicted["score"])
    predictions.insert(0, "model", model.repeat(len(predictions)))
    return Benchmark(
        name="Benchmark set", note="", classes=classes, images=images, gold=table(gold), responses=responses,
        predictions=predictions,
    )  # fmt: skip


def write(folder, *, factor=1, seed=0):
    """Write the set in both formats, each with a benchmark file for one model and for all: `coco-1.yml` and so on."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{k + 1},{class_name(k)},domain {k % 4 + 1}" for k in range(CLASSES)]
    (folder / "classes.csv").write_text("\n".join(["class_id,class_name,domain", *rows, ""]))
    gold = make_gold(factor=factor, seed=seed)
    images = IMAGES * factor
    _write_coco_gold(folder / "gold.json", gold, images)
    _write_lines(folder / "gold.jsonl", gold, images, size=True)
    for model, name in enumerate(model_names()):
        predictions = make_predictions(gold, model=model, factor=factor, seed=seed)
        _write_coco_results(folder / f"{name}.json", predictions)
        _write_lines(folder / f"{name}.jsonl", predictions, images)
    for count in (1, MODELS):
        _write_benchmark(folder / f"coco-{count}.yml", count, "{{path: {}.json, format: coco}}")
        _write_benchmark(folder / f"jsonl-{count}.yml", count, "{}.jsonl")


def _write_benchmark(path, models, entry):
    predictions = "".join(f"  {name}: {entry.format(name)}\n" for name in model_names(models))
    gold = entry.format("gold")
    path.write_text(f"name: Benchmark set\nclasses: classes.csv\ngold: {gold}\npredictions:\n{predictions}")


def _write_coco_gold(path, gold, images):
    width, height = SIZE.astype(int).tolist()
    content = {
        "images": [{"id": k + 1, "width": width, "height": height, "file_name": f"{k + 1}.jpg"} for k in range(images)],
        "categories": [{"id": k + 1, "name": class_name(k)} for k in range(CLASSES)],
        "annotations": [
            {"id": k + 1, **row, "area": row["bbox"][2] * row["bbox"][3], "iscrowd": 0}
            for k, row in enumerate(_coco_rows(gold))
        ],
    }
    path.write_text(json.dumps(content))


def _write_coco_results(path, predictions):
    scores = predictions["score"].tolist()
    rows = [{**row, "score": score} for row, score in zip(_coco_rows(predictions), scores, strict=True)]
    path.write_text(json.dumps(rows))


def _coco_rows(columns):
    box = columns["box"]
    xywh = np.hstack([box[:, :2], box[:, 2:] - box[:, :2]]).round(2).tolist()
    for image, label, bbox in zip(columns["image"].tolist(), columns["class"].tolist(), xywh, strict=True):
        yield {"image_id": image + 1, "category_id": label + 1, "bbox": bbox}


def _write_lines(path, columns, images, *, size=False):
    head = {"width": int(SIZE[0]), "height": int(SIZE[1])} if size else {}
    rows = [{"image_id": image_name(k), **head, "boxes": []} for k in range(images)]
    scores = columns.get("score", np.full(len(columns["image"]), np.nan)).tolist()
    cells = (columns["image"].tolist(), columns["class"].tolist(), columns["box"].tolist(), scores)
    for image, label, box, score in zip(*cells, strict=True):
        extra = {} if score != score else {"score": score}
        rows[image]["boxes"].append({"class": class_name(label), "box": box, **extra})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _classes(rng, n):
    weight = 1 / np.arange(1, CLASSES + 1) ** 0.8
    return rng.choice(CLASSES, n, p=weight / weight.sum())


def _random_boxes(rng, n):
    side = rng.uniform(20, 300, (n, 2))
    corner = rng.random((n, 2)) * (SIZE - side)
    return _inside(np.hstack([corner, corner + side]))


def _inside(box):
    low = np.clip(np.minimum(box[:, :2], box[:, 2:] - 1), 0, SIZE - 1)
    high = np.clip(np.maximum(box[:, 2:], low + 1), None, SIZE)
    return np.hstack([low, high]).round(2)


def make_answers(form, *, answers=100_000, objects=17, seed=0):
    """Models' own answers of about 1 kB: a plain list, one in a fence, or one that needs the repair of that name."""
    rng = np.random.default_rng(seed)
    texts = []
    for corners in np.sort(rng.integers(0, 1000, (answers // 50, objects, 2, 2)), axis=2).reshape(-1, objects, 4).tolist():
        names = [str(name) for name in rng.choice(["litter", "pothole", "overflowing bin", "damaged sign"], objects)]
        if form == "apostrophes":
            names[0] = "the driver's hat"
        if form == "decimal_strings":
            corners = [[str(edge) for edge in box] for box in corners]
        items = [{"bbox_2d": box, "label": name} for box, name in zip(corners, names, strict=True)]
        text = repr(items) if form in ("python_literal", "apostrophes") else json.dumps(items)
        text = f"{text[:-1]},]" if form == "trailing_comma" else text
        texts.append(text if form in ("plain", "decimal_strings") else f"Here is what I see.\n```json\n{text}\n```")
    return texts * 50


def resampled(benchmark, drawn):
    """The benchmark of the drawn images, each draw an image of its own."""
    import pandas as pd

    dtype = pd.CategoricalDtype(pd.Index([str(number) for number in range(len(drawn))], dtype=str))

    def take(table):
        codes = table["image_id"].cat.codes.to_numpy()
        order = np.argsort(codes, kind="stable")
        start, end = (np.searchsorted(codes[order], drawn, side=side) for side in ("left", "right"))
        size = end - start
        rows = order[np.repeat(start - (np.cumsum(size) - size), size) + np.arange(size.sum())]
        return table.iloc[rows].assign(image_id=pd.Categorical.from_codes(np.repeat(np.arange(len(drawn)), size), dtype=dtype))

    tables = {name: take(getattr(benchmark, name)) for name in ("images", "gold", "responses", "predictions")}
    return dataclasses.replace(benchmark, **tables)

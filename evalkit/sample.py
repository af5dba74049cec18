"""Toytown, the built-in sample benchmark: drawn street pictures, exact boxes, six models' answers, a first pass, points.

Everything follows from the seed. The only source of chance is `random.Random(text).random()`, whose sequence Python
guarantees; arithmetic is whole-numbered or plain + - * /, so pixels and text are the same on every machine. Each image
has its own streams, so image k is the same whatever the number of images.
"""

import json
import random
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from evalkit.formats.writing import replace_folder, to_json
from evalkit.reproduction import INVENTORY, inventory
from evalkit.sample_text import say
from evalkit.tables import EvalkitError

SEED, IMAGES = 20260817, 1200
PUBLISHED = Path(__file__).with_name("toytown")  # frozen tables of the default sample, made by tests/freeze.py
MARK = "# Written by evalkit sample"
NOTE = "Built-in sample, drawn by a program; these are not published results."
SIZES = [(320, 240), (400, 300), (240, 320), (300, 300)]
NEGATIVES, CROWDS = 0.20, 0.15
OUTSIDE = ["unicorn", "rubbish", "hole in the road"]

Box = tuple[float, float, float, float]
Draw = Callable[[], float]


class Kind(NamedTuple):
    """A class: how often it occurs, where it stands (bottom edge, % of the height), its size, colours and parts.

    A part is `shape colour x_min y_min x_max y_max`, in % of the object's box; together the parts touch all four sides.
    """

    name: str
    domain: str
    weight: int
    ground: tuple[int, int]
    width: tuple[int, int]
    aspect: int  # height in % of the width
    colours: tuple[str, str, str]
    parts: str


class Scene(NamedTuple):
    """What an image shows: boxes in whole pixels, in the order they are painted (far to near)."""

    image_id: str
    width: int
    height: int
    boxes: list[tuple[Kind, Box]]


class Model(NamedTuple):
    """A model's character; rates are probabilities, `jitter` (edges) and `shift` (whole box) are shares of the box."""

    name: str
    hit: float
    small: float  # factor on `hit` for boxes of less than 900 square pixels
    jitter: float  # below 0.5, so that no box is inverted
    shift: float
    duplicates: float
    false: float
    confuse: float
    digits: int
    weak: dict[str, float]  # factor on `hit` by domain
    score: bool = False
    clip: bool = False
    text: str = ""  # the reader of a model that answers in its own words
    swap: bool = False  # says y first, against its reader
    slips: float = 0.0
    faults: float = 0.0
    missing: float = 0.0
    outside: float = 0.0
    flat: float = 0.0
    near: bool = False  # confuses with related classes only


WALL, PAVEMENT, ROAD = (43, 52), (58, 69), (79, 97)
# fmt: off
KINDS = [
    Kind("litter", "cleanliness", 27, (60, 96), (13, 24), 145, ("#d8432f", "#f6ead2", "#8e2a1e"),
         "rect a 0 8 100 92, disc c 0 80 100 100, disc b 0 0 100 20, rect b 0 40 100 58"),
    Kind("overflowing bin", "cleanliness", 11, PAVEMENT, (28, 44), 140, ("#2f8f5b", "#1d5c3a", "#f3c34b"),
         "disc c 8 6 58 44, disc b 44 0 92 40, disc c 30 10 66 46, rect a 10 40 90 100, rect b 0 34 100 44, "
         "rect b 28 52 36 92, rect b 48 52 54 92, rect b 66 52 74 92"),
    Kind("bulky waste", "cleanliness", 6, PAVEMENT, (54, 80), 58, ("#c77f4a", "#e5a873", "#7c4a26"),
         "rect c 8 80 16 100, rect c 84 80 92 100, rect a 10 0 90 70, rect c 49 6 51 50, disc b 0 30 24 92, "
         "disc b 76 30 100 92, rect b 14 50 86 88, rect c 49 54 51 88"),
    Kind("pothole", "road surface", 18, ROAD, (30, 64), 42, ("#8a7f77", "#2c2624", "#463d39"),
         "disc a 0 0 100 100, disc c 9 14 91 90, disc b 17 30 86 86"),
    Kind("crack", "road surface", 8, ROAD, (50, 96), 26, ("#1f1a1c", "#332b2e", "#1b1719"),
         "zigzag a 0 0 100 100"),
    Kind("puddle", "road surface", 4, ROAD, (44, 84), 34, ("#5b9bd0", "#8fc1e6", "#dcf0fb"),
         "disc a 0 18 72 100, disc a 26 0 100 78, disc b 16 22 78 76, rect c 34 32 58 38, rect c 50 50 64 55"),
    Kind("graffiti", "vandalism", 9, WALL, (34, 66), 52, ("#d6338a", "#27b3a8", "#6d2c91"),
         "disc c 0 14 44 100, disc c 28 0 72 86, disc c 56 16 100 100, disc a 6 26 38 90, disc b 34 12 66 74, "
         "disc a 62 28 94 90, rect c 20 42 24 74, rect c 48 28 52 58, rect c 76 44 80 74"),
    Kind("fly poster", "vandalism", 5, WALL, (18, 32), 140, ("#f7d84a", "#22304f", "#e8642c"),
         "rect a 0 0 100 100, disc c 22 10 78 52, rect b 12 60 88 68, rect b 12 75 70 82, rect b 12 88 80 94"),
    Kind("damaged sign", "street furniture", 5, PAVEMENT, (26, 38), 230, ("#e0352b", "#fffaf0", "#6b7076"),
         "rect c 44 30 56 100, peak a 0 0 100 44, peak b 20 12 80 38, slash c 24 8 78 44"),
    Kind("broken lamp", "street furniture", 4, PAVEMENT, (26, 36), 330, ("#3b4a54", "#ffe28a", "#273139"),
         "rect a 12 6 24 100, rect a 12 0 84 6, peak c 56 4 100 13, disc b 62 10 94 22, slash c 60 8 96 24, "
         "rect c 0 95 36 100"),
    Kind("abandoned scooter", "street furniture", 2, PAVEMENT, (40, 60), 88, ("#7ac943", "#20252b", "#b9c2c9"),
         "rect b 60 0 96 7, slash a 70 3 86 86, rect a 12 76 84 86, disc b 0 66 30 100, disc c 9 77 21 89, "
         "disc b 70 66 100 100, disc c 79 77 91 89"),
    Kind("fallen branch", "street furniture", 1, (70, 92), (60, 96), 46, ("#6e4526", "#4f8a3a", "#79b356"),
         "slash a 6 30 94 100, disc b 0 14 34 74, disc c 12 0 52 52, disc b 34 22 66 80, disc c 60 50 100 100"),
]
MODELS = [
    Model("cautious", 0.82, 0.40, 0.18, 0.03, 0.00, 0.02, 0.01, 2, {"vandalism": 0.60}, score=True, clip=True),
    Model("eager", 0.97, 0.93, 0.34, 0.14, 0.30, 0.42, 0.04, 1, {"road surface": 0.90}, score=True, flat=0.002),
    Model("talker", 0.91, 0.86, 0.30, 0.08, 0.02, 0.08, 0.03, 1, {"street furniture": 0.75}, clip=True, text="qwen-boxes",
          slips=0.12, faults=0.10),
    Model("swapper", 0.90, 0.80, 0.14, 0.04, 0.03, 0.08, 0.03, 1, {"cleanliness": 0.85}, clip=True, text="qwen-boxes",
          swap=True),
    Model("dropout", 0.88, 0.80, 0.32, 0.14, 0.04, 0.12, 0.20, 1, {"cleanliness": 0.80}, clip=True, missing=0.08,
          near=True),
    Model("loose", 0.90, 0.85, 0.40, 0.34, 0.05, 0.15, 0.05, 1, {"road surface": 0.70}, outside=0.05),
]
RELATED = [  # gold class, accepted class, how near; the relation goes both ways
    ("litter", "bulky waste", "0.6"),
    ("litter", "overflowing bin", "0.7"),
    ("bulky waste", "abandoned scooter", "0.4"),
    ("pothole", "crack", "0.8"),
    ("pothole", "puddle", "0.6"),
    ("graffiti", "fly poster", "0.7"),
    ("damaged sign", "broken lamp", "0.5"),
    ("broken lamp", "fallen branch", "0.2"),
]
CUTOFF = 0.5
# fmt: on

SHAPES: dict[str, Callable] = {  # beside "rect"; x, y: pixels inside a box of w by h, whose four sides each touches
    "disc": lambda x, y, w, h: (2 * x + 1 - w) ** 2 * h * h + (2 * y + 1 - h) ** 2 * w * w <= w * w * h * h,
    "peak": lambda x, y, w, h: abs(2 * x + 1 - w) * h <= (y + 1) * w + h,
    "slash": lambda x, y, w, h: abs(x * (h - 1) - (h - 1 - y) * (w - 1)) * 12 <= w * h,
    "zigzag": lambda x, y, w, h: abs(y * w - abs(x * 5 % (2 * w) - w) * (h - 1)) * 7 <= w * h,
}
SKIES = ["#b9d3e0", "#cfdbe0", "#e3d3c3", "#c3c9d8"]
WALLS = ["#c9a68f", "#b7a99a", "#cdbb9c", "#a9b0a6", "#bfa3a3", "#a8adb8"]
ROOFS = ["#8b6a5e", "#77797f", "#6f6158", "#94786a"]
WINDOW, DOOR, CLOUD, TRUNK, LEAVES = "#e6e2d3", "#7c6a60", "#eef2f3", "#85705f", "#9bb08c"
PAVING, JOINT, KERB, TARMAC, LINE = "#c6c2ba", "#b6b2aa", "#9f9b94", "#85878a", "#d9d9d2"


def write_sample(
    out: str | Path, *, images: int = IMAGES, seed: int = SEED, progress: Callable[[range], Iterable[int]] | None = None
) -> Path:
    """Write Toytown into the folder `out` and return the path of its `benchmark.yml`.

    `images` is the number of pictures, `progress` wraps the loop over them (as tqdm does). The folder appears whole or
    not at all. An earlier sample in `out` is replaced; a folder that holds anything else is left alone.

    Raises EvalkitError when `images` is below 1, `out` holds other data, or the folder cannot be written.
    """
    if images < 1:
        raise EvalkitError(f"images: must be at least 1, got {images}")
    out = Path(out).resolve()
    try:
        _refuse_foreign(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            fresh, old = Path(scratch, "fresh"), Path(scratch, "old")
            _write_files(fresh, images, seed, progress or iter)
            replace_folder(fresh, out, old)
    except OSError as error:
        raise EvalkitError(f"out: cannot write the sample to {out}: {error.strerror or error}") from error
    return out / "benchmark.yml"


def scene(seed: int, number: int) -> Scene:
    """What image `number` shows: nothing (about 20 %), one to five objects apart, or a crowd of one class."""
    draw = _stream(seed, "scene", number)
    width, height = _pick(draw, SIZES)
    chance, objects = draw(), []
    if chance >= NEGATIVES:
        kind = _pick(draw, KINDS, [kind.weight for kind in KINDS])
        objects = [(kind, _place(draw, kind, width, height))]
        if chance < NEGATIVES + CROWDS:
            objects += [(kind, box) for box in _neighbours(draw, objects[0][1], width, height)]
        else:
            for _ in range(_pick(draw, [0, 1, 2, 3, 4], [38, 28, 18, 10, 6])):
                kind = _pick(draw, KINDS, [kind.weight for kind in KINDS])
                box = _place(draw, kind, width, height)
                if not any(_touch(box, other) for _, other in objects):
                    objects.append((kind, box))
    objects.sort(key=lambda item: (item[1][3], item[1][0]))
    return Scene(f"toy-{number:05d}", width, height, objects)


def predict(model: Model, shown: Scene, seed: int, number: int) -> dict | None:
    """What the model sees on an image: gold as its character distorts it, plus false boxes; None when it has no row."""
    draw = _stream(seed, model.name, number)
    if draw() < model.missing:
        return None
    boxes = []
    for kind, box in shown.boxes:
        small = (box[2] - box[0]) * (box[3] - box[1]) < 900
        chance = model.hit * model.weak.get(kind.domain, 1) * (model.small if small else 1)
        if draw() < chance:
            boxes += [_answer(model, kind, box, shown, draw, 0.45) for _ in range(1 + (draw() < model.duplicates))]
    while draw() < model.false:
        kind = _pick(draw, KINDS, [kind.weight + 4 for kind in KINDS])
        boxes.append(_answer(model, kind, _place(draw, kind, shown.width, shown.height), shown, draw, 0.05))
    return {"image_id": shown.image_id, "boxes": boxes}


def in_words(model: Model, row: dict, shown: Scene, seed: int, number: int) -> dict:
    """A row of ``predict`` as the model's own text, edges from 0 to 1000."""
    sides = (shown.width, shown.height) * 2
    items = []
    for one in row["boxes"]:
        left, top, right, bottom = (round(edge * 1000 / side) for edge, side in zip(one["box"], sides, strict=True))
        box = [top, left, bottom, right] if model.swap else [left, top, right, bottom]
        items.append({"bbox_2d": box, "label": one["class"]})
    draw = _stream(seed, f"{model.name}, in words", number)
    return {"image_id": row["image_id"], **say(items, draw, slips=model.slips, faults=model.faults)}


def picture(shown: Scene, seed: int, number: int) -> np.ndarray:
    """The picture of a scene, uint8 of shape (height, width, 3): a street in muted colours and the objects on it."""
    canvas = np.empty((shown.height, shown.width), "<u4")  # one number a pixel fills faster than three
    _paint_street(canvas, _stream(seed, "street", number))
    for kind, (left, top, right, bottom) in shown.boxes:
        wide, high = right - left, bottom - top
        for part in kind.parts.split(", "):
            shape, colour, *edges = part.split()
            x0, y0, x1, y1 = map(int, edges)
            place = left + wide * x0 // 100, top + high * y0 // 100, left + wide * x1 // 100, top + high * y1 // 100
            _paint(canvas, shape, kind.colours["abc".index(colour)], *place)
    return np.ascontiguousarray(canvas.view(np.uint8).reshape(shown.height, shown.width, 4)[:, :, :3])


def _stream(seed: int, what: str, number: int) -> Draw:
    return random.Random(f"{seed}/{what}/{number}").random


def _whole(draw: Draw, low: int, high: int) -> int:
    return low + int(draw() * (high - low + 1))


def _noise(draw: Draw, reach: float) -> float:
    return (draw() + draw() - 1) * reach


def _pick(draw: Draw, rows: list, weights: list[int] | None = None):
    weights = weights or [1] * len(rows)
    left = int(draw() * sum(weights))
    for row, weight in zip(rows, weights, strict=True):
        left -= weight
        if left < 0:
            return row


def _place(draw: Draw, kind: Kind, width: int, height: int) -> Box:
    wide = _whole(draw, *kind.width)
    high = wide * (kind.aspect + _whole(draw, -10, 10)) // 100
    left, bottom = _whole(draw, 0, width - wide), height * _whole(draw, *kind.ground) // 100
    return left, max(bottom - high, 0), left + wide, bottom


def _neighbours(draw: Draw, box: Box, width: int, height: int) -> list[Box]:
    """Two to four more boxes in a row beside `box`, each overlapping the one before by about two thirds."""
    left, top, right, bottom = box
    away, wide, row = (1 if left + right < width else -1), right - left, []
    for _ in range(_whole(draw, 2, 4)):
        step, lift = away * wide * _whole(draw, 24, 42) // 100, _whole(draw, -3, 3)
        left, top, right, bottom = left + step, top + lift, right + step, bottom + lift
        if left >= 0 and top >= 0 and right <= width and bottom <= height:
            row.append((left, top, right, bottom))
    return row


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _answer(model: Model, kind: Kind, box: Box, shown: Scene, draw: Draw, floor: float) -> dict:
    """One predicted box: the name perhaps confused, the box moved, edges jittered; in the model's own convention."""
    related = [other for a, b, _ in RELATED for one, other in ((a, b), (b, a)) if one == kind.name] if model.near else []
    name = _pick(draw, related or [other.name for other in KINDS]) if draw() < model.confuse else kind.name
    name = _pick(draw, OUTSIDE) if draw() < model.outside else name
    wide, high = box[2] - box[0], box[3] - box[1]
    right, down = _noise(draw, model.shift * wide), _noise(draw, model.shift * high)
    sides = zip(box, (right, down) * 2, (wide, high) * 2, strict=True)
    edges = [edge + move + _noise(draw, model.jitter * side) for edge, move, side in sides]
    if model.clip:
        edges = [min(max(edge, 0), size) for edge, size in zip(edges, (shown.width, shown.height) * 2, strict=True)]
    if draw() < model.flat:
        edges[3] = edges[1]
    row = {"class": name, "box": [round(edge, model.digits) for edge in edges]}
    return row | {"score": round(floor + 0.54 * draw(), 2)} if model.score else row


def _paint(canvas: np.ndarray, shape: str, colour: str, x0: int, y0: int, x1: int, y1: int) -> None:
    height, width = canvas.shape
    x1, y1 = max(x1, x0 + 1), max(y1, y0 + 1)
    top, bottom, left, right = max(y0, 0), max(min(y1, height), 0), max(x0, 0), max(min(x1, width), 0)
    inside = slice(None)
    if shape != "rect":
        x, y = np.arange(left - x0, right - x0), np.arange(top - y0, bottom - y0)[:, None]
        inside = SHAPES[shape](x, y, x1 - x0, y1 - y0)
    canvas[top:bottom, left:right][inside] = int.from_bytes(bytes.fromhex(colour[1:]), "little")


def _paint_street(canvas: np.ndarray, draw: Draw) -> None:
    height, width = canvas.shape
    horizon, kerb = height * 56 // 100, height * 71 // 100
    _paint(canvas, "rect", _pick(draw, SKIES), 0, 0, width, horizon)
    for _ in range(_whole(draw, 1, 3)):
        x, y, wide = _whole(draw, -20, width - 20), height * _whole(draw, 3, 14) // 100, _whole(draw, 36, 70)
        _paint(canvas, "disc", CLOUD, x, y, x + wide, y + wide // 4)
        _paint(canvas, "disc", CLOUD, x + wide // 4, y - wide // 7, x + wide * 3 // 4, y + wide // 5)
    x = -_whole(draw, 0, 40)
    while x < width:
        wide = _whole(draw, 52, 96)
        _paint_house(canvas, draw, x, height * _whole(draw, 20, 30) // 100, x + wide, horizon)
        x += wide
    _paint(canvas, "rect", PAVING, 0, horizon, width, kerb)
    for x in range(_whole(draw, 8, 28), width, 34):
        _paint(canvas, "rect", JOINT, x, horizon, x + 1, kerb)
    _paint(canvas, "rect", JOINT, 0, (horizon + kerb) // 2, width, (horizon + kerb) // 2 + 1)
    for x in range(_whole(draw, -60, 60), width, _whole(draw, 190, 320)):
        _paint(canvas, "rect", TRUNK, x + 18, horizon - 34, x + 23, horizon + 6)
        _paint(canvas, "disc", LEAVES, x, horizon - 74, x + 41, horizon - 22)
    _paint(canvas, "rect", KERB, 0, kerb, width, kerb + 4)
    _paint(canvas, "rect", TARMAC, 0, kerb + 4, width, height)
    for x in range(_whole(draw, -30, 0), width, 58):
        _paint(canvas, "rect", LINE, x, height * 86 // 100, x + 30, height * 86 // 100 + 4)


def _paint_house(canvas: np.ndarray, draw: Draw, x0: int, y0: int, x1: int, y1: int) -> None:
    _paint(canvas, "rect", _pick(draw, WALLS), x0, y0, x1, y1)
    shape, lift = _pick(draw, [("peak", 22), ("rect", 6)])
    _paint(canvas, shape, _pick(draw, ROOFS), x0 - 2, y0 - lift, x1 + 2, y0)
    columns, door = (x1 - x0) // 24, _whole(draw, 0, 1)
    for column in range(columns):
        x = x0 + (x1 - x0) * (2 * column + 1) // (2 * columns) - 6
        for y in range(y0 + 9, y1 - 34, 26):
            _paint(canvas, "rect", WINDOW, x, y, x + 12, y + 15)
            _paint(canvas, "rect", KERB, x, y + 7, x + 12, y + 8)
        if column == door:
            _paint(canvas, "rect", DOOR, x - 1, y1 - 25, x + 13, y1)


def _write_files(folder: Path, images: int, seed: int, progress: Callable) -> None:
    from evalkit.sample_first_pass import write_first_pass  # which draws on the scenes above
    from evalkit.sample_points import write_points  # which draws on the scenes above

    (folder / "images").mkdir(parents=True)
    (folder / "predictions").mkdir()
    gold, answers = [], {model.name: [] for model in MODELS}
    for number in progress(range(1, images + 1)):
        shown = scene(seed, number)
        name = f"{shown.image_id}.png"
        Image.fromarray(picture(shown, seed, number)).save(folder / "images" / name, compress_level=1)
        boxes = [{"class": kind.name, "box": box} for kind, box in shown.boxes]
        about = {"image_id": shown.image_id, "width": shown.width, "height": shown.height, "file_name": name}
        gold.append(about | {"boxes": boxes})
        for model in MODELS:
            row = predict(model, shown, seed, number)
            if row:
                answers[model.name].append(in_words(model, row, shown, seed, number) if model.text else row)
    classes = [f"{number},{kind.name},{kind.domain}" for number, kind in enumerate(KINDS, 1)]
    _write_lines(folder / "classes.csv", ["class_id,class_name,domain", *classes])
    _write_lines(folder / "gold.jsonl", map(json.dumps, gold))
    _write_lines(folder / "semantic.csv", _relation())
    _write_lines(folder / "slices.csv", ["image_id,attribute,value", *(line for row in gold for line in _attributes(row))])
    for name, rows in answers.items():
        _write_lines(folder / f"predictions/{name}.jsonl", map(json.dumps, rows))
    _write_lines(
        folder / "benchmark.yml",
        [
            f"{MARK} (seed {seed}): this folder is replaced when the sample is written again.",
            "name: Toytown",
            f'note: "{NOTE}"',
            "classes: classes.csv",
            "gold: gold.jsonl",
            "images: images",
            f"semantic: {{path: semantic.csv, cutoff: {CUTOFF}}}",
            "slices: slices.csv",
            "predictions:",
            *(f"  {model.name}: {_file(model)}" for model in MODELS),
            *write_first_pass(folder, images, seed),
            *write_points(folder, images, seed),
            *(_write_published(folder) if (images, seed) == (IMAGES, SEED) else []),
            f"inventory: {INVENTORY}",
        ],
    )
    (folder / INVENTORY).write_text(to_json(inventory(folder)), encoding="utf-8", newline="\n")


def _write_published(folder: Path) -> list[str]:
    """The frozen tables of the sample as it is by default, and the line that names them."""
    (folder / "published").mkdir()
    names = sorted(path.name for path in PUBLISHED.glob("*.csv"))
    for name in names:
        (folder / "published" / name).write_bytes((PUBLISHED / name).read_bytes())
    return [f"published: {{{', '.join(f'{name[:-4]}: published/{name}' for name in names)}}}"] if names else []


def _relation() -> list[str]:
    """The lines of the semantic relation: 1 for a class itself, what `RELATED` says, else 0."""
    names = [kind.name for kind in KINDS]
    near = {(a, b): value for one, other, value in RELATED for a, b in ((one, other), (other, one))}
    rows = [",".join([a, *("1" if a == b else near.get((a, b), "0") for b in names)]) for a in names]
    return [",".join(["gold", *names]), *rows]


def _attributes(row: dict) -> list[str]:
    """The lines of an image in the table of slices: its shape, and how many boxes it has."""
    wide, high, boxes = row["width"], row["height"], len(row["boxes"])
    shape = "landscape" if wide > high else "portrait" if wide < high else "square"
    objects = "none" if boxes == 0 else "one" if boxes == 1 else "several"
    return [f"{row['image_id']},shape,{shape}", f"{row['image_id']},objects,{objects}"]


def _file(model: Model) -> str:
    path = f"predictions/{model.name}.jsonl"
    return f"{{path: {path}, reader: {model.text}}}" if model.text else path


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _refuse_foreign(out: Path) -> None:
    """Raise unless `out` is free, an empty folder, or a sample with nothing of the user's own in it."""
    if not out.exists():
        return
    if not out.is_dir():
        raise EvalkitError(f"out: must be a folder, got the file {out}")
    if not any(out.iterdir()):
        return
    held = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir()}
    models = "|".join(model.name for model in MODELS)
    ours = r"benchmark\.yml|inventory\.json|(classes|semantic|slices)\.csv|(gold|first_pass)\.jsonl|images/toy-\d+\.png"
    ours += rf"|predictions/({models})\.jsonl"
    ours += r"|points/([\w-]+|[\w-]+/[a-z]+)\.jsonl|points/masks/[\w-]+\.png"
    ours += r"|published/[a-z]+\.csv"
    foreign = sorted(name for name in held if not re.fullmatch(ours, name))
    start = (out / "benchmark.yml").read_bytes()[: len(MARK)] if "benchmark.yml" in held else b""
    if foreign or start != MARK.encode():
        raise EvalkitError(
            f"out: must be a new or empty folder or an earlier sample, got {out}, "
            f"which holds {foreign[0] if foreign else 'no sample'}"
        )

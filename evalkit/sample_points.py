"""The ten point benchmarks in miniature, from Toytown's pictures: targets cut from what is drawn, and answers of four models.

All chance comes from the streams of :mod:`evalkit.sample`, one for each benchmark, sample and model.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from evalkit.sample import KINDS, Draw, Scene, _paint, _pick, _stream, _whole, _write_lines, scene

SAMPLES, POOL = 30, 400  # samples of a benchmark, and images that they are looked for in
NO_OBJECT, YES_NO = 0.2, 0.9
LEAST = 60  # pixels of a target that can be seen
MODELS = {"pointer": "qwen-points", "sprayer": "molmo-points", "silent": "qwen-points", "mumbler": "gemini-points"}
FIRST_ID = {"PointBench": 40}  # so that 54 is among them, one of the ids whose masks have another size
PROSE = ["I cannot see it clearly.", "It is in the middle of the picture.", "Look at [250, 500].", "There are none."]


class Asked(NamedTuple):
    """A question: fields of the sample, masks by field, the regions that a good answer points into, one point each, and for
    yes/no questions the right answer."""

    fields: dict[str, Any]
    masks: dict[str, np.ndarray | list[np.ndarray]]
    aims: list[np.ndarray]
    yes: bool | None = None


class Drawn(NamedTuple):
    """A scene and, for each of its pixels, the number of the object that is seen there, from 1; 0 for the street."""

    shown: Scene
    objects: np.ndarray

    def seen(self) -> list[tuple[str, np.ndarray]]:
        """Name and visible region of each object that is not hidden."""
        regions = [(kind.name, self.objects == number) for number, (kind, _) in enumerate(self.shown.boxes, 1)]
        return [(name, region) for name, region in regions if region.sum() >= LEAST]


def write_points(folder: Path, images: int, seed: int) -> list[str]:
    """Write samples, masks and answers below ``folder/points`` and return the lines of ``benchmark.yml`` that name them.

    A benchmark for which the first ``images`` pictures have no question is left out.
    """
    (folder / "points" / "masks").mkdir(parents=True)
    pool = [drawn(scene(seed, number)) for number in range(1, min(images, POOL) + 1)]
    lines = []
    for name, ask in QUESTIONS.items():
        slug = name.lower()
        rows: list[dict] = []
        answers: dict[str, list[dict]] = {model: [] for model in MODELS}
        plain = True  # at least one answer for points can be read, however few there are
        for at, (one, asked) in enumerate(_questions(name, ask, pool, seed)):
            sample_id = str(at + FIRST_ID.get(name, 1))
            rows.append(_row(folder, slug, sample_id, one, asked))
            for model in MODELS:
                text = reply(model, asked, one.shown, _stream(seed, f"{name} {model}", at), plain=plain)
                answers[model].append({"sample_id": sample_id, "response": text})
            plain = plain and asked.yes is not None
        if rows:
            (folder / "points" / slug).mkdir()
            _write_lines(folder / "points" / f"{slug}.jsonl", map(json.dumps, rows))
            lines += [f"  {name}:", f"    samples: points/{slug}.jsonl", "    predictions:"]
        for model, said in answers.items() if rows else ():
            _write_lines(folder / "points" / slug / f"{model}.jsonl", map(json.dumps, said))
            lines.append(f"      {model}: {{path: points/{slug}/{model}.jsonl, reader: {MODELS[model]}}}")
    return ["points:", *lines] if lines else []


def drawn(shown: Scene) -> Drawn:
    """Which object is seen at each pixel of a scene."""
    canvas = np.zeros((shown.height, shown.width), "<u4")
    for number, (kind, (left, top, right, bottom)) in enumerate(shown.boxes, 1):
        wide, high = right - left, bottom - top
        for part in kind.parts.split(", "):
            shape, _, *edges = part.split()
            x0, y0, x1, y1 = map(int, edges)
            place = left + wide * x0 // 100, top + high * y0 // 100, left + wide * x1 // 100, top + high * y1 // 100
            _paint(canvas, shape, f"#{number:02x}0000", *place)
    return Drawn(shown, canvas)


def _questions(name: str, ask: Callable, pool: list[Drawn], seed: int) -> Iterator[tuple[Drawn, Asked]]:
    """The first questions that the pictures give, and the picture of each."""
    found = 0
    for number, one in enumerate(pool):
        asked = ask(one, _stream(seed, f"{name} question", number)) if found < SAMPLES else None
        if asked:
            found += 1
            yield one, asked


def _row(folder: Path, slug: str, sample_id: str, one: Drawn, asked: Asked) -> dict[str, Any]:
    shown = one.shown
    row = {"sample_id": sample_id, "image": f"../images/{shown.image_id}.png", "width": shown.width, "height": shown.height}
    row |= asked.fields
    for field, said in asked.masks.items():
        listed = said if isinstance(said, list) else [said]
        names = [
            f"masks/{slug}-{sample_id}" + (f"-{at}" if said is listed else "") + ".png" for at in range(1, len(listed) + 1)
        ]
        for path, region in zip(names, listed, strict=True):
            picture = Image.fromarray(region.astype(np.uint8) * (1 if slug == "roborefit" else 255))  # both are foreground
            if slug == "pointbench" and sample_id == "54":
                picture = picture.resize((shown.width // 2, shown.height // 2), Image.Resampling.NEAREST)
            picture.save(folder / "points" / path)
        row[field] = names if said is listed else names[0]
    return row


# -- questions --------------------------------------------------------------------------------------------------------


def _one_object(one: Drawn, draw: Draw) -> tuple[str, np.ndarray] | None:
    """An object of which there is no other of its class in the picture."""
    seen = one.seen()
    names = [name for name, _ in seen]
    return _pick(draw, [(name, region) for name, region in seen if names.count(name) == 1] or [None])


def _single(**fields: str) -> Callable:
    """Ask for an object; a field's value is the text of a template, or a list to choose from."""

    def ask(one: Drawn, draw: Draw) -> Asked | None:
        found = _one_object(one, draw)
        if not found:
            return None
        name, region = found
        chosen = {field: _pick(draw, text.split("|")).format(name=name, domain=_domain(name)) for field, text in fields.items()}
        return Asked(chosen, {"mask": region}, [region])

    return ask


def _instances(one: Drawn, draw: Draw) -> Asked | None:
    """PixMo: every object of a class, each with a point and a mask; or a class of which there is none."""
    seen, shown = one.seen(), {kind.name for kind, _ in one.shown.boxes}
    if draw() < NO_OBJECT or not seen:
        name = _pick(draw, [kind.name for kind in KINDS if kind.name not in shown])
        return Asked({"question": f"Point to every {name}.", "points": []}, {"masks": []}, [])
    name = _pick(draw, [name for name, _ in seen])
    regions = [region for other, region in seen if other == name]
    points = [_middle(region) for region in regions]
    return Asked({"question": f"Point to every {name}.", "points": points}, {"masks": regions}, regions)


def _point_bench(one: Drawn, draw: Draw) -> Asked | None:
    seen = one.seen()
    if not seen:
        return None
    name = _pick(draw, [name for name, _ in seen])
    regions = [region for other, region in seen if other == name]
    category = "counting" if len(regions) > 1 else _pick(draw, ["affordable", "reasoning", "spatial", "steerable", "counting"])
    union = np.logical_or.reduce(regions)
    fields = {"question": f"Point to every {name}.", "category": category, "expected_count": len(regions)}
    return Asked(fields, {"mask": union}, regions)


def _part(one: Drawn, draw: Draw) -> Asked | None:
    """The upper or lower half of an object."""
    found = _one_object(one, draw)
    if not found:
        return None
    name, region = found
    rows = np.flatnonzero(region.any(axis=1))
    half, side = region.copy(), _pick(draw, ["upper", "lower"])
    middle = int(rows[len(rows) // 2])
    half[slice(middle, None) if side == "upper" else slice(0, middle)] = False
    return Asked({"question": f"Point to the {side} half of the {name}.", "category": side}, {"mask": half}, [half])


def _free(what: str, top: int, bottom: int, **fields: str) -> Callable:
    """Ask for free ground beside an object: rows from ``top`` to ``bottom`` % of the height, left or right of its middle."""

    def ask(one: Drawn, draw: Draw) -> Asked | None:
        found = _one_object(one, draw)
        if not found:
            return None
        height = one.shown.height
        middle, side = _middle(found[1])[0], _pick(draw, ["left", "right"])
        free = one.objects == 0
        free[: height * top // 100], free[height * bottom // 100 :] = False, False
        free[:, slice(middle, None) if side == "left" else slice(0, middle)] = False
        if free.sum() < 10 * LEAST:
            return None
        return Asked({"question": f"Point to free {what} {side} of the {found[0]}.", **fields}, {"mask": free}, [free])

    return ask


def _robo_spatial(one: Drawn, draw: Draw) -> Asked | None:
    seen = one.seen()
    if draw() < YES_NO and len(seen) > 1:
        (a, first), (b, second) = seen[0], seen[-1]
        left = _middle(first)[0] < _middle(second)[0]
        category = _pick(draw, ["compatibility", "configuration"])
        fields = {"question": f"Is the {a} left of the {b}?", "category": category, "answer": "yes" if left else "no"}
        return Asked(fields, {}, [], yes=left) if a != b else None
    return _free("road", 76, 100, category="context")(one, draw)


def _pio(one: Drawn, draw: Draw) -> Asked | None:
    """The outline of an object's box as polygon, which may reach out of the picture, and the point between two objects."""
    found = _one_object(one, draw)
    if not found:
        return None
    name, region = found
    y, x = np.nonzero(region)
    left, top, right, bottom = int(x.min()), int(y.min()), int(x.max()), int(y.max())
    margin = _whole(draw, 0, 6) + 0.5
    middle = (left + right) / 2
    ring = [
        [middle, top - margin],
        [right + margin, (top + bottom) / 2],
        [middle, bottom + margin],
        [left - margin, (top + bottom) / 2],
    ]
    fields = {"question": f"Point to the {name}.", "category": _pick(draw, ["s1", "s2"]), "polygons": [ring]}
    return Asked(fields, {}, [region])


def _ref_spatial(one: Drawn, draw: Draw) -> Asked | None:
    split = _pick(draw, ["location", "placement", "unseen"])
    if split == "placement":
        return _free("pavement", 57, 70, category=split)(one, draw)
    return _single(question="Point to the {name}.", category=split)(one, draw)


QUESTIONS: dict[str, Callable] = {
    "Pixmo-Points": _instances,
    "PointBench": _point_bench,
    "Part-Affordance-2K": _part,
    "RoboRefit": _single(question="Point to the {name}."),
    "RoboSpatial": _robo_spatial,
    "VABench-Point": _single(question="Where is the {name}?|Find the {name}."),
    "PIOBench": _pio,
    "Where2Place": _free("ground", 60, 100),
    "RefSpatial-Bench": _ref_spatial,
    "RoboAfford": _single(question="Which thing of {domain} is there? Point to the {name}.", category="{domain}"),
}


def _domain(name: str) -> str:
    return next(kind.domain for kind in KINDS if kind.name == name)


def _middle(region: np.ndarray) -> list[int]:
    """The pixel (x, y) of a region that is nearest to its centre."""
    y, x = np.nonzero(region)
    n = len(x)
    at = int(((n * x - x.sum()) ** 2 + (n * y - y.sum()) ** 2).argmin())
    return [int(x[at]), int(y[at])]


# -- answers ----------------------------------------------------------------------------------------------------------


def reply(model: str, asked: Asked, shown: Scene, draw: Draw, *, plain: bool = False) -> str | None:
    """The text that a model answers, in its own convention, and well-formed if ``plain``; None if the answer never came."""
    if asked.yes is not None:
        return _yes_or_no(model, asked.yes, draw)
    if model == "silent":
        return _pick(draw, ["[]", "No object", "```json\n[]\n```"]) if draw() < 0.8 else _json(_good(asked, shown, draw, 0.9))
    if model == "mumbler":
        return _mumbled(_good(asked, shown, draw, 0.7), 1 if plain else draw(), draw)
    points = _good(asked, shown, draw, 0.86)
    if model == "sprayer":
        points += [(_whole(draw, 0, 1000), _whole(draw, 450, 1030)) for _ in range(_whole(draw, 3, 6))]
        return " ".join(f'<point x="{x / 10}" y="{y / 10}" alt="it">it</point>' for x, y in points)
    return _json(points)


def _good(asked: Asked, shown: Scene, draw: Draw, hit: float) -> list[tuple[int, int]]:
    """A point in each region, or beside it, on the scale of 1000."""
    points = []
    for region in asked.aims:
        y, x = np.nonzero(region)
        at = int(draw() * len(x))
        shift = 0 if draw() < hit else _whole(draw, 60, 200)
        points.append((int((x[at] + 0.5) * 1000 / shown.width) + shift, int((y[at] + 0.5) * 1000 / shown.height)))
        if draw() < 0.06:  # an object overlooked
            points.pop()
    return points


def _json(points: list[tuple[int, int]], key: str = "point_2d") -> str:
    return json.dumps([{key: point, "label": "it"} for point in points])


def _mumbled(points: list[tuple[int, int]], how: float, draw: Draw) -> str | None:
    """An answer malformed in one of several ways, or none, by a number from 0 to 1."""
    text = _json([(y, x) for x, y in points], "point")
    if how < 0.08:
        return None
    if how < 0.2:
        return _pick(draw, PROSE)
    if how < 0.32:
        return f"Here it is: {text}"
    if how < 0.42 and points:
        return text[:-3]
    return f"<think>Let me look for it.</think>{text}" if how < 0.6 else text


def _yes_or_no(model: str, right: bool, draw: Draw) -> str:
    said = {"pointer": right if draw() < 0.85 else not right, "sprayer": True, "silent": False, "mumbler": right}[model]
    if model == "mumbler" and draw() < 0.5:
        return _pick(draw, ["Not sure.", "The answer depends.", "Maybe, yes"])
    return _pick(draw, ["{}", "{}.", "**{}**"]).format("Yes" if said else "No")

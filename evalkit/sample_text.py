"""What the sample's models say in their own words: a list of boxes as text, with the habits and the slips of such models.

The text follows from a list of objects and a stream of chance, so it is the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable

Draw = Callable[[], float]
Items = list[dict]
FENCE = "```"
AWAY = "The model is overloaded. Please try again later."


def say(items: Items, draw: Draw, *, slips: float, faults: float) -> dict[str, str]:
    """``{"response": text}`` for the objects, or ``{"error": text}``.

    ``slips`` is the share of lists that are written so that a reader has to mend them, ``faults`` the share of answers that
    cannot be read.
    """
    chance = draw()
    if chance < faults:
        fault = _pick(draw, FAULTS if items else EMPTY_FAULTS)
        text = fault if isinstance(fault, str) else fault(items, draw)
    elif not items:
        text = _pick(draw, EMPTY)
    elif chance < faults + slips:
        text = _wrapped(_pick(draw, SLIPS)(items), draw)
    else:
        text = _wrapped(_list(items), draw)
    return {"error": text} if text == AWAY else {"response": text}


def _pick(draw: Draw, rows: list):
    return rows[int(draw() * len(rows))]


def _list(items: Items) -> str:
    """A list as models print it, one object a line."""
    lines = ",\n".join(f"\t{json.dumps(item)}" for item in items)
    return f"[\n{lines}\n]"


def _fenced(block: str) -> str:
    return f"{FENCE}json\n{block}\n{FENCE}"


def _wrapped(block: str, draw: Draw) -> str:
    """A block as it is, in a fence, amid prose, or after some thought."""
    return _pick(draw, WRAPS).replace("FENCED", _fenced(block)).replace("BLOCK", block)


# What a reader mends


def _comma(items: Items) -> str:
    return f"{_list(items)[:-2]},\n]"


def _strings(items: Items) -> str:
    return _list([{**item, "bbox_2d": [str(edge) for edge in item["bbox_2d"]]} for item in items])


def _single(items: Items) -> str:
    return json.dumps(items[0]) if len(items) == 1 else _strings(items)


# What no reader mends


def _cut(items: Items, draw: Draw) -> str:
    """A list that ends where the tokens did."""
    text = _fenced(_list(items))
    return text[: len(text) * (40 + int(40 * draw())) // 100]


def _prose(items: Items, draw: Draw) -> str:
    return f"What I notice first is this: {items[0]['label']}, {_pick(draw, ['on the left', 'on the right', 'in the middle'])}."


def _thoughts(items: Items, draw: Draw) -> str:
    return "<think>\n" + f"Is that {items[0]['label']}, or just a shadow? Let me look again.\n" * (2 + int(3 * draw()))


def _no_list(items: Items, draw: Draw) -> str:
    return "\n".join(json.dumps(item) for item in [*items, items[0]])


def _bare_keys(items: Items, draw: Draw) -> str:
    return _list(items).replace('"label"', "label")


def _repeated(items: Items, draw: Draw) -> str:
    """A list, and a second thought."""
    moved = [{**item, "bbox_2d": [max(edge - 7, 0) for edge in item["bbox_2d"]]} for item in items]
    return f"{_fenced(_list(items))}\nOn a closer look:\n{_fenced(_list(moved))}"


def _first(change: Callable[[list[int], str], Items]) -> Callable[[Items, Draw], str]:
    """A list with something else in the place of its first object."""
    return lambda items, draw: _wrapped(_list([*change(*items[0].values()), *items[1:]]), draw)


WRAPS = [
    *["FENCED"] * 4,
    *["BLOCK"] * 2,
    "Here is what I see in the picture:\n\nFENCED",
    "Looking from left to right [1], these objects stand out.\n\nBLOCK\n\nTell me if you need anything else.",
    "<think>\nIs that one thing or two? I had [] first, but there is something near the kerb.\n</think>\n\nFENCED",
]
EMPTY = [*["[]"] * 4, _fenced("[]"), "No object.", "none", "<think>\nOnly the houses and the road.\n</think>\n[]"]
SLIPS = [_comma, _strings, _single, repr]
FAULTS = [
    *[_cut] * 3,
    *[_prose, _thoughts, _no_list, _bare_keys, _repeated, AWAY],
    _first(lambda box, label: [{"box_2d": box, "label": label}]),
    _first(lambda box, label: [label, {"bbox_2d": box, "label": label}]),
    _first(lambda box, label: [{"bbox_2d": box[:3], "label": label}]),
    _first(lambda box, label: [{"bbox_2d": [edge + 1000 for edge in box], "label": label}]),
    _first(lambda box, label: [{"bbox_2d": box}]),
]
EMPTY_FAULTS = [
    "I cannot find anything of that kind in this picture.",
    "There is nothing to report: []",
    _list([{"bbox_2d": [0, 0, 0, 0], "label": "litter"}]),
    _list([{"bbox_2d": None, "label": "litter"}]),
    "",
    AWAY,
]

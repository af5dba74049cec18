"""A model's own text to points, or to yes or no: the whole answer is what the convention says, or it is unparseable.

The convention (:class:`evalkit.responses.Reader`) is declared and never guessed. JSON is the standard list of objects, or one
object, perhaps in a Markdown fence, and nothing around it; nothing is mended. Tags (``<point x="63.5" y="44.5">``) may stand in
prose. Both have the explicit empty forms of :mod:`evalkit.responses`.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from evalkit.responses import DECIMAL, DECODER, EMPTY_WORD, REASONS, Reader, _answer, _Unreadable
from evalkit.tables import EvalkitError

TAGS = "tags"  # the key of a convention that has no JSON
POINT_REASONS = {
    **{name: REASONS[name] for name in ("failed", "blank", "unclosed_think", "too_deep", "duplicate_key", "not_finite")},
    **{name: REASONS[name] for name in ("bad_item", "no_key", "boolean")},
    "not_json": "the answer is neither the standard JSON alone nor an explicit empty form",
    "bad_point": "a point is not a list of two numbers",
    "no_tag": "there is neither a point tag nor an explicit empty form",
    "bad_tag": "a point tag is cut off, or its coordinates are no pairs of plain decimals",
    "not_yes_or_no": "the answer does not begin with a plain yes or no",
}
Point = tuple[float, float]


class PointAnswer(NamedTuple):
    """What one answer says: ``points`` are (x, y) on the declared scale, also those out of range.

    ``state`` is ``points``, ``empty`` or ``unparseable``, or ``answered`` with ``yes`` set; ``reason`` is one of POINT_REASONS.
    """

    state: str
    reason: str = ""
    points: tuple[Point, ...] = ()
    yes: bool | None = None


FAILED = PointAnswer("unparseable", "failed")  # for a row that holds an error in place of an answer
FENCE = re.compile(r"```(?:json)?(.*)```", re.DOTALL | re.IGNORECASE)
EMPTY_LIST = re.compile(r"\[\s*\]")
QUOTED = r""""[^"]*+"|'[^']*+'"""
TAG = re.compile(rf"<points?+(?=[\s/>])((?:[^<>\"']++|{QUOTED})*+)>", re.IGNORECASE)
TAG_START = re.compile(r"<points?+(?![\w-])", re.IGNORECASE)
ATTRIBUTE = re.compile(rf"([\w-]++)\s*+=\s*+({QUOTED})")
COORDINATE = re.compile(r"([xy])(\d*)", re.IGNORECASE)
MARKS = re.compile(r"[*_`~#>]+")
YES_OR_NO = re.compile(r"(yes|no)(?:[,.].*)?", re.IGNORECASE | re.DOTALL)


def read_points(text: str, reader: Reader) -> PointAnswer:
    """Read one answer by a convention of points. Linear in the length of the text; a text never raises.

    >>> from evalkit.responses import reader
    >>> read_points('[{"point_2d": [250, 1000]}]', reader("qwen-points")).points
    ((250.0, 1000.0),)
    """
    try:
        answer = _answer(text)
        fence = FENCE.fullmatch(answer)
        answer = fence[1].strip() if fence else answer
        if EMPTY_WORD.fullmatch(answer) or EMPTY_LIST.fullmatch(answer):
            return PointAnswer("empty")
        points = _tagged(answer) if reader.key == TAGS else _listed(answer, reader.key)
    except _Unreadable as fault:
        return PointAnswer("unparseable", str(fault))
    if reader.order == "yx":
        points = [(x, y) for y, x in points]
    return PointAnswer("points", points=tuple(points))


def read_yes_or_no(text: str) -> PointAnswer:
    """Read a yes or a no: the first word, without Markdown marks and outer punctuation, and then a comma, a stop or nothing.

    >>> [read_yes_or_no(text).yes for text in ("**Yes**", "no, it does not fit", "Not sure")]
    [True, False, None]
    """
    try:
        answer = _answer(text)
    except _Unreadable as fault:
        return PointAnswer("unparseable", str(fault))
    found = YES_OR_NO.fullmatch(MARKS.sub("", answer).strip(" \t\r\n\"'.,;:!?()[]“”‘’-"))
    if not found:
        return PointAnswer("unparseable", "not_yes_or_no")
    return PointAnswer("answered", yes=found[1].casefold() == "yes")


def check_point_run(answers: Sequence[PointAnswer], reader: Reader) -> list[str]:
    """What suggests that a run does not follow its convention; nothing is changed by it.

    Raises EvalkitError if there are answers to questions for points and none of them can be read.
    """
    if answers and all(one.state == "unparseable" for one in answers):
        reasons = ", ".join(f"{reason} {count}" for reason, count in Counter(one.reason for one in answers).most_common())
        raise EvalkitError(f"none of {len(answers)} answers can be read under {reader} ({reasons})")
    highest = [[max(point) for point in one.points] for one in answers if one.points]
    read, small = sum(map(len, highest)), sum(0 < high <= 1 for one in highest for high in one)
    exceeding = sum(max(one) > reader.scale for one in highest) if reader.scale else 0
    found = []
    if reader.scale != 1 and 2 * small > read:
        found.append(f"{small} of {read} points have no value above 1; the scale is declared as {reader.scale or 'pixels'}")
    if 2 * exceeding > len(highest):
        found.append(f"{exceeding} of {len(highest)} answers with points exceed the declared scale of {reader.scale}")
    return [f"the coordinate convention is probably wrong: {text}" for text in found]


def _listed(answer: str, key: str) -> list[Point]:
    """The points of an answer that is JSON."""
    try:
        said = DECODER.decode(answer)
    except json.JSONDecodeError:
        raise _Unreadable("not_json") from None
    except RecursionError:
        raise _Unreadable("too_deep") from None
    if not isinstance(said, list | dict):
        raise _Unreadable("not_json")
    return [_point(item, key) for item in (said if isinstance(said, list) else [said])]


def _point(item: Any, key: str) -> Point:
    if not isinstance(item, dict):
        raise _Unreadable("bad_item")
    if key not in item:
        raise _Unreadable("no_key")
    values = item[key]
    if not isinstance(values, list) or len(values) != 2 or not all(isinstance(one, float | bool) for one in values):
        raise _Unreadable("bad_point")
    if any(isinstance(one, bool) for one in values):
        raise _Unreadable("boolean")
    if not all(map(math.isfinite, values)):
        raise _Unreadable("not_finite")
    return values[0], values[1]


def _tagged(answer: str) -> list[Point]:
    """The points of all tags of an answer."""
    tags = [found[1] for found in TAG.finditer(answer)]
    if not tags and not TAG_START.search(answer):
        raise _Unreadable("no_tag")
    if TAG_START.search(TAG.sub("", answer)):
        raise _Unreadable("bad_tag")
    return [point for tag in tags for point in _pairs(tag)]


def _pairs(tag: str) -> list[Point]:
    """The points of one tag, from the text of its attributes."""
    values: dict[str, dict[str, float]] = {"x": {}, "y": {}}
    if ATTRIBUTE.sub("", tag).strip(" \t\r\n/"):
        raise _Unreadable("bad_tag")
    for name, quoted in ATTRIBUTE.findall(tag):
        coordinate, text = COORDINATE.fullmatch(name), quoted[1:-1].strip()
        if not coordinate:
            continue
        axis, number = coordinate[1].lower(), coordinate[2]
        if number in values[axis] or not DECIMAL.fullmatch(text):
            raise _Unreadable("bad_tag")
        values[axis][number] = float(text)
    if not values["x"] or values["x"].keys() != values["y"].keys():
        raise _Unreadable("bad_tag")
    if not all(map(math.isfinite, [*values["x"].values(), *values["y"].values()])):
        raise _Unreadable("not_finite")
    return [(x, values["y"][number]) for number, x in values["x"].items()]

"""A model's own text to boxes, a state and a reason.

The convention of a model's answers (:class:`Reader`) is declared and never guessed. :func:`read_boxes` reads prose around
exactly one JSON block, or an explicit empty form; all else is ``invalid`` with one of ``REASONS``. What is mended is
counted under one of ``REPAIRS``.

What counts as a block: a bracketed piece of text that holds an object, fenced or bare; and brackets of any content that are
the whole answer or stand in a fence of their own. Other square brackets amid prose, such as the citation ``[1]``, are prose.
An empty list amid bare prose is no explicit empty form. A fence may lack its end where the text ends.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import msgspec

from evalkit.tables import EvalkitError

REASONS = {
    "failed": "the model gave no answer, but an error",
    "blank": "there is no text in the answer",
    "unclosed_think": "the answer ends within the model's thoughts",
    "no_block": "there is neither a JSON block nor an explicit empty form",
    "empty_in_prose": "an empty list stands bare amid other text",
    "several_blocks": "there is more than one JSON block",
    "objects_without_list": "several objects follow one another without a list around them",
    "truncated": "a bracket is still open where the answer ends",
    "unbalanced": "a bracket is closed that was not opened",
    "not_json": "the block is not JSON, and none of the repairs makes it so",
    "too_deep": "the block is nested too deeply",
    "duplicate_key": "an object has the same key twice",
    "not_finite": "a number is not finite, or too large to be a coordinate",
    "bad_item": "an entry of the list is not an object",
    "other_key": "an object has the key of another convention",
    "no_key": "an object lacks the declared key",
    "bad_label": "an object has no `label`, or one that is no readable text",
    "null_box": "a box is null",
    "boolean": "a coordinate is true or false",
    "bad_box": "a box is not a list of four numbers",
    "placeholder": "all four coordinates of a box are zero",
    "out_of_scale": "a coordinate lies outside the declared scale",
    "inverted": "a box ends left of or above its start",
}
REPAIRS = {
    "trailing_comma": "one comma before a closing bracket was dropped",
    "single_object": "a single object was taken for a list of one",
    "decimal_strings": "coordinates in quotation marks were taken for numbers",
    "python_literal": "strings in single quotes were taken for JSON strings",
}
ORDERS = {"boxes": ("xyxy", "yxyx"), "points": ("xy", "yx")}
SCALES = {"1000": 1000, "100": 100, "1": 1, "pixels": None}
GIANT = 1e9  # pixels that no image has; products of such numbers stay finite


@dataclass(frozen=True)
class Reader:
    """The declared convention: ``key`` of the coordinates, their ``order``, and ``scale``, the value at the far edge.

    ``scale`` is None for pixels; ``kind`` says what is read. ``str()`` gives the parts that :func:`reader` reads.
    """

    key: str
    order: str
    scale: int | None
    kind: str = "boxes"

    def __str__(self) -> str:
        return f"key={self.key},order={self.order},scale={self.scale or 'pixels'}"


PRESETS = {
    "qwen-boxes": Reader("bbox_2d", "xyxy", 1000),
    "gemini-boxes": Reader("box_2d", "yxyx", 1000),
    "pixel-boxes": Reader("bbox_2d", "xyxy", None),
    "qwen-points": Reader("point_2d", "xy", 1000, "points"),
    "gemini-points": Reader("point", "yx", 1000, "points"),
    "molmo-points": Reader("tags", "xy", 100, "points"),
    "unit-points": Reader("point_2d", "xy", 1, "points"),
    "pixel-points": Reader("point_2d", "xy", None, "points"),
}
Box = tuple[float, float, float, float]
Reading = tuple[list[str], list[Box], tuple[str, ...]]  # labels, numbers as written, repairs
KEYS = frozenset({preset.key for preset in PRESETS.values() if preset.kind == "boxes"} | {"point_2d"})


class Response(NamedTuple):
    """What one answer says.

    ``boxes`` are ``(x_min, y_min, x_max, y_max)`` in pixels, neither rounded nor clipped, and ``labels`` their class names as
    written; both are empty unless ``state`` is ``valid``. The last three are for :func:`warnings` and describe invalid
    answers too: how many boxes had four numbers, how many of these had no number above 1, and whether one was above the scale.
    """

    state: str
    reason: str = ""
    labels: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()
    repairs: tuple[str, ...] = ()
    boxes_read: int = 0
    boxes_small: int = 0
    exceeds_scale: bool = False


FAILED = Response("invalid", "failed")  # for a row that holds an error in place of an answer


class _Unreadable(Exception):
    """The answer is invalid; the argument is one of REASONS."""


def reader(text: str, *, kind: str = "boxes") -> Reader:
    """The convention of ``boxes`` or ``points`` by the name of a preset, or by its three parts.

    >>> reader("gemini-boxes") == reader("key=box_2d,order=yxyx,scale=1000")
    True

    Raises EvalkitError for an unknown preset, part or value, a part that is left out or given twice, and the other kind.
    """
    if (preset := PRESETS.get(text.strip())) and preset.kind != kind:
        raise EvalkitError(f"reader: {text.strip()!r} reads {preset.kind}, and the file holds {kind}")
    if preset:
        return preset
    if "=" not in text:
        known = ", ".join(name for name, preset in PRESETS.items() if preset.kind == kind)
        raise EvalkitError(f"reader: unknown preset {text!r}; known are {known}, or the parts key=...,order=...,scale=...")
    pairs = [(name.strip(), value.strip()) for name, _, value in (part.partition("=") for part in text.split(","))]
    parts = dict(pairs)
    for name, _ in pairs:
        if name not in ("key", "order", "scale"):
            raise EvalkitError(f"reader: unknown part {name!r} in {text!r}; the parts are key, order, scale")
    if sorted(parts) != sorted(name for name, _ in pairs) or len(parts) != 3:
        raise EvalkitError(f"reader: key, order and scale must each be given once, not {text!r}")
    for name, known in (("order", ORDERS[kind]), ("scale", SCALES)):
        if parts[name] not in known:
            raise EvalkitError(f"reader: {name} must be one of {', '.join(known)}, not {parts[name]!r}")
    if not re.fullmatch(r"[\w.-]+", parts["key"]) or parts["key"] == "label":
        raise EvalkitError(f"reader: key must be a plain name other than `label`, not {parts['key']!r}")
    return Reader(parts["key"], parts["order"], SCALES[parts["scale"]], kind)


def read_boxes(text: str, reader: Reader, *, width: float | None = None, height: float | None = None) -> Response:
    """Read one answer. Linear in the length of the text, whatever the text is.

    Parameters
    ----------
    width, height : size of the image in pixels; needed unless the scale is pixels

    Raises
    ------
    EvalkitError
        For a size that is needed and not there. A text never raises.
    """
    if reader.scale and not all(size is not None and 0 < size < math.inf for size in (width, height)):
        raise EvalkitError(f"width, height: the scale {reader.scale} needs the size of the image, not {width}, {height}")
    try:
        answer = _answer(text)
        if EMPTY_WORD.fullmatch(answer):
            return Response("valid")
        (labels, values, repairs), *others = _readings(answer, reader.key)
    except _Unreadable as fault:
        return Response("invalid", str(fault))
    if any((labels, values) != other[:2] for other in others):
        return Response("invalid", "several_blocks")
    highest = [max(box) for box in values]
    seen = len(values), sum(0 < high <= 1 for high in highest), bool(reader.scale and max(highest, default=0) > reader.scale)
    if fault := _fault(values, reader.scale):
        return Response("invalid", fault, (), (), (), *seen)
    scale, width, height = (reader.scale, float(width), float(height)) if reader.scale else (1, 1, 1)
    upright = values if reader.order == "xyxy" else [(x0, y0, x1, y1) for y0, x0, y1, x1 in values]
    boxes = [(x0 * width / scale, y0 * height / scale, x1 * width / scale, y1 * height / scale) for x0, y0, x1, y1 in upright]
    return Response("valid", "", tuple(labels), tuple(boxes), repairs, *seen)


def warnings(responses: Sequence[Response], reader: Reader) -> list[str]:
    """What suggests that a run does not follow the declared convention. Nothing is changed by it.

    The share of answers above the scale is taken of the answers in which a box was read: an empty one has no scale.
    """
    read, small = (sum(getattr(one, name) for one in responses) for name in ("boxes_read", "boxes_small"))
    answers = sum(one.boxes_read > 0 for one in responses)
    exceeding = sum(one.exceeds_scale for one in responses)
    found = []
    if reader.scale != 1 and 2 * small > read:
        found.append(f"{small} of {read} boxes have no value above 1; the scale is declared as {reader.scale or 'pixels'}")
    if 2 * exceeding > answers:
        found.append(f"{exceeding} of {answers} answers with boxes exceed the declared scale of {reader.scale}")
    reasons = Counter(one.reason for one in responses)
    for reason in ("other_key", "inverted"):
        if 2 * reasons[reason] > len(responses):
            found.append(f"{reasons[reason]} of {len(responses)} answers: {REASONS[reason]}; declared is {reader}")
    return [f"the coordinate convention is probably wrong: {text}" for text in found]


def check_run(responses: Sequence[Response], reader: Reader) -> list[str]:
    """The warnings of a run.

    Raises EvalkitError if none of its responses is valid, with the reasons and the warnings.
    """
    found = warnings(responses, reader)
    if not any(one.state == "valid" for one in responses):
        reasons = ", ".join(f"{reason} {count}" for reason, count in Counter(one.reason for one in responses).most_common())
        text = f"none of {len(responses)} responses is valid under {reader} ({reasons or 'there is none'})"
        raise EvalkitError("; ".join([text, *found]))
    return found


# -- the text ---------------------------------------------------------------------------------------------------------

# A string that is not closed runs to the end, so that no character is tried twice. A single quote opens a string only where
# a string may begin, so not in "driver's". Every alternative begins with a plain character, for which the search can skip.
DOUBLE = r'"(?:[^"\\]++|\\.)*+"?'
SINGLE = r"'(?<![^\s\[{(,:]')(?:[^'\\]++|\\.)*+'?"
EMPTY_WORD = re.compile(r"(?P<fence>```(?:\w++\s)?\s*+)?(?:no[ _-]object|none|null)[.!]?(?(fence)\s*+```)", re.IGNORECASE)
OPENING = re.compile(r"(?:```\w*+\s*+)?(?P<bracket>[\[{])|[\]}]|```")
OPENS, CLOSES = frozenset("[{"), frozenset("]}")
CLOSING_FENCE = re.compile(r"\s*+(?:```|\Z)")
FLAT_LIST = rf"\[(?:[^\[\]{{}}\"']++|{DOUBLE}|{SINGLE})*+\]"
FLAT_OBJECT = rf"\{{(?:[^\[\]{{}}\"']++|{DOUBLE}|{SINGLE}|{FLAT_LIST})*+\}}"
LIST = rf"\[(?:[^\[\]{{}}\"']++|{DOUBLE}|{SINGLE}|{FLAT_OBJECT})*+\]"
BRACKET = re.compile(rf"{LIST}|{FLAT_OBJECT}|\[|\]|\{{|\}}|{DOUBLE}|{SINGLE}", re.DOTALL)
NEXT_OBJECT = re.compile(r"\s*+,")
STRING = re.compile(f"({DOUBLE}|{SINGLE})", re.DOTALL)
TRAILING_COMMA = re.compile(r",(?<=[\w\]}\"'],)(?=\s*+[\]}])")
WORD = re.compile("None|True|False")
WORDS = {"None": "null", "True": "true", "False": "false"}
ESCAPE = re.compile(r"\\.|\"", re.DOTALL)
UNESCAPED = {"\\'": "'", '"': '\\"'}
SURROGATE = re.compile("[\ud800-\udfff]")
DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def _answer(text: str) -> str:
    """The text without a mark at its start, the model's thoughts, and white space around it."""
    answer = text.removeprefix("\ufeff").rpartition("</think>")[2].strip()
    if "<think>" in answer:
        raise _Unreadable("unclosed_think")
    if not answer:
        raise _Unreadable("blank")
    return answer


def _readings(answer: str, key: str) -> list[Reading]:
    """What the blocks of an answer say; where it is nothing but a list, no block need be looked for."""
    whole = answer.removeprefix("```json").removesuffix("```").strip() if answer[0] == "`" else answer
    if whole.startswith("[") and whole.endswith("]"):
        if short := _short(whole, key):
            return [short]
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            return [_objects(DECODER.decode(whole), key)]
    return [(block != whole and _short(block, key)) or _long(block, key) for block in _blocks(answer)]


def _blocks(text: str) -> list[str]:
    """The block, or the different texts of repeated fenced blocks, which may yet say the same."""
    found: Counter[tuple[str, bool]] = Counter()
    for start, end, fenced in _brackets(text):
        block = text[start:end]
        if fenced or "{" in block or len(block) == len(text) or not block[1:-1].strip():
            found[block, fenced] += 1
            if block[0] == "{" and NEXT_OBJECT.match(text, end):
                raise _Unreadable("objects_without_list")
    if not found:
        raise _Unreadable("no_block")
    blocks = list(dict.fromkeys(block for block, _ in found))
    bare = [block for block, fenced in found if not fenced]
    objects = all(block[0] == "{" for block in blocks)
    if found.total() > 1 and (bare or (objects and len(blocks) > 1)):
        raise _Unreadable("objects_without_list" if objects else "several_blocks")
    if bare and "{" not in bare[0] and len(bare[0]) < len(text):
        raise _Unreadable("empty_in_prose")
    return blocks


def _brackets(text: str) -> Iterator[tuple[int, int, bool]]:
    """Start and end of every outermost pair of brackets, and whether it stands in a fence of its own."""
    end, in_fence = 0, False
    while opening := OPENING.search(text, end):
        in_fence ^= opening[0][0] == "`"
        end = opening.end()
        if opening["bracket"] is None:
            if opening[0] in "]}":
                raise _Unreadable("unbalanced")
            continue
        start, end = end - 1, _closing(text, end - 1)
        closing = CLOSING_FENCE.match(text, end) if in_fence and opening[0][0] == "`" else None
        yield start, end, closing is not None
        if closing:
            end, in_fence = closing.end(), False


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at ``start`` has been closed."""
    depth = 0
    for token in BRACKET.finditer(text, start):
        if token[0] in OPENS:
            depth += 1
        elif token[0] in CLOSES:
            depth -= 1
        if not depth:
            return token.end()
    raise _Unreadable("truncated")


# -- the block --------------------------------------------------------------------------------------------------------


def _short(text: str, key: str) -> Reading | None:
    """The reading of a list that is JSON, or is so once quotes are exchanged and a comma is dropped, which is most answers.

    None for whatever needs a second look. What was exchanged or dropped within a string would leave the text no better JSON
    than before, so what is read here was a quote around a string, or a comma outside.
    """
    if clean := _clean(text, key):
        return clean
    repairs: tuple[str, ...] = ()
    if "'" in text:
        if '"' in text:
            return None
        text, repairs = text.replace("'", '"'), ("python_literal",)
        if clean := _clean(text, key, *repairs):
            return clean
    text, commas = TRAILING_COMMA.subn("", text)
    return _clean(text, key, *repairs, "trailing_comma") if commas == 1 else None


def _long(block: str, key: str) -> Reading:
    """The labels and the numbers of a block. One that is not JSON gets a second try with its repairs."""
    try:
        with contextlib.suppress(json.JSONDecodeError):
            return _objects(DECODER.decode(block), key)
        text, repairs = _mended(block)
        return _clean(text, key, *repairs) or _objects(DECODER.decode(text), key, *repairs)
    except json.JSONDecodeError:
        raise _Unreadable("not_json") from None
    except RecursionError:
        raise _Unreadable("too_deep") from None


def _clean(text: str, key: str, *repairs: str) -> Reading | None:
    """The reading of a JSON list with nothing out of the way but decimal strings, after these repairs; else None."""
    if "\\" in text:  # a key may be written in another way
        return None
    try:
        try:
            items = _decoder(key, float).decode(text)
        except msgspec.ValidationError:
            items = _decoder(key, str).decode(text)
            repairs = tuple(sorted((*repairs, "decimal_strings")))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if not len(items) == text.count(f'"{key}"') == text.count('"label"'):  # else a key may be there twice
        return None
    labels, boxes = [item.label for item in items], [item.box for item in items]
    if "decimal_strings" in repairs:
        if not all(map(DECIMAL.fullmatch, itertools.chain.from_iterable(boxes))):
            return None
        boxes = [tuple(map(float, box)) for box in boxes]
    return (labels, boxes, repairs) if all(map(str.strip, labels)) else None


@functools.cache
def _decoder(key: str, number: type) -> msgspec.json.Decoder:
    box = ("box", tuple[number, number, number, number], msgspec.field(name=key))
    return msgspec.json.Decoder(list[msgspec.defstruct("Item", [box, ("label", str)], forbid_unknown_fields=True, gc=False)])


def _objects(said: Any, key: str, *repairs: str) -> Reading:
    """The reading of a decoded list of objects, or of a single one, after these repairs."""
    found = set(repairs)
    if isinstance(said, dict):
        said = [said]
        found.add("single_object")
    other_keys = KEYS - {key}
    labels, values = [], []
    for item in said:
        if not isinstance(item, dict):
            raise _Unreadable("bad_item")
        if not other_keys.isdisjoint(item):
            raise _Unreadable("other_key")
        if key not in item:
            raise _Unreadable("no_key")
        box, label = item[key], item.get("label")
        if not isinstance(label, str) or not label.strip() or SURROGATE.search(label):
            raise _Unreadable("bad_label")
        if not isinstance(box, list) or len(box) != 4:
            raise _Unreadable("null_box" if box is None else "bad_box")
        if set(map(type, box)) != {float}:
            box = [*map(_coordinate, box)]
            found.add("decimal_strings")
        labels.append(label)
        values.append(tuple(box))
    return labels, values, tuple(sorted(found))


def _mended(block: str) -> tuple[str, list[str]]:
    """A block with its repairs, and their names. Strings are closed: within brackets that close, none is left open."""
    parts = STRING.split(block)
    strings = parts[1::2]
    outside, commas = TRAILING_COMMA.subn("", '"'.join(parts[::2]))  # nothing but a string has a quotation mark there
    outside, words = WORD.subn(lambda word: WORDS[word[0]], outside)
    quoted = {string: _in_double_quotes(string) for string in set(strings)}
    literal = any(string[0] == "'" for string in quoted)
    if commas > 1 or (words and not literal):
        raise _Unreadable("not_json")
    parts[::2] = outside.split('"')
    parts[1::2] = map(quoted.get, strings)
    return "".join(parts), ["python_literal"] * literal + ["trailing_comma"] * commas


def _in_double_quotes(string: str) -> str:
    """A string token as JSON has it."""
    if string[0] == '"':
        return string
    text = string[1:-1]
    if '"' in text or "\\" in text:
        text = ESCAPE.sub(lambda found: UNESCAPED.get(found[0], found[0]), text)
    return f'"{text}"'


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) != len(pairs):
        raise _Unreadable("duplicate_key")
    return said


def _constant(text: str) -> NoReturn:
    """NaN and Infinity, which Python's JSON would take."""
    raise _Unreadable("not_finite")


# Every number is a float, so that true and false are none; too many digits give infinity and no error.
DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=float, parse_float=float, parse_constant=_constant)


def _coordinate(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return float(value)
    raise _Unreadable("boolean" if isinstance(value, bool) else "bad_box")


def _fault(values: Sequence[Box], scale: int | None) -> str:
    """The first rule that numbers break, or nothing; the order of the axes makes no difference."""
    low, high = (0, scale) if scale else (-GIANT, GIANT)
    for box in values:
        a0, b0, a1, b1 = box
        if not (a0 or b0 or a1 or b1):
            return "placeholder"
        if low <= a0 <= a1 <= high and low <= b0 <= b1 <= high:
            continue
        if low <= min(box) and max(box) <= high:
            return "inverted"
        return "out_of_scale" if scale and all(map(math.isfinite, box)) else "not_finite"
    return ""

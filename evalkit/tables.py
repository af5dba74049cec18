"""The tables of a benchmark and their validation, once, at the door.

Every reader in :mod:`evalkit.formats` hands over :class:`Annotations`: plain columns, nothing checked. The functions here
turn them into the tables that everything else works on, or raise :class:`DataError` with all that is wrong.

In the tables ``image_id``, ``class`` and ``model`` are categoricals whose categories are strings, so that joining and
counting work on small integers while ids and names stay text.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

BOX_COLUMNS = ["x_min", "y_min", "x_max", "y_max"]
STATES = ["valid", "invalid", "missing"]
OUTSIDE_TOLERANCE = 0.5  # pixels that a gold box may reach out of its image (rounding of other tools)


Note = tuple[str, int, str]  # code, count, examples: what a reader noticed and accepted


class EvalkitError(Exception):
    """Bad input or usage: one clear message. The command line prints it and exits with status 2."""


class CheckFailed(EvalkitError):
    """A check or comparison was carried out and failed. The command line exits with status 1."""


@dataclass(frozen=True)
class Finding:
    """One thing wrong with the data: where it stands, which rule it breaks, and the value got."""

    file: str
    place: str
    image_id: str
    rule: str
    message: str

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.file, self.place, self.image_id and f"image {self.image_id}") if part)
        return printable(f"{where}: {self.message} [{self.rule}]")


class DataError(EvalkitError):
    """The data breaks rules. ``findings`` holds all of it; the message shows the first five and the total."""

    SHOWN = 5

    def __init__(self, findings: Iterable[Finding]):
        self.findings = list(findings)
        super().__init__(self.findings)

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings[: self.SHOWN]]
        rest = len(self.findings) - self.SHOWN
        if rest > 0:
            lines.append(f"... and {rest} more, {len(self.findings)} in all; `evalkit check` lists every one")
        return "\n".join(lines)


@dataclass
class Annotations:
    """What one file says, as columns and before any check. Rows are images; boxes point to them by row number.

    ``place`` and ``box_place`` turn a row number into words ("line 12", "annotations[17]"), asked only for messages.
    """

    file: str
    image_id: list[str]
    box_image: np.ndarray
    class_code: np.ndarray
    class_names: list[str]
    boxes: np.ndarray
    place: Callable[[int], str]
    box_place: Callable[[int], str]
    width: np.ndarray | None = None
    height: np.ndarray | None = None
    file_name: list[str | None] | None = None
    state: list[str] | None = None
    reason: list[str] | None = None
    repairs: list[str] | None = None  # names joined by ", ", where a model's own text was read
    score: np.ndarray | None = None
    categories: pd.DataFrame | None = None
    several_rows: bool = False  # a long table or results list may speak of an image in several rows
    join_on_file_name: bool = False
    relative: bool = False  # the file has shares of the image's sides, not pixels
    absent: str = "missing"
    notes: list[Note] = field(default_factory=list)


class Relation(NamedTuple):
    """Which predicted class is accepted for which gold class.

    ``values`` has a row for each gold class and a column for each predicted class, in the order of the class list, with cells
    from 0 to 1; a cell of at least ``cutoff`` is accepted, and the diagonal always is.
    """

    values: pd.DataFrame
    cutoff: float

    @property
    def accepted(self) -> np.ndarray:
        """Whether a predicted class is accepted, booleans of shape (gold classes, predicted classes)."""
        return (self.values.to_numpy() >= self.cutoff) | np.eye(len(self.values), dtype=bool)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark in memory: its tables, and where the pictures are.

    Attributes
    ----------
    name, note : str
        The name of the data and a note that every page of results shows (empty if there is none).
    classes : DataFrame ``class_id, class_name, domain``
        The class list in the order of its file; ``domain`` is empty where there are none.
    images : DataFrame ``image_id, width, height, file_name``
        The denominator: an image without boxes is a row. Sizes in pixels, NaN where unknown.
    gold : DataFrame ``image_id, class, x_min, y_min, x_max, y_max``
    responses : DataFrame ``model, image_id, state, reason, repairs``
        One row for each model and image; ``state`` is ``valid``, ``invalid`` or ``missing``. ``repairs`` names what was mended
        in a model's own text, joined by ", "; it is empty for structured files.
    predictions : DataFrame ``model, image_id, class, x_min, y_min, x_max, y_max, score``
        The boxes of valid responses. ``score`` is carried and never used.
    image_folder : Path or None
    notes : tuple of (file, code, count, examples)
        What readers left out or passed over because the files or their options say so (crowd boxes, for one), and by model what
        suggests that its answers do not follow their declared convention.
    relation : Relation or None
        The semantic relation of the classes, where there is one.
    slices : DataFrame ``image_id, attribute, value``
        What is known of images, such as the time of day; empty where nothing is.
    readers : mapping of models to the declared convention, for those whose own text was read
    relative : the models whose files hold shares of the image's sides, not pixels
    """

    name: str
    note: str
    classes: pd.DataFrame
    images: pd.DataFrame
    gold: pd.DataFrame
    responses: pd.DataFrame
    predictions: pd.DataFrame
    image_folder: Path | None = None
    notes: tuple[tuple[str, str, int, str], ...] = ()
    relation: Relation | None = None
    slices: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["image_id", "attribute", "value"], dtype=str))
    readers: Mapping[str, str] = field(default_factory=dict)
    relative: tuple[str, ...] = ()

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order of ``benchmark.yml``."""
        return list(self.responses["model"].cat.categories)

    @property
    def domains(self) -> list[str]:
        """Names of the domains, in the order of the class list; empty if the classes have none."""
        return [name for name in self.classes["domain"].unique() if name]

    @property
    def valid(self) -> np.ndarray:
        """Whether each model's response to each image is valid, shape (models, images)."""
        return (self.responses["state"] == "valid").to_numpy().reshape(len(self.models), len(self.images))

    @property
    def gold_boxes_per_image(self) -> np.ndarray:
        """Number of gold boxes on each image; 0 on the clean ones."""
        return np.bincount(self.gold["image_id"].cat.codes, minlength=len(self.images))

    @property
    def predicted_boxes_per_image(self) -> np.ndarray:
        """Number of boxes in each model's valid response to each image, shape (models, images)."""
        shape = len(self.models), len(self.images)
        model, image = (self.predictions[name].cat.codes.to_numpy(np.int64) for name in ("model", "image_id"))
        return np.bincount(model * shape[1] + image, minlength=shape[0] * shape[1]).reshape(shape)

    @property
    def outside(self) -> list[str]:
        """Predicted names that the class list lacks."""
        return list(self.gold["class"].cat.categories[len(self.classes) :])


def printable(text: str) -> str:
    """Text for one line of a terminal: control characters and broken ones are written as escapes."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


# -- names and ids ----------------------------------------------------------------------------------------------------


def nfc(text: str) -> str:
    """Unicode normal form C, in which ids and names are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def class_name(text: str) -> str:
    """A class name as it is compared: trimmed, inner white space collapsed, NFC.

    >>> class_name("  broken   kerb ")
    'broken kerb'
    """
    return nfc(" ".join(text.split()))


def image_ids(values: Iterable[str | int]) -> list[str]:
    """Image ids as they are compared: strings, NFC; integers become decimal strings, nothing else changes.

    >>> image_ids(["00012", 12])
    ['00012', '12']
    """
    ids = [str(value) for value in values]
    return ids if "".join(ids).isascii() else [nfc(value) for value in ids]


def close_ids(wanted: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """For each wanted id that ``known`` lacks, how it differs from one that is there: leading zeros, case, or an ending."""
    loose = {}
    for name in known:
        loose.setdefault(_loose(name), name)
    return {name: loose[_loose(name)] for name in wanted if _loose(name) in loose}


def _loose(name: str) -> str:
    stem = re.sub(r"\.(png|jpe?g|webp|bmp|tiff?)$", "", name.strip().casefold())
    return stem.lstrip("0") or "0"


def hint(name: str, near: str) -> str:
    """How two ids or names differ that were not taken for the same."""
    if name.casefold() == near.casefold():
        how = "only by case"
    elif name.lstrip("0") == near.lstrip("0"):
        how = "only by leading zeros"
    else:
        how = "only a little"
    return f"{name!r} differs {how} from {near!r}"


# -- the door ---------------------------------------------------------------------------------------------------------


def classes_table(rows: pd.DataFrame, *, file: str, place: Callable[[int], str]) -> pd.DataFrame:
    """Check a class list and return ``class_id, class_name, domain``, all strings.

    Raises
    ------
    DataError
        For an empty list, an empty name, or a name or id that occurs twice.
    """
    columns = {
        "class_id": [nfc(value.strip()) for value in rows["class_id"]],
        "class_name": [class_name(value) for value in rows["class_name"]],
        "domain": [class_name(value) for value in rows["domain"]] if "domain" in rows else [""] * len(rows),
    }
    findings = [] if len(rows) else [Finding(file, "", "", "classes.empty", "the class list is empty")]
    for column in ("class_id", "class_name"):
        first: dict[str, int] = {}
        for row, value in enumerate(columns[column]):
            if not value:
                findings.append(Finding(file, place(row), "", "classes.blank", f"{column} is empty"))
            elif first.setdefault(value, row) != row:
                text = f"{column} {value!r} was there at {place(first[value])}"
                findings.append(Finding(file, place(row), "", "classes.twice", text))
    if findings:
        raise DataError(findings)
    return pd.DataFrame(columns, dtype=str)


def gold_tables(said: Annotations, classes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Check gold annotations and return the tables of images and of gold boxes.

    Raises
    ------
    DataError
        For no image at all, an image twice, a class outside the list, and a box that is non-finite, inverted, of zero area,
        or more than 0.5 pixels outside its image where the size is known.
    """
    findings = [*image_findings(said), *text_findings(said)]
    if not said.image_id:
        findings.append(Finding(said.file, "", "", "gold.empty", "there is no image in it"))
    width, height = (_column(said, name) for name in ("width", "height"))
    findings += class_findings(said, classes, "gold.class")
    known = pd.Index(classes["class_name"])
    to_class = known.get_indexer([class_name(name) for name in said.class_names])
    class_code = to_class[said.class_code] if said.class_names else said.class_code
    for rule, wrong, text in box_faults(said.boxes, width[said.box_image], height[said.box_image]):
        findings += [box_finding(said, int(box), rule, text) for box in np.flatnonzero(wrong)]
    if findings:
        raise DataError(findings)
    images = pd.DataFrame(
        {
            "image_id": categorical(np.arange(len(said.image_id)), said.image_id),
            "width": width,
            "height": height,
            "file_name": pd.Series(said.file_name or [None] * len(said.image_id), dtype=str),
        }
    )
    gold = _boxes_table(images, said.box_image, categorical(class_code, known), said.boxes)
    return images, gold


class Response(NamedTuple):
    """What one model said, checked: a code of ``STATES``, reason and repairs for each image of gold, and boxes of valid ones.

    ``image`` is the row of a box's image, ``class_code`` the place of its class among ``class_names``.
    """

    state: np.ndarray
    reason: list[str]
    repairs: list[str]
    image: np.ndarray
    class_code: np.ndarray
    class_names: list[str]
    boxes: np.ndarray
    score: np.ndarray


def checked_response(
    said: Annotations,
    images: pd.DataFrame,
    *,
    absent: str | None = None,
    bad_box: str = "invalid",
    row_of: Mapping[str, int] | None = None,
) -> Response:
    """Check one model's predictions against the images of gold.

    Parameters
    ----------
    absent : {"missing", "empty"}, optional
        What an image without a row means; the default depends on the format (``empty`` for a COCO results list).
    bad_box : {"invalid", "error"}
        What an inverted, non-finite or wrong-length box does: it makes the response of its image invalid, or it is an error.
    row_of : mapping, optional
        Row of each image id, if it is at hand already.

    Raises
    ------
    DataError
        For an image twice, or an id that gold lacks.
    """
    findings = [*image_findings(said), *text_findings(said)]
    row, unknown = rows_in_gold(said, images, row_of)
    findings += unknown
    box_row = row[said.box_image] if len(said.box_image) else said.box_image
    faults = [] if findings else shape_faults(said.boxes)

    state = np.full(len(images), STATES.index("valid" if (absent or said.absent) == "empty" else "missing"))
    reason, repairs = (_placed(texts, row, len(images)) for texts in (said.reason, said.repairs))
    if not findings:
        state[row] = 0
        if said.state is not None:
            state[row] = [STATES.index(value) for value in said.state]
    for rule, wrong, text in faults:
        for box in np.flatnonzero(wrong):
            if bad_box == "error":
                findings.append(box_finding(said, int(box), rule, text))
            elif state[box_row[box]] == 0:
                state[box_row[box]] = STATES.index("invalid")
                reason[box_row[box]] = rule.removeprefix("box.")
    if findings:
        raise DataError(findings)

    keep = slice(None) if (state == 0).all() else state[box_row] == 0
    score = np.full(len(said.boxes), np.nan) if said.score is None else said.score
    names = [class_name(name) for name in said.class_names]
    return Response(state, reason, repairs, box_row[keep], said.class_code[keep], names, said.boxes[keep], score[keep])


def response_tables(
    said: Mapping[str, Response], images: pd.DataFrame, classes: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of all models' responses and of their boxes; names outside the class list become categories after it.

    Returns
    -------
    responses : DataFrame ``model, image_id, state, reason, repairs``, for each model one row for each image, in that order
    predictions : DataFrame ``model, image_id, class, x_min, y_min, x_max, y_max, score``, the boxes of valid responses
    """
    every, models = list(said.values()), np.arange(len(said))
    listed = list(classes["class_name"])
    labels = [*listed, *sorted({name for one in every for name in one.class_names} - set(listed))]
    code_of = {name: code for code, name in enumerate(labels)}
    codes = [np.array([code_of[name] for name in one.class_names], int)[one.class_code] for one in every]
    responses = pd.DataFrame(
        {
            "model": categorical(models.repeat(len(images)), said),
            "image_id": pd.Categorical.from_codes(np.tile(np.arange(len(images)), len(said)), dtype=images["image_id"].dtype),
            "state": categorical(_chained([one.state for one in every]), STATES),
            "reason": _text([one.reason for one in every], len(said) * len(images)),
            "repairs": _text([one.repairs for one in every], len(said) * len(images)),
        },
        copy=False,
    )
    label = categorical(_chained(codes), labels)
    boxes = np.concatenate([np.empty((0, 4)), *(one.boxes for one in every)])
    predictions = _boxes_table(images, _chained([one.image for one in every]), label, boxes)
    predictions.insert(0, "model", categorical(models.repeat([len(one.boxes) for one in every]), said))
    predictions["score"] = np.concatenate([np.empty(0), *(one.score for one in every)])
    return responses, predictions


def _chained(codes: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, int), *codes])


def categorical(codes: np.ndarray, categories: Iterable[str]) -> pd.Categorical:
    """Text by codes into its categories."""
    return pd.Categorical.from_codes(codes, categories=pd.Index(list(categories), dtype=str))


def _boxes_table(images: pd.DataFrame, image_row: np.ndarray, label: pd.Categorical, boxes: np.ndarray) -> pd.DataFrame:
    columns = {
        "image_id": pd.Categorical.from_codes(image_row, dtype=images["image_id"].dtype),
        "class": label,
        **{name: boxes[:, column] for column, name in enumerate(BOX_COLUMNS)},
    }
    return pd.DataFrame(columns, copy=False)


def _placed(texts: Iterable[str] | None, rows: np.ndarray, n: int) -> list[str]:
    """Texts in their rows of n, the others empty."""
    placed = [""] * n
    for row, text in zip(rows.tolist(), texts, strict=True) if texts is not None else ():
        placed[row] = text
    return placed


def _text(parts: list[list[str]], n: int) -> pd.Series:
    """Texts in parts as a column of n rows; most often all of them are empty."""
    values = list(itertools.chain.from_iterable(parts)) if any(map(any, parts)) else ""
    return pd.Series(values, index=range(n), dtype=str)


def _column(said: Annotations, name: str) -> np.ndarray:
    values = getattr(said, name)
    return np.full(len(said.image_id), np.nan) if values is None else values


def box_finding(said: Annotations, box: int, rule: str, text: str) -> Finding:
    image_id = said.image_id[said.box_image[box]]
    got = ", ".join(f"{value:.10g}" for value in said.boxes[box])
    return Finding(said.file, said.box_place(box), image_id, rule, f"{text} (box [{got}])")


def class_findings(said: Annotations, classes: pd.DataFrame, rule: str) -> Iterable[Finding]:
    """Boxes whose class the list lacks; what differs only by case is told."""
    known = pd.Index(classes["class_name"])
    labels = [class_name(name) for name in said.class_names]
    for code, label in enumerate(labels):
        if label not in known:
            near = close_ids([label], known)
            text = f"class {label!r} is not in the class list" + (f" ({hint(label, near[label])})" if near else "")
            yield from (box_finding(said, int(box), rule, text) for box in np.flatnonzero(said.class_code == code))


def image_findings(said: Annotations) -> Iterable[Finding]:
    """Empty ids, and images that have two rows."""
    seen: dict[str, int] = {}
    if not said.several_rows and len(set(said.image_id)) != len(said.image_id):
        for row, image_id in enumerate(said.image_id):
            if image_id in seen:
                text = f"duplicate image row: {image_id!r} was there at {said.place(seen[image_id])}"
                yield Finding(said.file, said.place(row), image_id, "image.twice", text)
            seen.setdefault(image_id, row)
    if not all(map(str.strip, said.image_id)):
        for row, image_id in enumerate(said.image_id):
            if not image_id.strip():
                yield Finding(said.file, said.place(row), image_id, "image.blank", "the image id is empty")
    for name in ("width", "height"):
        values = getattr(said, name)
        if values is not None:
            for row in np.flatnonzero(~np.isnan(values) & ~((values > 0) & np.isfinite(values))):
                text = f"{name} must be a positive number of pixels, not {values[row]:g}"
                yield Finding(said.file, said.place(row), said.image_id[row], "image.size", text)


def text_findings(said: Annotations) -> Iterable[Finding]:
    """Class names that are empty, and half characters (lone surrogates), which JSON can write and no text can hold."""
    for code, name in enumerate(said.class_names):
        fault = "" if class_name(name) else "a box needs a class"
        if broken(name):
            fault = "the class holds half a character"
        for box in np.flatnonzero(said.class_code == code)[:1] if fault else ():
            yield box_finding(said, int(box), "box.class", fault)
    texts_said = {"image id": said.image_id, "file_name": said.file_name, "reason": said.reason, "repairs": said.repairs}
    for what, column in texts_said.items():
        for row, text in enumerate(column) if broken("".join(filter(None, column or ()))) else ():
            if text and broken(text):
                yield Finding(said.file, said.place(row), said.image_id[row], "text", f"the {what} holds half a character")


def broken(text: str) -> bool:
    """Whether a text holds half a character (a lone surrogate), which no file can."""
    return not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text)


def rows_in_gold(said: Annotations, images: pd.DataFrame, row_of: Mapping[str, int] | None) -> tuple[np.ndarray, list[Finding]]:
    """The row of gold's image table for each row said, and a finding for each id that gold lacks."""
    gold_key, key = images["image_id"], said.image_id
    if said.join_on_file_name and said.file_name is not None and images["file_name"].notna().all():
        gold_key, key, row_of = images["file_name"], said.file_name, None
        shared = set(gold_key[gold_key.duplicated()])
        twice = [row for row, name in enumerate(key) if name in shared]
        if twice:
            text = "two images of gold have the file name {!r}, on which this file is joined"
            return np.zeros(len(key), np.int64), [
                Finding(said.file, said.place(row), said.image_id[row], "image.ambiguous", text.format(key[row]))
                for row in twice
            ]
    row_of = {name: row for row, name in enumerate(gold_key)} if row_of is None else row_of
    rows = np.fromiter(map(row_of.get, key, itertools.repeat(-1)), np.int64, len(key))
    absent = np.flatnonzero(rows < 0)
    near = close_ids([key[row] for row in absent], gold_key) if len(absent) else {}
    findings = []
    for row in absent:
        text = f"gold has no image {key[row]!r}" + (f" ({hint(key[row], near[key[row]])})" if key[row] in near else "")
        findings.append(Finding(said.file, said.place(int(row)), said.image_id[row], "image.unknown", text))
    return rows, findings


def shape_faults(boxes: np.ndarray) -> list[tuple[str, np.ndarray, str]]:
    """The rules that make four numbers no box at all, each as a mask over the boxes; a box breaks one of them at most."""
    x_min, y_min, x_max, y_max = boxes.T
    finite = np.logical_and.reduce([np.isfinite(edge) for edge in boxes.T])
    inverted = finite & ((x_max < x_min) | (y_max < y_min))
    return [
        ("box.not_finite", ~finite, "a box is four finite numbers"),
        ("box.inverted", inverted, "x_max must not be left of x_min, nor y_max above y_min"),
    ]


def box_faults(boxes: np.ndarray, width: np.ndarray, height: np.ndarray) -> list[tuple[str, np.ndarray, str]]:
    """Every rule that a gold box can break, each as a mask over the boxes; sizes of images are NaN where they are unknown."""
    faults = shape_faults(boxes)
    x_min, y_min, x_max, y_max = boxes.T
    upright = ~np.logical_or.reduce([wrong for _, wrong, _ in faults])
    zero = upright & ((x_max == x_min) | (y_max == y_min))
    beyond = [np.maximum(-x_min, x_max - width), np.maximum(-y_min, y_max - height)]
    outside = upright & ((beyond[0] > OUTSIDE_TOLERANCE) | (beyond[1] > OUTSIDE_TOLERANCE))
    return [
        *faults,
        ("box.zero_area", zero, "the box has no area"),
        ("box.outside", outside, "the box is more than 0.5 pixels outside its image"),
    ]


NOTES = {
    "zero_area": "predicted boxes without area: each is a false positive",
    "outside_image": "predicted boxes that reach out of their image: scored as given, not clipped",
    "repeated_box": "predicted boxes that repeat another of their image and class: each counts",
    "class_outside_list": "predicted boxes whose class is not in the list: false positives, in no domain",
    "invalid": "malformed answers, which are not scored",
    "missing": "images without an answer, which are not scored",
    "crowd_dropped": "crowd boxes of gold, left out as the benchmark file asks",
    "difficult": "objects marked as difficult, taken as ordinary ones",
    "ignore_flag_not_used": "boxes with an ignore flag, taken as ordinary ones",
    "convention_warning": "answers that hardly follow the declared convention: scored as declared",
    "picture_turned": "pictures that an EXIF orientation turns: their displayed size counts",
}


def data_notes(benchmark: Benchmark) -> pd.DataFrame:
    """What the check of the data noticed and accepted: ``source, code, count, examples``, one row each.

    Nothing in it is an error and nothing of it changes a score; a source is a model or a file. ``NOTES`` says what the
    codes mean.
    """
    size = benchmark.images[["width", "height"]].to_numpy()
    rows: list[tuple[str, str, int, str]] = list(benchmark.notes)
    for model in benchmark.models:
        boxes = benchmark.predictions[benchmark.predictions["model"] == model]
        width, height = size[boxes["image_id"].cat.codes].T
        x_min, y_min, x_max, y_max = boxes[BOX_COLUMNS].to_numpy().T
        masks = {
            "zero_area": (x_max == x_min) | (y_max == y_min),
            "outside_image": (x_min < 0) | (y_min < 0) | (x_max > width) | (y_max > height),
            "repeated_box": boxes.duplicated(["image_id", "class", *BOX_COLUMNS]).to_numpy(),
            "class_outside_list": boxes["class"].isin(benchmark.outside).to_numpy(),
        }
        for code, mask in masks.items():
            if mask.any():
                column = "class" if code == "class_outside_list" else "image_id"
                examples = list(dict.fromkeys(boxes.loc[mask, column]))[:3]
                if column == "class":
                    examples = _with_hints(examples, benchmark.classes["class_name"])
                rows.append((model, code, int(mask.sum()), ", ".join(examples)))
        states = benchmark.responses[benchmark.responses["model"] == model]
        for state in STATES[1:]:
            ids = states.loc[states["state"] == state, "image_id"]
            if len(ids):
                answered = states.loc[states["state"] != "missing", "image_id"] if state == "missing" else []
                rows.append((model, state, len(ids), ", ".join(_with_hints(list(ids[:3]), answered))))
    return pd.DataFrame(rows, columns=["source", "code", "count", "examples"])


def _with_hints(names: Sequence[str], known: Iterable[str]) -> list[str]:
    near = close_ids(names, known)
    return [f"{name} ({hint(name, near[name])})" if name in near else name for name in names]

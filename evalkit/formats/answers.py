"""Models' own answers as JSON lines, ``image_id`` and ``response`` or ``error``, read by a declared convention."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from msgspec import UNSET, UnsetType

from evalkit.formats.decoding import box_array, decode_lines, factorise, one_finding
from evalkit.formats.options import Context, FileOptions
from evalkit.responses import FAILED, Response, check_run, read_boxes, reader
from evalkit.tables import Annotations, DataError, EvalkitError, Finding, image_ids

NULL = Response("missing")
OTHER_KIND = dict.fromkeys(("boxes", "status", "reason"), "of a structured file; read it without `reader`")
OTHER_KIND["response"] = "a model's own text; say with `reader` how it is to be read"


class AnswerRow(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    image_id: str | int
    response: str | UnsetType | None = UNSET
    error: str | UnsetType = UNSET


def read(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read one model's answers. A null response is ``missing``, a row with ``error`` is ``invalid`` (failed).

    Boxes on a relative scale become pixels by the sizes of gold's images. What suggests a wrong convention is a note.

    Raises
    ------
    DataError
        For a line that is not JSON, or has not just one of ``response`` and ``error``; for an image whose size is needed and
        not known; and if no response is valid.
    EvalkitError
        For a reader that is not known.
    """
    convention = reader(options.reader)
    rows, place = decode_lines(path, AnswerRow, lenient_boxes=False)
    ids = image_ids([row.image_id for row in rows])
    size_of = _sizes(context.images)
    responses: list[Response] = []
    findings: list[Finding] = []
    for row, (image_id, said) in enumerate(zip(ids, rows, strict=True)):
        width, height = size_of.get(image_id, (1, 1))  # an id that gold lacks is told with those of all files
        response = NULL
        if (said.response is UNSET) == (said.error is UNSET):
            text = "an answer needs either `response` or `error`, and just one of them"
            findings.append(Finding(path.name, place(row), image_id, "row.answer", text))
        elif said.error is not UNSET:
            response = FAILED
        elif said.response is not None and convention.scale and not (width > 0 and height > 0):
            text = (
                f"the scale {convention.scale} needs the image's `width` and `height`, which neither gold nor a picture gives"
            )
            findings.append(Finding(path.name, place(row), image_id, "image.no_size", text))
        elif said.response is not None:
            response = read_boxes(said.response, convention, width=width, height=height)
        responses.append(response)
    if findings:
        raise DataError(findings)
    notes = []
    if len(size_of.keys() & set(ids)) == len(ids):  # else the ids are the first thing to mend
        try:
            found = check_run([one for one in responses if one is not NULL], convention)
        except EvalkitError as error:
            raise one_finding(path.name, "answers.none_valid", str(error)) from None
        notes = [("convention_warning", 1, text) for text in found]
    sizes = np.fromiter((len(one.boxes) for one in responses), np.int64, len(responses))
    box_image = np.repeat(np.arange(len(responses)), sizes)
    first = np.cumsum(sizes) - sizes
    codes, names = factorise(list(itertools.chain.from_iterable(one.labels for one in responses)))
    return Annotations(
        file=path.name,
        image_id=ids,
        box_image=box_image,
        class_code=codes,
        class_names=names,
        boxes=box_array([box for one in responses for box in one.boxes]),
        place=place,
        box_place=lambda box: f"{place(int(box_image[box]))}, boxes[{box - first[box_image[box]]}]",
        state=[one.state for one in responses],
        reason=[one.reason for one in responses],
        repairs=[", ".join(one.repairs) for one in responses],
        notes=notes,
        relative=convention.scale is not None,
    )


def read_texts(path: Path) -> dict[str, str]:
    """The text of each answer by image id, as the model wrote it; the message of an error; empty for a null response."""
    rows, _ = decode_lines(path, AnswerRow, lenient_boxes=False)
    texts = (row.response or "" if row.error is UNSET else row.error for row in rows)
    return dict(zip(image_ids([row.image_id for row in rows]), texts, strict=True))


def name_wrong_reader(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a file of JSON lines; fields of the other kind of file are told as that, where the first one stands."""
    rest, wrong = [], []
    for one in findings:
        field = re.fullmatch("Object contains unknown field `(.*)`", one.message)
        (wrong if field and field[1] in OTHER_KIND else rest).append(one)
    if not wrong:
        return rest
    first, more = wrong[0], f" ({len(wrong)} such lines)" if len(wrong) > 1 else ""
    name = first.message.split("`")[1]
    text = f"wrong reader for the file: `{name}` is {OTHER_KIND[name]}{more}"
    return [Finding(first.file, first.place, first.image_id, "reader.wrong", text), *rest]


def _sizes(images: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Width and height of each image in pixels, NaN where unknown."""
    return dict(zip(images["image_id"], zip(images["width"].tolist(), images["height"].tolist(), strict=True), strict=True))

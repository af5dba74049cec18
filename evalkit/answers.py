"""What the models answered: states, reasons and repairs, examples of them, and a look at the order of the axes.

Nothing here changes a score.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from evalkit.counts import HEADLINE_IOU, count
from evalkit.formats import read_answers
from evalkit.responses import REASONS, REPAIRS
from evalkit.tables import BOX_COLUMNS, STATES, Benchmark


def tally(benchmark: Benchmark) -> pd.DataFrame:
    """How many answers of each model have which state, and for which reason.

    Returns
    -------
    DataFrame ``model, state, reason, answers``, a row for each combination that occurs; details of a reason, after a colon,
    are left out. The answers of a model add up to the number of images.
    """
    said = _responses(benchmark)
    order = {reason: place for place, reason in enumerate(["", *REASONS])}
    table = said.groupby(["model", "state", "reason"], observed=True).size().rename("answers").reset_index()
    place = table["reason"].map(order).fillna(len(order))
    return table.assign(place=place).sort_values(["model", "state", "place", "reason"], ignore_index=True).drop(columns="place")


def repairs(benchmark: Benchmark) -> pd.DataFrame:
    """How many answers of each model were mended in which way: ``model, repair, answers``; one answer may have several."""
    said = _mended(benchmark)
    return said.groupby(["model", "repair"], observed=True).size().rename("answers").reset_index()


def overview(benchmark: Benchmark) -> pd.DataFrame:
    """How many answers of each model, the index, were ``read as written``, ``repaired``, ``invalid`` and ``missing``.

    The first two are the valid ones; the four add up to the number of images.
    """
    said = _responses(benchmark)
    kind = said["state"].astype(str).where(said["state"] != "valid", "read as written")
    kind = kind.mask((said["state"] == "valid") & (said["repairs"] != ""), "repaired")
    table = pd.crosstab(said["model"], kind).reindex(index=benchmark.models, fill_value=0)
    return table.reindex(columns=["read as written", "repaired", *STATES[1:]], fill_value=0).rename_axis("model")


def examples(benchmark: Benchmark, source: str | Path) -> pd.DataFrame:
    """The first answer of each reason and of each repair, with its raw text, over the models whose own text was read.

    ``source`` is the ``benchmark.yml``; the files of those models are read again, since no table keeps their text.

    Returns
    -------
    DataFrame ``kind, name, meaning, model, image_id, text``; ``kind`` is ``reason`` or ``repair``
    """
    said = _responses(benchmark)
    invalid = said[said["state"] == "invalid"].rename(columns={"reason": "name"})
    parts = []
    kinds = (("reason", invalid, REASONS), ("repair", _mended(benchmark).rename(columns={"repair": "name"}), REPAIRS))
    for kind, rows, meanings in kinds:
        rows = rows[rows["model"].isin(list(benchmark.readers))].drop_duplicates("name")
        rows = rows.assign(kind=kind, meaning=rows["name"].map(meanings), place=rows["name"].map(list(meanings).index))
        parts.append(rows.sort_values("place"))
    found = pd.concat(parts, ignore_index=True)[["kind", "name", "meaning", "model", "image_id"]]
    texts = {model: read_answers(source, model) for model in found["model"].unique()}
    said = [texts[model][image_id] for model, image_id in zip(found["model"], found["image_id"], strict=True)]
    return found.assign(text=pd.Series(said, dtype=object))  # half a character is no text for pandas


def axis_swap(benchmark: Benchmark, *, iou: float = HEADLINE_IOU) -> pd.DataFrame:
    """How many images would match better if x and y of every predicted box were exchanged.

    The boxes of valid responses are matched as given, and once more with the axes exchanged in the frame that the model's
    file is in: (x, y) becomes (y, x) in pixels, and (y·w/h, x·h/w) where the file has shares of an image of w by h pixels. An
    image is better or worse by its number of true positives over all classes. It is a diagnosis; no score depends on it.

    Parameters
    ----------
    iou : the threshold at which boxes match

    Returns
    -------
    DataFrame ``model, reader, images, better, worse, equal, tp, tp_swapped``, a row for each model. ``images`` are its valid
    responses, without those in shares of an image whose size is not known; better, worse and equal add up to it. ``reader``
    is the declared convention, empty for a structured file.
    """
    n_images = len(benchmark.images)
    usable = benchmark.valid.copy()
    unknown = benchmark.images[["width", "height"]].isna().any(axis=1).to_numpy()
    usable[[model in benchmark.relative for model in benchmark.models]] &= ~unknown
    exchanged = dataclasses.replace(benchmark, predictions=_exchanged(benchmark))
    before, after = (np.where(usable, _true_positives(one, iou), 0) for one in (benchmark, exchanged))
    better, worse = (after > before).sum(axis=1), (after < before).sum(axis=1)
    return pd.DataFrame(
        {
            "model": benchmark.models,
            "reader": [benchmark.readers.get(model, "") for model in benchmark.models],
            "images": usable.sum(axis=1),
            "better": better,
            "worse": worse,
            "equal": usable.sum(axis=1) - better - worse,
            "tp": before.reshape(-1, n_images).sum(axis=1),
            "tp_swapped": after.reshape(-1, n_images).sum(axis=1),
        }
    )


def _exchanged(benchmark: Benchmark) -> pd.DataFrame:
    """The predictions with x and y exchanged, in pixels; without area where the size is needed and not known."""
    said = benchmark.predictions
    width, height = benchmark.images[["width", "height"]].to_numpy(float)[said["image_id"].cat.codes].T
    stretch = np.where(said["model"].isin(list(benchmark.relative)), width / height, 1.0)
    x_min, y_min, x_max, y_max = said[BOX_COLUMNS].to_numpy().T
    boxes = np.column_stack([y_min * stretch, x_min / stretch, y_max * stretch, x_max / stretch])
    return said.assign(**dict(zip(BOX_COLUMNS, np.nan_to_num(boxes).T, strict=True)))


def _true_positives(benchmark: Benchmark, iou: float) -> np.ndarray:
    """True positives of every model on every image over all classes, shape (models, images)."""
    counts = count(benchmark, iou=[iou])
    counts = counts[counts["task"] == "localisation"]
    shape = len(benchmark.models), len(benchmark.images)
    model, image = (counts[name].cat.codes.to_numpy(np.int64) for name in ("model", "image_id"))
    return np.bincount(model * shape[1] + image, counts["tp"], minlength=shape[0] * shape[1]).reshape(shape).astype(int)


def _responses(benchmark: Benchmark) -> pd.DataFrame:
    """The responses, their reasons without details."""
    said = benchmark.responses
    return said.assign(reason=said["reason"].str.partition(":")[0])


def _mended(benchmark: Benchmark) -> pd.DataFrame:
    """The responses that were mended, one row for each repair."""
    said = benchmark.responses[benchmark.responses["repairs"] != ""]
    return said.assign(repair=said["repairs"].str.split(", ")).explode("repair", ignore_index=True)

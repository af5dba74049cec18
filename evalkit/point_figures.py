"""Figures of point benchmarks; see :mod:`evalkit.figures` for what they have in common."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from PIL import Image, ImageOps

from evalkit.figures import COLOURS, GRID, INK, MUTED, plain
from evalkit.masks import Region
from evalkit.point_benchmarks import ALL
from evalkit.point_files import Sample
from evalkit.point_runs import PointRun, answer_to, target_regions
from evalkit.points import hits, pixels

MODELS_A_ROW = 2
STATE_STYLES = {
    "points": (COLOURS[0], ""),
    "answered": (COLOURS[4], "..."),
    "empty": ("#ffffff", "///"),
    "unparseable": (COLOURS[1], "xxx"),
    "missing": (GRID, ""),
}
NO_PICTURE = np.full((1, 1, 3), 0.94)
REGION = np.array([0.0, 0.45, 0.7])


def strict_and_not(scores: pd.DataFrame) -> np.ndarray:
    """For each model a panel with, a row a benchmark, the strict and the non-strict score, and the interval of the primary one.

    ``scores`` is the table of :func:`evalkit.point_metrics.point_scores`. Returns the array of Axes.
    """
    whole = scores[scores["subset"] == ALL]
    models, names = (list(dict.fromkeys(whole[name])) for name in ("model", "benchmark"))
    rows = math.ceil(len(models) / MODELS_A_ROW)
    columns = min(MODELS_A_ROW, len(models))
    size = (1.6 + 2.9 * columns, 0.9 + rows * (0.55 + 0.26 * len(names)))
    figure, grid = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=True, squeeze=False)
    for axes, model in zip(grid.flat, models, strict=False):
        one = whole[whole["model"] == model].set_index("benchmark").reindex(names)
        place = np.arange(len(names))
        axes.hlines(place, one["low"].astype(float), one["high"].astype(float), color=MUTED, linewidth=1.4, zorder=2)
        strict, loose = one["overall_strict"], one["overall_non_strict"]
        axes.scatter(strict, place, s=40, marker="o", facecolor="white", edgecolor=COLOURS[1], linewidth=1.8, zorder=3)
        axes.scatter(loose, place, s=34, marker="D", color=COLOURS[0], zorder=4)
        axes.set_title(plain(str(model)))
        axes.grid(visible=False, axis="y")
        axes.set_xlim(-0.04, 1.04)
    for axes in grid.flat[len(models) :]:
        axes.axis("off")
    grid[0, 0].set_yticks(range(len(names)), [plain(str(name)) for name in names])
    grid[0, 0].set_ylim(len(names) - 0.4, -0.6)
    for axes in grid[-1]:
        axes.set_xlabel("score (F1, or the mix)")
    marks = [
        plt.Line2D([], [], marker="o", linestyle="none", markerfacecolor="white", markeredgecolor=COLOURS[1], label="strict"),
        plt.Line2D([], [], marker="D", linestyle="none", color=COLOURS[0], label="non-strict, with its interval"),
    ]
    figure.legend(handles=marks, loc="outside upper left", ncols=2, handletextpad=0.2)
    return grid


def states(samples: pd.DataFrame) -> Axes:
    """A bar a model: the share of its samples, of all benchmarks, in each state."""
    counts = samples.groupby(["model", "state"], observed=False).size().unstack(fill_value=0)[list(STATE_STYLES)]
    shares = counts.div(counts.sum(axis=1), axis=0)
    _, axes = plt.subplots(figsize=(7, 1.2 + 0.42 * len(shares)))
    left = np.zeros(len(shares))
    for name, (colour, hatch) in STATE_STYLES.items():
        if counts[name].any():
            axes.barh(range(len(shares)), shares[name], left=left, color=colour, hatch=hatch, edgecolor=MUTED, linewidth=0.8)
        left += shares[name].to_numpy()
    axes.set_yticks(range(len(shares)), [plain(str(name)) for name in shares.index])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="share of the samples", xlim=(0, 1))
    used = [name for name in STATE_STYLES if counts[name].any()]
    keys = [Patch(facecolor=STATE_STYLES[name][0], hatch=STATE_STYLES[name][1], edgecolor=MUTED, label=name) for name in used]
    axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(keys), borderaxespad=0.2, columnspacing=1)
    return axes


def answers(runs: Mapping[str, PointRun], shown: Sequence[tuple[str, str, str]], *, columns: int = 3) -> np.ndarray:
    """Pictures with target regions shaded, and what a model pointed at: a filled dot is a hit, a cross a miss.

    ``shown`` lists (benchmark, model, sample id). Gold points are small squares. The title has P, G, M and H; points out of
    range have no place in the picture. Returns the array of Axes.
    """
    wanted = {(name, sample_id) for name, _, sample_id in shown}
    samples = {
        (name, sample.sample_id): sample
        for name in {name for name, _ in wanted}
        for sample in runs[name].samples()
        if isinstance(sample, Sample) and (name, sample.sample_id) in wanted
    }
    rows = math.ceil(len(shown) / columns)
    _, grid = plt.subplots(rows, columns, figsize=(3.1 * columns, 3.0 * rows), squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, key in zip(grid.flat, shown, strict=False):
        sample = samples[key[0], key[2]]
        regions, places, counts = _found(runs[key[0]], key[1], sample)
        draw_answer(axes, sample, [region.inside for region in regions], places)
        p, g, m, h = counts
        axes.set_title(plain(f"{key[0]} {key[2]}, {key[1]}") + f"\nP {p}  G {g}  M {m}  H {h}", fontsize=8, color=INK)
    return grid


def draw_answer(axes: Axes, sample: Sample, regions: Sequence[np.ndarray], places: tuple[np.ndarray, np.ndarray]) -> None:
    """Draw one picture with its regions and an answer's pixels, of which the second array says which hit."""
    width, height = sample.size
    axes.imshow(_picture(sample), interpolation="nearest", extent=(0, width, height, 0))
    for region in regions:
        tint = np.zeros((*region.shape, 4))
        tint[region] = [*REGION, 0.45]
        axes.imshow(tint, interpolation="nearest", extent=(0, width, height, 0))
        axes.contour(np.arange(width) + 0.5, np.arange(height) + 0.5, region, levels=[0.5], colors="white", linewidths=1)
    if sample.points is not None and len(sample.points):
        axes.scatter(*sample.points.T, s=16, marker="s", facecolor="white", edgecolor=INK, linewidth=0.8, zorder=3)
    found, hit = places
    ring = {"edgecolor": "white", "zorder": 4}
    axes.scatter(*(found[hit].T + 0.5), s=44, marker="o", color=COLOURS[2], linewidth=1.4, **ring)
    axes.scatter(*(found[~hit].T + 0.5), s=70, marker="X", color=COLOURS[1], linewidth=1.0, **ring)
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")


def _picture(sample: Sample) -> np.ndarray:
    """The picture in its displayed form; light grey where there is none that can be opened."""
    source = io.BytesIO(sample.image) if isinstance(sample.image, bytes) else sample.image
    if source is None or (isinstance(source, Path) and not source.is_file()):
        return NO_PICTURE
    try:
        with Image.open(source) as picture:
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except Exception:  # Pillow's decoders raise all kinds of errors on broken files; the answer is drawn all the same
        return NO_PICTURE


def _found(run: PointRun, model: str, sample: Sample) -> tuple[list[Region], tuple, tuple[int, ...]]:
    """The regions of a sample, the answer's pixels and whether each hit, and P, G, M, H."""
    regions = target_regions(sample, run.benchmark)
    said = answer_to(sample, run.answers[model], run.readers[model]).points
    place, _ = pixels(said, scale=run.readers[model].scale, size=sample.size)
    hit = hits(place, [region.inside for region in regions], targets=sample.count, gold=sample.points)
    return regions, (place, hit.points), (len(said), sample.count, hit.matched, hit.raw)

"""Images with their boxes as one picture file: gold, and what a model found, beside it or over it."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from evalkit import figures
from evalkit.counts import HEADLINE_IOU, match
from evalkit.tables import Benchmark, EvalkitError, close_ids, hint

KINDS: dict[str, dict] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # no time: same bytes in every run
DPI = 150
WIDE, NARROW = 6.0, 3.0  # inches of a panel, on a picture of one image and on a contact sheet


def render(
    benchmark: Benchmark,
    image_ids: Sequence[str],
    *,
    model: str | None = None,
    iou: float = HEADLINE_IOU,
    over: bool = False,
    kind: str = "png",
) -> bytes:
    """Draw images with their gold boxes and class names, and what a model found at an IoU threshold; return the file's bytes.

    Matched, missed and false boxes differ in line as well as colour, which a key below tells. What the model found stands
    beside gold, or ``over`` it. An image without a picture is an empty canvas of its size.

    Raises EvalkitError for an image, model or kind of file that is not known, DataError for a picture that cannot be read.
    """
    if kind not in KINDS:
        raise EvalkitError(f"output: must end in {', '.join(f'.{one}' for one in KINDS)}, not in {kind!r}")
    if model is not None and model not in benchmark.models:
        raise EvalkitError(f"model: there is no {model!r}; there is {', '.join(benchmark.models) or 'none'}")
    _check_ids(benchmark, image_ids)
    matches = None
    if model is not None:
        matches = match(benchmark, iou=[iou])
        matches = matches[matches["model"] == model]
    beside = matches is not None and not over
    few = len(image_ids) == 1
    columns = min(2 if few else 4, 2 * len(image_ids)) if beside else min(3, len(image_ids))
    size = WIDE if few else NARROW
    rows = math.ceil(len(image_ids) * (1 + beside) / columns)
    buffer = io.BytesIO()
    with matplotlib.rc_context(figures.STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        try:
            grid = figures.pictures(benchmark, image_ids, matches=matches, columns=columns, beside=beside)
            figure = grid.flat[0].figure
            figure.set_size_inches(size * columns, (size * _tallest(benchmark, image_ids) + 0.3) * rows + 0.5)
            if matches is not None:
                _titles(benchmark, grid, image_ids, model, beside)
                _key(figure, iou)
            figure.savefig(buffer, format=kind, dpi=DPI, metadata=KINDS[kind])
        finally:
            plt.close()
    return buffer.getvalue()


def _check_ids(benchmark: Benchmark, image_ids: Sequence[str]) -> None:
    known = benchmark.images["image_id"].cat.categories
    unknown = [name for name in image_ids if name not in known]
    if unknown:
        near = close_ids(unknown[:1], known)
        more = f" ({hint(unknown[0], near[unknown[0]])})" if near else ""
        raise EvalkitError(f"image-id: gold has no image {unknown[0]!r}{more}")
    if not image_ids:
        raise EvalkitError("image-id: name at least one image")


def _titles(benchmark: Benchmark, grid: np.ndarray, image_ids: Sequence[str], model: str, beside: bool) -> None:
    """Say above each panel what it shows, and why a model has no boxes where its answer was not scored."""
    said = benchmark.responses[benchmark.responses["model"] == model].set_index("image_id")[["state", "reason"]]
    titles = []
    for image_id in image_ids:
        state, reason = said.loc[image_id]
        about = model if state == "valid" else f"{model}: {state}" + (f", {reason}" if reason else "")
        titles += [f"{image_id} · gold", about] if beside else [f"{image_id} · {about}"]
    for axes, title in zip(grid.flat, titles, strict=False):
        axes.set_title(" · ".join(map(figures.plain, title.split(" · "))), fontsize=8, color=figures.INK)


def _tallest(benchmark: Benchmark, image_ids: Sequence[str]) -> float:
    """The largest ratio of height to width, within reason; of a photograph where sizes are not known."""
    sizes = benchmark.images.set_index("image_id").loc[list(image_ids), ["width", "height"]]
    ratio = (sizes["height"] / sizes["width"]).max()
    return 0.75 if pd.isna(ratio) else min(max(ratio, 0.2), 2.5)


def _key(figure: Figure, iou: float) -> None:
    lines = [
        Line2D([], [], color=colour, linestyle=line, linewidth=width, label=name)
        for name, (colour, line, width) in figures.OUTCOME_STYLES.items()
    ]
    figure.legend(
        handles=lines, loc="outside lower center", ncols=len(lines), fontsize=8, title=f"at IoU {iou:.2f}", title_fontsize=8
    )

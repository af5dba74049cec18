"""What the teaching pages call: scenes and graphs, arithmetic set beside evalkit's, answers and code folded away."""

from __future__ import annotations

import html
import inspect
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from pandas.io.formats.style import Styler

from evalkit import pages
from evalkit.figures import COLOURS, GRID, INK, MUTED, plain
from evalkit.metrics import fbeta
from evalkit.tables import EvalkitError

Box = tuple[str, float, float, float, float]
GOLD = {"edgecolor": COLOURS[0], "linestyle": "solid", "linewidth": 2.2}
PREDICTED = {"edgecolor": COLOURS[1], "linestyle": (0, (4, 2)), "linewidth": 1.8}
HALO = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.8}


# -- text -------------------------------------------------------------------------------------------------------------


def same(by_hand: Mapping[str, Any], computed: Mapping[str, Any], *, tolerance: float = 1e-12) -> Styler:
    """A table of values worked by hand beside those of evalkit. Raises EvalkitError if two of them differ.

    Fractions are shown as such and as decimals.
    """
    for name, value in by_hand.items():
        if not abs(float(value) - float(computed[name])) <= tolerance:
            raise EvalkitError(f"{name}: {value} by hand, {computed[name]} from evalkit")
    rows = {name: [value, float(computed[name])] for name, value in by_hand.items()}
    return values(pd.DataFrame.from_dict(rows, orient="index", columns=["by hand", "evalkit"]), of="value")


def values(frame: pd.DataFrame, *, of: str) -> Styler:
    """A table of numbers, with fractions as such and as decimals; ``of`` heads the column of row labels."""
    text = frame.map(shown).rename_axis(index=of)
    return pages.table(text).set_properties(subset=list(text), **{"white-space": "nowrap"})


def shown(value: Any) -> str:
    """A number as text: ``5/14 = 0.357``, a decimal with three places, or a whole number; long fractions as decimals.

    >>> shown(Fraction(5, 14)), shown(0.25), shown(3.0)
    ('5/14 = 0.357', '0.250', '3')
    """
    if isinstance(value, Fraction) and 1 < value.denominator < 10_000:
        return f"{value} = {float(value):.3f}"
    return f"{int(value):,}" if float(value).is_integer() else f"{float(value):.3f}"


def answer(text: str) -> HTML:
    """An answer that opens when it is asked for. Blank lines part paragraphs."""
    paragraphs = "".join(f"<p>{html.escape(part)}</p>" for part in text.strip().split("\n\n"))
    return HTML(f'<details class="answer"><summary>Answer</summary>{paragraphs}</details>')


def where(*functions: Callable) -> HTML:
    """Where functions are in the code: file and name, and the code itself, folded."""
    blocks = []
    for function in functions:
        file = Path(inspect.getsourcefile(function))
        name = f"{'/'.join(file.parts[file.parts.index('evalkit') - len(file.parts) :][-2:])}: {function.__name__}"
        code = html.escape(inspect.getsource(function).rstrip())
        blocks.append(f"<details><summary><code>{html.escape(name)}</code></summary><pre>{code}</pre></details>")
    return HTML("\n".join(blocks))


# -- pictures ---------------------------------------------------------------------------------------------------------


def scene(
    gold: Sequence[Box],
    predicted: Sequence[Box],
    *,
    title: str = "",
    axes: Axes | None = None,
    names: bool = True,
    hatched: bool = True,
) -> Axes:
    """Boxes of one image: gold solid and named above, predictions dashed (and hatched) and named below."""
    if axes is None:
        _, axes = plt.subplots(figsize=(6, 3))
    sides = (("gold", gold, GOLD, "bottom"), ("predicted", predicted, PREDICTED, "top"))
    for side, boxes, style, grows in sides:
        for number, (label, x_min, y_min, x_max, y_max) in enumerate(boxes, 1):
            hatch = "///" if hatched and side == "predicted" else ""
            shape = Rectangle((x_min, y_min), x_max - x_min, y_max - y_min, fill=False, hatch=hatch, **style)
            axes.add_patch(shape)
            text = f"{side[0].upper()}{number} {plain(label)}".strip() if names else ""
            at = (x_min, y_min) if side == "gold" else (x_max, y_max)
            place = {"ha": "left" if side == "gold" else "right", "va": grows, "textcoords": "offset points"}
            axes.annotate(text, at, xytext=(0, 3 if side == "gold" else -3), color=style["edgecolor"], fontsize=9, **place)
    corners = np.array([box[1:] for box in (*gold, *predicted)], float)
    low, high = corners[:, :2].min(axis=0), corners[:, 2:].max(axis=0)
    room = 0.14 * max(high - low)
    axes.set(xlim=(low[0] - room, high[0] + room), ylim=(high[1] + room, low[1] - room), aspect="equal", title=title)
    axes.grid(visible=False)
    axes.tick_params(labelsize=8)
    return axes


def graph(
    edges: Mapping[tuple[str, str], float],
    *,
    chosen: Collection[tuple[str, str]] = (),
    cover: Collection[str] = (),
    names: tuple[Sequence[str], Sequence[str]] | None = None,
    title: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Which gold (left) may be paired with which prediction (right), each line with its value.

    Chosen pairs are thick; the nodes of a vertex cover are filled squares. ``names`` lists both sides, if some have no edge.
    """
    if axes is None:
        _, axes = plt.subplots(figsize=(4, 3))
    at = {}
    for x in (0, 1):
        side = sorted({edge[x] for edge in edges}) if names is None else names[x]
        at |= {name: (x, place) for name, place in zip(side, np.linspace(1, 0, len(side) + 2)[1:-1], strict=True)}
    for edge, value in edges.items():
        (x0, y0), (x1, y1) = (at[name] for name in edge)
        is_chosen = edge in chosen
        style = (
            {"color": COLOURS[2], "linewidth": 4} if is_chosen else {"color": MUTED, "linewidth": 1.2, "linestyle": "dashed"}
        )
        axes.plot([x0, x1], [y0, y1], zorder=1, solid_capstyle="round", **style)
        share = 0.5 if y0 == y1 else 0.25 if y0 > y1 else 0.75  # near the upper end, where lines that cross are apart
        weight = "bold" if is_chosen else "normal"
        number = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": weight, "color": INK, "bbox": HALO}
        axes.text(x0 + share * (x1 - x0), y0 + share * (y1 - y0), f"{value:.2f}", **number)
    for name, (x, y) in at.items():
        covered = name in cover
        face = {"marker": "s", "s": 190, "facecolor": INK} if covered else {"marker": "o", "s": 150, "facecolor": "white"}
        axes.scatter(x, y, zorder=3, edgecolor=INK, linewidth=1.5, **face)
        axes.annotate(
            name, (x, y), xytext=(14 * (2 * x - 1), 0), textcoords="offset points", va="center", ha="left" if x else "right"
        )
    axes.set(xlim=(-0.45, 1.45), ylim=(0, 1), title=title)
    axes.axis("off")
    return axes


def contours(beta: float, *, axes: Axes | None = None) -> Axes:
    """Curves of equal F-beta over recall and precision, each with its value."""
    if axes is None:
        _, axes = plt.subplots(figsize=(4, 4))
    recall, precision = np.meshgrid(np.linspace(0.001, 1, 300), np.linspace(0.001, 1, 300))
    # counts with these ratios, so that the curves come from the one definition of F-beta
    values = fbeta(np.ones_like(recall), 1 / precision - 1, 1 / recall - 1, beta=beta)
    levels = np.arange(0.1, 1, 0.1)
    axes.contourf(recall, precision, values, levels=np.linspace(0, 1, 11), cmap="Blues", alpha=0.6)
    lines = axes.contour(recall, precision, values, levels=levels, colors=INK, linewidths=0.9)
    axes.clabel(lines, fmt="%.1f", fontsize=8, colors=INK, manual=[(level, level) for level in levels])
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle="dotted")
    axes.grid(visible=False)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal", title=f"F{beta:g}")
    return axes


def cells(table: pd.DataFrame, *, hatched: Collection[str] = (), xlabel: str = "", ylabel: str = "") -> Axes:
    """A table of short texts as a picture; texts in ``hatched`` lie on a hatched ground, empty ones on none."""
    _, axes = plt.subplots(figsize=(min(7.5, 1.6 + 0.62 * table.shape[1]), 1.0 + 0.5 * len(table)))
    for row, column in itertools.product(range(len(table)), range(table.shape[1])):
        text = table.iat[row, column]
        marked = text in hatched
        ground = {"facecolor": "#f2f2f2" if marked else "white", "hatch": "////" if marked else "", "edgecolor": GRID}
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, linewidth=1, **ground))
        axes.text(column, row, text, ha="center", va="center", fontsize=8.5, color=INK, bbox=HALO if marked else None)
    axes.set_xticks(range(table.shape[1]), [plain(str(name)) for name in table.columns])
    axes.set_yticks(range(len(table)), [plain(str(name)) for name in table.index])
    axes.set(xlim=(-0.5, table.shape[1] - 0.5), ylim=(len(table) - 0.5, -0.5), xlabel=xlabel, ylabel=ylabel)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return axes


def histogram(values: np.ndarray, ends: tuple[float, float], *, point: float, xlabel: str, axes: Axes | None = None) -> Axes:
    """How often replicates give which value, with the ends of the interval and the score of the data."""
    if axes is None:
        _, axes = plt.subplots(figsize=(6, 2.8))
    axes.hist(values, bins=40, color=COLOURS[4], edgecolor="white", linewidth=0.4)
    lines = ((point, "data", "solid"), (ends[0], "low", "dashed"), (ends[1], "high", "dashed"))
    for x, name, line in lines:
        axes.axvline(x, color=INK, linestyle=line, linewidth=1.4)
        axes.annotate(f"{name}\n{x:.3f}", (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), ha="center", va="bottom",
                      textcoords="offset points", fontsize=8, color=INK)  # fmt: skip
    axes.grid(visible=False, axis="x")
    axes.set(xlabel=xlabel, ylabel="replicates")
    return axes

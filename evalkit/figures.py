"""Figures: each takes tables and returns the Axes it drew on.

Models are told apart by marker and by a label at the data as well as by colour (Okabe and Ito's palette, safe for colour-blind
readers). Figures have a light ground of their own, so that they read on a dark page too.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from evalkit.errors import REASON_WORDS, REASONS_OF
from evalkit.formats.sizes import pixels
from evalkit.metrics import divide, fbeta
from evalkit.tables import BOX_COLUMNS, Benchmark, EvalkitError, printable

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
REASON_STYLES = {
    "duplicate": (COLOURS[5], "///"),
    "wrong_class": (COLOURS[1], "xxx"),
    "poor_iou": (COLOURS[4], "..."),
    "nothing": (COLOURS[0], ""),
    "missed": (COLOURS[0], ""),
}
OUTCOME_STYLES = {  # colour, line, width
    "gold, found": (COLOURS[0], "solid", 1.2),
    "its match": (COLOURS[2], "dashed", 1.6),
    "gold, missed": (COLOURS[3], "solid", 3.0),
    "false": (COLOURS[1], "dotted", 1.8),
}
MOST_PRINTED = 26  # rows of a matrix that has its numbers printed
LONGEST = 30  # characters of a name in a figure
MOST_CLASSES = 40  # that a figure has a row for
INK, MUTED, GRID = "#1b1f24", "#57606a", "#d8dee4"
STYLE = {
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "#ffffff",
    "font.size": 10,
    "grid.color": GRID,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: a reader's fonts have the glyphs that ours lacks
    "svg.hashsalt": "evalkit",
    "xtick.color": INK,
    "ytick.color": INK,
}


def use_style() -> None:
    """Set the style of the figures in a notebook: vector graphics that are the same bytes in every run."""
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    plt.rcParams.update(STYLE)
    warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
    set_matplotlib_formats("svg", metadata={"Date": None}, bbox_inches="tight")


def plain(name: str) -> str:
    """A name as text for a figure: a dollar sign would begin a formula, and what is very long is cut in its middle.

    Control characters, which no SVG may have, are written as escapes.
    """
    half, name = LONGEST // 2, printable(name)
    name = name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}"
    return name.replace("$", r"\$")


def most_gold(benchmark: Benchmark) -> list[str]:
    """The classes that a figure has room for: all, or the ``MOST_CLASSES`` with most gold boxes, in the order of the list."""
    boxes = benchmark.gold["class"].value_counts().reindex(benchmark.classes["class_name"], fill_value=0)
    shown = set(boxes.sort_values(ascending=False, kind="stable").index[:MOST_CLASSES])
    return [name for name in boxes.index if name in shown]


def classes(benchmark: Benchmark) -> Axes:
    """Bars of the number of gold boxes of each of the classes of :func:`most_gold`, grouped by domain, largest domain first."""
    boxes = benchmark.gold["class"].value_counts()
    table = benchmark.classes.assign(boxes=benchmark.classes["class_name"].map(boxes).fillna(0).astype(int))
    table = table[table["class_name"].isin(most_gold(benchmark))]
    size = table.groupby("domain")["boxes"].sum()
    table = table.assign(size=table["domain"].map(size)).sort_values(
        ["size", "domain", "boxes", "class_name"], ascending=[False, True, False, True]
    )
    domains = list(dict.fromkeys(table["domain"]))
    _, axes = plt.subplots(figsize=(7, 0.8 + 0.27 * len(table)))
    hatches = ["", "///", "...", "xxx", "\\\\\\", "ooo"]
    for number, domain in enumerate(domains):
        rows = table[table["domain"] == domain]
        at = np.flatnonzero((table["domain"] == domain).to_numpy())
        axes.barh(
            at,
            rows["boxes"],
            color=COLOURS[number % len(COLOURS)],
            hatch=hatches[number % len(hatches)],
            edgecolor="white",
            label=plain(domain) or "no domain",
        )
    for place, value in enumerate(table["boxes"]):
        axes.annotate(f"{value:,}", (value, place), xytext=(4, 0), textcoords="offset points", va="center", color=INK)
    axes.set_yticks(range(len(table)), [plain(name) for name in table["class_name"]])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.12)
    axes.set_xlabel("gold boxes")
    if len(domains) > 1:
        axes.legend(title="domain", loc="lower right")
    return axes


def boxes_per_image(benchmark: Benchmark) -> Axes:
    """Bars of the number of images by their number of gold boxes; clean images are at 0."""
    images = np.bincount(benchmark.gold_boxes_per_image)
    _, axes = plt.subplots(figsize=(7, 2.6))
    bars = axes.bar(range(len(images)), images, color=COLOURS[0], width=0.85)
    bars[0].set(facecolor="white", edgecolor=COLOURS[0], linewidth=1.5)
    if len(images) <= 20:
        axes.set_xticks(range(len(images)))
        axes.bar_label(bars, labels=[f"{value:,}" if value else "" for value in images], padding=2, color=INK)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.15)
    axes.set(xlabel="gold boxes on the image (outlined: clean images)", ylabel="images")
    return axes


def answers(table: pd.DataFrame) -> Axes:
    """Bars of the share of a model's answers of each kind, with their number where there is room for it.

    ``table`` has the models as index and a column of numbers for each kind, in the order of the bar's parts.
    """
    _, axes = plt.subplots(figsize=(7, 1.1 + 0.4 * len(table)))
    share = table.div(table.sum(axis=1), axis=0)
    start = np.zeros(len(table))
    looks = [(COLOURS[0], ""), (COLOURS[4], "///"), (COLOURS[1], "xxx"), ("white", "...")]
    for (kind, part), (colour, hatch) in zip(share.items(), looks, strict=True):
        axes.barh(
            range(len(table)), part, left=start, height=0.7, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.6, label=kind
        )
        start += part.to_numpy()
    for row, valid in enumerate(table.iloc[:, :2].sum(axis=1)):
        axes.annotate(
            f"{valid:,} valid",
            (0, row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color="white",
        )
    axes.set_yticks(range(len(table)), [plain(str(name)) for name in table.index])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set(xlabel="share of the images", xlim=(0, 1))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(table.columns), borderaxespad=0.2, handletextpad=0.4)
    return axes


def thresholds(scores: pd.DataFrame) -> Axes:
    """Lines of localisation F2 (micro) over the IoU threshold, one a model, named at their end.

    ``scores`` are the rows of one scope.
    """
    rows = scores[(scores["task"] == "localisation") & (scores["level"] == "overall") & (scores["average"] == "micro")]
    _, axes = plt.subplots(figsize=(7, 3.6))
    ends = {}
    for number, (model, one) in enumerate(rows.groupby("model", observed=True)):
        one = one.sort_values("iou")
        axes.plot(one["iou"], one["f2"], **_line(number))
        ends[model] = (one["iou"].iloc[-1], one["f2"].iloc[-1], number)
    _label_ends(axes, ends)
    axes.set_xticks(sorted(rows["iou"].unique()))
    axes.set(xlabel="IoU threshold", ylabel="localisation F2, micro", ylim=(0, 1))
    return axes


def dots(table: pd.DataFrame, *, label: str, xlabel: str) -> Axes:
    """Dots of a value for each row label and model: rows are labels, each model a marker.

    ``table`` has the labels as index and a column of values from 0 to 1 for each model; NaN is left out.
    """
    longest = max((len(plain(str(name))) for name in table.columns), default=1)
    columns = min(max(76 // (longest + 5), 1), max(len(table.columns), 1))
    legend = 0.22 * math.ceil(len(table.columns) / columns)
    _, axes = plt.subplots(figsize=(7, 1 + legend + max(0.36, 0.06 * len(table.columns)) * len(table)))
    spread = np.linspace(-0.32, 0.32, len(table.columns)) if len(table.columns) > 1 else [0]
    for number, (model, values) in enumerate(table.items()):
        style = {**_line(number), "linestyle": "none"}
        axes.plot(values, np.arange(len(table)) + spread[number], label=plain(str(model)), **style)
    for edge in np.arange(len(table) - 1) + 0.5:
        axes.axhline(edge, color=GRID, linewidth=0.8)
    axes.set_yticks(range(len(table)), [plain(str(name)) for name in table.index])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel=xlabel, ylabel=label, xlim=(-0.02, 1.02))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.2, handletextpad=0.2)
    return axes


def headline(tables: dict[str, pd.DataFrame]) -> Axes:
    """For each model the F2 of naming (class sets) and of placing (boxes), joined by a line: the gap is what placing costs.

    ``tables`` holds rows of scores under ``classification`` and ``localisation``, both with the models as index, best first.
    """
    models = tables["localisation"].index
    values = pd.DataFrame({name: table["f2"].astype(float) for name, table in tables.items()}, index=models)
    _, axes = plt.subplots(figsize=(7, 1.4 + 0.46 * len(models)))
    place = np.arange(len(models))
    axes.hlines(place, values.min(axis=1), values.max(axis=1), color=GRID, linewidth=6)
    styles = {
        "classification": {"marker": "o", "facecolor": "white", "edgecolor": COLOURS[0]},
        "localisation": {"marker": "s", "facecolor": COLOURS[1], "edgecolor": COLOURS[1]},
    }
    for name, style in styles.items():
        axes.hlines(place, tables[name]["f2_low"], tables[name]["f2_high"], color=style["edgecolor"], linewidth=1.4, zorder=2)
        axes.scatter(values[name], place, s=56, linewidth=2, zorder=3, label=name, **style)
    ends = pd.concat([table[["f2", "f2_low", "f2_high"]].astype(float) for table in tables.values()], axis=1)
    for row, (low, high) in enumerate(zip(values.min(axis=1), values.max(axis=1), strict=True)):
        gap = {"textcoords": "offset points", "va": "center", "color": INK, "fontsize": 9}
        if np.isnan(high):
            axes.annotate("not defined", (0, row), xytext=(0, 0), **gap)
            continue
        axes.annotate(f"{high:.2f}", (np.nanmax(ends.iloc[row]), row), xytext=(8, 0), **gap)
        if high - low > 0.005:
            axes.annotate(f"{low:.2f}", (np.nanmin(ends.iloc[row]), row), xytext=(-8, 0), ha="right", **gap)
    axes.set_yticks(place, [plain(str(name)) for name in models])
    axes.set_ylim(len(models) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="F2, micro, with its interval", xlim=(-0.12, 1.12), xticks=np.arange(0, 1.01, 0.2))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2, handletextpad=0.3)
    return axes


def differences(comparison: pd.DataFrame, models: Sequence[str]) -> Axes:
    """A matrix of models: by how much the row's model is above the column's, and whether that is more than chance.

    ``comparison`` has one row a pair. A filled triangle marks a difference whose interval excludes zero, pointing up where the
    row's model is better; a dash marks one that does not exclude it. The ground is shaded by the size of the difference.
    """
    at = {name: place for place, name in enumerate(models)}
    shade = np.full((len(models), len(models)), np.nan)
    side = max(3.2, 0.85 * len(models))
    _, axes = plt.subplots(figsize=(side + 1.6, 0.72 * side + 1.2))
    for row in comparison.itertuples():
        for a, b, sign in ((row.model_a, row.model_b, 1), (row.model_b, row.model_a, -1)):
            difference = sign * row.difference
            shade[at[a], at[b]] = difference
            sure = row.low > 0 or row.high < 0
            mark = ("▲" if difference > 0 else "▼") if sure else "–"
            dark = abs(difference) > 0.55
            text = {"ha": "center", "va": "center", "fontsize": 9, "color": "white" if dark else INK}
            axes.text(at[b], at[a], f"{mark}\n{difference:+.2f}", **text)
    axes.imshow(shade, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    names = [plain(str(name)) for name in models]
    axes.set_yticks(range(len(models)), names)
    axes.set_xticks(range(len(models)), names, rotation=35, ha="right", rotation_mode="anchor")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set(ylabel="this model …", xlabel="… compared with this one")
    return axes


def precision_recall(scores: pd.DataFrame) -> Axes:
    """Each model's precision over recall (one row a model), on curves of equal F2."""
    _, axes = plt.subplots(figsize=(5.6, 4.6))
    recall, precision = np.meshgrid(np.linspace(0.001, 1, 200), np.linspace(0.001, 1, 200))
    levels = np.arange(0.1, 1, 0.1)
    # a triple of counts with these ratios, so that the curves come from the one definition of F-beta
    f2 = fbeta(np.ones_like(recall), 1 / precision - 1, 1 / recall - 1)
    lines = axes.contour(
        recall, precision, f2, levels=np.arange(0.1, 1, 0.1), colors=MUTED, linewidths=0.7, linestyles="dotted"
    )
    axes.clabel(lines, fmt="F2 %.1f", fontsize=8, colors=MUTED, manual=[(level, level) for level in levels])
    for number, row in enumerate(scores.itertuples()):
        axes.plot(
            row.recall, row.precision, label=plain(str(row.model)), **{**_line(number), "linestyle": "none", "markersize": 9}
        )
    axes.grid(visible=False)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02), aspect="equal")
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return axes


def reasons(counts: pd.DataFrame, models: Sequence[str]) -> Axes:
    """Stacked bars of the reasons of each model's false boxes (above) and missed boxes (below), in boxes.

    ``counts`` are rows of :func:`evalkit.errors.error_counts` of one scope and threshold; ``models`` are the bars, from above.
    Each reason has a hatch as well as a colour, and its number where the bar is long enough. Returns the array of both Axes.
    """
    _, both = plt.subplots(2, 1, figsize=(7, 2.2 + 0.7 * len(models)), sharex=True)
    sums = counts.groupby(["outcome", "reason", "model"], observed=True)["count"].sum()
    longest = sums.groupby(["outcome", "model"], observed=True).sum().max() if len(sums) else 1
    for axes, (outcome, title) in zip(both, {"fp": "false boxes", "fn": "missed boxes"}.items(), strict=True):
        start = np.zeros(len(models))
        for reason in REASONS_OF[outcome]:
            values = np.array([sums.get((outcome, reason, model), 0) for model in models])
            colour, hatch = REASON_STYLES[reason]
            label = REASON_WORDS[reason]
            bars = axes.barh(
                range(len(models)), values, left=start, color=colour, hatch=hatch, edgecolor="white", label=label, height=0.7
            )
            for bar, value in zip(bars, values, strict=True):
                text = f"{value:,}"
                if value > longest * 0.018 * (len(text) + 1):
                    frame = {"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 1.2}
                    place = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
                    axes.text(*place, text, ha="center", va="center", fontsize=8, color=INK, bbox=frame)
            start += values
        axes.set(xlabel=title)
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.02)
        axes.tick_params(labelbottom=True)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_yticks(range(len(models)), [plain(str(name)) for name in models])
        axes.invert_yaxis()
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, handletextpad=0.4)
    return both


def confusion(counts: pd.DataFrame) -> Axes:
    """The matrix of gold classes (rows) by predicted classes (columns), with *nothing* last on either side.

    ``counts`` are rows of :func:`evalkit.errors.confusion` of one model, scope and threshold. Only classes that occur have a
    row and a column. The ground is shaded by the share of the row; boxes are printed where the matrix is small enough.
    """
    names = [name for name in counts["gold"].cat.categories if name in {*counts["gold"], *counts["predicted"]}]
    at = {name: place for place, name in enumerate(names)}
    boxes = np.zeros((len(names) + 1,) * 2, int)
    for gold, predicted, count in counts[["gold", "predicted", "count"]].itertuples(index=False):
        boxes[at.get(gold, -1), at.get(predicted, -1)] = count
    share = divide(boxes, boxes.sum(axis=1, keepdims=True))
    side = len(boxes)
    size = max(3.2, min(0.55 * side, 8))
    _, axes = plt.subplots(figsize=(size + 1.2, size + 0.6))
    axes.imshow(np.where(boxes > 0, share, np.nan), cmap="Blues", vmin=0, vmax=1.15, aspect="auto")
    for row, column in np.argwhere(boxes) if side <= MOST_PRINTED else ():
        colour = "white" if share[row, column] > 0.6 else INK
        text = {"ha": "center", "va": "center", "fontsize": 8, "color": colour}
        axes.text(column, row, f"{boxes[row, column]:,}", **text)
    labels = [*(plain(name) for name in names), "nothing"]
    font = {"fontsize": 9 if side <= MOST_PRINTED else 6}
    axes.set_yticks(range(side), labels, **font)
    axes.set_xticks(range(side), labels, rotation=90, **font)
    for line in (axes.axhline, axes.axvline):
        line(side - 1.5, color=MUTED, linewidth=1)
    axes.grid(visible=False)
    axes.set(ylabel="gold", xlabel="predicted")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_ticklabels()[-1].set_fontstyle("italic")
    return axes


def pictures(
    benchmark: Benchmark,
    image_ids: Sequence[str],
    *,
    matches: pd.DataFrame | None = None,
    columns: int = 3,
    beside: bool = False,
) -> np.ndarray:
    """Pictures with their gold boxes and class names; with ``matches``, those of one model and threshold, also what it found.

    Gold boxes are solid lines. In ``matches``, a matched prediction is dashed, a false one dotted, and a missed gold box
    thick (see :func:`outcomes_key`); only false and missed boxes are named. A picture whose file is not there is an empty
    canvas of the right size, or of the boxes' extent.
    With ``beside`` each image comes twice, with its gold boxes alone and then with what was found.

    Returns the array of Axes.
    """
    image_ids = list(image_ids)
    unknown = [name for name in image_ids if name not in benchmark.images["image_id"].cat.categories]
    if unknown or not image_ids:
        raise EvalkitError(f"image_ids: there is no image {unknown[0]!r}" if unknown else "image_ids: name at least one image")
    panels = [(name, alone) for name in image_ids for alone in ([True, False] if beside else [matches is None])]
    rows = math.ceil(len(panels) / columns)
    _, grid = plt.subplots(rows, columns, figsize=(3.1 * columns, 2.7 * rows), squeeze=False)
    images = benchmark.images.set_index("image_id")
    for axes, (image_id, alone) in zip(grid.flat, panels, strict=False):
        gold = benchmark.gold[benchmark.gold["image_id"] == image_id]
        canvas(axes, images.loc[image_id], gold, benchmark.image_folder)
        if alone or matches is None:
            for row in gold.itertuples(index=False):
                draw_box(axes, row[2:6], COLOURS[0], "solid", 1.8)
                right = row[2] > sum(axes.get_xlim()) / 2  # a name grows into the picture
                _name(axes, row[4] if right else row[2], row[3], plain(str(row[1])), right=right)
        else:
            _outcomes(axes, matches[matches["image_id"] == image_id])
        axes.set_title(plain(f"{image_id}" + ("" if len(gold) else " (clean)")), fontsize=8, color=INK)
        axes.axis("off")
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    return grid


def outcomes_key() -> Axes:
    """The key to :func:`pictures` with ``matches``: how the lines of each kind of box look."""
    _, axes = plt.subplots(figsize=(5.2, 0.62))
    axes.set(xlim=(0, 5.2), ylim=(0.62, 0))
    for place, (name, style) in enumerate(OUTCOME_STYLES.items()):
        draw_box(axes, [0.1 + 1.3 * place, 0.12, 0.4 + 1.3 * place, 0.5], *style)
        axes.text(0.5 + 1.3 * place, 0.31, name, va="center", fontsize=8, color=INK)
    axes.axis("off")
    return axes


def _outcomes(axes: Axes, matches: pd.DataFrame) -> None:
    """The boxes of one image, and the classes of those that are wrong, as far as there is room for names."""
    named = []
    for row in matches.to_dict("records"):
        gold, predicted = ([row[f"{side}_{name}"] for name in BOX_COLUMNS] for side in ("gold", "predicted"))
        if row["outcome"] == "tp":
            draw_box(axes, gold, *OUTCOME_STYLES["gold, found"])
            draw_box(axes, predicted, *OUTCOME_STYLES["its match"])
        elif row["outcome"] == "fn":
            draw_box(axes, gold, *OUTCOME_STYLES["gold, missed"])
            named.insert(0, (gold, str(row["class"])))
        else:
            draw_box(axes, predicted, *OUTCOME_STYLES["false"])
            named.append((predicted, str(row["class"])))
    name_where_free(axes, named)


def name_where_free(axes: Axes, named: list[tuple[list[float], str]]) -> None:
    """Names above or below their boxes; one that would lie on another is left out, as the lines tell what matters."""
    width, height = axes.get_xlim()[1], axes.get_ylim()[0]
    point = max(width / 215, height / 175)  # pixels of the picture to a point of type, about
    taken: list[tuple[float, float, float, float]] = []
    for (x_min, y_min, x_max, y_max), name in named:
        text = plain(name)
        wide, high = 4.1 * point * len(text) + 2 * point, 9 * point
        right = x_min + wide > width
        left = x_max - wide if right else x_min
        for top in (y_min - high, y_max):
            place = left, top, left + wide, top + high
            inside = top >= 0 and top + high <= height
            if inside and not any(place[0] < b[2] and b[0] < place[2] and place[1] < b[3] and b[1] < place[3] for b in taken):
                taken.append(place)
                _name(axes, x_max if right else x_min, top + high, text, right=right)
                break


def canvas(axes: Axes, image: pd.Series, boxes: pd.DataFrame, folder: Path | None) -> None:
    """The picture, or an empty canvas of its size."""
    picture = pixels(folder, image["file_name"])
    if picture is not None:
        axes.imshow(picture, interpolation="nearest")
    width, height = image["width"], image["height"]
    if np.isnan(width) or np.isnan(height):
        width, height = (boxes["x_max"].max(), boxes["y_max"].max()) if len(boxes) else (1, 1)
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", facecolor="#f0f0f0")
    axes.add_patch(Rectangle((0, 0), width, height, fill=False, edgecolor=MUTED, linewidth=0.8))


def draw_box(axes: Axes, box: Sequence[float], colour: str, line: str, width: float) -> None:
    x_min, y_min, x_max, y_max = box
    shape = {"width": x_max - x_min, "height": y_max - y_min, "fill": False}
    axes.add_patch(Rectangle((x_min, y_min), **shape, edgecolor="white", linewidth=width + 1.6))
    axes.add_patch(Rectangle((x_min, y_min), **shape, edgecolor=colour, linewidth=width, linestyle=line))


def _name(axes: Axes, x: float, y: float, name: str, *, right: bool) -> None:
    frame = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    style = {"fontsize": 7, "color": INK, "va": "bottom", "ha": "right" if right else "left", "bbox": frame}
    axes.text(x, y, name, clip_on=True, **style)


def _line(number: int) -> dict:
    """A colour and a marker; where the colours come round again, they meet other markers."""
    turn, colour = divmod(number, len(COLOURS))
    return {"color": COLOURS[colour], "marker": MARKERS[(number + turn) % len(MARKERS)], "markersize": 7}


def _label_ends(axes: Axes, ends: dict[str, tuple[float, float, int]]) -> None:
    """Names at the ends of lines, moved apart where they would overlap."""
    order = sorted(ends, key=lambda model: ends[model][1])
    gap = min(0.055, 1 / max(len(ends), 1))
    places = [ends[model][1] for model in order]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + gap)
    for at in reversed(range(len(places))):  # back below the top
        places[at] = min(places[at], 1 - gap * (len(places) - 1 - at))
    for model, place in zip(order, places, strict=True):
        x, y, number = ends[model]
        colour = COLOURS[number % len(COLOURS)]
        axes.annotate(
            plain(str(model)),
            (x, y),
            xytext=(18, 0),
            textcoords=("offset points", "data"),
            va="center",
            color=colour,
            annotation_clip=False,
        ).set_position((18, place))

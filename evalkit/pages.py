"""What the notebooks call: parameters checked, tables and figures shown, text from the data escaped."""

from __future__ import annotations

import base64
import html
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import matplotlib
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from evalkit.figures import MOST_CLASSES
from evalkit.intervals import DEGENERATE, LEAST_REPLICATES
from evalkit.published import failed, summary
from evalkit.tables import Benchmark, EvalkitError, printable

DASH = "–"
JOINER = "\u2060"  # forbids a line break
MOST_ROWS = 1000  # of one table on a page, and of all the tables that are folded together


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_threshold(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and 0 < value <= 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _each(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(test, value))


# Every parameter a notebook may declare: its test, and the rule in words
PARAMETERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "benchmark": (_is_text, "must be text, the path of a benchmark.yml"),
    "models": (_each(_is_text), "must be a list of names, [] for all models"),
    "point_models": (_each(_is_text), "must be a list of names, [] for all models"),
    "image_ids": (_each(_is_text), "must be a list of ids, each of them text"),
    "iou": (lambda value: bool(_each(_is_threshold)(value) and value), "must be a list of numbers above 0, up to 1"),
    "headline_iou": (_is_threshold, "must be a number above 0, up to 1"),
    "replicates": (
        lambda value: _is_whole(value) and value >= LEAST_REPLICATES,
        f"must be a whole number from {LEAST_REPLICATES} on",
    ),
    "level": (lambda value: _is_threshold(value) and value < 1, "must be a number between 0 and 1"),
    "seed": (_is_whole, "must be a whole number from 0 on"),
    "block": (_is_text, 'must be text, a column or a pattern, "" for none'),
    "allow_differences": (lambda value: isinstance(value, bool), "must be true or false"),
}


def check_parameters(**parameters: Any) -> None:
    """Check the values that a notebook runs with; its first cell after the parameters calls this.

    The shell guesses types (`-p image_id 00012` arrives as the number 12, a list arrives as text), and a wrong type
    would otherwise show as a wrong table. Raises EvalkitError with the parameter, the rule and the value.
    """
    for name, value in parameters.items():
        if name not in PARAMETERS:
            raise EvalkitError(f"parameter {name}: not known; known are: {', '.join(PARAMETERS)}")
        test, rule = PARAMETERS[name]
        if not test(value):
            hint = f" (in the shell: papermill -y '{{{name}: …}}' keeps types)" if isinstance(value, str | int) else ""
            raise EvalkitError(f"parameter {name}: {rule}, not {value!r}{hint}")
    if {"iou", "headline_iou"} <= set(parameters) and parameters["headline_iou"] not in parameters["iou"]:
        raise EvalkitError(
            f"parameter headline_iou: must be one of iou {list(parameters['iou'])}, not {parameters['headline_iou']!r}"
        )


def visible(text: Any, kept: str = JOINER) -> str:
    """Text for a page: control characters and broken ones are written as escapes, but for those that are ``kept``."""
    text = str(text)
    return text if text.isprintable() else "".join(one if one in kept else printable(one) for one in text)


def _escaped(text: Any) -> str:
    """Text as HTML that shows it."""
    return html.escape(visible(text))


def note(benchmark: Benchmark) -> HTML:
    """Show the benchmark's note as a box that stands out; nothing if it has none."""
    if not benchmark.note:
        return HTML("<!-- no note -->")
    text = _escaped(benchmark.note)
    return HTML(f'<div class="admonition note"><p class="admonition-title">About these data</p><p>{text}</p></div>')


def banner(benchmark: Benchmark, **parameters: Any) -> HTML:
    """Show what a page reports on: the benchmark's name and size, the parameters of the run, and the note."""
    parts = [f"<strong>{_escaped(benchmark.name)}</strong>", f"{len(benchmark.images):,} images"]
    shown = {name: value for name, value in parameters.items() if value != []}  # an empty list is "all of them"
    parts += [f"{name} <code>{_escaped(json.dumps(value, ensure_ascii=False))}</code>" for name, value in shown.items()]
    return HTML(f'<p class="run">{" · ".join(parts)}</p>{note(benchmark).data}')


def picture(figure: Figure, *, alt: str) -> HTML:
    """Show a figure as SVG with a text for those who do not see it; the same figure gives the same bytes.

    Unlike a figure itself, whose SVG stays on its page, the result can be glued into other pages.
    """
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "evalkit"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return HTML(f'<img class="figure" alt="{_escaped(alt)}" src="data:image/svg+xml;base64,{data}">')


def scope_to_show(scores: pd.DataFrame) -> tuple[str, str]:
    """The scope on which a page compares models, and in words: ``common``, or ``valid`` where that is empty."""
    common = int(scores.loc[scores["scope"] == "common", "n_images"].max())
    if common:
        return "common", f"the {common:,} images that every model answered validly"
    return "valid", "each model's own valid answers, since no image has a valid answer of every model"


def spans(scores: pd.DataFrame, statistic: str = "f2") -> pd.Series:
    """Intervals as text, such as ``0.790–0.830``; a dash where there is none, a star where nothing varies."""
    low, high = scores[f"{statistic}_low"], scores[f"{statistic}_high"]
    text = low.map(f"{{:.3f}}{JOINER}–{JOINER}".format) + high.map("{:.3f}".format)
    reason = scores[f"{statistic}_reason" if f"{statistic}_reason" in scores else "reason"]
    text = text.mask(reason == DEGENERATE, low.map("{:.3f}*".format))
    return text.where(low.notna(), DASH)


def verdict(benchmark: Benchmark, headline: pd.DataFrame, *, iou: float, where: str) -> HTML:
    """The front page's first sentence: which model is best, by how much, and on what; or why there is none.

    ``headline`` has the models as index, best first, and the columns ``f2`` (boxes, micro), its two ends, and ``n_gold``.
    """
    size = f"{len(benchmark.images):,} image" + "s" * (len(benchmark.images) != 1)
    models = f"{len(headline):,} model" + "s" * (len(headline) != 1)
    text = f"<strong>{_escaped(benchmark.name)}</strong>: {models} on {size}, scored on {_escaped(where)}. "
    if headline["f2"].isna().all() or not headline["n_gold"].max() > 0:
        text += "No headline score is defined there, because there is no gold box to find; the false alarms are what counts."
    else:
        best = headline.iloc[0]
        text += (
            f"By F2 for boxes at IoU {iou:.2f}, the headline score, the best is <strong>{_escaped(headline.index[0])}"
            f"</strong> with <strong>{best['f2']:.3f}</strong> (from 0 to 1, higher is better"
        )
        sure = not pd.isna(best["f2_low"])
        text += f"; interval {best['f2_low']:.3f} to {best['f2_high']:.3f})." if sure else ")."
    return HTML(f"<p>{text}</p>")


def reproduced(checks: Mapping[str, pd.DataFrame]) -> HTML:
    """The sentence of the front page on published values: reproduced, not reproduced, or none to check."""
    if not checks:
        return HTML("<p>The benchmark names no published values, so none were checked.</p>")
    told = "; ".join(summary(check, table=table) for table, check in checks.items())
    wrong = sum(map(failed, checks.values()))
    title = "Published values are not reproduced" if wrong else "Published values are reproduced"
    words = _escaped(told[0].upper() + told[1:])
    return HTML(
        f'<div class="admonition {"danger" if wrong else "tip"}"><p class="admonition-title">{title}</p><p>{words}.</p></div>'
    )


def table(frame: pd.DataFrame, *, caption: str = "", sortable: bool = False, most: int = MOST_ROWS) -> Styler:
    """A table for a page: ratios with three decimals, counts with thousands, a dash for what is undefined.

    All text is escaped, since class names and ids come from other people's files. With ``sortable`` the book's own script lets
    readers sort and filter the rows. A table of more than ``most`` rows is cut there, and says so.
    """
    if len(frame) > most:
        caption = f"{caption} (the first {most:,} of {len(frame):,} rows)".strip()
        frame = frame.head(most)
    shown = frame.rename(columns=_escaped)
    shown = shown.rename_axis(columns=None).reset_index(drop=frame.index.name is None)
    styler = Styler(shown, cell_ids=False).hide(axis="index")  # ids would be a third of a page
    numbers = [name for name in shown if pd.api.types.is_numeric_dtype(shown[name])]
    for name in shown:
        if name not in numbers:
            styler = styler.format(visible, subset=[name], na_rep=DASH, escape="html")
        elif pd.api.types.is_float_dtype(shown[name]):
            styler = styler.format("{:.3f}", subset=[name], na_rep=DASH)
        else:
            styler = styler.format("{:,}", subset=[name], na_rep=DASH)
    right = [{"selector": "th, td", "props": "text-align: right; font-variant-numeric: tabular-nums"}]
    if sortable:
        styler = styler.set_table_attributes('class="sortable"')
    styler = styler.set_table_styles({name: right for name in numbers}, overwrite=False)
    return styler.set_caption(_escaped(caption)) if caption else styler


def shortened(text: str, length: int = 400) -> str:
    """Text of at most ``length`` characters; of what is longer the beginning and the end, with the number left out between.

    >>> shortened("abcdefghij", 4)
    'abc … 6 characters … j'
    """
    if len(text) <= length:
        return text
    tail = length // 4
    head = length - tail
    return f"{text[:head]} … {len(text) - length:,} characters … {text[len(text) - tail :]}"


def quotations(examples: pd.DataFrame) -> HTML:
    """Texts of models, each under its ``name`` and ``meaning`` and with its ``model`` and ``image_id``; shortened and escaped.

    Control characters and broken ones are written as escapes; line breaks and tabs are kept.
    """
    blocks = []
    for one in examples.to_dict("records"):
        text = visible(shortened(one["text"]), kept="\n\t") or "(nothing)"
        where = f"{_escaped(one['model'])}, image {_escaped(one['image_id'])}"
        title = f"<dt><code>{_escaped(one['name'])}</code> – {_escaped(one['meaning'])}</dt>"
        blocks.append(f"{title}<dd>{where}<pre>{html.escape(text)}</pre></dd>")
    return HTML(f'<dl class="quotations">{"".join(blocks)}</dl>')


def folded(parts: Sequence[tuple[str, pd.DataFrame | HTML]], *, first_open: bool = False) -> HTML:
    """Tables, or what else a page shows, that open one by one at their title; of very long tables the first rows."""
    most = MOST_ROWS // max(len(parts), 1)
    blocks = []
    for title, part in parts:
        shown = part.data if isinstance(part, HTML) else table(part, sortable=True, most=most).to_html()
        opened = " open" if first_open and not blocks else ""
        blocks.append(f"<details{opened}><summary>{_escaped(title)}</summary>{shown}</details>")
    return HTML("\n".join(blocks))


def gallery(pictures: Sequence[tuple[str, HTML]]) -> HTML:
    """Pictures with a line of text below each, as many side by side as the page is wide."""
    parts = [f"<figure>{shown.data}<figcaption>{_escaped(text)}</figcaption></figure>" for text, shown in pictures]
    return HTML(f'<div class="gallery">{"".join(parts)}</div>')


def classes_shown(benchmark: Benchmark) -> HTML:
    """Which classes the figures by class have, where that is not all of them."""
    many = len(benchmark.classes)
    if many <= MOST_CLASSES:
        return HTML("<!-- all classes are shown -->")
    return say(f"The figure has the {MOST_CLASSES} classes with most gold boxes, of {many:,} classes.")


def say(text: str) -> HTML:
    """A sentence as a cell's result."""
    return HTML(f"<p>{_escaped(text)}</p>")

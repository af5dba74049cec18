"""What the notebooks call to show things: tables with escaped text, folded blocks."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pandas as pd
from IPython.display import HTML
from pandas.io.formats.style import Styler

DASH = "–"


def table(frame: pd.DataFrame, *, digits: int = 3, caption: str = "") -> Styler:
    """A table for a page: ratios with ``digits`` decimals, counts with thousands, a dash for what is undefined.

    All text is escaped, since class names and ids come from other people's files.
    """
    shown = frame.rename(columns=lambda name: html.escape(str(name)))
    shown = shown.rename_axis(columns=None).reset_index(drop=frame.index.name is None)
    styler = shown.style.hide(axis="index")
    numbers = [name for name in shown if pd.api.types.is_numeric_dtype(shown[name])]
    for name in shown:
        if name not in numbers:
            styler = styler.format(str, subset=[name], na_rep=DASH, escape="html")
        elif pd.api.types.is_float_dtype(shown[name]):
            styler = styler.format(f"{{:.{digits}f}}", subset=[name], na_rep=DASH)
        else:
            styler = styler.format("{:,}", subset=[name], na_rep=DASH)
    styler = styler.set_properties(subset=numbers, **{"text-align": "right", "font-variant-numeric": "tabular-nums"})
    return styler.set_caption(html.escape(caption)) if caption else styler


def folded(parts: Sequence[tuple[str, pd.DataFrame]], **options: int) -> HTML:
    """Tables that open one by one at their title."""
    blocks = [
        f"<details><summary>{html.escape(title)}</summary>{table(frame, **options).to_html()}</details>"
        for title, frame in parts
    ]
    return HTML("\n".join(blocks))


def say(text: str) -> HTML:
    """A sentence as a cell's result."""
    return HTML(f"<p>{html.escape(text)}</p>")

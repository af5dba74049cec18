"""The file ``point_samples.jsonl``: evidence and counts of every sample, from which all scores can be made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from evalkit.formats.decoding import decode_lines
from evalkit.point_benchmarks import PROTOCOL, point_benchmark
from evalkit.point_files import sample_finding
from evalkit.points import ABOUT, EVIDENCE, NON_STRICT, STATES, STRICT, counted
from evalkit.tables import DataError, EvalkitError


class SampleRow(msgspec.Struct, kw_only=True, gc=False):
    """A line of the file. Counts are null where a sample was not scored, and for yes or no; G is known all the same."""

    protocol: str
    benchmark: str
    model: str
    sample_id: str
    subset: str
    state: str
    answer_correct: bool | None
    predicted_count: int | None
    gt_count: int | None
    matched_count: int | None
    raw_hit_count: int | None
    strict_tp: int | None
    strict_fp: int | None
    strict_fn: int | None
    non_strict_precision_hits: int | None
    non_strict_precision_predicted_points: int | None
    non_strict_recall_tp: int | None
    non_strict_recall_fn: int | None
    reason: str = ""


def sample_rows(samples: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of ``point_samples.jsonl``."""
    numbers = [*EVIDENCE, *STRICT, *NON_STRICT]
    binary = np.array(
        [subset in point_benchmark(name).binary for name, subset in zip(samples["benchmark"], samples["subset"], strict=True)],
        bool,
    )
    unscored = ~samples["scored"].to_numpy(bool)
    columns: dict[str, list] = {"protocol": [PROTOCOL] * len(samples)}
    for name in SampleRow.__struct_fields__[1:]:
        values = samples[name].astype(object).tolist()
        if name in numbers:
            hidden = binary if name == "gt_count" else binary | unscored
            values = [None if hide else value for hide, value in zip(hidden.tolist(), values, strict=True)]
        columns[name] = [None if value is pd.NA else value for value in values]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read_point_samples(path: str | Path, *, missing: str = "partial") -> pd.DataFrame:
    """The table of samples from ``point_samples.jsonl``; ``missing`` as in :func:`evalkit.point_runs.point_samples`.

    Raises DataError for a file that is not that, for evidence that cannot be, and for counts that do not follow from it.
    """
    path = Path(path)
    rows, place = decode_lines(path, SampleRow, lenient_boxes=False)
    findings = []
    seen: set[tuple[str, str, str]] = set()
    for number, row in enumerate(rows):
        if fault := _row_fault(row, seen):
            findings.append(sample_finding(path.name, place(number), row.sample_id, *fault))
    if findings:
        raise DataError(findings)
    parts = []
    table = pd.DataFrame({name: [getattr(row, name) for row in rows] for name in SampleRow.__struct_fields__})
    for name, part in table.groupby("benchmark", sort=False):
        benchmark = point_benchmark(str(name))
        binary = part["subset"].isin(benchmark.binary)
        scored = part["predicted_count"].notna() | part["answer_correct"].notna()
        part = part.assign(scored=scored | (missing == "unparseable"))
        part.loc[binary & part["scored"] & ~scored, "answer_correct"] = False
        part[EVIDENCE] = part[EVIDENCE].astype("Int64").fillna(0).astype(np.int64)
        made = counted(part[[*ABOUT, *EVIDENCE]], benchmark)
        said = part[[*STRICT, *NON_STRICT]].astype("Int64")
        differs = (said.notna() & (said != made[said.columns])).any(axis=1)
        for number in part.index[differs]:
            got = ", ".join(f"{column} {said.loc[number, column]}" for column in STRICT)
            text = f"the counts do not follow from the evidence ({got})"
            findings.append(sample_finding(path.name, place(number), part.loc[number, "sample_id"], "points.counts", text))
        parts.append(made)
    if findings:
        raise DataError(findings)
    made = pd.concat(parts).sort_index()
    return made.assign(**{name: pd.Categorical(made[name], table[name].unique()) for name in ("model", "benchmark")})


def _row_fault(row: SampleRow, seen: set[tuple[str, str, str]]) -> tuple[str, str] | None:
    """The first thing wrong with a line: its rule and message."""
    if row.protocol != PROTOCOL:
        return "points.protocol", f"the protocol is {row.protocol!r}, not {PROTOCOL!r}"
    try:
        benchmark = point_benchmark(row.benchmark)
    except EvalkitError as error:
        return "points.benchmark", str(error)
    if benchmark.subsets and row.subset not in benchmark.subsets:
        return "sample.category", f"{benchmark.name} has no category {row.subset!r}; it has {', '.join(benchmark.subsets)}"
    key = row.benchmark, row.model, row.sample_id
    if key in seen:
        return "sample.twice", f"duplicate sample of the model {row.model!r}"
    seen.add(key)
    if row.state not in STATES:
        return "points.state", f"the state must be one of {', '.join(STATES)}, not {row.state!r}"
    numbers = [getattr(row, name) for name in (*EVIDENCE, *STRICT, *NON_STRICT)]
    if wrong := [value for value in numbers if value is not None and not 0 <= value < 2**53]:
        return "points.counts", f"a count is a whole number from 0 on, not {wrong[0]}"
    if (row.state in ("answered", "points", "empty")) and (row.state == "answered") != (row.subset in benchmark.binary):
        return "points.state", f"a sample of the category {row.subset!r} cannot be {row.state!r}"
    if row.subset in benchmark.binary:
        right = numbers == [None] * len(numbers) and (row.answer_correct is not None or row.state == "missing")
        return None if right else ("points.answer", "a yes/no sample has `answer_correct` and no counts")
    known = [value is not None for value in (numbers[0], *numbers[2:])]
    if (
        row.gt_count is None
        or row.answer_correct is not None
        or not (all(known) or (row.state == "missing" and not any(known)))
    ):
        return "points.counts", "a point sample has all counts, or is missing and has `gt_count` alone, and no `answer_correct`"
    return None

"""Commands on models: score and compare."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import evalkit
from evalkit.cli.shared import (
    PathType,
    benchmark_options,
    bootstrap_options,
    check_published,
    demand_reproduced,
    keep_out,
    main,
    print_table,
    published_option,
    read,
    states,
)
from evalkit.counts import HEADLINE_IOU, IOU_THRESHOLDS
from evalkit.formats.options import BenchmarkOptions
from evalkit.formats.writing import FORMATS, write_files
from evalkit.intervals import COMPARISON_COLUMNS, check_settings, least_p
from evalkit.metrics import COVERAGE_COLUMNS
from evalkit.tables import Benchmark, CheckFailed, EvalkitError


@main.command()
@benchmark_options
@click.option("--out", required=True, type=PathType(), help="Folder for the results; made if need be.")
@click.option("--iou", multiple=True, type=float, default=IOU_THRESHOLDS, show_default=True, help="IoU threshold; repeat.")
@click.option(
    "--zero-division",
    type=click.Choice(["0", "nan"]),
    default="0",
    show_default=True,
    help="Value of a ratio whose denominator is 0; the column `reason` tells it in either case.",
)
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the tables named .csv."
)
@click.option("--require-complete", is_flag=True, help="Fail (status 1) if a response is invalid or missing.")
@published_option("scores")
@click.option("--intervals/--no-intervals", default=True, show_default=True, help="Of F2 and the false-positive rate.")
@bootstrap_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def score(
    source: BenchmarkOptions,
    path: Path | None,
    models: tuple[str, ...],
    out: Path,
    iou: tuple[float, ...],
    zero_division: str,
    kind: str,
    require_complete: bool,
    published: str | None,
    intervals: bool,
    replicates: int,
    level: float,
    seed: int,
    jobs: int,
    statistics: tuple[str, ...],
    quiet: bool,
) -> None:
    """Score class sets and boxes, and write the tables.

    \b
    scores.csv      precision, recall, F1, F2 per model, scope, task, threshold: overall, per domain, per class
    coverage.csv    valid, invalid, missing; the false-positive rate on clean images
    counts.parquet  TP, FP, FN per image and class, from which every score is a sum
    matches.parquet every matched pair, false box and missed box, these two with a reason
    errors.csv      how many false and missed boxes have which reason, per class
    confusion.csv   which gold class was predicted as which; an empty cell is nothing
    worst_images.csv  TP, FP, FN of the images with errors, the worst first
    published_scores.csv  with --published: which published row is equal, differs, or is missing
    slices.csv      with --slices: the scores of images that have an attribute
    semantic_pairs.csv  with --semantic: which class was accepted for which, and how often
    run.json        parameters, rules in force, input hashes, versions

    Boxes match one-to-one within image and class, as many as can be; confidence is not used.

    \b
    Example:
      evalkit score --gold gold.jsonl --classes classes.csv --predictions mine=mine.jsonl --out results
    """
    start = time.perf_counter()
    keep_out(out, path)
    check_settings(replicates=replicates, level=level, seed=seed, jobs=jobs)
    benchmark = read(source, path, models)
    if not benchmark.models:
        raise EvalkitError("there are no predictions to score")
    pairs = evalkit.overlaps(benchmark, iou=iou)
    counts = evalkit.count(benchmark, iou=iou, pairs=pairs)
    matches = evalkit.explain(evalkit.match(benchmark, iou=iou, pairs=pairs))
    counts, more = _with_semantic(benchmark, counts, iou)
    options = {"zero_division": float(zero_division), "iou": iou}
    scores = evalkit.scores(benchmark, counts, **options)
    coverage = evalkit.coverage(benchmark)
    settings: dict[str, Any] = {
        "zero_division": zero_division,
        "require_complete": require_complete,
        "intervals": intervals,
    }
    resampling = None
    if intervals:
        settings |= {"replicates": replicates, "level": level, "seed": seed}
        statistics = tuple(dict.fromkeys(("f2", *statistics)))
        resampling = {"statistics": statistics, "replicates": replicates, "seed": seed, "jobs": jobs}
        drawn = evalkit.bootstrap(benchmark, counts, iou=iou, **resampling)
        scores = evalkit.add_intervals(scores, drawn, level=level)
        coverage = evalkit.add_rate_intervals(coverage, drawn, level=level)
    if len(benchmark.slices):
        more["slices"] = evalkit.slice_scores(benchmark, counts, **options, level=level, resampling=resampling)
    checked = check_published(scores, source, path, published, table="scores")
    more |= {} if checked is None else {"published_scores": checked}
    record = _record(source, path, benchmark, coverage, iou, settings, start)
    files = {
        f"scores.{kind}": evalkit.undefined_as_nan(scores) if kind == "json" else scores,  # JSON has null for it
        f"coverage.{kind}": coverage[COVERAGE_COLUMNS],
        "counts.parquet": counts,
        "matches.parquet": matches,
        f"errors.{kind}": evalkit.error_counts(benchmark, matches, iou=iou),
        f"confusion.{kind}": evalkit.confusion(benchmark, matches, iou=iou),
        f"worst_images.{kind}": evalkit.worst_images(benchmark, counts),
        **{f"{name}.{kind}": table for name, table in more.items()},
        "run.json": record,
    }
    write_files(out, files)
    if not quiet:
        print_table(states(benchmark))
        click.echo()
        print_table(_headline(scores))
        click.echo(f"\nwritten to {out}: " + ", ".join(files))
    demand_reproduced(checked, table="scores", quiet=quiet)
    _require_complete(coverage, require_complete)


@main.command()
@benchmark_options
@click.option("--out", required=True, type=PathType(), help="Folder for the results; made if need be.")
@click.option("--iou", multiple=True, type=float, default=IOU_THRESHOLDS, show_default=True, help="IoU threshold; repeat.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the comparison.")
@bootstrap_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def compare(
    source: BenchmarkOptions,
    path: Path | None,
    models: tuple[str, ...],
    out: Path,
    iou: tuple[float, ...],
    kind: str,
    replicates: int,
    level: float,
    seed: int,
    jobs: int,
    statistics: tuple[str, ...],
    quiet: bool,
) -> None:
    """Compare every pair of models on the images that all of them answered validly.

    A paired bootstrap: the same resampled images serve both models of a pair. Writes comparison.csv with the difference of each
    score, its interval, the share of replicates above zero, and p-values with Holm's correction over the pairs; and run.json.
    """
    start = time.perf_counter()
    keep_out(out, path)
    check_settings(replicates=replicates, level=level, seed=seed, jobs=jobs)
    benchmark = read(source, path, models)
    if len(benchmark.models) < 2:
        raise EvalkitError("a comparison needs at least two models")
    counts, _ = _with_semantic(benchmark, evalkit.count(benchmark, iou=iou), iou)
    statistics = tuple(dict.fromkeys(("f2", *statistics)))
    settings = {"replicates": replicates, "seed": seed}
    options = {**settings, "statistics": statistics, "jobs": jobs, "iou": iou}
    drawn = evalkit.bootstrap(benchmark, counts, wanted=["common"], **options)
    table = evalkit.compare(evalkit.scores(benchmark, counts, iou=iou), drawn, level=level)
    if table.empty:
        raise EvalkitError("the common scope is empty: no image has a valid response of every model")
    coverage = evalkit.coverage(benchmark)
    record = _record(source, path, benchmark, coverage, iou, {**settings, "level": level, "statistics": statistics}, start)
    files = {f"comparison.{kind}": table[COMPARISON_COLUMNS], "run.json": record}
    write_files(out, files)
    if not quiet:
        top = HEADLINE_IOU if HEADLINE_IOU in iou else max(iou)
        shown = table[
            (table["relation"] == "exact")
            & (table["iou"] == top)
            & (table["level"] == "overall")
            & (table["average"] == "micro")
        ]
        columns = ["model_a", "model_b", "statistic", "difference", "low", "high", "share_above_zero", "p_holm"]
        click.echo(f"localisation at IoU {top:.2f}, micro, common scope")
        print_table(shown[columns])
        if (least := least_p(len(benchmark.models), replicates)) > 0.05:
            click.echo(f"no p_holm can be below {least:.2g} with {replicates:,} replicates and {len(benchmark.models)} models")
        click.echo(f"\nwritten to {out}: " + ", ".join(files))


def _with_semantic(
    benchmark: Benchmark, counts: pd.DataFrame, iou: tuple[float, ...]
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """The counts, exact and under the benchmark's relation if it has one, and the table that comes with it."""
    if benchmark.relation is None:
        return counts, {}
    accepted = evalkit.accepted_pairs(benchmark, iou=iou)
    relaxed = evalkit.relaxed_counts(counts, accepted)
    return pd.concat([counts, relaxed], ignore_index=True), {"semantic_pairs": evalkit.related_pairs(accepted)}


def _headline(scores: pd.DataFrame) -> pd.DataFrame:
    """The F2 of each model, micro and macro, valid scope: class sets, and boxes at 0.50 or else the highest threshold."""
    top = HEADLINE_IOU if (scores["iou"] == HEADLINE_IOU).any() else scores["iou"].max()
    rows = scores[
        (scores["scope"] == "valid")
        & (scores["relation"] == "exact")
        & (scores["level"] == "overall")
        & (scores["iou"].isna() | (scores["iou"] == top))
    ]
    name = rows["task"].astype(str) + rows["iou"].map(lambda value: "" if np.isnan(value) else f" {value:.2f}") + " F2 "
    return (
        rows.assign(name=name + rows["average"].astype(str))
        .query("average != 'macro_gold'")
        .pivot(index="model", columns="name", values="f2")
        .reset_index()
    )


def _record(
    source: BenchmarkOptions,
    path: Path | None,
    benchmark: Benchmark,
    coverage: pd.DataFrame,
    iou: tuple[float, ...],
    settings: dict[str, Any],
    start: float,
) -> dict[str, Any]:
    from evalkit.reproduction import run_record

    parameters = {
        "benchmark": path.name if path else None,
        "models": benchmark.models,
        "iou": sorted(set(iou)),
        **settings,
    }
    states = coverage[coverage["scope"] == "valid"].set_index("model")[["images", "valid", "invalid", "missing"]]
    return run_record(
        source,
        path.parent if path else Path(),
        parameters,
        name=benchmark.name,
        states=states.to_dict("index"),
        wall_time_seconds=round(time.perf_counter() - start, 3),
    )


def _require_complete(coverage: pd.DataFrame, required: bool) -> None:
    lacking = coverage[(coverage["scope"] == "valid") & (coverage["valid"] < coverage["images"])]
    if required and len(lacking):
        told = ", ".join(f"{row.model}: {row.invalid} invalid, {row.missing} missing" for row in lacking.itertuples())
        raise CheckFailed(f"responses are not complete ({told})")

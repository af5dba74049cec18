"""The command on points."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import click
import pandas as pd

import evalkit
from evalkit.cli.shared import (
    PathType,
    check_published,
    demand_reproduced,
    draw_options,
    keep_out,
    main,
    named,
    print_table,
    published_option,
)
from evalkit.formats.options import PointOptions, point_options_from, read_options
from evalkit.formats.writing import FORMATS, write_files
from evalkit.intervals import check_settings
from evalkit.point_metrics import summaries
from evalkit.point_records import sample_rows
from evalkit.point_runs import every_point_sample, read_point_runs, states_of
from evalkit.tables import CheckFailed, EvalkitError, printable


@main.command()
@click.option("--benchmark", type=PathType(), help="A benchmark.yml with `points`.")
@click.option("--samples", multiple=True, type=click.Path(), help="Samples: JSONL, Parquet, a folder of Parquet; repeat.")
@click.option("--benchmark-name", help="What --samples are: one of the ten, such as Where2Place.")
@click.option("--predictions", multiple=True, metavar="NAME=PATH", help="A model's answers to --samples; repeat.")
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="NAME=READER",
    help="How a model's answers are read: qwen-points (default), gemini-points, molmo-points, unit-points, pixel-points, "
    "or key=point_2d,order=xy,scale=1000; repeat.",
)
@click.option("--from", "source", type=PathType(), help="Only aggregate: a point_samples.jsonl of an earlier run.")
@click.option("--models", multiple=True, metavar="NAME", help="Score only this model; repeat.")
@click.option(
    "--missing",
    type=click.Choice(["partial", "unparseable"]),
    default="partial",
    show_default=True,
    help="A sample without an answer is left out, and the run is partial; or it is scored as an unparseable answer.",
)
@click.option("--out", required=True, type=PathType(), help="Folder for the results; made if need be.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the scores.")
@click.option("--require-complete", is_flag=True, help="Fail (status 1) if a run is partial.")
@published_option("scores")
@draw_options
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def points(
    benchmark: Path | None,
    samples: tuple[str, ...],
    benchmark_name: str | None,
    predictions: tuple[str, ...],
    readers: tuple[str, ...],
    source: Path | None,
    models: tuple[str, ...],
    missing: str,
    out: Path,
    kind: str,
    require_complete: bool,
    published: str | None,
    replicates: int,
    level: float,
    seed: int,
    jobs: int,
    quiet: bool,
) -> None:
    """Score point localisation on any of the ten benchmarks, and write the tables.

    \b
    point_scores.csv     strict and non-strict scores per model, benchmark and subset
    point_intervals.csv  intervals of strict and non-strict F1 and of the overall scores
    point_samples.jsonl  evidence and counts of every sample, from which the scores can be made again
    published_points.csv with --published: which published row is equal, differs, or is missing
    run.json             parameters, rules in force, input hashes, versions, scores by their names in the protocol

    \b
    Example:
      evalkit points --benchmark-name Where2Place --samples data.parquet --predictions mine=mine.jsonl --out results
      evalkit points --from results/point_samples.jsonl --out again
    """
    from tqdm import tqdm

    from evalkit.reproduction import point_record

    start = time.perf_counter()
    keep_out(out, benchmark)
    check_settings(replicates=replicates, level=level, seed=seed, jobs=jobs)
    parts = samples or benchmark_name or predictions or readers
    if sum(map(bool, (benchmark, parts, source))) != 1:
        raise EvalkitError("give one of --benchmark, --samples (with --benchmark-name and --predictions) and --from")
    folder = benchmark.parent if benchmark else Path()
    options = {}
    if not source:
        options = read_options(benchmark).points if benchmark else _point_parts(samples, benchmark_name, predictions, readers)
    notes: list = []
    if source:
        table = evalkit.read_point_samples(source, missing=missing)
        known = list(table["model"].cat.categories)
        if absent := [name for name in models if name not in known]:
            raise EvalkitError(f"{source.name}: there is no model {absent[0]!r}; there are {', '.join(known)}")
        table = table[table["model"].isin(models)] if models else table
    else:
        runs = {name: run for name, run in read_point_runs(options, models=models, folder=folder).items() if run.models}
        if not runs:
            raise EvalkitError("there are no points with predictions to score")
        bar = functools.partial(tqdm, desc="points", unit="sample", disable=quiet, leave=False)
        table, notes = every_point_sample(runs, missing=missing, progress=bar)
    intervals = evalkit.point_intervals(table, replicates=replicates, level=level, seed=seed, jobs=jobs)
    scores = evalkit.point_scores(table, intervals)
    states = states_of(table)
    if ((table["state"] == "missing") & table["scored"]).any():
        missing = "unparseable"  # also where the file of an earlier run has it so
    settings = {"missing": missing, "models": list(dict.fromkeys(table["model"])), "replicates": replicates, "level": level}
    record = point_record(
        options,
        folder,
        {"benchmark": benchmark.name if benchmark else None, "from": source.name if source else None, **settings, "seed": seed},
        noticed=[{"source": name, "code": code, "count": count, "examples": text} for name, (code, count, text) in notes],
        summaries=summaries(scores, states),
        wall_time_seconds=round(time.perf_counter() - start, 3),
    )
    checked = check_published(scores, read_options(benchmark) if benchmark else None, benchmark, published, table="points")
    files = {
        f"point_scores.{kind}": scores,
        f"point_intervals.{kind}": intervals,
        **({} if checked is None else {f"published_points.{kind}": checked}),
        "point_samples.jsonl": sample_rows(table),
        "run.json": record,
    }
    write_files(out, files)
    for name, (code, count, text) in notes:
        if code == "convention_warning":
            click.echo(f"warning: {printable(f'{name}: {text}')}", err=True)
        elif not quiet:
            click.echo(printable(f"{name}: {code}, {count:,} samples ({text})"))
    partial = scores[(scores["subset"] == "all") & ~scores["complete"]]
    if not quiet:
        print_table(states)
        click.echo()
        print_table(_point_headline(scores))
        for row in partial.itertuples():
            click.echo(f"partial: {printable(str(row.model))} on {row.benchmark}, {row.samples:,} samples scored")
        click.echo(f"\nwritten to {out}: " + ", ".join(files))
    demand_reproduced(checked, table="points", quiet=quiet)
    if require_complete and len(partial):
        told = ", ".join(f"{row.model} on {row.benchmark}" for row in partial.itertuples())
        raise CheckFailed(f"runs are not complete ({told})")


def _point_parts(samples: tuple, name: str | None, predictions: tuple, readers: tuple) -> dict[str, PointOptions]:
    """The options of one point benchmark from the parts that stand for a file."""
    if not samples or not name or not predictions:
        raise EvalkitError("--samples, --benchmark-name and --predictions belong together")
    files = {model: {"path": path} for model, path in named(predictions, "--predictions", "PATH").items()}
    for model, reader in named(readers, "--reader", "READER").items():
        if model not in files:
            raise EvalkitError(f"--reader names {model!r}, which has no --predictions")
        files[model]["reader"] = reader
    said = {"samples": list(samples), "predictions": files}
    return {name: point_options_from(said, source="command line")}


def _point_headline(scores: pd.DataFrame) -> pd.DataFrame:
    """What leads each benchmark, with its interval, beside the strict score."""
    whole = scores[scores["subset"] == "all"]
    columns = {"overall_non_strict": "non-strict", "low": "low", "high": "high", "overall_strict": "strict"}
    return whole.sort_values("benchmark", kind="stable")[["benchmark", "model", "samples", *columns]].rename(columns=columns)

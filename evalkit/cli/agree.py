"""The command on annotators."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import pandas as pd

import evalkit
from evalkit.agreement import FEW, mark
from evalkit.cli.shared import (
    PathType,
    check_published,
    demand_reproduced,
    draw_options,
    keep_out,
    main,
    print_table,
    published_option,
)
from evalkit.counts import HEADLINE_IOU, IOU_THRESHOLDS
from evalkit.first_pass import FirstPass, blocks
from evalkit.formats.options import BenchmarkOptions, options_from, read_options
from evalkit.formats.writing import FORMATS, write_files
from evalkit.intervals import check_settings
from evalkit.tables import EvalkitError, printable


@main.command()
@click.option("--benchmark", type=PathType(), help="A benchmark.yml with `first_pass`. It stands for the four below.")
@click.option("--classes", type=click.Path(), help="The class list, a CSV class_id,class_name,domain.")
@click.option("--first-pass", type=click.Path(), help="First-pass annotations: JSONL, COCO, CSV or Parquet.")
@click.option("--assignments", type=click.Path(), help="Who saw what, a CSV image_id,annotator; a long table needs it.")
@click.option("--gold", type=click.Path(), help="Gold, for annotators.csv; its images are then all there are.")
@click.option("--out", required=True, type=PathType(), help="Folder for the results; made if need be.")
@click.option(
    "--iou",
    type=float,
    default=HEADLINE_IOU,
    show_default=True,
    help="IoU threshold of boxes; annotators.csv has it beside 0.30, 0.40, 0.50.",
)
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the tables.")
@draw_options
@click.option(
    "--block",
    metavar="RULE",
    help="Draw blocks of images, such as videos: the column `block` of the first pass, or a regular expression with one group "
    "that finds the block in the image id.",
)
@published_option("agreement")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def agree(
    benchmark: Path | None,
    classes: str | None,
    first_pass: str | None,
    assignments: str | None,
    gold: str | None,
    out: Path,
    iou: float,
    kind: str,
    replicates: int,
    level: float,
    seed: int,
    jobs: int,
    block: str | None,
    published: str | None,
    quiet: bool,
) -> None:
    """Measure how far annotators agree in their first pass, before any adjudication.

    \b
    agreement.csv        kappa, alpha, AC1, F1 of boxes and more, per group and pooled, overall, per domain, per class
    agreement_pairs.csv  the same for every two annotators
    annotators.csv       each annotator, and every two of them, against gold (where there is gold)
    published_agreement.csv  with --published: which published row is equal, differs, or is missing
    run.json             parameters, rules in force, input hashes, versions

    An image that an annotator saw and found nothing on needs a row of its own; an image without a row was not seen.

    \b
    Example:
      evalkit agree --classes classes.csv --first-pass first_pass.jsonl --out results
    """
    start = time.perf_counter()
    parts = {"classes": classes, "gold": gold, "first_pass": first_pass}
    if benchmark and (any(parts.values()) or assignments):
        raise EvalkitError("give either --benchmark or its parts (--classes, --first-pass, --assignments, --gold)")
    if not benchmark and not first_pass:
        raise EvalkitError("give --benchmark, or --first-pass with --classes")
    if benchmark:
        source = read_options(benchmark)
    else:
        extra = {"assignments": assignments} if assignments else {}
        parts = {name: one for name, one in (parts | {"first_pass": {"path": first_pass, **extra}}).items() if one}
        source = options_from(parts, source="command line")
    keep_out(out, benchmark)
    settings = {"replicates": replicates, "level": level, "seed": seed}
    check_settings(replicates=replicates, level=level, seed=seed, jobs=jobs)
    first = evalkit.read_first_pass(benchmark or source)
    if first is None:
        raise EvalkitError(f"{benchmark}: there is no `first_pass` in it")
    options = {**settings, "jobs": jobs, "block": blocks(first, block) if block else None}
    marks = mark(first, iou=iou)
    files = {
        f"agreement.{kind}": evalkit.agree(first, marks=marks, **options),
        f"agreement_pairs.{kind}": evalkit.agree_by_pair(first, marks=marks, **options),
    }
    checked = check_published(files[f"agreement.{kind}"], source, benchmark, published, table="agreement")
    files |= {} if checked is None else {f"published_agreement.{kind}": checked}
    if first.gold is not None:
        files[f"annotators.{kind}"] = evalkit.score_annotators(first, iou=sorted({*IOU_THRESHOLDS, iou}), **options)
    files["run.json"] = _agreement_record(source, benchmark, first, {**settings, "iou": iou, "block": block}, start)
    write_files(out, files)
    if not quiet:
        table = files[f"agreement.{kind}"]
        print_table(_by_group(table))
        told = table.loc[table["reason"] == FEW, "group"].unique()
        click.echo("".join(f"\n{printable(name)}: {FEW}" for name in told) + f"\nwritten to {out}: " + ", ".join(files))
    demand_reproduced(checked, table="agreement", quiet=quiet)


def _by_group(table: pd.DataFrame) -> pd.DataFrame:
    """The overall coefficients, a row a group."""
    shown = ["krippendorff_alpha", "gwet_ac1", "exact_match", "pairwise_f1", "box_alpha"]
    rows = table[(table["level"] == "overall") & table["statistic"].isin(shown)]
    wide = rows.pivot(index=["group", "images", "annotators"], columns="statistic", values="estimate")[shown]
    wide = wide.loc[rows.set_index(wide.index.names).index.unique()].reset_index()
    return wide.assign(group=[printable(name) for name in wide["group"]]).rename_axis(columns=None)


def _agreement_record(
    source: BenchmarkOptions, path: Path | None, first: FirstPass, settings: dict[str, Any], start: float
) -> dict[str, Any]:
    from evalkit.reproduction import AGREEMENT_RULES, run_record

    return run_record(
        source,
        path.parent if path else Path(),
        {"benchmark": path.name if path else None, **settings},
        name=first.name,
        rules=AGREEMENT_RULES,
        annotators=first.annotators,
        groups=first.groups,
        wall_time_seconds=round(time.perf_counter() - start, 3),
    )

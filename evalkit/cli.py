"""The command line: thin, one call per command."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import evalkit
from evalkit import answers
from evalkit.agreement import FEW, mark
from evalkit.counts import HEADLINE_IOU, IOU_THRESHOLDS
from evalkit.first_pass import FirstPass, blocks
from evalkit.formats import CONVERTIBLE
from evalkit.formats.options import (
    BenchmarkOptions,
    PointOptions,
    PublishedOptions,
    options_from,
    point_options_from,
    read_options,
)
from evalkit.formats.writing import FORMATS, write_files
from evalkit.intervals import LEVEL, REPLICATES, SEED, check_settings
from evalkit.metrics import RATIOS
from evalkit.point_metrics import summaries
from evalkit.point_records import sample_rows
from evalkit.point_runs import every_point_sample, read_point_runs, states_of
from evalkit.published import check_file, require_reproduced, summary
from evalkit.reproduction import INVENTORY, compare_inventory, inventory
from evalkit.tables import Benchmark, CheckFailed, DataError, EvalkitError, printable

BLOCK = "benchmark.yml"  # --published without a value


class _Path(click.Path):
    """A path, as a Path; one with a NUL character is refused, which the system calls would otherwise end on."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if "\0" in str(value):
            self.fail(f"{str(value)!r} holds a NUL character", param, ctx)
        return super().convert(value, param, ctx)


class _Commands(click.Group):
    """A group whose commands end in one clear message: status 2 for bad input, 1 for a failed check."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            click.echo("\nevalkit: interrupted", err=True)
            context.exit(130)
        except EvalkitError as error:
            failure = click.ClickException(str(error))
            failure.exit_code = 1 if isinstance(error, CheckFailed) else 2
            raise failure from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(evalkit.__version__, prog_name="evalkit")
def main() -> None:
    """Score class sets and boxes of vision-language models exactly, and render the evaluation as a book.

    \b
    Try it on the built-in sample:
      evalkit sample --out toytown
      evalkit check  --benchmark toytown/benchmark.yml
      evalkit score  --benchmark toytown/benchmark.yml --out results
      evalkit compare --benchmark toytown/benchmark.yml --out results
      evalkit agree  --benchmark toytown/benchmark.yml --out results
      evalkit report --benchmark toytown/benchmark.yml

    Exit status: 0 all is well, 1 a check failed, 2 bad input or usage.
    """


def _benchmark_options(command: Callable) -> Callable:
    """The options that say which data: a benchmark file, or its parts."""
    options = [
        click.option("--benchmark", type=_Path(), help="A benchmark.yml. It stands for the next options."),
        click.option("--classes", type=click.Path(), help="The class list, a CSV class_id,class_name,domain."),
        click.option("--gold", type=click.Path(), help="The gold annotations: JSONL, COCO, CSV or Parquet."),
        click.option(
            "--predictions", multiple=True, metavar="NAME=PATH", help="A model's predictions; repeat for more models."
        ),
        click.option(
            "--reader",
            "readers",
            multiple=True,
            metavar="NAME=READER",
            help="How a model's own text is read: a preset such as qwen-boxes, or key=bbox_2d,order=xyxy,scale=1000; repeat.",
        ),
        click.option("--semantic", type=click.Path(), help="Which class is accepted for which: a CSV matrix of classes."),
        click.option("--cutoff", help="From which value of --semantic on a class is accepted, from 0 to 1."),
        click.option("--slices", type=click.Path(), help="What is known of images: a CSV image_id,attribute,value."),
        click.option("--models", multiple=True, metavar="NAME", help="Compare only this model; repeat. They define `common`."),
    ]

    @functools.wraps(command)
    def wrapped(
        benchmark: Path | None,
        classes: str | None,
        gold: str | None,
        predictions: tuple,
        readers: tuple,
        semantic: str | None,
        cutoff: str | None,
        slices: str | None,
        models: tuple,
        **rest: Any,
    ) -> Any:
        if benchmark and (classes or gold or predictions or readers or semantic or cutoff or slices):
            raise EvalkitError("give either --benchmark or its parts (--classes, --gold, --predictions, --reader …)")
        if not benchmark and not gold:
            raise EvalkitError("give --benchmark, or --gold with --classes and --predictions")
        if benchmark:
            return command(source=read_options(benchmark), path=benchmark, models=models, **rest)
        files = {name: {"path": path} for name, path in _named(predictions, "--predictions", "PATH").items()}
        for name, reader in _named(readers, "--reader", "READER").items():
            if name not in files:
                raise EvalkitError(f"--reader names {name!r}, which has no --predictions")
            files[name]["reader"] = reader
        if (semantic is None) != (cutoff is None):
            raise EvalkitError("--semantic and --cutoff come together")
        relation = {"path": semantic, "cutoff": cutoff} if semantic is not None else None
        optional = {"classes": classes, "semantic": relation, "slices": slices}
        said = {"gold": gold, "predictions": files, **{name: one for name, one in optional.items() if one is not None}}
        return command(source=options_from(said, source="command line"), path=None, models=models, **rest)

    return functools.reduce(lambda made, option: option(made), reversed(options), wrapped)


def _named(texts: tuple[str, ...], option: str, what: str) -> dict[str, str]:
    """The values of an option by the names of the models."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name or not value:
            raise EvalkitError(f"{option} takes NAME={what}, not {text!r}")
        if name in found:
            raise EvalkitError(f"{option} names a model twice")
        found[name] = value
    return found


def _draw_options(command: Callable) -> Callable:
    """The options of the bootstrap."""
    options = [
        click.option("--replicates", type=int, default=REPLICATES, show_default=True, help="At least 100."),
        click.option("--level", type=float, default=LEVEL, show_default=True, help="Of the percentile intervals."),
        click.option("--seed", type=int, default=SEED, show_default=True, help="The same seed gives the same intervals."),
        click.option("--jobs", type=int, default=1, show_default=True, help="Threads; they change the time, not the numbers."),
    ]
    return functools.reduce(lambda made, option: option(made), reversed(options), command)


def _bootstrap_options(command: Callable) -> Callable:
    """The options of the intervals of scores."""
    option = click.option(
        "--statistic",
        "statistics",
        type=click.Choice(list(RATIOS)),
        multiple=True,
        default=("f2",),
        show_default=True,
        help="What to give an interval; repeat. F2 always has one.",
    )
    return _draw_options(option(command))


def _read(source: BenchmarkOptions, path: Path | None, models: tuple[str, ...]) -> Benchmark:
    benchmark = evalkit.read_benchmark(path or source, models=models)
    for model, code, _, text in benchmark.notes:
        if code == "convention_warning":
            click.echo(f"warning: {printable(f'{model}: {text}')}", err=True)
    return benchmark


def _keep_out(out: Path, path: Path | None, option: str = "--out") -> None:
    """Refuse to write results among the data of the benchmark."""
    if path and out.resolve().is_relative_to(path.resolve().parent):
        raise EvalkitError(f"{option} {out} lies in the benchmark's own folder; results are kept apart from data")


@main.command()
@_benchmark_options
@click.option("--inventory", "wanted", is_flag=True, help="Require an inventory (status 1 if files differ from it).")
@click.option("--write-inventory", "write", is_flag=True, help="Write one into the benchmark's folder, if all is well.")
@click.option("--quiet", is_flag=True, help="Print findings only.")
def check(source: BenchmarkOptions, path: Path | None, models: tuple[str, ...], wanted: bool, write: bool, quiet: bool) -> None:
    """Check the data: everything that is wrong, file by file, and what was noticed and accepted; points with their masks too.

    Ids and class names are compared exactly (after Unicode NFC); a near miss is told. Nothing is repaired. JSON lines are read
    twice, as a table and as a stream, which must agree. The files are compared with the inventory that the benchmark names, or
    that lies beside it: missing, changed and extra ones make the exit status 1. It is 2 if anything breaks a rule.
    """
    if path is None and (wanted or write):
        raise EvalkitError("an inventory is of the folder of a benchmark.yml; give --benchmark")
    points = None
    try:
        benchmark = _read(source, path, models)
        first = evalkit.read_first_pass(path or source, benchmark=benchmark)
        if source.points:
            points = every_point_sample(read_point_runs(source.points, folder=path.parent if path else Path()))
    except DataError as error:
        for finding in error.findings:
            click.echo(str(finding))
        click.echo("\nBy rule:")
        _print_table(evalkit.fault_table(error.findings).drop(columns="meaning").map(_printable))
        raise EvalkitError(f"{len(error.findings)} finding{'s' * (len(error.findings) != 1)}; nothing was scored") from None
    folder = path.parent if path else Path()
    loaded = evalkit.load_check(benchmark, source, folder)
    if not quiet:
        _print_check(source, benchmark, first, points, loaded)
    if write:
        listed = folder / (source.inventory or INVENTORY)
        write_files(listed.parent, {listed.name: inventory(folder, name=source.inventory or INVENTORY)})
        if not quiet:
            click.echo(f"\nwritten: {click.format_filename(listed)}")
    if path is not None:
        _check_inventory(folder, source.inventory, wanted=wanted, quiet=quiet)
    if differing := list(loaded.loc[loaded["stream"] == "differs", "source"]):
        raise CheckFailed(f"reading as a stream and as a table differ for {', '.join(differing)}")


def _check_inventory(folder: Path, named: str | None, *, wanted: bool, quiet: bool) -> None:
    """Fail if files are missing, changed or extra; without an inventory there is nothing to say unless one is ``wanted``."""
    path = folder / (named or INVENTORY)
    if not path.exists() and not (named or wanted):
        return
    table = compare_inventory(path, folder)
    differing = table[table["state"] != "same"]
    if differing.empty:
        if not quiet:
            click.echo(f"\nInventory: {len(table):,} files, all as {path.name} has them")
        return
    for row in differing.itertuples():
        click.echo(f"{row.state}: {printable(row.path)}")
    counts = ", ".join(f"{count:,} {state}" for state, count in differing["state"].value_counts(sort=False).items())
    raise CheckFailed(f"the files are not those of {path.name}: {counts}")


def _print_check(
    source: BenchmarkOptions, benchmark: Benchmark, first: FirstPass | None, points: tuple | None, loaded: pd.DataFrame
) -> None:
    images = benchmark.images
    facts = {
        "images": len(images),
        "negative images": int((benchmark.gold_boxes_per_image == 0).sum()),
        "gold boxes": len(benchmark.gold),
        "classes": len(benchmark.classes),
        "domains": len(benchmark.domains),
        "models": len(benchmark.models),
    }
    facts |= {"annotators": len(first.annotators), "groups": len(first.groups)} if first else {}
    click.echo(f"{benchmark.name}: " + ", ".join(f"{name} {value:,}" for name, value in facts.items()))
    if benchmark.models:
        _print_table(_states(benchmark))
    if any(source.predictions[model].reader is not None for model in benchmark.models):
        _print_answers(benchmark)
    click.echo("\nLoaded, and as a stream:")
    _print_table(loaded)
    if points:
        click.echo("\nPoints:")
        _print_table(states_of(points[0]))
    notes = evalkit.data_check(benchmark)
    if points and points[1]:
        said = [("points", name, *note, "") for name, note in points[1]]
        notes = pd.concat([notes, pd.DataFrame(said, columns=notes.columns)], ignore_index=True)
    if len(notes):
        click.echo("\nNoticed and accepted:")
        _print_table(notes.drop(columns="meaning").map(_printable))


def _printable(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


@main.command()
@_benchmark_options
@click.option("--out", required=True, type=_Path(), help="Folder for the results; made if need be.")
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
@click.option(
    "--published",
    is_flag=False,
    flag_value=BLOCK,
    help="Check the scores against a published table, CSV or JSON; without a value, the one that benchmark.yml names.",
)
@click.option("--intervals/--no-intervals", default=True, show_default=True, help="Of F2 and the false-positive rate.")
@_bootstrap_options
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
    _keep_out(out, path)
    check_settings(replicates=replicates, level=level, jobs=jobs)
    benchmark = _read(source, path, models)
    if not benchmark.models:
        raise EvalkitError("there are no predictions to score")
    pairs = evalkit.overlaps(benchmark, iou=iou)
    counts = evalkit.count(benchmark, iou=iou, pairs=pairs)
    matches = evalkit.explain(evalkit.match(benchmark, iou=iou, pairs=pairs))
    counts, more = _with_semantic(benchmark, counts, iou)
    options = {"zero_division": float(zero_division), "iou": iou}
    scores = evalkit.scores(benchmark, counts, **options)
    coverage = evalkit.coverage(benchmark)
    settings: dict[str, Any] = {"intervals": intervals}
    resampling = None
    if intervals:
        settings |= {"replicates": replicates, "level": level, "seed": seed}
        statistics = tuple(dict.fromkeys(("f2", *statistics)))
        resampling = {"statistics": statistics, "replicates": replicates, "seed": seed, "jobs": jobs}
        drawn = evalkit.bootstrap(benchmark, counts, **resampling)
        scores = evalkit.add_intervals(scores, drawn, level=level)
        coverage = evalkit.add_rate_intervals(coverage, drawn, level=level)
    if len(benchmark.slices):
        more["slices"] = evalkit.slice_scores(benchmark, counts, **options, level=level, resampling=resampling)
    checked = _check_published(scores, source, path, published, table="scores")
    more |= {} if checked is None else {"published_scores": checked}
    record = _record(source, path, benchmark, coverage, iou, zero_division, require_complete, settings, start)
    files = {
        f"scores.{kind}": evalkit.undefined_as_nan(scores) if kind == "json" else scores,  # JSON has null for it
        f"coverage.{kind}": coverage,
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
        _print_table(_states(benchmark))
        click.echo()
        _print_table(_headline(scores))
        click.echo(f"\nwritten to {out}: " + ", ".join(files))
    _require_reproduced(checked, table="scores", quiet=quiet)
    _require_complete(coverage, require_complete)


@main.command()
@_benchmark_options
@click.option("--out", required=True, type=_Path(), help="Folder for the results; made if need be.")
@click.option("--iou", multiple=True, type=float, default=IOU_THRESHOLDS, show_default=True, help="IoU threshold; repeat.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the comparison.")
@_bootstrap_options
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
    score, its interval, the share of replicates above zero, and p-values with Holm's correction over the pairs.
    """
    _keep_out(out, path)
    check_settings(replicates=replicates, level=level, jobs=jobs)
    benchmark = _read(source, path, models)
    if len(benchmark.models) < 2:
        raise EvalkitError("a comparison needs at least two models")
    counts, _ = _with_semantic(benchmark, evalkit.count(benchmark, iou=iou), iou)
    options = {"statistics": statistics, "replicates": replicates, "seed": seed, "jobs": jobs}
    drawn = evalkit.bootstrap(benchmark, counts, wanted=["common"], **options)
    table = evalkit.compare(evalkit.scores(benchmark, counts, iou=iou), drawn, level=level)
    if table.empty:
        raise EvalkitError("the common scope is empty: no image has a valid response of every model")
    write_files(out, {f"comparison.{kind}": table})
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
        _print_table(shown[columns])
        click.echo(f"\nwritten to {out}: comparison.{kind}")


@main.command()
@click.option("--benchmark", type=_Path(), help="A benchmark.yml with `first_pass`. It stands for the four below.")
@click.option("--classes", type=click.Path(), help="The class list, a CSV class_id,class_name,domain.")
@click.option("--first-pass", type=click.Path(), help="First-pass annotations: JSONL, COCO, CSV or Parquet.")
@click.option("--assignments", type=click.Path(), help="Who saw what, a CSV image_id,annotator; a long table needs it.")
@click.option("--gold", type=click.Path(), help="Gold, for annotators.csv; its images are then all there are.")
@click.option("--out", required=True, type=_Path(), help="Folder for the results; made if need be.")
@click.option("--iou", type=float, default=HEADLINE_IOU, show_default=True, help="IoU threshold of the agreement of boxes.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the tables.")
@_draw_options
@click.option(
    "--block",
    metavar="RULE",
    help="Draw blocks of images, such as videos: the column `block` of the first pass, or a regular expression with one group "
    "that finds the block in the image id.",
)
@click.option(
    "--published",
    is_flag=False,
    flag_value=BLOCK,
    help="Check the agreement against a published table, CSV or JSON; without a value, the one that benchmark.yml names.",
)
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
    _keep_out(out, benchmark)
    settings = {"replicates": replicates, "level": level, "seed": seed}
    check_settings(replicates=replicates, level=level, jobs=jobs)
    first = evalkit.read_first_pass(benchmark or source)
    if first is None:
        raise EvalkitError(f"{benchmark}: there is no `first_pass` in it")
    options = {**settings, "jobs": jobs, "block": blocks(first, block) if block else None}
    marks = mark(first, iou=iou)
    files = {
        f"agreement.{kind}": evalkit.agree(first, marks=marks, **options),
        f"agreement_pairs.{kind}": evalkit.agree_by_pair(first, marks=marks, **options),
    }
    checked = _check_published(files[f"agreement.{kind}"], source, benchmark, published, table="agreement")
    files |= {} if checked is None else {f"published_agreement.{kind}": checked}
    if first.gold is not None:
        files[f"annotators.{kind}"] = evalkit.score_annotators(first, **options)
    files["run.json"] = _agreement_record(source, benchmark, first, {**settings, "iou": iou, "block": block}, start)
    write_files(out, files)
    if not quiet:
        table = files[f"agreement.{kind}"]
        _print_table(_by_group(table))
        told = table.loc[table["reason"] == FEW, "group"].unique()
        click.echo("".join(f"\n{printable(name)}: {FEW}" for name in told) + f"\nwritten to {out}: " + ", ".join(files))
    _require_reproduced(checked, table="agreement", quiet=quiet)


@main.command()
@_benchmark_options
@click.option("--image-id", "image_ids", multiple=True, required=True, metavar="ID", help="An image; repeat for a sheet.")
@click.option("--model", help="Draw what this model found, too.")
@click.option("--iou", type=float, default=HEADLINE_IOU, show_default=True, help="At which IoU a box is found.")
@click.option("--over", is_flag=True, help="Draw gold and model in one picture, not side by side.")
@click.option("--output", required=True, type=_Path(), help="The picture to write: .png, .svg or .pdf.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def render(
    source: BenchmarkOptions,
    path: Path | None,
    models: tuple[str, ...],
    image_ids: tuple[str, ...],
    model: str | None,
    iou: float,
    over: bool,
    output: Path,
    quiet: bool,
) -> None:
    """Draw images with their gold boxes and class names, and what a model found.

    Matched, missed and false boxes differ in line as well as colour. An image without a picture is an empty canvas of its size.

    \b
    Example:
      evalkit render --benchmark toytown/benchmark.yml --image-id toy-00002 --model eager --output eager.png
    """
    import matplotlib

    matplotlib.use("agg")
    from evalkit.rendering import render as draw

    _keep_out(output, path, "--output")
    benchmark = _read(source, path, (model,) if model else models)
    picture = draw(benchmark, image_ids, model=model, iou=iou, over=over, kind=output.suffix.lower().removeprefix("."))
    write_files(output.parent, {output.name: picture})
    if not quiet:
        click.echo(f"written: {click.format_filename(output)}")


@main.command()
@_benchmark_options
@click.option("--to", required=True, type=click.Choice(CONVERTIBLE), help="The format to write.")
@click.option("--out", required=True, type=_Path(), help="New or empty folder for the benchmark in that format.")
@click.option("--drop", multiple=True, type=click.Choice(["reasons", "invalid"]), help="Give up what it cannot hold; repeat.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def convert(
    source: BenchmarkOptions,
    path: Path | None,
    models: tuple[str, ...],
    to: str,
    out: Path,
    drop: tuple[str, ...],
    quiet: bool,
) -> None:
    """Write gold, the class list and the models' answers in another format, with a benchmark.yml that reads them back.

    What is written is read again and compared before it takes its place. A format that cannot hold something refuses: only
    JSON lines hold invalid responses and reasons (--drop gives them up), and YOLO needs the sizes of all images. Pictures
    stay where they are.

    \b
    Example:
      evalkit convert --benchmark toytown/benchmark.yml --models eager --to coco --out eager-coco
    """
    from evalkit.formats.export import convert as write

    _keep_out(out, path)
    made = write(_read(source, path, models), out, to=to, drop=drop)
    if not quiet:
        click.echo(f"written: {click.format_filename(made)}")


@main.command()
@click.option("--benchmark", type=_Path(), help="A benchmark.yml with `points`.")
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
@click.option("--from", "source", type=_Path(), help="Only aggregate: a point_samples.jsonl of an earlier run.")
@click.option("--models", multiple=True, metavar="NAME", help="Score only this model; repeat.")
@click.option(
    "--missing",
    type=click.Choice(["partial", "unparseable"]),
    default="partial",
    show_default=True,
    help="A sample without an answer is left out, and the run is partial; or it is scored as an unparseable answer.",
)
@click.option("--out", required=True, type=_Path(), help="Folder for the results; made if need be.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default="csv", show_default=True, help="Of the scores.")
@click.option("--require-complete", is_flag=True, help="Fail (status 1) if a run is partial.")
@click.option(
    "--published",
    is_flag=False,
    flag_value=BLOCK,
    help="Check the scores against a published table, CSV or JSON; without a value, the one that benchmark.yml names.",
)
@_draw_options
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
    _keep_out(out, benchmark)
    check_settings(replicates=replicates, level=level, jobs=jobs)
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
        table = table[table["model"].isin(models)] if models else table
    else:
        runs = read_point_runs(options, models=models, folder=folder)
        if not any(run.models for run in runs.values()):
            raise EvalkitError("there are no points with predictions to score")
        bar = functools.partial(tqdm, desc="points", unit="sample", disable=quiet, leave=False)
        table, notes = every_point_sample(runs, missing=missing, progress=bar)
    intervals = evalkit.point_intervals(table, replicates=replicates, level=level, seed=seed, jobs=jobs)
    scores = evalkit.point_scores(table, intervals)
    states = states_of(table)
    settings = {"missing": missing, "models": list(dict.fromkeys(table["model"])), "replicates": replicates, "level": level}
    record = point_record(
        options,
        folder,
        {"benchmark": benchmark.name if benchmark else None, "from": source.name if source else None, **settings, "seed": seed},
        summaries=summaries(scores, states),
        wall_time_seconds=round(time.perf_counter() - start, 3),
    )
    checked = _check_published(scores, read_options(benchmark) if benchmark else None, benchmark, published, table="points")
    files = {
        f"point_scores.{kind}": scores,
        f"point_intervals.{kind}": intervals,
        **({} if checked is None else {f"published_points.{kind}": checked}),
        "point_samples.jsonl": sample_rows(table),
        "run.json": record,
    }
    write_files(out, files)
    for name, (code, _, text) in notes:
        if code == "convention_warning":
            click.echo(f"warning: {printable(f'{name}: {text}')}", err=True)
    partial = scores[(scores["subset"] == "all") & ~scores["complete"]]
    if not quiet:
        _print_table(states)
        click.echo()
        _print_table(_point_headline(scores))
        for row in partial.itertuples():
            click.echo(f"partial: {printable(str(row.model))} on {row.benchmark}, {row.samples:,} samples scored")
        click.echo(f"\nwritten to {out}: " + ", ".join(files))
    _require_reproduced(checked, table="points", quiet=quiet)
    if require_complete and len(partial):
        told = ", ".join(f"{row.model} on {row.benchmark}" for row in partial.itertuples())
        raise CheckFailed(f"runs are not complete ({told})")


@main.command()
@click.option("--out", required=True, type=_Path(), help="New or empty folder, or an earlier sample.")
@click.option("--images", type=int, default=1200, show_default=True, help="Number of pictures.")
@click.option("--seed", type=int, default=20260817, show_default=True, help="Everything follows from it.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def sample(out: Path, images: int, seed: int, quiet: bool) -> None:
    """Write Toytown, the built-in sample benchmark: drawn street pictures, exact boxes, six models, three annotators.

    The same seed gives the same pixels and the same bytes of text on every machine.
    """
    from tqdm import tqdm

    from evalkit.sample import write_sample

    bar = functools.partial(tqdm, desc="sample", unit="image", disable=quiet)
    path = write_sample(out, images=images, seed=seed, progress=bar)
    if not quiet:
        click.echo(f"written: {click.format_filename(path)}")


@main.command()
@click.option("--benchmark", required=True, type=_Path(), help="The benchmark.yml to report on.")
@click.option(
    "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A notebook parameter, its value as YAML; repeat."
)
@click.option("--allow-differences", is_flag=True, help="Render also where published values are not reproduced; pages say so.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def report(benchmark: Path, parameters: tuple[str, ...], allow_differences: bool, quiet: bool) -> None:
    """Run every notebook on a benchmark and render the book into _build/html.

    The book is made in the checkout of the project, whatever the current folder, and starts from clean folders. A cell that
    fails, an unknown parameter or a warning of the book's build ends it with status 2, published values that are not reproduced
    with status 1; the earlier book stays until the new one is complete.

    \b
    Example:
      evalkit report --benchmark toytown/benchmark.yml --parameter 'models=[cautious, eager]'
    """
    import yaml

    from evalkit.report import build

    values: dict[str, Any] = {"allow_differences": True} if allow_differences else {}
    for text in parameters:
        name, found, value = text.partition("=")
        if not found:
            raise EvalkitError(f"--parameter takes NAME=VALUE, not {text!r}")
        try:
            values[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise EvalkitError(f"--parameter {name}: {value!r} is not YAML") from None
    index = build(benchmark, parameters=values, progress=not quiet)
    if not quiet:
        click.echo(f"written: {click.format_filename(index)}")


def _with_semantic(
    benchmark: Benchmark, counts: pd.DataFrame, iou: tuple[float, ...]
) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """The counts, exact and under the benchmark's relation if it has one, and the table that comes with it."""
    if benchmark.relation is None:
        return counts, {}
    accepted = evalkit.accepted_pairs(benchmark, iou=iou)
    relaxed = evalkit.relaxed_counts(counts, accepted)
    return pd.concat([counts, relaxed], ignore_index=True), {"semantic_pairs": evalkit.related_pairs(accepted)}


def _point_parts(samples: tuple, name: str | None, predictions: tuple, readers: tuple) -> dict[str, PointOptions]:
    """The options of one point benchmark from the parts that stand for a file."""
    if not samples or not name or not predictions:
        raise EvalkitError("--samples, --benchmark-name and --predictions belong together")
    files = {model: {"path": path} for model, path in _named(predictions, "--predictions", "PATH").items()}
    for model, reader in _named(readers, "--reader", "READER").items():
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


def _states(benchmark: Benchmark) -> pd.DataFrame:
    columns = ["model", "images", "valid", "invalid", "missing", "coverage"]
    table = evalkit.coverage(benchmark)
    return table.loc[table["scope"] == "valid", columns]


def _print_answers(benchmark: Benchmark) -> None:
    """How many answers of each model have which state and reason, and which repair."""
    click.echo("\nAnswers:")
    _print_table(_as_text(answers.tally(benchmark)))
    repairs = answers.repairs(benchmark)
    click.echo(f"\nRepairs:{'' if len(repairs) else ' none'}")
    if len(repairs):
        _print_table(_as_text(repairs))


def _as_text(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{name: [printable(str(value)) or "–" for value in table[name]] for name in table.columns[:-1]})


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


def _record(
    source: BenchmarkOptions,
    path: Path | None,
    benchmark: Benchmark,
    coverage: pd.DataFrame,
    iou: tuple[float, ...],
    zero_division: str,
    require_complete: bool,
    settings: dict[str, Any],
    start: float,
) -> dict[str, Any]:
    from evalkit.reproduction import run_record

    parameters = {
        "benchmark": path.name if path else None,
        "models": benchmark.models,
        "iou": sorted(set(iou)),
        "zero_division": zero_division,
        "require_complete": require_complete,
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


def _check_published(
    computed: pd.DataFrame, source: BenchmarkOptions | None, path: Path | None, published: str | None, *, table: str
) -> pd.DataFrame | None:
    """Ours against the published table that the option or benchmark.yml names; None if none is asked for."""
    if published is None:
        return None
    options, folder = source and getattr(source.published, table), path.parent if path else Path()
    if published != BLOCK:
        options, folder = PublishedOptions(path=published), Path()
    elif options is None:
        raise EvalkitError(f"--published without a file needs `published: {{{table}: ...}}` in benchmark.yml")
    return check_file(computed, folder, options, table=table)


def _require_reproduced(checked: pd.DataFrame | None, *, table: str, quiet: bool) -> None:
    """Print how the check went, and fail where a published row differs or is missing."""
    if checked is None:
        return
    if not quiet:
        click.echo(summary(checked, table=table))
    require_reproduced({table: checked})


def _require_complete(coverage: pd.DataFrame, required: bool) -> None:
    lacking = coverage[(coverage["scope"] == "valid") & (coverage["valid"] < coverage["images"])]
    if required and len(lacking):
        told = ", ".join(f"{row.model}: {row.invalid} invalid, {row.missing} missing" for row in lacking.itertuples())
        raise CheckFailed(f"responses are not complete ({told})")


def _print_table(table: pd.DataFrame) -> None:
    click.echo(table.to_string(index=False, float_format=lambda value: f"{value:.4f}", na_rep="–"))

"""Commands on data: check, render, convert, sample."""

from __future__ import annotations

import functools
from pathlib import Path

import click
import pandas as pd

import evalkit
from evalkit import answers
from evalkit.checks import first_pass_check
from evalkit.cli.shared import PathType, benchmark_options, keep_out, main, print_table, printable_cell, read, states
from evalkit.counts import HEADLINE_IOU
from evalkit.first_pass import FirstPass
from evalkit.formats import CONVERTIBLE
from evalkit.formats.options import BenchmarkOptions
from evalkit.formats.writing import write_files
from evalkit.point_runs import every_point_sample, read_point_runs, states_of
from evalkit.reproduction import INVENTORY, compare_inventory, inventory
from evalkit.tables import Benchmark, CheckFailed, DataError, EvalkitError, printable


@main.command()
@benchmark_options
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
        benchmark = read(source, path, models)
        first = evalkit.read_first_pass(path or source, benchmark=benchmark)
        if source.points:
            points = every_point_sample(read_point_runs(source.points, folder=path.parent if path else Path()))
    except DataError as error:
        for finding in error.findings:
            click.echo(str(finding))
        click.echo("\nBy rule:")
        print_table(evalkit.fault_table(error.findings).drop(columns="meaning").map(printable_cell))
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
        print_table(states(benchmark))
    if any(source.predictions[model].reader is not None for model in benchmark.models):
        _print_answers(benchmark)
    click.echo("\nLoaded, and as a stream:")
    print_table(loaded)
    if points:
        click.echo("\nPoints:")
        print_table(states_of(points[0]))
    notes = evalkit.data_check(benchmark)
    if first:
        notes = pd.concat([notes, first_pass_check(first)], ignore_index=True)
    if points and points[1]:
        said = [("points", name, *note, "") for name, note in points[1]]
        notes = pd.concat([notes, pd.DataFrame(said, columns=notes.columns)], ignore_index=True)
    if len(notes):
        click.echo("\nNoticed and accepted:")
        print_table(notes.drop(columns="meaning").map(printable_cell))


def _print_answers(benchmark: Benchmark) -> None:
    """How many answers of each model have which state and reason, and which repair."""
    click.echo("\nAnswers:")
    print_table(_as_text(answers.tally(benchmark)))
    repairs = answers.repairs(benchmark)
    click.echo(f"\nRepairs:{'' if len(repairs) else ' none'}")
    if len(repairs):
        print_table(_as_text(repairs))


def _as_text(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{name: [printable(str(value)) or "–" for value in table[name]] for name in table.columns[:-1]})


@main.command()
@benchmark_options
@click.option("--image-id", "image_ids", multiple=True, required=True, metavar="ID", help="An image; repeat for a sheet.")
@click.option("--model", help="Draw what this model found, too.")
@click.option("--iou", type=float, default=HEADLINE_IOU, show_default=True, help="At which IoU a box is found.")
@click.option("--over", is_flag=True, help="Draw gold and model in one picture, not side by side.")
@click.option("--output", required=True, type=PathType(), help="The picture to write: .png, .svg or .pdf.")
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

    keep_out(output, path, "--output")
    benchmark = read(source, path, (model,) if model else models)
    picture = draw(benchmark, image_ids, model=model, iou=iou, over=over, kind=output.suffix.lower().removeprefix("."))
    write_files(output.parent, {output.name: picture})
    if not quiet:
        click.echo(f"written: {click.format_filename(output)}")


@main.command()
@benchmark_options
@click.option("--to", required=True, type=click.Choice(CONVERTIBLE), help="The format to write.")
@click.option("--out", required=True, type=PathType(), help="New or empty folder for the benchmark in that format.")
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

    keep_out(out, path)
    made = write(read(source, path, models), out, to=to, drop=drop)
    if not quiet:
        click.echo(f"written: {click.format_filename(made)}")
        beside, none = ("images", "first_pass", "points", "published", "inventory"), BenchmarkOptions()
        if left := [name for name in beside if getattr(source, name) != getattr(none, name)]:
            click.echo(f"not converted: {', '.join(left)}; add them to the new benchmark.yml if you need them")


@main.command()
@click.option("--out", required=True, type=PathType(), help="New or empty folder, or an earlier sample.")
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

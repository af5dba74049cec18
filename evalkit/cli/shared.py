"""What the commands share: the group, options, reading, printing, the check of published tables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pandas as pd

import evalkit
from evalkit.formats.options import BenchmarkOptions, PublishedOptions, options_from, read_options
from evalkit.intervals import LEVEL, REPLICATES, SEED
from evalkit.metrics import RATIOS
from evalkit.published import check_file, require_reproduced, summary
from evalkit.tables import Benchmark, CheckFailed, EvalkitError, printable

BLOCK = "benchmark.yml"  # --published without a value


class PathType(click.Path):
    """A path, as a Path; one with a NUL character is refused, which the system calls would otherwise end on."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if "\0" in str(value):
            self.fail(f"{str(value)!r} holds a NUL character", param, ctx)
        return super().convert(value, param, ctx)


class Commands(click.Group):
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


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
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


def benchmark_options(command: Callable) -> Callable:
    """The options that say which data: a benchmark file, or its parts."""
    options = [
        click.option("--benchmark", type=PathType(), help="A benchmark.yml. It stands for the next options."),
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
        files = {name: {"path": path} for name, path in named(predictions, "--predictions", "PATH").items()}
        for name, reader in named(readers, "--reader", "READER").items():
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


def named(texts: tuple[str, ...], option: str, what: str) -> dict[str, str]:
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


def draw_options(command: Callable) -> Callable:
    """The options of the bootstrap."""
    options = [
        click.option("--replicates", type=int, default=REPLICATES, show_default=True, help="At least 100."),
        click.option("--level", type=float, default=LEVEL, show_default=True, help="Of the percentile intervals."),
        click.option("--seed", type=int, default=SEED, show_default=True, help="The same seed gives the same intervals."),
        click.option("--jobs", type=int, default=1, show_default=True, help="Threads; they change the time, not the numbers."),
    ]
    return functools.reduce(lambda made, option: option(made), reversed(options), command)


def bootstrap_options(command: Callable) -> Callable:
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
    return draw_options(option(command))


def published_option(what: str) -> Callable:
    """The option that names a published table to check against."""
    text = f"Check the {what} against a published table, CSV or JSON; without a value, the one that benchmark.yml names."
    return click.option("--published", is_flag=False, flag_value=BLOCK, help=text)


def read(source: BenchmarkOptions, path: Path | None, models: tuple[str, ...]) -> Benchmark:
    benchmark = evalkit.read_benchmark(path or source, models=models)
    for model, code, _, text in benchmark.notes:
        if code == "convention_warning":
            click.echo(f"warning: {printable(f'{model}: {text}')}", err=True)
    return benchmark


def keep_out(out: Path, path: Path | None, option: str = "--out") -> None:
    """Refuse to write results among the data of the benchmark."""
    if path and out.resolve().is_relative_to(path.resolve().parent):
        raise EvalkitError(f"{option} {out} lies in the benchmark's own folder; results are kept apart from data")


def check_published(
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


def demand_reproduced(checked: pd.DataFrame | None, *, table: str, quiet: bool) -> None:
    """Print how the check went, and fail where a published row differs or is missing."""
    if checked is None:
        return
    if not quiet:
        click.echo(summary(checked, table=table))
    require_reproduced({table: checked})


def print_table(table: pd.DataFrame) -> None:
    click.echo(table.to_string(index=False, float_format=lambda value: f"{value:.4f}", na_rep="–"))


def printable_cell(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def states(benchmark: Benchmark) -> pd.DataFrame:
    columns = ["model", "images", "valid", "invalid", "missing", "coverage"]
    table = evalkit.coverage(benchmark)
    return table.loc[table["scope"] == "valid", columns]

"""The command that makes the book."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalkit.cli.shared import PathType, main
from evalkit.tables import EvalkitError


@main.command()
@click.option("--benchmark", required=True, type=PathType(), help="The benchmark.yml to report on.")
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

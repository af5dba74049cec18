"""The command line: thin, one call per command. Each module holds the commands of one kind."""

from evalkit.cli import agree, data, points, report, scoring  # they add their commands to the group
from evalkit.cli.shared import main

__all__ = ["agree", "data", "main", "points", "report", "scoring"]

"""``python -m evalkit`` is the command line."""

from evalkit.cli import main

main(prog_name="evalkit")

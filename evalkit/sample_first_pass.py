"""Toytown's first pass: three annotators in three groups that share people, drawn from the same scenes as gold.

An annotator has a character as the models have, only a human one. Who sees an image follows from its number.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from evalkit.sample import Model, predict, scene

FILE = "first_pass.jsonl"
ANNOTATORS = {
    "Ada": Model("annotator Ada", 0.97, 0.95, 0.10, 0.03, 0.00, 0.02, 0.02, 0, {}, clip=True),  # careful
    "Ben": Model("annotator Ben", 0.92, 0.60, 0.22, 0.06, 0.00, 0.02, 0.04, 0, {"vandalism": 0.80}, clip=True),  # in a hurry
    "Cleo": Model("annotator Cleo", 0.95, 0.90, 0.16, 0.05, 0.02, 0.16, 0.09, 0, {}, clip=True),  # sees more than there is
}
GROUPS = {"pilot": ["Ada", "Ben", "Cleo"], "north": ["Ada", "Ben"], "south": ["Ben", "Cleo"]}


def first_pass(seed: int, number: int) -> Iterator[dict]:
    """The rows of an image: every eighth is in the pilot, the others are north and south in turn."""
    shown = scene(seed, number)
    group = "pilot" if number % 8 == 0 else ("north", "south")[number % 2]
    for name in GROUPS[group]:
        row = predict(ANNOTATORS[name], shown, seed, number)
        yield {"image_id": row["image_id"], "annotator": name, "group": group, "boxes": row["boxes"]}


def write_first_pass(folder: Path, images: int, seed: int) -> list[str]:
    """Write the first pass of the images 1 to ``images`` and return what ``benchmark.yml`` says of it."""
    rows = (row for number in range(1, images + 1) for row in first_pass(seed, number))
    (folder / FILE).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8", newline="\n")
    return [f"first_pass: {FILE}"]

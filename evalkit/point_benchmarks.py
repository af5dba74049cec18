"""The ten point benchmarks as rows of one table: fields, targets, subsets, gates and sizes. An eleventh is one more row."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal, NamedTuple

from evalkit.tables import EvalkitError

PROTOCOL = "physbrain_point_metrics_final_20260817"
ALL = "all"
OBJECTS, NO_OBJECT = "objects", "no object"


class PointBenchmark(NamedTuple):
    """What is particular to a benchmark; all else is common.

    Attributes
    ----------
    target : what a point must hit: one ``mask``, ``masks`` with a gold point each (a point hits for M on the mask that the
        assignment of points to gold points gives it), or ``polygons``
    fields : the data set's own name of each of our fields that it has; the number of targets G is ``expected_count`` where
        that is among them, the number of gold points with ``masks`` (1 where there is none), and 1 otherwise
    subsets : the names that a subset may have; none for whatever ``category`` says. With ``masks`` they are OBJECTS and
        NO_OBJECT
    splits : whether each subset is a file of its own, which gives the ids of its samples their first part
    counting : the subset whose samples demand exactly the expected number of points
    binary : subsets that are answered by yes or no, and scored by the share of right answers
    resized : the ids of the complete set whose masks have another size than their image; None where a mask must not
    sizes : number of samples of the complete set, by subset or ALL, where it is known
    primary : the score that leads
    """

    name: str
    target: Literal["mask", "masks", "polygons"]
    fields: Mapping[str, str]
    subsets: tuple[str, ...] = ()
    splits: bool = False
    counting: str = ""
    binary: tuple[str, ...] = ()
    resized: frozenset[str] | None = None
    sizes: Mapping[str, int] = {}
    primary: Literal["non_strict_f1", "overall_non_strict"] = "non_strict_f1"


ROWS = [
    PointBenchmark(
        name="Pixmo-Points",
        target="masks",
        fields={"image": "image", "question": "question", "masks": "masks", "points": "points"},
        subsets=(OBJECTS, NO_OBJECT),
    ),
    PointBenchmark(
        name="PointBench",
        target="mask",
        fields={
            **{"sample_id": "id", "image": "image", "question": "question", "mask": "mask"},
            **{"category": "category", "expected_count": "expected_count"},
        },
        subsets=("affordable", "counting", "reasoning", "spatial", "steerable"),
        counting="counting",
        resized=frozenset({"54", "445", "775"}),
        sizes={ALL: 966},
    ),
    PointBenchmark(
        name="Part-Affordance-2K",
        target="mask",
        fields={
            **{"sample_id": "question_id", "image": "image", "question": "problem", "mask": "mask"},
            "category": "category_type",
        },
    ),
    PointBenchmark(
        name="RoboRefit",
        target="mask",
        fields={"image": "image_path", "question": "question", "mask": "mask_path"},
        sizes={ALL: 2000},
    ),
    PointBenchmark(
        name="RoboSpatial",
        target="mask",
        fields={"image": "img", "question": "question", "mask": "mask", "category": "category", "answer": "answer"},
        subsets=("context", "compatibility", "configuration"),
        splits=True,
        binary=("compatibility", "configuration"),
        sizes={ALL: 122 + 228, "context": 122},
        primary="overall_non_strict",
    ),
    PointBenchmark(
        name="VABench-Point",
        target="mask",
        fields={"sample_id": "id", "image": "image", "question": "problem", "mask": "mask"},
    ),
    PointBenchmark(
        name="PIOBench",
        target="polygons",
        fields={
            **{"image": "image", "question": "lang", "polygons": "polygon", "category": "s1_or_s2"},
            **{"width": "width", "height": "height"},
        },
        subsets=("s1", "s2"),
    ),
    PointBenchmark(
        name="Where2Place",
        target="mask",
        fields={"sample_id": "question_id", "image": "image", "question": "question", "mask": "mask"},
    ),
    PointBenchmark(
        name="RefSpatial-Bench",
        target="mask",
        fields={"sample_id": "id", "image": "image", "question": "prompt", "mask": "mask"},
        subsets=("location", "placement", "unseen"),
        splits=True,
    ),
    PointBenchmark(
        name="RoboAfford",
        target="mask",
        fields={"image": "image", "question": "question", "mask": "mask", "category": "category"},
    ),
]
POINT_BENCHMARKS = {row.name: row for row in ROWS}


def point_benchmark(name: str) -> PointBenchmark:
    """The row of a benchmark. Raises EvalkitError for a name that the table lacks."""
    if name not in POINT_BENCHMARKS:
        near = difflib.get_close_matches(name.casefold(), map(str.casefold, POINT_BENCHMARKS), n=1)
        guess = [known for known in POINT_BENCHMARKS if known.casefold() in near]
        told = f"did you mean {guess[0]!r}?" if guess else f"known are {', '.join(POINT_BENCHMARKS)}"
        raise EvalkitError(f"there is no point benchmark {name!r}; {told}")
    return POINT_BENCHMARKS[name]

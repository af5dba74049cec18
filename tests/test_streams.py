"""Streams: pieces of a file give the tables of the whole, in constant memory, and a summary that any difference changes."""

import gzip
import itertools
import json
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from small import write_classes, write_yml

import evalkit
from evalkit import DataError
from evalkit.cli import main
from evalkit.formats import streams
from evalkit.formats.options import read_options
from evalkit.formats.streams import read_stream, summary
from evalkit.tables import BOX_COLUMNS

CLASSES = ["litter", "kerb", "é"]


def gold_rows(number=50):
    draw = random.Random(4)
    rows = []
    for at in range(number):
        boxes = [
            {"class": draw.choice(CLASSES), "box": [x := draw.randrange(50), y := draw.random() * 50, x + 5, y + 5.5]}
            for _ in range(draw.randrange(4))
        ]
        size = {"width": 100, "height": 100} if at % 7 else {}
        rows.append({"image_id": f"é {at}" if at % 2 else at, "boxes": boxes, **size})
    return rows


def said_rows(rows):
    states = itertools.cycle(
        [{}, {"status": "invalid", "reason": "cut off"}, {"status": "missing"}, {"boxes": None}, {"error": "no"}]
    )
    said = []
    for at, row in enumerate(rows):
        boxes = [{**box, "score": 0.5} for box in row["boxes"]]
        boxes += [{"class": "unicorn", "box": [5, 5, 1, 9]}] * (at % 11 == 3)  # inverted: the response is invalid
        more = next(states) if at % 5 == 4 else {}
        said.append({"image_id": row["image_id"], **({"boxes": boxes} if not more else {}), **more})
    return [row if "boxes" in row or "status" in row or "error" in row else row | {"boxes": []} for row in said]


def write(path, rows):
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path.name


@pytest.fixture
def folder(tmp_path):
    rows = gold_rows()
    write_yml(
        tmp_path,
        classes=write_classes(tmp_path / "classes.csv", CLASSES),
        gold=write(tmp_path / "gold.jsonl", rows),
        predictions={
            "m": write(tmp_path / "m.jsonl.gz", said_rows(rows)),
            "half": {"path": write(tmp_path / "half.jsonl", said_rows(rows)[::2]), "absent": "empty"},
        },
    )
    return tmp_path


def table_of(parts):
    return pd.concat(
        [part.astype({"image_id": str} | ({"class": str} if "class" in part else {})) for part in parts], ignore_index=True
    )


@pytest.mark.parametrize("size", [1, 300, 10**6])
@pytest.mark.parametrize("name", ["gold.jsonl", "m.jsonl.gz"])
def test_pieces_are_the_tables_of_the_whole(folder, name, size):
    benchmark = evalkit.read_benchmark(folder / "benchmark.yml", models=["m"])
    gold = name == "gold.jsonl"
    pieces = list(read_stream(folder / name, folder / "classes.csv", gold=gold, size=size))
    assert len(pieces) == (50 if size == 1 else 1 if size == 10**6 else len(pieces))
    whole = (benchmark.images, benchmark.gold) if gold else (benchmark.responses, benchmark.predictions)
    for parts, table in zip(zip(*pieces, strict=True), whole, strict=True):
        table = table.drop(columns="model", errors="ignore").astype(
            {"image_id": str} | ({"class": str} if "class" in table else {})
        )
        pd.testing.assert_frame_equal(table_of(parts), table, check_categorical=False)


def test_the_summary_of_pieces_is_that_of_the_whole_and_says_what_is_there(folder):
    rows = gold_rows()
    benchmark = evalkit.read_benchmark(folder / "benchmark.yml")
    whole = summary([(benchmark.images, benchmark.gold)])
    for size in (1, 300, 10**6):
        assert summary(read_stream(folder / "gold.jsonl", benchmark.classes, size=size)) == whole
    boxes = [box for row in rows for box in row["boxes"]]
    assert whole[:-1] == (50, 50, len(boxes), len({box["class"] for box in boxes}), sum(not row["boxes"] for row in rows))


def test_the_digest_does_not_know_the_order(folder):
    first = summary(read_stream(folder / "gold.jsonl", folder / "classes.csv"))
    rows = gold_rows()
    for row in rows:
        row["boxes"].reverse()
    random.Random(0).shuffle(rows)
    write(folder / "other.jsonl", rows)
    assert summary(read_stream(folder / "other.jsonl", folder / "classes.csv")) == first


CHANGES = {
    "an id": lambda row: row.update(image_id="new"),
    "a width": lambda row: row.update(width=101),
    "a file name": lambda row: row.update(file_name="a.png"),
    "a class": lambda row: row["boxes"][0].update({"class": "litter" if row["boxes"][0]["class"] != "litter" else "kerb"}),
    "an edge by its last digit": lambda row: row["boxes"][0]["box"].__setitem__(3, np.nextafter(row["boxes"][0]["box"][3], 99)),
    "a box less": lambda row: row["boxes"].pop(),
    "a box twice": lambda row: row["boxes"].append(row["boxes"][0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_digest_knows_every_other_change(folder, change):
    first = summary(read_stream(folder / "gold.jsonl", folder / "classes.csv")).digest
    rows = gold_rows()
    row = next(row for row in rows if row["boxes"] and "width" in row)
    CHANGES[change](row)
    write(folder / "other.jsonl", rows)
    assert summary(read_stream(folder / "other.jsonl", folder / "classes.csv")).digest != first


def test_an_id_in_two_pieces_is_counted_once(folder):
    rows = gold_rows()
    write(folder / "twice.jsonl", [*rows, rows[7]])
    found = summary(read_stream(folder / "twice.jsonl", folder / "classes.csv", size=1))
    assert (found.rows, found.unique_ids) == (51, 50)
    with pytest.raises(DataError, match="duplicate image row"):  # all in one piece
        summary(read_stream(folder / "twice.jsonl", folder / "classes.csv"))
    assert summary([]) == (0, 0, 0, 0, 0, "0" * 32)


def test_load_check(folder):
    path = folder / "benchmark.yml"
    benchmark = evalkit.read_benchmark(path)
    table = evalkit.load_check(benchmark, read_options(path), folder)
    assert list(table["source"]) == ["gold", "m", "half"]
    assert list(table["stream"]) == ["agrees"] * 3
    assert (table["rows"] == table["unique_ids"]).all()
    states = benchmark.responses[benchmark.responses["model"] == "m"]["state"]
    assert table["empty"][1] == (states == "valid").sum() - benchmark.predictions.query("model == 'm'")["image_id"].nunique()


def test_a_file_that_is_no_lines_is_summed_up_too(folder):
    path = evalkit.convert(
        evalkit.read_benchmark(folder / "benchmark.yml", models=[]), folder / "to", to="coco", drop=["invalid", "reasons"]
    )
    table = evalkit.load_check(evalkit.read_benchmark(path), read_options(path), path.parent)
    assert list(table["stream"]) == ["", "", ""]
    lines = evalkit.load_check(evalkit.read_benchmark(folder / "benchmark.yml"), read_options(folder / "benchmark.yml"), folder)
    assert table["boxes"][0] == lines["boxes"][0]


def test_check_fails_where_a_stream_reads_something_else(folder, monkeypatch):
    read = streams.read_stream

    def shortened(path, *args, **options):
        for about, boxes in read(path, *args, **options):
            yield about, boxes[boxes[BOX_COLUMNS[0]] > 3]

    monkeypatch.setattr(streams, "read_stream", shortened)
    done = CliRunner().invoke(main, ["check", "--benchmark", str(folder / "benchmark.yml")])
    assert done.exit_code == 1
    assert "reading as a stream and as a table differ for gold, m" in done.stderr


def test_lines_of_later_pieces_keep_their_numbers(folder):
    rows = gold_rows()
    rows[40]["boxes"] = [{"class": "unicorn", "box": [1, 2, 3, 4]}]
    write(folder / "bad.jsonl", rows)
    with pytest.raises(DataError, match=r"bad.jsonl, line 41, boxes\[0\], image 40: class 'unicorn' is not in the class list"):
        summary(read_stream(folder / "bad.jsonl", folder / "classes.csv", size=200))
    (folder / "bad.jsonl").write_bytes((folder / "gold.jsonl").read_bytes() + b"\n\n{\n")
    with pytest.raises(DataError, match=r"bad.jsonl, line 53: this is not JSON"):
        summary(read_stream(folder / "bad.jsonl", folder / "classes.csv", size=200))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.jsonl", None, "there is no file"),
        ("x.jsonl", b"", "the file is empty"),
        ("x.jsonl", b"\xef\xbb\xbf\n \n", "the file is empty"),
        ("x.jsonl.gz", b"no gzip", "cannot read it"),
        ("x.jsonl.gz", gzip.compress(b'{"image_id": "a", "boxes": []}' * 99, mtime=0)[:-9], "cannot read it"),
    ],
)
def test_a_stream_that_cannot_be_read(folder, name, content, words):
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        list(read_stream(folder / name, folder / "classes.csv"))


def test_a_mark_and_no_last_line_end_change_nothing(folder):
    data = (folder / "gold.jsonl").read_bytes()
    (folder / "other.jsonl").write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n").rstrip())
    both = [summary(read_stream(folder / name, folder / "classes.csv", size=99)) for name in ("gold.jsonl", "other.jsonl")]
    assert both[0] == both[1]


MEMORY = """
import resource, sys
from pathlib import Path
import evalkit
from evalkit.formats.streams import summary
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
folder = Path(sys.argv[1])
evalkit.read_benchmark(folder / "benchmark.yml")
start = used()
found = summary(evalkit.read_stream(folder / "large.jsonl", folder / "classes.csv"))
print(found.rows, found.unique_ids, used() - start)
"""


@pytest.mark.slow
def test_a_million_images_stay_below_100_megabytes_above_the_start(folder):
    with (folder / "large.jsonl").open("w") as file:
        for at in range(1_000_000):
            file.write(
                f'{{"image_id": "image-{at}", "width": 99, "height": 99, '
                '"boxes": [{"class": "litter", "box": [1, 2, 3, 4.5]}]}\n'
            )
    done = subprocess.run([sys.executable, "-c", MEMORY, str(folder)], capture_output=True, text=True, check=True)
    rows, unique, above = done.stdout.split()
    assert (rows, unique) == ("1000000", "1000000")
    assert float(above) < 100

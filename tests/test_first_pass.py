"""First-pass files: what they say, what is refused, and the command that reads them."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from helpers import rule
from small import write_classes, write_yml

import evalkit
from evalkit import DataError, EvalkitError
from evalkit.agreement import AGREEMENT_COLUMNS, FEW, PAIR_COLUMNS
from evalkit.cli import main
from evalkit.first_pass import blocks
from evalkit.formats.options import read_options
from evalkit.metrics import SCORE_COLUMNS
from evalkit.reproduction import input_hashes

BOX = [0, 0, 10, 10]
HEAD = "image_id,annotator,class,x_min,y_min,x_max,y_max"


def said(image, who, *names, **more):
    return {"image_id": image, "annotator": who, "boxes": [{"class": name, "box": BOX} for name in names], **more}


@pytest.fixture
def write(tmp_path):
    """Write a benchmark with this first pass (rows, a COCO object, or the text of a CSV) and return the path of its file."""

    def write(rows, *, gold=None, classes=("a", "b"), name=None, **options):
        folder = tmp_path / "benchmark"
        folder.mkdir(exist_ok=True)
        kinds = {list: "first_pass.jsonl", dict: "first_pass.json", str: "first_pass.csv"}
        name = name or kinds[type(rows)]
        text = "".join(json.dumps(row) + "\n" for row in rows) if isinstance(rows, list) else rows
        (folder / name).write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        more = {"classes": write_classes(folder / "classes.csv", classes)} if classes else {}
        if gold is not None:
            lines = "".join(json.dumps({"image_id": image, "boxes": boxes}) + "\n" for image, boxes in gold.items())
            (folder / "gold.jsonl").write_text(lines, encoding="utf-8")
            more["gold"] = "gold.jsonl"
        return write_yml(folder, first_pass={"path": name, **options}, **more)

    return write


def rules(path):
    with pytest.raises(DataError) as error:
        evalkit.read_first_pass(path)
    return [finding.rule for finding in error.value.findings]


def message(path):
    with pytest.raises(EvalkitError) as error:
        evalkit.read_first_pass(path)
    return str(error.value)


def seen(first):
    return [tuple(map(str, row)) for row in first.seen.itertuples(index=False)]


# What the files say


def test_json_lines(write):
    first = evalkit.read_first_pass(
        write([said("i2", "B", "a"), said("i1", "A"), said("i1", "B", "b", "b"), said("i2", "A", "a")])
    )
    assert seen(first) == [("i2", "A", "A + B"), ("i2", "B", "A + B"), ("i1", "A", "A + B"), ("i1", "B", "A + B")]
    assert first.boxes[["seen", "image_id", "annotator", "class"]].astype(str).to_numpy().tolist() == [
        ["0", "i2", "A", "a"],
        ["1", "i2", "B", "a"],
        ["3", "i1", "B", "b"],
        ["3", "i1", "B", "b"],
    ]
    assert first.name == "benchmark"


def test_a_benchmark_without_a_first_pass_has_none(write_benchmark):
    assert evalkit.read_first_pass(write_benchmark({"i1": [[*BOX, "a"]]}, {})) is None


def test_groups_as_given_or_as_derived(write):
    rows = [said("i1", "A", group="pilot"), said("i1", "B", group="pilot"), said("i2", "A"), said("i2", "C"), said("i3", "A")]
    first = evalkit.read_first_pass(write(rows))
    assert first.groups == ["pilot", "A + C", "A"]
    assert dict(first.seen.groupby("image_id", observed=True)["group"].first()) == {"i1": "pilot", "i2": "A + C", "i3": "A"}


def entry(number, name, who, **more):
    return {"id": number, "file_name": name, "annotator": who, "width": 100, "height": 100, **more}


def test_coco_entries_of_one_picture_are_joined_on_its_name(write):
    said = {
        "images": [entry(1, "p.png", "A"), entry(2, "p.png", "B"), entry(3, "q.png", "A"), entry(4, "q.png", "B")],
        "categories": [{"id": 5, "name": "a"}],
        "annotations": [{"image_id": 2, "category_id": 5, "bbox": [10, 20, 30, 40]}],
    }
    first = evalkit.read_first_pass(write(said, classes=None))
    assert seen(first) == [(image, who, "A + B") for image in ("p.png", "q.png") for who in "AB"]
    assert first.boxes[["seen", "x_min", "y_min", "x_max", "y_max"]].to_numpy().tolist() == [[1, 10, 20, 40, 60]]
    assert first.images["width"].tolist() == [100, 100]


def test_coco_without_gold_and_with_gold_say_the_same(shared, tmp_path):
    path = shared / "real/kalphacv-examples/test_annotation.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    gold = {**content, "images": [one for one in content["images"] if one["annotator"] == "ann1"], "annotations": []}
    (tmp_path / "gold.json").write_text(json.dumps(gold), encoding="utf-8")
    alone = evalkit.read_first_pass(write_yml(tmp_path, first_pass=str(path)))
    joined = evalkit.read_first_pass(write_yml(tmp_path, first_pass=str(path), gold="gold.json"))
    assert list(joined.images["image_id"]) == ["1", "2", "3"]
    keys = ["group", "level", "label", "statistic", "estimate"]
    tables = [evalkit.agree(first, replicates=None)[keys] for first in (alone, joined)]
    pd.testing.assert_frame_equal(*tables, rtol=0, atol=1e-15)


def test_a_long_table_with_blank_rows(write):
    first = evalkit.read_first_pass(write(f"{HEAD}\ni1,A,a,0,0,10,10\ni1,A,b,0,0,10,10\ni1,B,,,,,\n"))
    assert seen(first) == [("i1", "A", "A + B"), ("i1", "B", "A + B")]
    assert first.boxes["seen"].tolist() == [0, 0]


def test_a_long_table_with_assignments_columns_and_where(write):
    path = write(
        "source,image_id,worker,label,x_min,y_min,x_max,y_max\ncrowd,i1,W1,a,0,0,10,10\nexpert,i1,E1,a,0,0,10,10\n",
        columns={"annotator": "worker", "class": "label"},
        where={"source": "crowd"},
        assignments="seen.csv",
    )
    (path.parent / "seen.csv").write_text("source,image_id,worker\ncrowd,i1,W1\ncrowd,i1,W2\nexpert,i1,E1\ncrowd,i2,W1\n")
    first = evalkit.read_first_pass(path)
    assert seen(first) == [("i1", "W1", "W1 + W2"), ("i1", "W2", "W1 + W2"), ("i2", "W1", "W1")]
    assert first.boxes["seen"].tolist() == [0]
    assert "first pass, assignments: seen.csv" in dict(input_hashes(read_options(path), path.parent))


def test_parquet_says_what_csv_says(write, tmp_path):
    text = f"{HEAD},group\ni1,A,a,0,0,10,10,g\ni1,B,,,,,,g\n"
    (tmp_path / "t.csv").write_text(text)
    path = write(text)
    pd.read_csv(tmp_path / "t.csv").to_parquet(path.parent / "first_pass.parquet")
    one = evalkit.read_first_pass(path)
    other = evalkit.read_first_pass(write_yml(path.parent, classes="classes.csv", first_pass="first_pass.parquet"))
    assert seen(one) == seen(other) == [("i1", "A", "g"), ("i1", "B", "g")]
    pd.testing.assert_frame_equal(one.boxes, other.boxes)


@rule("first-pass-boxes")
def test_rule_first_pass_boxes_without_area_or_outside_are_kept(write):
    rows = [said("i1", "A"), said("i1", "B")]
    rows[0]["boxes"] = [{"class": "a", "box": [5, 5, 5, 9]}, {"class": "a", "box": [-20, 0, 10, 10]}]
    first = evalkit.read_first_pass(write(rows, gold={"i1": []}))
    assert len(first.boxes) == 2


@rule("first-pass-boxes")
@pytest.mark.parametrize(
    ("box", "broken"), [([5, 5, 4, 9], "box.inverted"), (["x", 0, 1, 1], "json.type"), ([0, 0, None, 1], "box.not_finite")]
)
def test_rule_first_pass_boxes_that_are_none_are_an_error(write, box, broken):
    rows = [said("i1", "A"), said("i1", "B")]
    rows[0]["boxes"] = [{"class": "a", "box": box}]
    assert rules(write(rows)) == [broken]


# What is refused


@rule("seen")
def test_rule_an_annotator_twice_on_an_image_is_an_error(write):
    text = message(write([said("i1", "A", "a"), said("i1", "B"), said("i1", "A")]))
    assert (
        text == "first_pass.jsonl, line 3, image i1: annotator 'A' is on this image twice: first at line 1 [first_pass.twice]"
    )


def test_an_assignment_twice_is_an_error(write):
    path = write(f"{HEAD}\ni1,A,a,0,0,10,10\n", assignments="seen.csv")
    (path.parent / "seen.csv").write_text("image_id,annotator\ni1,A\ni1,A\n")
    assert rules(path) == ["first_pass.twice"]


@rule("seen")
def test_rule_a_long_table_that_cannot_tell_empty_from_unseen_asks_for_the_assignments(write):
    text = message(write(f"{HEAD}\ni1,A,a,0,0,10,10\ni1,B,a,0,0,10,10\n"))
    assert "cannot be told from one that was not seen" in text
    assert "`assignments`" in text


def test_a_box_on_an_image_that_was_not_assigned(write):
    path = write(f"{HEAD}\ni1,A,a,0,0,10,10\ni1,B,a,0,0,10,10\n", assignments="seen.csv")
    (path.parent / "seen.csv").write_text("image_id,annotator\ni1,A\n")
    assert message(path) == (
        "first_pass.csv, line 3, image i1: annotator 'B' is not assigned this image in seen.csv [first_pass.assignments]"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [{"image_id": f"i{k}", "boxes": []} for k in range(9)],
        {"images": [{"id": 1, "file_name": "p.png"}], "annotations": [], "categories": []},
        "image_id,class,x_min,y_min,x_max,y_max\ni1,a,0,0,1,1\n",
    ],
)
def test_gold_where_a_first_pass_is_expected_is_one_clear_message(write, rows):
    text = message(write(rows))
    assert "looks like gold or predictions, not like a first pass" in text
    assert text.count("\n") == 0


def test_an_unknown_class_an_unknown_image_and_a_blank_annotator_are_told_together(write):
    rows = [said("i1", "A", "A"), said("i9", "B"), said("i1", " ")]
    text = message(write(rows, gold={"i1": []}))
    assert "class 'A' is not in the class list ('A' differs only by case from 'a')" in text
    assert "gold has no image 'i9'" in text
    assert "a first-pass row needs an annotator" in text


def test_two_spellings_of_one_id_are_one_image(write):
    """é as one character and as e with an accent, of images and of annotators."""
    one, two = "\u00e91", "e\u03011"
    rows = f"{HEAD}\n{one},Ren\u00e9,a,0,0,10,10\n{two},Rene\u0301,b,0,0,10,10\n{two},B,,,,,\n"
    first = evalkit.read_first_pass(write(rows))
    assert seen(first) == [(one, "B", "B + Ren\u00e9"), (one, "Ren\u00e9", "B + Ren\u00e9")]
    assert first.boxes["class"].tolist() == ["a", "b"]
    path = write(rows.replace(f"{two},B,,,,,\n", ""), assignments="seen.csv")
    (path.parent / "seen.csv").write_text(f"image_id,annotator\n{two},Rene\u0301\n{one},B\n", encoding="utf-8")
    assert seen(evalkit.read_first_pass(path)) == seen(first)


def test_a_where_that_keeps_nothing_is_an_error(write):
    """A slip in it would turn everybody into "saw it, marked nothing"."""
    path = write(
        f"{HEAD},source\ni1,A,a,0,0,10,10,crowd\ni1,A,a,0,0,10,10,expert\n",
        assignments="seen.csv",
        where={"source": "crowdd"},
    )
    (path.parent / "seen.csv").write_text("image_id,annotator\ni1,A\n")
    assert message(path) == "first_pass.csv: `where` keeps no row: source is never 'crowdd', but crowd, expert"


def test_groups_and_blocks_stand_in_the_table_or_in_the_assignments(write):
    path = write(f"{HEAD},group,block\ni1,A,a,0,0,10,10,g1,v\n", assignments="seen.csv")
    (path.parent / "seen.csv").write_text("image_id,annotator\ni1,A\ni1,B\n")
    first = evalkit.read_first_pass(path)
    assert seen(first) == [("i1", "A", "g1"), ("i1", "B", "g1")]
    assert blocks(first, "block").tolist() == ["v"]
    (path.parent / "seen.csv").write_text("image_id,annotator,group\ni1,A,g2\ni1,B,g2\n")
    assert message(path).startswith("first_pass.csv, line 2, image i1: the group 'g1' contradicts 'g2' in seen.csv")


def test_a_group_that_changes_within_an_image_is_told(write):
    path = write(f"{HEAD},group\ni1,A,a,0,0,10,10,g1\ni1,A,a,20,0,30,10,g2\ni1,B,,,,,,g1\n")
    assert message(path) == (
        "first_pass.csv, line 3, image i1: the group 'g2' contradicts 'g1', said before of this image and annotator "
        "[first_pass.group]"
    )
    late = evalkit.read_first_pass(write(f"{HEAD},group\ni1,A,a,0,0,10,10,\ni1,A,a,20,0,30,10,g2\ni1,B,,,,,,\n"))
    assert late.groups == ["g2"]


def test_a_given_group_is_not_taken_for_a_derived_one(write):
    path = write([said("i1", "A", group="A + B"), said("i1", "C", group="A + B"), said("i2", "A"), said("i2", "B")])
    assert "the group 'A + B' is also the name of the images without a group that these annotators saw" in message(path)
    evalkit.read_first_pass(write([said("i1", "A", group="A + B"), said("i1", "C"), said("i2", "A"), said("i2", "C")]))


def test_only_images_that_somebody_saw_need_a_block(write):
    rows = [said("i1", "A", block="v"), said("i1", "B", block="v")]
    first = evalkit.read_first_pass(write(rows, gold={"i1": [], "i2": []}))
    for rule_ in ("block", "^(i1)"):
        table = evalkit.agree(first, replicates=100, block=blocks(first, rule_))
        assert table["estimate"].notna().any()
        assert len(evalkit.score_annotators(first, replicates=100, block=blocks(first, rule_)))
    with pytest.raises(EvalkitError, match="'width' is no column of the images"):
        blocks(first, "width")


def test_a_class_without_a_box_is_told(write):
    path = write(f"{HEAD}\ni1,A,a,,,,\ni1,B,,,,,\n")
    assert message(path).startswith("first_pass.csv, line 2, image i1: a class and no box: 'a'; blank box columns mean")


@pytest.mark.parametrize("gold", [False, True])
def test_an_image_has_one_size(write, gold):
    """Of two annotators, and of an annotator and gold."""
    rows = [said("i1", "A", width=5, height=5), said("i1", "B", width=50, height=5)]
    path = write(rows, gold={"i1": []} if gold else None)
    if gold:
        (path.parent / "gold.jsonl").write_text('{"image_id": "i1", "boxes": [], "width": 5, "height": 5}\n')
    text = "width 50.0 contradicts 5.0, which the image has elsewhere [image.size]"
    assert message(path) == f"first_pass.jsonl, line 2, image i1: {text}"


def test_two_coco_entries_of_one_id_cannot_be_told_apart(write):
    images = [{"id": 1, "annotator": who, "file_name": "x.png", "width": 50, "height": 50} for who in "AB"]
    boxes = [{"image_id": 1, "category_id": 0, "bbox": BOX}]
    path = write({"images": images, "annotations": boxes, "categories": [{"id": 0, "name": "a"}]})
    text = "the entry has the id of images[0], so a box does not tell whose it is [first_pass.entry]"
    assert message(path) == f"first_pass.json, images[1], image 1: {text}"


def test_assignments_without_the_column_of_where_are_refused(write):
    """E1's boxes are left out, so an assignment of E1 would read as "saw it, marked nothing"."""
    path = write(
        f"{HEAD},source\ni1,A,a,0,0,10,10,crowd\ni1,E1,a,0,0,10,10,expert\n",
        where={"source": "crowd"},
        assignments="seen.csv",
    )
    (path.parent / "seen.csv").write_text("image_id,annotator\ni1,A\ni1,E1\n")
    assert message(path) == "seen.csv, line 1: the header lacks source; it has image_id, annotator [columns]"


@pytest.mark.parametrize("what", ["annotator", "group", "block"])
def test_half_a_character_is_told(write, what):
    row = said("i1", "A") | {what: "\ud800"}
    assert f"the {what} holds half a character [text]" in message(write([row, said("i1", "B")]))


def test_numbers_may_be_names_of_groups_and_blocks(write):
    first = evalkit.read_first_pass(write([said("i1", 1, group=7, block=3), said("i1", 2, group="7", block="3")]))
    assert (first.annotators, first.groups, blocks(first, "block").tolist()) == (["1", "2"], ["7"], ["3"])


def test_sizes_and_names_of_pictures_come_through_the_assignments(write):
    path = write(f"{HEAD},width,height,file_name\ni2,A,a,0,0,10,10,40,30,p/2.png\n", assignments="seen.csv")
    (path.parent / "seen.csv").write_text("image_id,annotator\ni1,A\ni2,B\ni2,A\n")
    images = evalkit.read_first_pass(path).images.set_index("image_id")
    assert images.loc["i2", ["width", "height", "file_name"]].tolist() == [40, 30, "p/2.png"]
    assert images.loc["i1", ["width", "height", "file_name"]].isna().all()


def test_check_counts_boxes_without_area_and_outside(write):
    rows = [said("i1", "A"), said("i1", "B")]
    rows[0]["boxes"] = [{"class": "a", "box": box} for box in ([5, 5, 5, 9], [-30, 0, 10, 10], BOX)]
    found = CliRunner().invoke(main, ["check", "--benchmark", str(write(rows, gold={"i1": []}))])
    assert re.search(r"values +annotator A +zero_area +1 +i1", found.stdout)
    assert re.search(r"values +annotator A +outside_image +1 +i1", found.stdout)
    assert "annotator B" not in found.stdout


def test_an_image_has_one_group(write):
    assert rules(write([said("i1", "A", group="x"), said("i1", "B", group="y")])) == ["first_pass.group"]


@pytest.mark.parametrize(
    ("who", "group", "broken"), [("A", "pooled", "first_pass.group"), ("A + B", None, "first_pass.annotator")]
)
def test_names_that_would_be_taken_for_others(write, who, group, broken):
    assert rules(write([said("i1", who, group=group)])) == [broken]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"absent": "empty"}, "`absent` is no option of a first pass in the format jsonl"),
        ({"bad_box": "error"}, "`bad_box` is no option of a first pass"),
        ({"assignments": "x.csv"}, "`assignments` is no option of a first pass in the format jsonl"),
        ({"format": "yolo"}, "a first pass is read from jsonl, coco, csv, parquet, not from yolo"),
    ],
)
def test_options_that_are_refused(write, options, words):
    assert words in message(write([said("i1", "A")], **options))


def test_assignments_are_no_option_of_predictions(write_benchmark):
    path = write_benchmark({"i1": [[*BOX, "a"]]}, {"m": {"i1": []}})
    options = json.loads(path.read_text())
    options["predictions"]["m"] = {"path": options["predictions"]["m"], "assignments": "x.csv"}
    path.write_text(json.dumps(options))
    with pytest.raises(EvalkitError, match="`assignments` is no option of the format jsonl"):
        evalkit.read_benchmark(path)


@rule("blocks")
def test_blocks_from_a_column_and_from_the_id(write):
    rows = [said("v1_07", "A", block="x"), said("v1_07", "B", block="x"), said("v2_01", "A", block="y")]
    first = evalkit.read_first_pass(write(rows))
    assert blocks(first, "block").tolist() == ["x", "y"]
    assert blocks(first, r"^(v\d)").tolist() == ["v1", "v2"]
    for wrong, words in {
        "(": "not a regular expression",
        "v": "no column of the images",
        "^(v1)": "no block for image 'v2_01'",
    }.items():
        with pytest.raises(EvalkitError, match=words):
            blocks(first, wrong)
    assert rules(write([said("i1", "A", block="x"), said("i1", "B", block="y")])) == ["first_pass.block"]


# The command


def run(*arguments, status=0):
    result = CliRunner().invoke(main, ["agree", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


GOLD = {f"i{k}": [{"class": "a", "box": BOX}] for k in range(4)} | {"i9": []}


def test_the_tables_of_the_command(write, tmp_path):
    rows = [said(f"i{k}", who, *("a" if k + at else "")) for k in range(4) for at, who in enumerate("AB")]
    path = write([*rows, said("i9", "C")], gold=GOLD)
    printed = run("--benchmark", path, "--out", tmp_path / "out", "--replicates", 100)
    assert f"C: {FEW}" in printed
    tables = {name: pd.read_csv(tmp_path / f"out/{name}.csv") for name in ("agreement", "agreement_pairs", "annotators")}
    assert list(tables["agreement"].columns) == AGREEMENT_COLUMNS
    assert list(tables["agreement_pairs"].columns) == PAIR_COLUMNS
    assert list(tables["annotators"].columns) == ["annotator", *SCORE_COLUMNS[1:]]
    assert list(tables["annotators"]["annotator"].unique()) == ["A", "B", "C", "A + B"]
    record = json.loads((tmp_path / "out/run.json").read_text(encoding="utf-8"))
    assert record["annotators"] == ["A", "B", "C"]
    assert record["groups"] == ["A + B", "C"]
    assert record["parameters"]["replicates"] == 100
    assert set(record["inputs"]) == {"classes: classes.csv", "gold: gold.jsonl", "first pass: first_pass.jsonl"}
    assert "box_alpha" in record["rules"]


def test_the_parts_instead_of_a_benchmark(write, tmp_path):
    path = write([said("i1", "A", "a"), said("i1", "B", "a"), said("i2", "A"), said("i2", "B", "b")])
    folder = path.parent
    parts = ["--classes", folder / "classes.csv", "--first-pass", folder / "first_pass.jsonl"]
    run(*parts, "--out", tmp_path / "out", "--replicates", 100, "--quiet")
    run("--benchmark", path, "--out", tmp_path / "again", "--replicates", 100, "--quiet", "--jobs", 2)
    for name in ("agreement.csv", "agreement_pairs.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert not (tmp_path / "out/annotators.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give --benchmark, or --first-pass with --classes"),
        (["--first-pass", "x.jsonl", "--benchmark", "{}"], "give either --benchmark or its parts"),
        (["--benchmark", "{}", "--replicates", 5], "replicates must be at least 100, not 5"),
        (["--benchmark", "{}", "--iou", 0], "iou must be above 0 and at most 1, not 0"),
        (["--benchmark", "{}", "--block", "("], "block: '(' is not a regular expression"),
        (["--first-pass", "absent.jsonl"], "there is no file 'absent.jsonl'"),
    ],
)
def test_usage_that_is_refused(write, tmp_path, arguments, words):
    path = write([said("i1", "A", "a"), said("i1", "B", "a")])
    arguments = [str(one).format(path) for one in arguments]
    assert words in run(*arguments, "--out", tmp_path / "out", status=2)
    assert not (tmp_path / "out").exists()


def test_published_agreement_is_checked(write, tmp_path):
    path = write([said("i1", "A", "a"), said("i1", "B", "a"), said("i2", "A"), said("i2", "B", "b")])
    run("--benchmark", path, "--out", tmp_path / "out", "--replicates", 100, "--quiet")
    published = tmp_path / "out/agreement.csv"
    options = ["--benchmark", path, "--out", tmp_path / "again", "--replicates", 100, "--published"]
    rows = len(pd.read_csv(published))
    assert f"agreement: {rows} of {rows} published rows equal" in run(*options, published)
    text = published.read_text(encoding="utf-8")
    published.write_text(
        text.replace(
            "pooled,classification,overall,overall,exact_match,0.5", "pooled,classification,overall,overall,exact_match,0.75"
        )
    )
    assert "estimate 0.75 published, 0.5 computed" in run(*options, published, status=1)
    assert "published_agreement.csv" in {file.name for file in (tmp_path / "again").iterdir()}
    assert "needs `published: {agreement: ...}`" in run(*options, status=2)


def test_a_benchmark_without_a_first_pass_is_refused(write_benchmark, tmp_path):
    path = write_benchmark({"i1": [[*BOX, "a"]]}, {})
    assert "there is no `first_pass` in it" in run("--benchmark", path, "--out", tmp_path / "out", status=2)


def test_results_beside_the_data_are_refused(write):
    path = write([said("i1", "A"), said("i1", "B")])
    assert "results are kept apart from data" in run("--benchmark", path, "--out", path.parent / "out", status=2)


def test_check_reads_the_first_pass(write):
    path = write([said("i1", "A"), said("i1", "A")], gold={"i1": []})
    result = CliRunner().invoke(main, ["check", "--benchmark", str(path)])
    assert result.exit_code == 2
    assert "annotator 'A' is on this image twice" in result.output
    path = write([said("i1", "A"), said("i1", "B")], gold={"i1": []})
    result = CliRunner().invoke(main, ["check", "--benchmark", str(path)])
    assert result.exit_code == 0
    assert "annotators 2, groups 1" in result.output


def test_a_first_pass_is_not_changed_by_what_is_made_of_it(write):
    first = evalkit.read_first_pass(write([said("i1", "A", "a"), said("i1", "B", "a", "b")], gold={"i1": []}))
    before = [table.copy() for table in (first.seen, first.boxes, first.images)]
    evalkit.agree(first, replicates=100)
    evalkit.agree_by_pair(first, replicates=100)
    evalkit.score_annotators(first, replicates=100)
    for one, other in zip(before, (first.seen, first.boxes, first.images), strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert np.isfinite(first.boxes["x_max"]).all()

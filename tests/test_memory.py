"""Benchmarks made in memory: the same as from files, and refused as files are."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import small

import evalkit
from evalkit.tables import BOX_COLUMNS, DataError, EvalkitError

GOLD = {"a": [("litter", 0, 0, 10, 10), ("pothole", 20, 0, 30, 10)], "b": [], 3: [("litter", 0, 0, 5, 5)]}
SAID = {
    "one": {"a": [("litter", 0, 0, 10, 6, 0.5), ("crack", 1, 2, 3, 4)], "b": None, 3: {"status": "invalid", "reason": "cut"}},
    "other": {"a": [], "b": [("pothole", 0, 0, 1, 1)], 3: [("litter", 5, 0, 0, 5)]},
}
CLASSES = {"litter": "clean", "pothole": "road"}


def test_in_memory_it_is_the_benchmark_of_the_same_files(write_benchmark):
    def rows(images):
        return {
            str(name): boxes if boxes is None or isinstance(boxes, dict) else [[*box[1:5], box[0], *box[5:]] for box in boxes]
            for name, boxes in images.items()
        }

    path = write_benchmark(rows(GOLD), {model: rows(said) for model, said in SAID.items()}, classes=CLASSES)
    read = evalkit.read_benchmark(path)
    made = evalkit.benchmark_from(GOLD, SAID, classes=CLASSES, name="small")
    for table in ("classes", "images", "gold", "responses", "predictions", "slices"):
        left, right = getattr(made, table), getattr(read, table)
        left = left.drop(columns="file_name") if table == "images" else left
        right = right.drop(columns="file_name") if table == "images" else right
        pd.testing.assert_frame_equal(left, right, obj=table)
    assert (made.name, made.note, made.models, made.outside) == (read.name, read.note, read.models, read.outside)
    pd.testing.assert_frame_equal(evalkit.count(made), evalkit.count(read))


def test_tables_and_mappings_are_one():
    def table(images):
        rows = [(name, *box) for name, boxes in images.items() for box in boxes or [(None, *[np.nan] * 4)]]
        return pd.DataFrame(rows, columns=["image_id", "class", *BOX_COLUMNS])

    said = {"a": [("litter", 0, 0, 10, 6)], "b": []}
    listed = pd.DataFrame({"class_name": list(CLASSES), "domain": list(CLASSES.values())})
    one = evalkit.benchmark_from(GOLD, {"m": said}, classes=CLASSES)
    other = evalkit.benchmark_from(table(GOLD), {"m": table(said)}, classes=listed)
    for name in ("classes", "images", "gold", "responses", "predictions"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), obj=name)


def test_what_was_given_is_not_changed():
    gold, said = {"a": [("litter", 0, 0, 10, 10)]}, {"m": {"a": [["litter", 0, 0, 10]]}}
    before = json.dumps([gold, said])
    evalkit.benchmark_from(gold, said, classes=["litter"])
    assert json.dumps([gold, said]) == before


def test_numbers_of_numpy_are_numbers():
    box = ("litter", *np.arange(4, dtype=np.float32)[[0, 1, 2, 3]])
    made = evalkit.benchmark_from({np.int64(7): [box]}, {"m": {7: [[*box, np.float64(0.5)]]}}, classes=["litter"])
    assert made.images["image_id"].tolist() == ["7"]
    assert made.predictions["score"].tolist() == [0.5]


def test_a_predicted_box_of_wrong_length_or_turned_round_spoils_its_answer_as_in_files():
    said = {"a": [("litter", 1, 2, 3)], "b": [("litter", 5, 0, 0, 5)], 3: []}
    states = evalkit.benchmark_from(GOLD, {"m": said}, classes=CLASSES).responses
    assert states["state"].tolist() == ["invalid", "invalid", "valid"]
    assert states["reason"].tolist() == ["not_finite", "inverted", ""]


@pytest.mark.parametrize(("absent", "state"), [("missing", "missing"), ("empty", "valid")])
def test_an_image_that_predictions_lack(absent, state):
    made = evalkit.benchmark_from(GOLD, {"m": {"a": []}}, classes=CLASSES, absent=absent)
    assert made.responses["state"].tolist() == ["valid", state, state]


def test_without_predictions_there_are_no_models():
    assert evalkit.benchmark_from(GOLD, classes=CLASSES).models == []


def test_sizes_are_checked_against_gold_boxes():
    made = evalkit.benchmark_from(GOLD, classes=CLASSES, sizes={"a": (640, 480)})
    assert made.images["width"].tolist()[0] == 640
    assert made.images["width"].isna().tolist() == [False, True, True]
    with pytest.raises(DataError, match=r"gold, box 1, image a: the box is more than 0.5 pixels outside its image"):
        evalkit.benchmark_from(GOLD, classes=CLASSES, sizes={"a": (25, 480)})


def test_relation_and_slices():
    slices = pd.DataFrame({"image_id": ["a", 3], "attribute": "time", "value": ["day", "night"]})
    relation = {"litter": {"pothole": 0.75}}
    made = evalkit.benchmark_from(GOLD, SAID, classes=CLASSES, relation=relation, cutoff=0.5, slices=slices)
    assert made.relation.values.to_dict("index") == {
        "litter": {"litter": 1.0, "pothole": 0.75},
        "pothole": {"litter": 0.0, "pothole": 1.0},
    }
    assert made.slices["value"].tolist() == ["day", "night"]
    whole = made.relation.values.loc[["pothole", "litter"]]  # a table, in another order
    again = evalkit.benchmark_from(GOLD, SAID, classes=CLASSES, relation=whole, cutoff=0.5)
    pd.testing.assert_frame_equal(again.relation.values, made.relation.values)
    assert small.the_row(evalkit.accepted_pairs(made), model="one", task="classification")["gold_class"] == "litter"


FORM = r"a box is (class, x_min, y_min, x_max, y_max[, score]), not "
BAD = {
    "no class": ({"a": [(1, 2, 3, 4)]}, f"image a: {FORM}(1, 2, 3, 4)"),
    "a class that is no text": ({"a": [(7, 1, 2, 3, 4)]}, f"image a: {FORM}(7, 1, 2, 3, 4)"),
    "a number as text": ({"a": [("litter", 1, 2, "3", 4)]}, "box 0, image a: " + FORM),
    "a truth value as a number": ({"a": [("litter", 1, 2, True, 4)]}, FORM),
    "a box that is none": ({"a": [7]}, FORM + "7"),
    "an empty box": ({"a": [()]}, FORM + "()"),
    "a box alone": ({"a": ("litter", 1, 2, 3, 4)}, FORM + "'litter'"),
    "text": ({"a": "litter"}, "the boxes of an image are a list, not 'litter'"),
    "a float as id": ({1.0: []}, "an image id is text or an integer, not 1.0"),
    "one id twice": ({3: [], "3": []}, "duplicate image row: '3'"),
    "a list of images": ([], "must be a mapping of images to boxes or a table, not list"),
    "a table without boxes": (
        pd.DataFrame({"image_id": ["a"], "class": ["litter"]}),
        "the table lacks x_min, y_min, x_max, y_max",
    ),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("is_gold", [True, False])
def test_bad_input_has_one_clear_message(bad, is_gold):
    said, message = BAD[bad]
    whose, sides = ("gold", (said,)) if is_gold else ("predictions of m", (GOLD, {"m": said}))
    with pytest.raises(EvalkitError, match=rf"^{whose}\b.*{re.escape(message)}"):
        evalkit.benchmark_from(*sides, classes=["litter", "pothole"])


def test_bad_cells_of_a_table_name_their_rows():
    table = pd.DataFrame(
        {"image_id": ["a", "a", "a"], "class": ["litter", None, 5], "x_min": [0, 0, 0], "y_min": [0, "low", 0]}
    )
    table = table.assign(x_max=1, y_max=1)
    with pytest.raises(DataError) as caught:
        evalkit.benchmark_from(table, classes=["litter"])
    assert str(caught.value).splitlines() == [
        "gold, row 1, image a: y_min must be a number, not 'low' [number]",
        "gold, row 1, image a: a box needs a class [box.class]",
        "gold, row 2, image a: class must be text, not 5 [box.class]",
    ]


def test_faults_of_all_models_are_told_together():
    with pytest.raises(DataError) as caught:
        evalkit.benchmark_from(GOLD, {"one": {"A": []}, "two": {"zzz": []}}, classes=CLASSES)
    assert [finding.file for finding in caught.value.findings] == ["predictions of one", "predictions of two"]
    assert "differs only by case" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "litter"}, "classes must be names, a mapping of names to domains, or a table, not 'litter'"),
        ({"classes": ["litter", 7]}, "classes: names and domains are text, not 7"),
        ({"classes": []}, "the class list is empty"),
        ({"classes": ["litter", "litter"]}, "classes, class 1: class_name 'litter' was there at class 0"),
        ({"classes": pd.DataFrame({"name": ["litter"]})}, "classes: the table lacks class_name; it has name"),
        ({"absent": "none"}, "absent must be missing or empty, not 'none'"),
        ({"cutoff": 0.5}, "relation and cutoff come together"),
        ({"relation": {"litter": {"lamp": 1}}, "cutoff": 0.5}, "relation: class 'lamp' is not in the class list"),
        (
            {"relation": {"litter": {"pothole": 2}}, "cutoff": 0.5},
            "'litter' by 'pothole' must be a number from 0 to 1, not '2'",
        ),
        ({"relation": {"litter": {"pothole": "near"}}, "cutoff": 0.5}, "must be a number from 0 to 1, not 'near'"),
        ({"relation": {"litter": 1}, "cutoff": 0.5}, "relation must be a table or a mapping"),
        ({"relation": {}, "cutoff": 2}, "relation: the cut-off must be a number from 0 to 1, not '2'"),
        ({"predictions": ["m"]}, "predictions must be a mapping of models to what each predicted"),
        ({"predictions": {7: {}}}, "predictions must be a mapping of models to what each predicted"),
        ({"sizes": {"z": (1, 1)}}, "sizes, image z: gold has no such image"),
        ({"sizes": {"a": 640}}, "sizes, image a: a size is (width, height), not 640"),
        (
            {"slices": pd.DataFrame({"image_id": ["z"], "attribute": "t", "value": "d"})},
            "slices, row 0, image z: gold has no such",
        ),
        ({"predictions": {"m": {"a": {"status": "done"}}}}, "instead of boxes there may be {'status': 'invalid' or 'missing'"),
    ],
)
def test_bad_options_have_one_clear_message(options, message):
    with pytest.raises(EvalkitError, match=re.escape(message)):
        evalkit.benchmark_from(GOLD, **{"classes": CLASSES, **options})

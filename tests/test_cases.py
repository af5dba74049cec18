"""The shared cases, each a test that is named by its id and reads its input and its expected answer from the file.

Where a case and the project's decisions differ, the decisions rule, and a comment says so.
"""

import io
import itertools
import json
import os
import re
import subprocess
import sys
import time
import unicodedata

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from PIL import Image
from small import counts, coverage, f2, headline, rows, score, the_row, write_classes, write_lines, write_yml

import evalkit
from evalkit import DataError, EvalkitError, read_benchmark
from evalkit.boxes import candidate_pairs
from evalkit.cli import main

AREAS = {"geometry", "matching", "metrics", "aggregation", "IO", "scale"}
LATER = {
    "AGG-06": "the RoboSpatial mix is tested with the point benchmarks, in test_points.py",
}
HEAD = "image_id,class,x_min,y_min,x_max,y_max"


@pytest.fixture
def one_image(make_benchmark):
    """A function: gold and predicted boxes of one image and one model, as a benchmark."""
    return lambda gold, predicted, **options: make_benchmark({"i1": gold}, {"model": {"i1": predicted}}, **options)


def counts_of(expected):
    return {name: expected[name] for name in ("tp", "fp", "fn")}


def rules(error):
    """The rules broken, from ``pytest.raises(DataError)``."""
    return [finding.rule for finding in error.value.findings]


def run(*arguments, status=0):
    """Run the command line and return what it printed; the exit status must be as said, and there is no traceback."""
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


def in_new_process(code, *arguments, **environment):
    """Run Python code on its own, with these environment variables on top (None takes one away)."""
    variables = {name: text for name, text in (os.environ | environment).items() if text is not None}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, encoding="utf-8", timeout=120)


def strict_json(text):
    """Parse JSON as browsers do: NaN and Infinity are errors."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


# -- geometry ---------------------------------------------------------------------------------------------------------


def test_geo_01_exactly_at_the_threshold_is_a_match(case, one_image):
    (gold,), (predicted,), threshold = case.given["gold"], case.given["pred"], case.given["thr"]
    assert counts(one_image([gold], [predicted]), iou=threshold) == counts_of(case.expected)
    lower = [*predicted[:3], 4.999, "a"]  # IoU 49.99 / 100
    assert counts(one_image([gold], [lower]), iou=threshold) == {"tp": 0, "fp": 1, "fn": 1}


def test_geo_03_coordinates_stay_floats_and_rounding_of_the_ratio_is_forgiven(case, one_image):
    width, height = case.given["image_wh"]
    x_min, y_min, x_max, y_max, label = case.given["pred_1000"][0]
    pixels = [x_min * width / 1000, y_min * height / 1000, x_max * width / 1000, y_max * height / 1000]
    assert counts(one_image(case.given["gold"], [[*pixels, label]])) == counts_of(case.expected)
    cut = [*map(int, pixels), label]  # IoU 12 * 64 / (25.62 * 64) = 0.468
    assert counts(one_image(case.given["gold"], [cut])) == {"tp": 0, "fp": 1, "fn": 1}


def test_geo_03_the_slack_is_one_in_a_thousand_million(one_image):
    gold = [0, 0, 1, 1, "a"]
    for below, tp in ((0.0, 1), (0.9e-9, 1), (1.1e-9, 0), (1e-6, 0)):
        predicted = [0, 0, 1, 0.5 - below, "a"]
        assert counts(one_image([gold], [predicted])) == {"tp": tp, "fp": 1 - tp, "fn": 1 - tp}


def test_geo_04_continuous_edges_without_plus_one(case, one_image):
    assert counts(one_image(case.given["gold"], case.given["pred"]), iou=case.given["thr"]) == counts_of(case.expected)
    for factor in (0.01, 100):
        scaled = [[[*(factor * value for value in box[:4]), box[4]] for box in case.given[side]] for side in ("gold", "pred")]
        assert counts(one_image(*scaled), iou=case.given["thr"]) == counts_of(case.expected)


def test_geo_06_a_prediction_without_area_is_a_false_positive(case, one_image):
    benchmark = one_image(case.given["gold"], case.given["pred"])
    assert coverage(benchmark)["valid"] == 1
    assert counts(benchmark) == counts_of(case.expected)
    points = np.array([box[:4] for box in case.given["pred"]], float)
    assert evalkit.iou(points, points).tolist() == [0.0, 0.0]
    assert the_row(evalkit.data_notes(benchmark), code="zero_area")["count"] == len(case.given["pred"])


def test_geo_06_a_gold_box_without_area_is_a_data_error(case, one_image):
    good, empty = case.given["gold"][0], case.given["pred"][0]
    with pytest.raises(DataError, match=r"gold\.jsonl, line 1, boxes\[1\], image i1: .*no area") as error:
        one_image([good, empty], [])
    assert rules(error) == ["box.zero_area"]


def test_geo_07_an_inverted_prediction_makes_the_response_invalid(case, one_image):
    assert "invalid" in case.expected["status_in"]
    benchmark = one_image(case.given["gold"], case.given["pred"])
    assert coverage(benchmark)[["valid", "invalid", "missing"]].tolist() == [0, 1, 0]
    row = score(benchmark)
    assert pd.isna(row["tp"])
    assert "empty scope" in row["reason"]
    assert counts(benchmark, scope="all") == {"tp": case.expected["tp"], "fp": 0, "fn": 1}
    box = np.array([case.given["pred"][0][:4]], float)
    assert evalkit.iou(box, box) == 0


def test_geo_07_an_inverted_prediction_is_an_error_if_the_file_asks_for_it(case, write_benchmark):
    path = write_benchmark({"i1": case.given["gold"]}, {"model": {"i1": case.given["pred"]}})
    said = json.loads(path.read_text())
    said["predictions"]["model"] = {"path": "model.jsonl", "bad_box": "error"}
    with pytest.raises(DataError, match=r"model\.jsonl, line 1, boxes\[0\], image i1") as error:
        read_benchmark(write_yml(path.parent, **said))
    assert rules(error) == ["box.inverted"]


def turned_picture(folder, given):
    """Write a JPEG whose EXIF orientation turns it, and return its displayed size."""
    folder.mkdir()
    width, height = given["stored_wh"]
    picture = Image.new("RGB", (width, height))
    exif = Image.Exif()
    exif[0x0112] = given["exif_orientation"]
    picture.save(folder / "i1.jpg", exif=exif)
    return height, width


def relative_line(box):
    return " ".join([box[4], *(str(value / 1000) for value in box[:4])])


CORNERS = ["class", "x_min", "y_min", "x_max", "y_max"]


@pytest.fixture
def turned(case, tmp_path):
    """Relative predictions for a picture that EXIF turns, sizes from the picture."""
    turned_picture(tmp_path / "pictures", case.given)
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "i1.txt").write_text(relative_line(case.given["pred_1000"][0]) + "\n")
    said = {"path": "labels", "format": "yolo", "columns": CORNERS, "sizes": "pictures"}
    return write_yml(
        tmp_path,
        classes=write_classes(tmp_path / "classes.csv", ["a"]),
        gold=write_lines(tmp_path / "gold.jsonl", {"i1": case.given["gold_in_displayed_frame"]}),
        predictions={"model": said},
    )


def test_geo_09_the_displayed_size_counts(case, turned):
    benchmark = read_benchmark(turned)
    assert counts(benchmark) == counts_of(case.expected)
    gold = np.array([case.given["gold_in_displayed_frame"][0][:4]], float)
    predicted = benchmark.predictions[["x_min", "y_min", "x_max", "y_max"]].to_numpy()
    assert evalkit.iou(gold, predicted) == pytest.approx(1.0, abs=1e-12)


def test_geo_09_a_turned_picture_is_reported(turned):
    notes = evalkit.data_notes(read_benchmark(turned))
    told = [" ".join(map(str, row)).casefold() for row in notes.to_numpy()]
    assert [row for row in told if "i1" in row and ("exif" in row or "turned" in row)], notes.to_string()


def test_geo_09_gold_in_a_text_folder_takes_the_displayed_size_too(case, tmp_path):
    displayed = turned_picture(tmp_path / "pictures", case.given)
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "i1.txt").write_text(relative_line(case.given["pred_1000"][0]) + "\n")
    benchmark = read_benchmark(
        write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", ["a"]),
            gold={"path": "labels", "format": "yolo", "columns": CORNERS, "sizes": "pictures"},
            predictions={"model": write_lines(tmp_path / "model.jsonl", {"i1": case.given["gold_in_displayed_frame"]})},
        )
    )
    assert tuple(benchmark.images[["width", "height"]].iloc[0]) == displayed
    assert counts(benchmark) == counts_of(case.expected)


def test_geo_10_coordinates_are_scored_as_declared_and_no_frame_is_undone(case, one_image):
    # The case's `expected` is what a user gets who undoes the padding; the decisions: padded frames are not supported.
    width, height = case.given["image_wh"]
    x_min, y_min, x_max, y_max, label = case.given["pred_1000_in_padded"][0]
    declared = [x_min * width / 1000, y_min * height / 1000, x_max * width / 1000, y_max * height / 1000, label]
    assert counts(one_image(case.given["gold"], [declared])) == {"tp": 0, "fp": 1, "fn": 1}  # [100, 50, 200, 70]: IoU 0
    side = max(width, height)
    band = (side - height) / 2
    undone = [x_min * side / 1000, y_min * side / 1000 - band, x_max * side / 1000, y_max * side / 1000 - band, label]
    assert counts(one_image(case.given["gold"], [undone])) == counts_of(case.expected)


@pytest.fixture
def y_first(case, tmp_path):
    """A benchmark whose gold is a CSV in y-first order; its text is the argument."""

    def write(text, **columns):
        (tmp_path / "gold.csv").write_text(text)
        return write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", ["a"]),
            gold={"path": "gold.csv", **columns},
            predictions={"model": write_lines(tmp_path / "model.jsonl", {"i1": case.given["pred_xyxy"]})},
        )

    return write


def test_geo_12_columns_are_read_by_name(case, y_first):
    header, said = case.given["csv_header"], case.given["gold_row"] | {"image": "i1"}
    line = ",".join(str(said[name]) for name in header.split(","))
    theirs = {"image_id": "image", "x_min": "xmin", "y_min": "ymin", "x_max": "xmax", "y_max": "ymax"}
    benchmark = read_benchmark(y_first(f"{header}\n{line}\n", columns=theirs))
    assert counts(benchmark) == counts_of(case.expected)
    boxes = [table[["x_min", "y_min", "x_max", "y_max"]].to_numpy() for table in (benchmark.gold, benchmark.predictions)]
    assert evalkit.iou(*boxes) == 1.0
    with pytest.raises(DataError, match=r"gold\.csv: the header lacks image_id, x_min, y_min, x_max, y_max"):
        read_benchmark(y_first(f"{header}\n{line}\n"))


def test_geo_12_a_file_without_header_is_rejected(case, y_first):
    said = case.given["gold_row"] | {"image": "i1"}
    line = ",".join(str(said[name]) for name in case.given["csv_header"].split(","))
    with pytest.raises(DataError, match=r"gold\.csv.*header"):
        read_benchmark(y_first(f"{line}\n"))


# -- matching ---------------------------------------------------------------------------------------------------------


def test_mat_01_as_many_pairs_as_can_be(case, one_image):
    for predicted in itertools.permutations(case.given["pred"]):
        benchmark = one_image(case.given["gold"], list(predicted))
        assert counts(benchmark, iou=case.given["thr"]) == counts_of(case.expected)


def test_mat_03_a_repeated_box_is_a_false_positive(case, one_image):
    benchmark = one_image(case.given["gold"], case.given["pred"])
    assert counts(benchmark) == counts_of(case.expected)
    row = score(benchmark)
    assert row["precision"] == 1 / (1 + 2)
    assert row["recall"] == 1 / 1
    assert row["f2"] == 5 / (5 + 2)
    assert counts(benchmark, task="classification") == {"tp": 1, "fp": 0, "fn": 0}
    assert the_row(evalkit.data_notes(benchmark), code="repeated_box")["count"] == 2


def test_mat_04_a_prediction_is_used_once(case, one_image):
    benchmark = one_image(case.given["gold"], case.given["pred"])
    assert counts(benchmark) == counts_of(case.expected)
    assert score(benchmark)["recall"] == 1 / 2


@pytest.mark.parametrize("zero", ["annotation", "image", "class", "all"])
def test_mat_06_an_id_of_zero_is_an_id(case, tmp_path, zero):
    (gold,), (predicted,) = case.given["gold"], case.given["pred"]
    assert gold["id"] == 0
    image = 0 if zero in ("image", "all") else gold["image_id"]
    category = 0 if zero in ("class", "all") else 1
    x_min, y_min, x_max, y_max = gold["bbox_xyxy"]
    box = {"id": gold["id"], "image_id": image, "category_id": category, "bbox": [x_min, y_min, x_max - x_min, y_max - y_min]}
    names = [{"id": category, "name": gold["class"]}]
    document = {"images": [{"id": image}], "annotations": [box], "categories": names}
    (tmp_path / "gold.json").write_text(json.dumps(document))
    x_min, y_min, x_max, y_max = predicted["bbox_xyxy"]
    result = {"image_id": image, "category_id": category, "bbox": [x_min, y_min, x_max - x_min, y_max - y_min], "score": 0.0}
    (tmp_path / "model.json").write_text(json.dumps([result]))
    benchmark = read_benchmark(write_yml(tmp_path, gold="gold.json", predictions={"model": "model.json"}))
    assert counts(benchmark) == counts_of(case.expected)
    assert evalkit.match(benchmark, iou=[0.5])["outcome"].tolist() == ["tp"]


def test_mat_07_every_prediction_and_every_gold_box_is_accounted_for(case, make_benchmark):
    gold = {"i1": case.given["gold"], "i2": [], "i3": case.given["gold"]}
    benchmark = make_benchmark(gold, {"model": {"i1": case.given["pred"], "i2": case.given["pred"], "i3": []}})
    table = evalkit.count(benchmark, iou=[0.5])
    boxes = rows(table, task="localisation").set_index("image_id")[["tp", "fp", "fn"]]
    assert boxes.loc["i1"].to_dict() == counts_of(case.expected)
    n_gold, n_predicted = len(case.given["gold"]), len(case.given["pred"])
    assert (boxes["tp"] + boxes["fp"]).to_dict() == {"i1": n_predicted, "i2": n_predicted, "i3": 0}
    assert (boxes["tp"] + boxes["fn"]).to_dict() == {"i1": n_gold, "i2": 0, "i3": n_gold}
    matches = evalkit.match(benchmark, iou=[0.5])
    assert matches["outcome"].value_counts().to_dict() == {"fp": 2 * n_predicted, "fn": 2 * n_gold, "tp": 0}


def test_mat_09_no_order_of_rows_changes_counts_or_pairs(case, make_benchmark):
    assert sorted(case.given["pred_order_1"]) == sorted(case.given["pred_order_2"])
    tie = [[100, 0, 110, 10, "a"], [104, 0, 114, 10, "a"]]  # the box between them reaches either with the same IoU
    between = [102, 0, 112, 10, "a"]
    seen = set()
    for gold, predicted, images in itertools.product(
        list(itertools.permutations([*case.given["gold"], *tie]))[::4],
        [[*case.given["pred_order_1"], between], [between, *case.given["pred_order_2"]]],
        (["i1", "i2"], ["i2", "i1"]),
    ):
        benchmark = make_benchmark({image: gold for image in images}, {"model": {image: predicted for image in images}})
        total = counts(benchmark)
        assert total["tp"] == 2 * (case.expected["tp"] + 1)
        pairs = evalkit.match(benchmark, iou=[0.5]).drop(columns="model").to_csv(index=False).splitlines()
        seen.add((tuple(total.values()), *sorted(pairs)))
    assert len(seen) == 1


def test_mat_09_of_the_maximum_matchings_the_one_with_the_largest_iou_sum(case, one_image):
    gold, predicted = [[0, 0, 10, 10, "a"], [2, 0, 12, 10, "a"]], [[2, 0, 12, 10, "a"], [0, 0, 10, 10, "a"]]
    pairs = rows(evalkit.match(one_image(gold, predicted), iou=[0.5]), outcome="tp")
    assert pairs["overlap"].tolist() == [1.0, 1.0]  # crossed, it would be 2/3 twice
    assert pairs["gold_x_min"].tolist() == pairs["predicted_x_min"].tolist() == [0, 2]
    expected = one_image(case.given["gold"], case.given["pred_order_1"])
    pairs = rows(evalkit.match(expected, iou=[0.5]), outcome="tp")
    assert dict(zip(pairs["gold_x_min"], pairs["predicted_x_min"], strict=True)) == {0: 1, 1: 4}


@pytest.fixture
def crowded(case, tmp_path):
    """A COCO benchmark with a crowd box; the argument are the options of gold."""

    def write(**options):
        boxes = [
            {"id": at, "image_id": 1, "category_id": 1, "iscrowd": box.get("iscrowd", 0)}
            | {"bbox": [*box["bbox"][:2], box["bbox"][2] - box["bbox"][0], box["bbox"][3] - box["bbox"][1]]}
            for at, box in enumerate(case.given["gold"])
        ]
        names = [{"id": 1, "name": case.given["gold"][0]["class"]}]
        (tmp_path / "gold.json").write_text(json.dumps({"images": [{"id": 1}], "annotations": boxes, "categories": names}))
        predictions = {"model": write_lines(tmp_path / "model.jsonl", {1: case.given["pred"]})}
        return write_yml(tmp_path, gold={"path": "gold.json", **options}, predictions=predictions)

    return write


def test_mat_10_a_crowd_box_is_refused_unless_told_to_drop_it(case, crowded):
    assert case.expected["or"] == "reject iscrowd with message"
    with pytest.raises(DataError, match=r"gold\.json, annotations\[0\], image 1: .*iscrowd.*crowd: drop") as error:
        read_benchmark(crowded())
    assert rules(error) == ["box.crowd"]


def test_mat_10_a_dropped_crowd_box_is_no_support_and_shields_nothing(case, crowded):
    # The case lets the dropped box absorb the predictions on it; by the decisions it is left out, so they are false.
    benchmark = read_benchmark(crowded(crowd="drop"))
    row = score(benchmark)
    assert row["n_gold"] == case.expected["support"]
    assert (row["tp"], row["fp"], row["fn"]) == (case.expected["tp"], 2, case.expected["fn"])
    assert the_row(evalkit.data_notes(benchmark), code="crowd_dropped")["count"] == 1


@pytest.mark.parametrize("listed", [["a", "b"], ["a"]])
def test_mat_12_predictions_where_there_is_no_gold(case, make_benchmark, listed):
    assert list(case.given["gold"]) == case.given["images"]
    benchmark = make_benchmark(case.given["gold"], {"model": case.given["pred"]}, classes=listed)
    row = score(benchmark)
    assert counts(benchmark) == counts_of(case.expected["micro"])
    assert row["f2"] == pytest.approx(case.expected["micro"]["f2"], abs=1e-7)
    assert (row["precision"], row["recall"], row["f2"]) == (1 / 2, 1 / 1, 5 / (5 + 0 + 1))
    assert counts(benchmark, level="class", average="", label="a") == {"tp": 1, "fp": 0, "fn": 0}
    where = {"level": "class", "average": ""} if "b" in listed else {"level": "outside"}
    row = score(benchmark, label="b" if "b" in listed else "outside", **where)
    assert (row["tp"], row["fp"], row["fn"], row["reason"]) == (0, 1, 0, "no gold")


# -- metrics ----------------------------------------------------------------------------------------------------------


def apart(tp, fp, fn, label="a", first=0):
    """Gold and predicted boxes, far from one another, that have these counts."""
    boxes = [[20 * at, 0, 20 * at + 10, 10, label] for at in range(first, first + tp + fp + fn)]
    return [*boxes[:tp], *boxes[tp + fp :]], boxes[: tp + fp]


def test_met_01_ratios_of_one_operating_point(case, one_image):
    tp, fp, fn = (case.given[name] for name in ("tp", "fp", "fn"))
    benchmark = one_image(*apart(tp, fp, fn))
    assert counts(benchmark) == case.given
    row = score(benchmark)
    assert {name: row[name] for name in case.expected} == case.expected
    assert row["f1"] == 2 * tp / (2 * tp + fp + fn)
    assert row["f2"] == 5 * tp / (5 * tp + fp + 4 * fn) == 30 / 48
    assert evalkit.fbeta(tp, fp, fn, beta=0.5) == pytest.approx(1.25 * tp / (1.25 * tp + fp + 0.25 * fn), abs=1e-15)


def test_met_03_macro_is_over_the_classes_represented(case, one_image):
    benchmark = one_image(case.given["gold"], case.given["pred"], classes=case.given["class_list"])
    assert counts(benchmark) == counts_of(case.expected["micro"])
    macro, macro_gold = (score(benchmark, average=name) for name in ("macro", "macro_gold"))
    assert macro["f2"] == case.expected["macro_f2"] == (1 + 0) / 2
    assert macro_gold["f2"] == case.expected["macro_gold_f2"] == 1 / 1
    for ratio in ("precision", "recall", "f1"):  # the same population for all of them
        assert (macro[ratio], macro_gold[ratio]) == (1 / 2, 1 / 1)


def test_met_04_class_ids_are_labels_with_gaps(case, tmp_path):
    sides = {
        side: {"i1": {"boxes": [{"box": box[:4], "class_id": box[4]} for box in case.given[side]]}} for side in ("gold", "pred")
    }
    ids = sorted({box[4] for box in case.given["gold"]})
    (tmp_path / "classes.csv").write_text("class_id,class_name\n" + "".join(f"{one},class {one}\n" for one in ids))
    path = write_yml(
        tmp_path,
        classes="classes.csv",
        gold=write_lines(tmp_path / "gold.jsonl", sides["gold"]),
        predictions={"model": write_lines(tmp_path / "model.jsonl", sides["pred"])},
    )
    benchmark = read_benchmark(path)
    assert score(benchmark, average="macro")["f2"] == case.expected["macro_f2"]
    table = evalkit.scores(benchmark, evalkit.count(benchmark, iou=[0.5]))
    labels = rows(table, task="localisation", scope="valid", level="class")["label"].tolist()
    assert labels == [f"class {one}" for one in ids]
    assert len(labels) == case.expected["n_classes"]


@pytest.mark.parametrize("reverse", [False, True])
def test_met_06_an_empty_answer_on_an_image_with_gold_is_a_miss(case, make_benchmark, reverse):
    images = sorted(case.given["images"], reverse=reverse)
    gold, predicted = ({image: case.given[side][image] for image in images} for side in ("gold", "pred"))
    benchmark = make_benchmark(gold, {"model": predicted})
    row = score(benchmark)
    assert counts(benchmark) == counts_of(case.expected)
    assert row["f2"] == pytest.approx(case.expected["f2"], abs=1e-7)
    assert (row["precision"], row["recall"], row["f2"]) == (1 / 1, 1 / 2, 5 / (5 + 4))
    assert row["n_images"] == 2


def test_met_07_a_set_of_negative_images_has_its_false_positive_figures(case, write_benchmark, tmp_path):
    gold = {image: case.given["gold"].get(image, []) for image in case.given["images"]}
    path = write_benchmark(gold, {"model": case.given["pred"]}, classes=["a"])
    benchmark = read_benchmark(path)
    negative = coverage(benchmark)
    assert negative["negative_fpr"] == pytest.approx(case.expected["neg_fpr"], abs=1e-7)
    assert negative["negative_fpr"] == negative["negative_with_boxes"] / negative["negative_images"] == 1 / 3
    assert negative["fp_boxes_per_negative"] == 2 / 3
    row = score(benchmark)
    assert {name: row[name] for name in ("recall", "precision", "f2")} == {
        name: case.expected[name] for name in ("recall", "precision", "f2")
    }
    assert row["reason"] == case.expected["recall_reason"]
    run("score", "--benchmark", path, "--out", tmp_path / "out", "--format", "json", "--quiet")
    written = headline(pd.DataFrame(strict_json((tmp_path / "out" / "scores.json").read_text())))
    assert pd.isna(written["recall"])
    assert (written["precision"], written["f2"]) == (0, 0)


@pytest.fixture
def undefined_ratios(case, write_benchmark):
    """A class for each case of counts, one after another on one image."""
    said = {f"c{at}": one for at, one in enumerate(case.given["cases"])}
    sides = [apart(**one, label=name, first=10 * at) for at, (name, one) in enumerate(said.items())]
    gold, predicted = (list(itertools.chain.from_iterable(side)) for side in zip(*sides, strict=True))
    return write_benchmark({"i1": gold}, {"model": {"i1": predicted}}, classes=list(said))


def test_met_09_a_ratio_without_denominator_is_zero_with_a_reason_or_undefined(case, undefined_ratios):
    benchmark = read_benchmark(undefined_ratios)
    reasons = ["no predictions", "", "no gold", "no gold, no predictions"]
    for at, (given, reason) in enumerate(zip(case.given["cases"], reasons, strict=True)):
        where = {"level": "class", "average": "", "label": f"c{at}"}
        zero, undefined = score(benchmark, **where), score(benchmark, zero_division=float("nan"), **where)
        assert counts(benchmark, **where) == given
        assert zero["reason"] == undefined["reason"] == reason
        for name, expected in case.expected.items():
            assert zero[name] == (expected[at] or 0.0)
            assert undefined[name] == expected[at] if expected[at] is not None else np.isnan(undefined[name])


@pytest.mark.parametrize("zero_division", [0.0, float("nan")])
def test_met_09_a_class_that_is_not_represented_is_in_no_average(case, undefined_ratios, zero_division):
    represented = [value for value in case.expected["f2"] if value is not None]
    row = score(read_benchmark(undefined_ratios), zero_division=zero_division, average="macro")
    assert row["f2"] == sum(represented) / len(represented)


@pytest.mark.parametrize(("kind", "undefined"), [("csv", 0.0), ("json", None)])
def test_met_09_the_written_tables_have_zero_in_csv_and_null_in_json(case, undefined_ratios, tmp_path, kind, undefined):
    run("score", "--benchmark", undefined_ratios, "--out", tmp_path / "out", "--format", kind, "--quiet")
    path = tmp_path / "out" / f"scores.{kind}"
    table = pd.read_csv(path) if kind == "csv" else pd.DataFrame(strict_json(path.read_text()))
    for at in range(len(case.given["cases"])):
        row = the_row(table, scope="valid", task="localisation", iou=0.5, label=f"c{at}")
        for name, values in case.expected.items():
            expected = undefined if values[at] is None else values[at]
            assert pd.isna(row[name]) if expected is None else row[name] == expected, (at, name)


def test_met_10_class_sets_are_pooled_over_images_and_classes(case, make_benchmark):
    sides = {
        side: {
            image: [[20 * at, 0, 20 * at + 10, 10, label] for at, label in enumerate(said[side])]
            for image, said in case.given["images"].items()
        }
        for side in ("gold", "pred")
    }
    benchmark = make_benchmark(sides["gold"], {"model": sides["pred"]})
    row = score(benchmark, task="classification")
    assert counts(benchmark, task="classification") == counts_of(case.expected)
    assert (row["precision"], row["recall"], row["f2"]) == (1 / 2, 1 / 2, 5 / (5 + 1 + 4))
    negative = coverage(benchmark)
    assert (negative["negative_images"], negative["negative_with_boxes"]) == (1, 0)


def test_met_13_the_confidence_is_carried_and_every_table_has_the_same_precision(case, write_benchmark, tmp_path):
    path = write_benchmark({"i1": case.given["gold"]}, {"model": {"i1": case.given["pred"]}})
    out = tmp_path / "out"
    run("score", "--benchmark", path, "--out", out, "--quiet")
    table = pd.read_csv(out / "scores.csv")
    boxes = rows(table, task="localisation", scope="valid", level="overall", average="micro")
    assert sorted(boxes["iou"]) == [0.3, 0.4, 0.5]
    for _, row in boxes.iterrows():
        assert (row["tp"], row["fp"]) == (case.expected["tp"], case.expected["fp"])
        summed = rows(pd.read_parquet(out / "counts.parquet"), task="localisation", iou=row["iou"])[["tp", "fp"]].sum()
        shown = rows(pd.read_parquet(out / "matches.parquet"), iou=row["iou"])["outcome"].value_counts()
        assert row["precision"] == summed["tp"] / summed.sum() == shown["tp"] / (shown["tp"] + shown["fp"]) == 1 / (1 + 1)
    matches = rows(pd.read_parquet(out / "matches.parquet"), iou=0.5)
    assert matches["score"].tolist() == [box[5] for box in case.given["pred"]]
    assert min(matches["score"]) < case.given["conf_threshold"]


def test_met_15_every_value_says_what_it_is(case, write_benchmark, tmp_path):
    box = [0, 0, 10, 10, "a"]
    path = write_benchmark({"i1": [box], "i2": []}, {"model": {"i1": [box], "i2": {"status": "invalid", "reason": "cut off"}}})
    run("score", "--benchmark", path, "--out", tmp_path / "out", "--quiet")
    table = pd.read_csv(tmp_path / "out" / "scores.csv")
    always = ["model", "scope", "task", "relation", "level", "label", "n_images", "n_gold"]
    assert table[always].notna().all(axis=None)
    assert rows(table, task="localisation")["iou"].notna().all()
    assert rows(table, level="overall")["average"].isin(["micro", "macro", "macro_gold"]).all()
    assert table.groupby("scope")["n_images"].unique().map(list).to_dict() == {"valid": [1], "common": [1], "all": [2]}
    assert (rows(table, level="overall")["n_gold"] == 1).all()
    rules_in_force = strict_json((tmp_path / "out" / "run.json").read_text())["rules"]
    stated = {"iou": ">=", "matcher": "maximum cardinality", "confidence": "never used"}
    assert {name: word in rules_in_force[name] for name, word in stated.items()} == dict.fromkeys(stated, True)
    assert {"scope valid", "scope common", "view all", "macro", "macro_gold"} <= rules_in_force.keys()
    in_columns = {"scope", "average", "n_images", "n_gold"} & set(table.columns)
    assert len(in_columns | stated.keys()) >= case.expected["provenance_fields"]


# -- aggregation ------------------------------------------------------------------------------------------------------


def test_agg_01_failed_responses_lower_the_view_and_leave_the_valid_scope(case, make_benchmark):
    box, elsewhere = [0, 0, 10, 10, "a"], [50, 50, 60, 60, "a"]
    invalid = {"status": "invalid", "reason": "malformed"}
    answers = [[box]] * case.given["correct"] + [[elsewhere]] * case.given["wrong"] + [invalid] * case.given["invalid"]
    assert len(answers) == case.given["images"]
    images = [f"i{at}" for at in range(len(answers))]
    benchmark = make_benchmark({image: [box] for image in images}, {"model": dict(zip(images, answers, strict=True))})
    valid, view = score(benchmark, scope="valid"), score(benchmark, scope="all")
    assert (valid["recall"], valid["n_images"]) == (case.expected["valid"], 8)
    assert (view["recall"], view["n_images"]) == (case.expected["all"], 10)
    assert (valid["recall"], view["recall"]) == (4 / (4 + 4), 4 / (4 + 6))
    states = coverage(benchmark)
    assert states["invalid"] / states["images"] == case.expected["invalid_rate"]
    assert states["coverage"] == 8 / 10
    assert np.isnan(coverage(benchmark, scope="all")["negative_fpr"])


def test_agg_03_an_unfinished_run_shows_its_coverage(case, write_benchmark, tmp_path):
    box, elsewhere = [0, 0, 10, 10, "a"], [50, 50, 60, 60, "a"]
    gold = {f"q{at}": [box] for at in range(1, case.given["gold_items"] + 1)}
    answers = {image: [box if image in case.given["correct"] else elsewhere] for image in case.given["results_for"]}
    path = write_benchmark(gold, {"model": answers})
    benchmark = read_benchmark(path)
    assert score(benchmark, scope="all")["recall"] == case.expected["all"] == 1 / 4
    states = coverage(benchmark)
    assert states[["valid", "invalid", "missing", "coverage"]].tolist() == [2, 0, case.expected["missing"], 2 / 4]
    printed = run("score", "--benchmark", path, "--out", tmp_path / "a")
    header, line = printed.splitlines()[:2]
    assert dict(zip(header.split(), line.split(), strict=True)) == {
        **{"model": "model", "images": "4", "valid": "2", "invalid": "0", "missing": "2", "coverage": "0.5000"}
    }
    printed = run("score", "--benchmark", path, "--out", tmp_path / "b", "--require-complete", status=1)
    assert "model: 0 invalid, 2 missing" in printed


def test_agg_04_a_missing_library_stops_the_run(case, write_benchmark, tmp_path):
    box = [0, 0, 10, 10, "a"]
    path = write_benchmark({"i1": [box], "i2": [box], "i3": [box]}, {"model": {"i1": [box], "i2": [box], "i3": [box]}})
    without = "import sys; sys.modules['scipy'] = None; from evalkit.cli import main; main(sys.argv[1:])"
    done = in_new_process(without, "score", "--benchmark", path, "--out", tmp_path / "out")
    assert (done.returncode != 0) is case.expected["exit_nonzero"]
    assert "scipy" in done.stderr
    assert not (tmp_path / "out").exists()


def test_agg_04_a_bug_in_the_scorer_is_no_score_of_zero(write_benchmark, tmp_path, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("a bug")

    boxes = [[0, 0, 10, 10, "a"], [1, 0, 11, 10, "a"]]
    path = write_benchmark({"i1": boxes}, {"model": {"i1": boxes}})
    monkeypatch.setattr("evalkit.matching.maximum_bipartite_matching", broken)
    result = CliRunner().invoke(main, ["score", "--benchmark", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert isinstance(result.exception, RuntimeError)
    assert not (tmp_path / "out").exists()


def test_agg_07_slices_of_images_and_domains_add_up_to_the_whole(case, make_benchmark):
    images = {image: apart(**case.given[image]) for image in ("i1", "i2")}
    assert sorted(itertools.chain.from_iterable(case.given["domains"].values())) == sorted(images)
    gold, predicted = ({image: sides[at] for image, sides in images.items()} for at in (0, 1))
    benchmark = make_benchmark(gold, {"model": predicted})
    boxes = rows(evalkit.count(benchmark, iou=[0.5]), task="localisation")
    per_slice = {
        name: boxes.loc[boxes["image_id"].isin(of), ["tp", "fp", "fn"]].sum() for name, of in case.given["domains"].items()
    }
    for (name,) in case.given["domains"].values():
        assert boxes.loc[boxes["image_id"] == name, ["tp", "fp", "fn"]].sum().to_dict() == case.given[name]
    assert sum(per_slice.values()).to_dict() == case.expected["sum"] == counts(benchmark)
    ratios = {
        name: (float(evalkit.precision(one["tp"], one["fp"])), float(evalkit.recall(one["tp"], one["fn"])))
        for name, one in per_slice.items()
    }
    assert ratios == {"d1": (1 / 4, 1.0), "d2": (1.0, 1 / 2)}


def test_agg_07_domains_and_outside_add_up_to_overall(make_benchmark):
    parts = {"a": (1, 3, 0), "b": (1, 0, 1), "c": (2, 1, 2), "stranger": (0, 4, 0)}
    sides = [apart(*parts[name], label=name, first=10 * at) for at, name in enumerate(parts)]
    gold, predicted = (list(itertools.chain.from_iterable(side)) for side in zip(*sides, strict=True))
    benchmark = make_benchmark({"i1": gold}, {"model": {"i1": predicted}}, classes={"a": "d1", "b": "d2", "c": "d1"})
    table = rows(evalkit.scores(benchmark, evalkit.count(benchmark)), scope="valid", task="localisation", iou=0.5)
    sums = table.groupby("level")[["tp", "fp", "fn"]].sum()
    assert sums.loc["domain"].tolist() == sums.loc["class"].tolist() == [1 + 1 + 2, 3 + 0 + 1, 0 + 1 + 2]
    assert sums.loc["outside"].tolist() == [0, 4, 0]
    overall = rows(table, level="overall", average="micro")[["tp", "fp", "fn"]].iloc[0]
    assert overall.tolist() == (sums.loc["domain"] + sums.loc["outside"]).tolist() == [4, 8, 3]


@pytest.mark.parametrize("identical", [True, False])
def test_agg_09_an_image_has_one_row(case, write_benchmark, identical):
    rows_said = [(one["image"], one["boxes"]) for one in case.given["pred_rows"]]
    if not identical:
        rows_said[1] = (rows_said[1][0], [])
    path = write_benchmark(case.given["gold"], {"model": rows_said})
    with pytest.raises(DataError, match=r"model\.jsonl, line 2, image i1: duplicate image row: 'i1' was there at line 1"):
        read_benchmark(path)
    printed = run("score", "--benchmark", path, "--out", path.parent.parent / "out", status=2)
    assert case.expected["error"].replace("_", " ") in printed


def test_agg_10_four_facts_stay_four(case, write_benchmark, tmp_path):
    # As structured rows: "[]" is an empty list, "garbage" a row of status invalid, null a row of null boxes.
    said = case.given["rows"]
    assert (said["i1"], said["i2"], said["i4"]) == ("[]", "garbage", None)
    answers = {"i1": [], "i2": {"status": "invalid", "reason": "garbage"}, "i3": said["i3"], "i4": None}
    path = write_benchmark({f"i{at}": [] for at in range(1, 6)}, {"model": answers}, classes=["a"])
    benchmark = read_benchmark(path)
    states = coverage(benchmark)
    assert {name: states[name] for name in case.expected} == case.expected
    assert states["valid"] + states["invalid"] + states["missing"] == states["images"] == 5
    assert (states["negative_with_boxes"], states["negative_images"]) == (0, 1)
    found = benchmark.responses.set_index("image_id")
    assert found["state"].to_dict() == {"i1": "valid", "i2": "invalid", "i3": "invalid", "i4": "missing", "i5": "missing"}
    assert re.match(r"failed\b.*timeout", found.loc["i3", "reason"])
    header, line = run("score", "--benchmark", path, "--out", tmp_path / "out").splitlines()[:2]
    printed = dict(zip(header.split(), line.split(), strict=True))
    assert {name: int(printed[name]) for name in case.expected} == case.expected


# -- IO ---------------------------------------------------------------------------------------------------------------


def test_io_01_ids_are_strings_and_compared_exactly(case, write_benchmark):
    gold, answers = ({image: [] for image in case.given[side]} for side in ("gold_ids", "pred_ids"))
    path = write_benchmark(gold, {"model": answers}, classes=["a"])
    benchmark = read_benchmark(path)
    missing = rows(benchmark.responses, state="missing")["image_id"].tolist()
    assert missing == case.expected["missing"]
    assert rows(benchmark.responses, state="valid")["image_id"].tolist() == ["12"]
    assert "'00012' differs only by leading zeros from '12'" in run("check", "--benchmark", path)


@pytest.mark.parametrize("side", ["gold", "predictions"])
def test_io_01_an_id_that_is_a_float_is_an_error(write_benchmark, side):
    files = {"gold": {"12": []}, "predictions": {"12": []}} | {side: {12.0: []}}
    path = write_benchmark(files["gold"], {"model": files["predictions"]}, classes=["a"])
    with pytest.raises(DataError, match=r"line 1") as error:
        read_benchmark(path)
    assert len(error.value.findings) == 1


def test_io_01_an_id_that_gold_lacks_is_an_error(write_benchmark):
    path = write_benchmark({"12": []}, {"model": {"00012": []}}, classes=["a"])
    with pytest.raises(DataError, match=r"model\.jsonl, line 1.*differs only by leading zeros from '12'") as error:
        read_benchmark(path)
    assert rules(error) == ["image.unknown"]


@pytest.fixture
def two_folders(case, tmp_path):
    """Gold of two pictures of one base name, and a folder of predictions with a file of this name."""

    def write(name):
        file = tmp_path / "labels" / f"{name}.txt"
        file.parent.mkdir(parents=True)
        file.write_text("a 0.05 0.05 0.1 0.1\n")
        box = {"boxes": [{"box": [0, 0, 10, 10], "class": "a"}], "width": 100, "height": 100}
        gold = {f"{at}": box | {"file_name": name} for at, name in enumerate(case.given["gold"])}
        return write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", ["a"]),
            gold=write_lines(tmp_path / "gold.jsonl", gold),
            predictions={"model": "labels"},
        )

    return write


def test_io_03_an_ambiguous_base_name_is_an_error_with_both_paths(case, two_folders):
    with pytest.raises(DataError, match="ambiguous") as error:
        read_benchmark(two_folders(case.given["pred_key"]))
    assert all(path in str(error.value) for path in case.given["gold"])
    assert [rule.rpartition(".")[2] for rule in rules(error)] == [case.expected["error"].removesuffix("_id")]


def test_io_03_the_relative_path_is_the_key(case, two_folders):
    benchmark = read_benchmark(two_folders(case.given["gold"][1].removesuffix(".jpg")))
    assert rows(benchmark.responses, state="valid")["image_id"].tolist() == ["1"]
    assert counts(benchmark) == {"tp": 1, "fp": 0, "fn": 0}


def test_io_04_names_are_compared_in_normal_form_c(case, one_image, make_benchmark):
    gold_id, answer_id, gold_class, answer_class = (
        case.given[name] for name in ("gold_id", "pred_id", "gold_class", "pred_class")
    )
    assert gold_id != answer_id
    assert gold_class != answer_class
    box = [0, 0, 10, 10]
    benchmark = make_benchmark({gold_id: [[*box, gold_class]]}, {"model": {answer_id: [[*box, answer_class]]}})
    assert (counts(benchmark) == {"tp": 1, "fp": 0, "fn": 0}) is case.expected["match"]
    assert benchmark.images["image_id"].tolist() == [unicodedata.normalize("NFC", gold_id)]


def test_io_04_ids_that_become_equal_are_an_error(case, make_benchmark):
    with pytest.raises(DataError, match="duplicate image row") as error:
        make_benchmark({case.given["gold_id"]: [], case.given["pred_id"]: []}, {"model": {}}, classes=["a"])
    assert rules(error) == ["image.twice"]


def test_io_06_a_label_outside_the_list_is_a_false_positive_with_its_own_row(case, make_benchmark):
    unicorn = case.given["pred"][1]
    gold = {"i1": case.given["gold"], "i2": []}
    benchmark = make_benchmark(gold, {"model": {"i1": case.given["pred"], "i2": []}}, classes=case.given["classes"])
    for task in ("localisation", "classification"):
        assert counts(benchmark, task=task) == counts_of(case.expected["micro"])
        assert counts(benchmark, task=task, level="outside", label="outside") == {"tp": 0, "fp": 1, "fn": 0}
        assert score(benchmark, task=task, average="macro")["f2"] == 1.0  # not among the classes represented
    assert score(benchmark)["precision"] == 1 / 2
    assert coverage(benchmark)["negative_with_boxes"] == 0
    negative = make_benchmark(gold, {"model": {"i1": [], "i2": [unicorn]}}, classes=case.given["classes"])
    assert coverage(negative)[["negative_with_boxes", "negative_images"]].tolist() == [1, 1]


def test_io_07_names_are_text(case, tmp_path):
    names = case.expected["classes"]
    boxes = {"i1": [[20 * at, 0, 20 * at + 10, 10, name] for at, name in enumerate(names)]}
    classes = write_classes(tmp_path / "classes.csv", names)
    write_lines(tmp_path / "boxes.jsonl", boxes)
    models = "".join(f"  {name}: boxes.jsonl\n" for name in names)  # unquoted: YAML 1.1 has booleans and numbers here
    path = tmp_path / "benchmark.yml"
    path.write_text(f"classes: {classes}\ngold: boxes.jsonl\npredictions:\n{models}")
    benchmark = read_benchmark(path)
    assert benchmark.classes["class_name"].tolist() == names
    assert benchmark.models == names
    for name in names:
        assert counts(read_benchmark(path, models=[name]), level="class", average="", label=name)["tp"] == 1


def test_io_07_a_list_of_classes_in_yaml_is_an_error(case, tmp_path):
    assert case.expected["or"] == "error"
    path = tmp_path / "benchmark.yml"
    path.write_text(f"{case.given['yaml']}\ngold: gold.jsonl\n")
    with pytest.raises(EvalkitError, match=r"benchmark\.yml: .*classes"):
        read_benchmark(path)


def test_io_09_json_has_null_for_undefined_and_keeps_every_digit(case, write_benchmark, tmp_path):
    # Class b is predicted and has no gold: its recall is undefined. F2 of a is 5/6, which needs all 17 digits.
    box = [0, 0, 10, 10]
    answers = {"model": {"i1": [[*box, "a"], [50, 50, 60, 60, "a"], [*box, "b"]]}}
    path = write_benchmark({"i1": [[*box, "a"]]}, answers, classes=["a", "b"])
    run("score", "--benchmark", path, "--out", tmp_path / "out", "--format", "json", "--quiet")
    written = {
        name: strict_json((tmp_path / "out" / name).read_text()) for name in ("scores.json", "coverage.json", "run.json")
    }
    wanted = {"label": "b", "level": "class", "task": "localisation", "iou": 0.5, "scope": "valid"}
    (found,) = (row for row in written["scores.json"] if wanted.items() <= row.items())
    assert case.expected["json"] == "null"
    assert found["recall"] is None
    table = pd.DataFrame(written["scores.json"])
    assert headline(table, label="a", level="class", average="")["f2"] == 5 / (5 + 1)
    benchmark = read_benchmark(path)
    direct = evalkit.undefined_as_nan(evalkit.scores(benchmark, evalkit.count(benchmark)))
    assert len(direct) == len(table)
    for name in ("precision", "recall", "f1", "f2"):
        again = table[name].astype(float).to_numpy()
        assert np.array_equal(again, direct[name].to_numpy(float), equal_nan=True), name


@pytest.fixture
def marked_csv(case, tmp_path):
    """The case's bytes, a CSV with a UTF-8 mark and Windows line ends, with the box columns that gold needs."""
    text = re.search(r"'(.*)'", case.given["csv_bytes"]).group(1).encode("ascii").decode("unicode_escape")
    header, line = text.splitlines()
    assert header.split(",") == case.expected["columns"]
    gold = f"{header},x_min,y_min,x_max,y_max\r\n{line},0,0,10,10"  # no final line end
    (tmp_path / "gold.csv").write_bytes(b"\xef\xbb\xbf" + gold.encode())
    (tmp_path / "classes.csv").write_bytes(b"\xef\xbb\xbf" + "class_id,class_name\r\n1,café\r\n".encode())
    answer = '{"image_id": "i1", "boxes": [{"class": "café", "box": [0, 0, 10, 10]}]}\r\n'
    (tmp_path / "model.jsonl").write_bytes(b"\xef\xbb\xbf" + answer.encode())
    said = "gold: {path: gold.csv, columns: {image_id: image}}\r\nclasses: classes.csv\r\npredictions: {é: model.jsonl}\r\n"
    (tmp_path / "benchmark.yml").write_bytes(b"\xef\xbb\xbf" + said.encode())
    return tmp_path / "benchmark.yml"


def test_io_10_a_utf8_mark_and_windows_line_ends_are_read(marked_csv):
    benchmark = read_benchmark(marked_csv)
    assert benchmark.classes["class_name"].tolist() == ["café"]
    assert benchmark.models == ["é"]
    assert counts(benchmark, level="class", average="", label="café") == {"tp": 1, "fp": 0, "fn": 0}


def test_io_10_files_are_utf8_in_any_locale(marked_csv, tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "out"
    start = "import sys; from evalkit.cli import main; main(sys.argv[1:])"
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": None}
    done = in_new_process(start, "score", "--benchmark", marked_csv, "--out", out, **plain)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(io.BytesIO((out / "scores.csv").read_bytes()), encoding="utf-8")
    assert "café" in set(table["label"])
    assert set(table["model"]) == {"é"}


def test_io_10_a_cut_off_last_line_is_an_error_with_its_number(write_benchmark):
    path = write_benchmark({"i1": [], "i2": []}, {"model": {"i1": [], "i2": []}}, classes=["a"])
    file = path.parent / "model.jsonl"
    text = file.read_text().rstrip("\n")
    file.write_text(text)
    assert coverage(read_benchmark(path))["valid"] == 2  # a missing final newline is fine
    file.write_text(text[:-5])
    with pytest.raises(DataError, match=r"model\.jsonl, line 2: this is not JSON"):
        read_benchmark(path)


def empty_answer(folder, kind):
    """Write an answer that says there is nothing on image i1; return what benchmark.yml says of it."""
    if kind == "jsonl":
        (folder / "model.jsonl").write_text('{"image_id": "i1", "boxes": []}\n')
    elif kind == "coco results":
        (folder / "model.json").write_text("[]")
        return "model.json"
    elif kind == "coco":
        document = {"images": [{"id": "i1"}], "annotations": [], "categories": [{"id": 1, "name": "a"}]}
        (folder / "model.json").write_text(json.dumps(document))
        return "model.json"
    elif kind == "csv":
        (folder / "model.csv").write_text(f"{HEAD}\ni1,,,,,\n")
        return "model.csv"
    elif kind == "parquet":
        row = {"image_id": "i1", "class": None} | dict.fromkeys(["x_min", "y_min", "x_max", "y_max"], np.nan)
        table = pd.DataFrame([row]).astype({"class": "str"})
        table.to_parquet(folder / "model.parquet")
        return "model.parquet"
    else:
        (folder / "labels").mkdir()
        (folder / "labels" / "i1.txt").write_text("")
        columns = {"xywh": ["class", "x_min", "y_min", "w", "h"], "xyxy": CORNERS, "cxcywh": ["class", "cx", "cy", "w", "h"]}
        return {"path": "labels", "columns": columns[kind], "units": "pixels"}
    return "model.jsonl"


@pytest.mark.parametrize("kind", ["jsonl", "coco", "coco results", "csv", "parquet", "xywh", "xyxy", "cxcywh"])
def test_io_12_an_empty_answer_is_empty_in_every_format(case, tmp_path, kind):
    assert case.given["pred"] == {"i1": []}
    path = write_yml(
        tmp_path,
        classes=write_classes(tmp_path / "classes.csv", ["a"]),
        gold=write_lines(tmp_path / "gold.jsonl", case.given["gold"]),
        predictions={"model": empty_answer(tmp_path, kind)},
    )
    benchmark = read_benchmark(path)
    assert coverage(benchmark)["valid"] == 1
    assert counts(benchmark) == {"tp": 0, "fp": 0, "fn": case.expected["fn"]}
    assert evalkit.match(benchmark, iou=[0.5])["outcome"].tolist() == ["fn"]


OFFLINE = """
import socket, sys
def refuse(*args, **options):
    raise OSError("no network here")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from evalkit.cli import main
main(sys.argv[1:])
"""


def test_io_13_the_command_line_runs_without_display_and_network(case, write_benchmark, tmp_path):
    boxes = [[0, 0, 10, 10, "a"], [20, 0, 30, 10, "a"], [40, 0, 50, 10, "a"]]
    path = write_benchmark({"i1": boxes}, {"model": {"i1": boxes[1:]}})
    headless = {"DISPLAY": None, "WAYLAND_DISPLAY": None, "MPLBACKEND": None}
    parts = ["--classes", path.parent / "classes.csv", "--gold", path.parent / "gold.jsonl"]
    parts += ["--predictions", f"model={path.parent / 'model.jsonl'}", "--out", tmp_path / "out"]
    done = in_new_process(OFFLINE, "score", *parts, **headless)
    assert done.returncode == case.expected["exit"], done.stderr
    table = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert strict_json((tmp_path / "out" / "run.json").read_text())["parameters"]["models"] == ["model"]
    benchmark = read_benchmark(path)
    direct = evalkit.scores(benchmark, evalkit.count(benchmark))
    for name in ("tp", "fp", "fn", "precision", "recall", "f1", "f2"):
        assert np.array_equal(table[name].to_numpy(float), direct[name].to_numpy(float, na_value=np.nan), equal_nan=True), name
    assert headline(table)["f2"] == f2(tp=2, fp=0, fn=1)


def test_io_13_invalid_input_exits_with_two_and_no_traceback(write_benchmark, tmp_path):
    path = write_benchmark({"i1": []}, {"model": {"i2": []}}, classes=["a"])
    done = in_new_process(OFFLINE, "score", "--benchmark", path, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "model.jsonl, line 1, image i2: gold has no image 'i2'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


# -- scale ------------------------------------------------------------------------------------------------------------


def measured(name, folder, *options):
    """Run a case of ``scale_cases.py`` on its own; return its counts, and time and memory in seconds and GB.

    A shell stands between, because a process inherits the peak of the one that starts it.
    """
    script = os.path.join(os.path.dirname(__file__), "scale_cases.py")
    shell = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, script, name, str(folder), *options]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout)


def test_sca_01_the_small_variant_is_right(tmp_path):
    found = measured("many-images-small", tmp_path)
    assert found["counts"] == found["expected"]
    assert found["peak_gb"] < 0.5, f"of which {found['baseline_gb']:.2f} GB after imports"


@pytest.mark.slow
def test_sca_01_two_million_boxes_on_either_side(case, tmp_path):
    found = measured("many-images", tmp_path)
    assert found["counts"] == found["expected"]
    images, gold, predicted, *_ = (int(text.replace(",", "")) for text in re.findall(r"\d[\d,]*", case.given["generate"]))
    assert found["counts"]["tp"] + found["counts"]["fn"] == images * gold
    assert found["counts"]["tp"] + found["counts"]["fp"] == images * predicted
    assert found["peak_gb"] < case.expected["max_rss_gb"], f"of which {found['baseline_gb']:.2f} GB after imports"
    assert found["seconds"] < 300


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--pairs"]], ids=["counts", "counts and pairs"])
@pytest.mark.parametrize("name", ["crowded-image-all-match", "crowded-image-two-crowds"])
def test_sca_03_five_thousand_boxes_of_one_class_on_either_side(tmp_path, name, options):
    found = measured(name, tmp_path, *options)
    assert found["counts"] == found["expected"]
    assert found["pairs"] == (found["expected"] if options else None)
    assert found["peak_gb"] < 2, f"of which {found['baseline_gb']:.2f} GB after imports"


@pytest.mark.parametrize("within_reach", [1, 50])
def test_sca_03_a_box_repeated_thousands_of_times(case, one_image, within_reach):
    n_gold, copies = case.given["gold"], int(re.match(r"[\d,]+", case.given["pred"]).group().replace(",", ""))
    near = [[at / 10, 0, 100 + at / 10, 100, "a"] for at in range(within_reach)]  # IoU with the copies at least 0.9
    far = [[1000 + 20 * at, 0, 1010 + 20 * at, 10, "a"] for at in range(n_gold - within_reach)]
    benchmark = one_image([*near, *far], [[0, 0, 100, 100, "a"]] * copies)
    start = time.process_time()
    found = counts(benchmark)
    pairs = evalkit.match(benchmark, iou=[0.5])
    assert time.process_time() - start < case.expected["seconds"]
    assert found == {"tp": within_reach, "fp": copies - within_reach, "fn": n_gold - within_reach}
    assert pairs["outcome"].value_counts().to_dict() == found


def test_sca_03_a_long_augmenting_path_reaches_no_recursion_limit(case, one_image):
    # A chain: prediction i reaches gold i and i + 1, so each start of the search but one is undone.
    n = 3 * sys.getrecursionlimit()
    gold = [[10 * at, 0, 10 * at + 10, 10, "a"] for at in range(0, n)]
    predicted = [[10 * at + 5, 0, 10 * at + 15, 10, "a"] for at in range(0, n - 1)]  # IoU 50 / 150 with both neighbours
    start = time.process_time()
    assert counts(one_image(gold, predicted), iou=1 / 3) == {"tp": n - 1, "fp": 0, "fn": 1}
    assert time.process_time() - start < case.expected["seconds"]


def test_sca_04_pieces_do_not_change_the_pairs(case):
    assert case.expected["identical"] is True
    random = np.random.default_rng(4)
    corner = random.integers(0, 40, size=(2, 400, 2))
    boxes = np.concatenate([corner, corner + random.integers(5, 30, size=corner.shape)], axis=2).astype(float)
    keys = random.integers(0, 6, size=(2, 400))
    whole = candidate_pairs(keys[0], boxes[0], keys[1], boxes[1], minimum_iou=0.3)
    assert len(whole[0]) > 100
    for chunk in (1, 7, 1000):
        pieces = candidate_pairs(keys[0], boxes[0], keys[1], boxes[1], minimum_iou=0.3, chunk=chunk)
        assert all(np.array_equal(one, other) for one, other in zip(whole, pieces, strict=True))


def test_sca_04_runs_write_identical_bytes_whatever_the_threads_and_hashes(case, write_benchmark, tmp_path):
    random = np.random.default_rng(40)
    images = {}
    for at in range(30):
        corner = random.integers(0, 30, size=(12, 2))
        boxes = np.hstack([corner, corner + random.integers(5, 30, size=(12, 2))]).tolist()
        images[f"i{at}"] = [[*box, random.choice(["a", "b", "stranger"])] for box in boxes]
    gold = {image: [box for box in boxes[:6] if box[4] != "stranger"] for image, boxes in images.items()}
    path = write_benchmark(gold, {"one": {image: boxes[3:] for image, boxes in images.items()}, "two": images})
    start = "import sys; from evalkit.cli import main; main(sys.argv[1:])"
    written = []
    for workers in case.given["workers"]:
        out = tmp_path / str(workers)
        threads = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS"], str(workers))
        done = in_new_process(start, "score", "--benchmark", path, "--out", out, PYTHONHASHSEED=str(workers), **threads)
        assert done.returncode == 0, done.stderr
        written.append({file.name: file.read_bytes() for file in out.iterdir() if file.name != "run.json"})
    assert {"counts.parquet", "coverage.csv", "matches.parquet", "scores.csv", "errors.csv", "confusion.csv"} <= written[
        0
    ].keys()
    assert (written[0] == written[1]) is case.expected["identical"]


# -- all of them ------------------------------------------------------------------------------------------------------


def test_every_case_of_these_areas_is_tested_or_named_as_later(cases):
    named = [re.match(r"test_([a-z]+)_(\d\d)_", name) for name in globals()]
    tested = {f"{found[1].upper()}-{found[2]}" for found in named if found}
    here = {identity for identity, case in cases.items() if case["area"] in AREAS}
    assert tested | LATER.keys() == here
    assert not tested & LATER.keys()

"""What `count`, `match` and `scores` ask of their arguments."""

import json
import re

import pytest

import evalkit
from evalkit import EvalkitError

BOX = [0, 0, 10, 10, "a"]


def test_pairs_of_a_higher_threshold_are_refused(make_benchmark):
    benchmark = make_benchmark({"i": [BOX]}, {"m": {"i": [[0, 0, 10, 4, "a"]]}})  # IoU 4/10
    pairs = evalkit.overlaps(benchmark, iou=[0.5])
    for function in (evalkit.count, evalkit.match):
        with pytest.raises(EvalkitError, match=re.escape("pairs hold IoU from 0.5 on, which is not enough for iou 0.3")):
            function(benchmark, iou=[0.3], pairs=pairs)
    lower = evalkit.overlaps(benchmark, iou=[0.3])
    assert evalkit.count(benchmark, iou=[0.3, 0.5], pairs=lower).query("iou == 0.3")["tp"].tolist() == [1]


@pytest.mark.parametrize("iou", [[0], [1.5], [-0.5], []])
def test_a_threshold_is_above_0_and_at_most_1(make_benchmark, iou):
    benchmark = make_benchmark({"i": [BOX]}, {"m": {"i": [BOX]}})
    for function in (evalkit.overlaps, evalkit.count, evalkit.match):
        with pytest.raises(EvalkitError, match="iou"):
            function(benchmark, iou=iou)


def test_without_any_box_the_rows_are_those_of_the_thresholds_asked_for(make_benchmark):
    benchmark = make_benchmark({"i": []}, {"m": {"i": []}}, classes=["a"])
    scores = evalkit.scores(benchmark, evalkit.count(benchmark, iou=[0.7]), iou=[0.7])
    assert scores["iou"].dropna().unique().tolist() == [0.7]
    assert set(scores["reason"]) == {"no gold, no predictions", "no class represented"}


def test_an_undefined_macro_says_so(make_benchmark):
    benchmark = make_benchmark({"i": [BOX]}, {"m": {"i": []}})
    scores = evalkit.scores(benchmark, evalkit.count(benchmark), zero_division=float("nan"))
    macro = scores[(scores["average"] == "macro") & (scores["scope"] == "valid")]
    assert macro["precision"].isna().all()
    assert set(macro["reason"]) == {"undefined for a class"}


def test_class_ids_are_those_of_the_class_list_and_category_ids_those_of_gold(tmp_path):
    """A class list and COCO gold that number the classes differently: each file is read by its own numbers."""
    files = {
        "classes.csv": "class_id,class_name\n1,pothole\n2,litter\n",
        "gold.json": '{"images": [{"id": "i", "width": 50, "height": 50}], "categories": [{"id": 1, "name": "litter"}],'
        ' "annotations": [{"image_id": "i", "category_id": 1, "bbox": [0, 0, 10, 10]}]}',
        "lines.jsonl": '{"image_id": "i", "boxes": [{"class_id": 2, "box": [0, 0, 10, 10]}]}\n',
        "results.json": '[{"image_id": "i", "category_id": 1, "bbox": [0, 0, 10, 10]}]',
        "benchmark.yml": "classes: classes.csv\ngold: gold.json\npredictions: {lines: lines.jsonl, results: results.json}\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    benchmark = evalkit.read_benchmark(tmp_path / "benchmark.yml")
    assert benchmark.predictions["class"].tolist() == ["litter", "litter"]


@pytest.mark.parametrize("option", [{"bad_box": "error"}, {"absent": "empty"}])
def test_options_of_predictions_are_refused_on_gold(write_benchmark, option):
    path = write_benchmark({"i": [BOX]}, {"m": {"i": [BOX]}})
    path.write_text(path.read_text().replace('"gold.jsonl"', json.dumps({"path": "gold.jsonl", **option})))
    with pytest.raises(EvalkitError, match=f"`{next(iter(option))}` is no option of gold in the format jsonl"):
        evalkit.read_benchmark(path)

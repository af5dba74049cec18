"""What the page of answers shows: tallies that add up, texts that are found again, and the look at the axes."""

import dataclasses
import json
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from references import Plain, image_counts, write_plain
from small import the_row, write_classes, write_lines, write_yml

import evalkit
from evalkit import EvalkitError, answers, pages
from evalkit.responses import REASONS, REPAIRS

CAT = '[{"bbox_2d":[100,100,200,200],"label":"cat"}]'
SAID = {
    "a": CAT,
    "b": CAT[:-1] + ",]",
    "c": CAT[1:-1].replace('"', "'"),
    "d": "<b>no & none</b>",
    "e": CAT[:-9],
    "f": {"error": "5:07 timeout"},
    "g": None,
    "h": "[]",
    "i": "who knows \ud800",
}
STRUCTURED = {"a": {"status": "invalid", "reason": "own words: <i>"}, "b": [[5, 0, 1, 1, "cat"]], "c": []}


def as_row(said):
    return said if isinstance(said, dict) else {"response": said}


@pytest.fixture
def source(tmp_path):
    """A benchmark of ten images: ``m`` speaks, ``box`` has a structured file."""
    return write_yml(
        tmp_path,
        name="small",
        classes=write_classes(tmp_path / "classes.csv", ["cat"]),
        gold=write_lines(tmp_path / "gold.jsonl", {name: {"boxes": [], "width": 1000, "height": 500} for name in "abcdefghij"}),
        predictions={
            "m": {
                "path": write_lines(tmp_path / "m.jsonl", {name: as_row(said) for name, said in SAID.items()}),
                "reader": "qwen-boxes",
            },
            "box": write_lines(tmp_path / "box.jsonl", STRUCTURED),
        },
    )


# -- tallies ----------------------------------------------------------------------------------------------------------


def test_the_tally_has_each_state_and_reason_once_in_the_order_of_the_lists(source):
    found = answers.tally(evalkit.read_benchmark(source))
    assert found.astype(str).to_numpy().tolist() == [
        ["m", "valid", "", "4"],
        ["m", "invalid", "failed", "1"],
        ["m", "invalid", "no_block", "2"],
        ["m", "invalid", "truncated", "1"],
        ["m", "missing", "", "2"],
        ["box", "valid", "", "1"],
        ["box", "invalid", "inverted", "1"],
        ["box", "invalid", "own words", "1"],
        ["box", "missing", "", "7"],
    ]
    assert found.groupby("model", observed=True)["answers"].sum().tolist() == [10, 10]


def test_repairs_are_counted_one_by_one(source):
    found = answers.repairs(evalkit.read_benchmark(source))
    assert found.astype(str).to_numpy().tolist() == [
        ["m", "python_literal", "1"],
        ["m", "single_object", "1"],
        ["m", "trailing_comma", "1"],
    ]


def test_the_overview_splits_valid_answers_and_adds_up_to_the_images(source):
    found = answers.overview(evalkit.read_benchmark(source, models=["box", "m"]))
    assert list(found.columns) == ["read as written", "repaired", "invalid", "missing"]
    assert found.loc["m"].tolist() == [2, 2, 4, 2]
    assert found.loc["box"].tolist() == [1, 0, 2, 7]
    assert list(found.index) == ["box", "m"]


# -- raw text ---------------------------------------------------------------------------------------------------------


def test_raw_answers_are_found_again_as_they_were_written(source):
    found = evalkit.read_answers(source, "m")
    expected = {name: said["error"] if isinstance(said, dict) else said or "" for name, said in SAID.items()}
    assert found == expected


@pytest.mark.parametrize("model", ["box", "nobody"])
def test_raw_answers_are_of_models_that_speak(source, model):
    with pytest.raises(EvalkitError, match=rf"^benchmark\.yml: there is no model '{model}' whose own text is read"):
        evalkit.read_answers(source, model)


def test_examples_are_the_first_of_each_reason_and_repair(source):
    found = answers.examples(evalkit.read_benchmark(source), source)
    assert found[["kind", "name", "model", "image_id", "text"]].to_numpy().tolist() == [
        ["reason", "failed", "m", "f", "5:07 timeout"],
        ["reason", "no_block", "m", "d", SAID["d"]],
        ["reason", "truncated", "m", "e", SAID["e"]],
        ["repair", "trailing_comma", "m", "b", SAID["b"]],
        ["repair", "single_object", "m", "c", SAID["c"]],
        ["repair", "python_literal", "m", "c", SAID["c"]],
    ]
    meanings = {**REASONS, **REPAIRS}
    assert found["meaning"].tolist() == [meanings[name] for name in found["name"]]


def test_there_are_no_examples_where_no_model_speaks(source):
    found = answers.examples(evalkit.read_benchmark(source, models=["box"]), source)
    assert len(found) == 0
    assert list(found.columns) == ["kind", "name", "meaning", "model", "image_id", "text"]


def test_quotations_are_escaped_shortened_and_visible():
    text = "<script>a</script>\x1b[31m\u202e\ud800\n\t" + "x" * 1000 + "`end`"
    row = {"name": "no_block", "meaning": "a <b>", "model": "<i>m</i>", "image_id": "&amp;", "text": text}
    rows = pd.DataFrame([row], dtype=object)
    shown = pages.quotations(rows).data
    assert "<script>" not in shown
    assert "<i>" not in shown
    assert "&amp;amp;" in shown
    assert "&lt;script&gt;a&lt;/script&gt;\\x1b[31m\\u202e\\ud800\n\tx" in shown
    assert " characters … xx" in shown
    assert "`end`</pre>" in shown
    assert len(shown) < 1000
    shown.encode("utf-8")


@pytest.mark.parametrize("length", [0, 1, 399, 400, 401, 5000])
def test_shortened_keeps_both_ends_and_tells_what_is_left_out(length):
    text = "".join(chr(ord("a") + at % 26) for at in range(length))
    shown = pages.shortened(text)
    if length <= 400:
        assert shown == text
    else:
        head, told, tail = shown.split(" … ")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert int(told.split()[0].replace(",", "")) == length - len(head) - len(tail)
        assert len(head) + len(tail) == 400


# -- the look at the axes ---------------------------------------------------------------------------------------------

SIZES = [(640, 480), (300, 400), (500, 500), (1000, 100)]


def some_boxes(draw, reach):
    boxes = []
    for _ in range(draw.randint(0, 4)):
        x, y = draw.randint(0, reach[0] - 40), draw.randint(0, reach[1] - 40)
        boxes.append((draw.choice(["litter", "pothole"]), [x, y, x + draw.randint(8, 40), y + draw.randint(8, 40)]))
    return boxes


def exchanged(box):
    return [box[1], box[0], box[3], box[2]]


def shaken(draw, boxes, low=0, high=10**9):
    """The boxes a little off, some of them with exchanged axes."""
    found = []
    for name, box in boxes:
        x0, y0, x1, y1 = (min(max(edge + draw.randint(-3, 3), low), high) for edge in box)
        box = [min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)]
        found.append((name, exchanged(box) if draw.random() < 0.5 else box))
    return found


def tallied(gold, said, other, threshold):
    """Better, worse, equal and the two sums of true positives, image by image."""
    plain = Plain(gold=gold, answers={"said": said, "other": other})
    tp = [
        [sum(tp for tp, _, _ in image_counts(plain, model, image, threshold).values()) for image in said]
        for model in plain.answers
    ]
    signs = [(b > a) - (b < a) for a, b in zip(*tp, strict=True)]
    return [signs.count(1), signs.count(-1), signs.count(0), *map(sum, tp)]


COLUMNS = ["better", "worse", "equal", "tp", "tp_swapped"]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("threshold", [0.3, 0.5])
def test_axes_in_pixels_are_exchanged_as_a_loop_over_fractions_does(tmp_path, seed, threshold):
    draw = random.Random(seed)
    gold = {f"i{at}": some_boxes(draw, (90, 90)) for at in range(12)}
    said = {image: shaken(draw, boxes) for image, boxes in gold.items()}
    other = {image: [(name, exchanged(box)) for name, box in boxes] for image, boxes in said.items()}
    benchmark = evalkit.read_benchmark(write_plain(Plain(gold=gold, answers={"m": said}), tmp_path / "data"))
    found = the_row(evalkit.axis_swap(benchmark, iou=threshold))
    assert found[COLUMNS].tolist() == tallied(gold, said, other, threshold)
    assert (found["images"], found["reader"]) == (12, "")
    assert (found[COLUMNS[:3]] > 0).all()


@pytest.mark.parametrize("seed", range(12))
def test_axes_on_a_scale_are_exchanged_in_it_as_the_other_order_would_be_read(tmp_path, seed):
    """Against fractions on the scale, and against the reader of the other order on the very same file."""
    draw = random.Random(seed)
    sizes = {f"i{at}": SIZES[at % 4] for at in range(16)}
    told = {image: some_boxes(draw, (1000, 1000)) for image in sizes}
    gold = {
        image: [
            (name, [float(edge * side / 1000) for edge, side in zip(box, size * 2, strict=True)]) for name, box in told[image]
        ]
        for image, size in sizes.items()
    }
    told = {image: shaken(draw, boxes, 0, 1000) for image, boxes in told.items()}

    def on_image(swap):
        return {
            image: [
                (
                    name,
                    [
                        Fraction(edge * side, 1000)
                        for edge, side in zip(exchanged(box) if swap else box, sizes[image] * 2, strict=True)
                    ],
                )
                for name, box in boxes
            ]
            for image, boxes in told.items()
        }

    lines = {
        image: {
            "boxes": [{"class": name, "box": box} for name, box in boxes],
            **dict(zip(("width", "height"), sizes[image], strict=True)),
        }
        for image, boxes in gold.items()
    }
    words = {
        image: {"response": json.dumps([{"bbox_2d": box, "label": name} for name, box in boxes])}
        for image, boxes in told.items()
    }
    path = write_lines(tmp_path / "said.jsonl", words)
    orders = {order: {"path": path, "reader": f"key=bbox_2d,order={order},scale=1000"} for order in ("xyxy", "yxyx")}
    source = write_yml(
        tmp_path,
        classes=write_classes(tmp_path / "classes.csv", ["litter", "pothole"]),
        gold=write_lines(tmp_path / "gold.jsonl", lines),
        predictions=orders,
    )
    benchmark = evalkit.read_benchmark(source)
    found = evalkit.axis_swap(benchmark).set_index("model")
    assert found.loc["xyxy", COLUMNS].tolist() == tallied(gold, on_image(False), on_image(True), 0.5)
    assert found.loc["yxyx", COLUMNS].tolist() == found.loc["xyxy", ["worse", "better", "equal", "tp_swapped", "tp"]].tolist()
    assert found["reader"].tolist() == [one["reader"] for one in orders.values()]


def test_only_valid_answers_are_looked_at_and_no_score_changes(tmp_path):
    box = [0, 30, 10, 50]
    gold = {image: [("litter", box)] for image in "abcd"}
    said = {"a": [("litter", exchanged(box))], "b": "invalid", "c": [("litter", box)]}
    benchmark = evalkit.read_benchmark(write_plain(Plain(gold=gold, answers={"m": said}), tmp_path / "data"))
    before = benchmark.predictions.copy()
    found = the_row(evalkit.axis_swap(benchmark))
    assert found[["images", *COLUMNS]].tolist() == [2, 1, 1, 0, 1, 1]
    pd.testing.assert_frame_equal(benchmark.predictions, before)


def test_shares_of_an_image_of_unknown_size_are_left_out(tmp_path):
    box = [0, 30, 10, 50]
    gold = {image: [("litter", box)] for image in "ab"}
    said = {image: [("litter", exchanged(box))] for image in "ab"}
    benchmark = evalkit.read_benchmark(write_plain(Plain(gold=gold, answers={"m": said}), tmp_path / "data"))
    images = benchmark.images.assign(width=[100.0, np.nan], height=[100.0, 100.0])
    found = the_row(evalkit.axis_swap(dataclasses.replace(benchmark, images=images, relative=("m",))))
    assert found[["images", *COLUMNS]].tolist() == [1, 1, 0, 0, 0, 1]


def test_a_text_folder_of_shares_is_swapped_in_shares(tmp_path):
    """On an image of 200 by 100, the share box 0.1 0.5 0.2 0.9 is [20, 50, 40, 90]; its exchange is [100, 10, 180, 20]."""
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "a.txt").write_text("litter 0.1 0.5 0.2 0.9\n")
    gold = {"a": {"width": 200, "height": 100, "boxes": [{"class": "litter", "box": [100, 10, 180, 20]}]}}
    said = {"path": "said", "columns": ["class", "x_min", "y_min", "x_max", "y_max"]}
    source = write_yml(
        tmp_path,
        classes=write_classes(tmp_path / "classes.csv", ["litter"]),
        gold=write_lines(tmp_path / "gold.jsonl", gold),
        predictions={"shares": said, "pixels": {**said, "units": "pixels"}},
    )
    found = evalkit.axis_swap(evalkit.read_benchmark(source)).set_index("model")
    assert found.loc["shares", COLUMNS].tolist() == [1, 0, 0, 0, 1]
    assert found.loc["pixels", COLUMNS].tolist() == [0, 0, 1, 0, 0]

"""The rules of the protocol, each by its name on the page that lists them, as a test of its own."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import RULES, rule
from references import Plain, write_plain

import evalkit
from evalkit.boxes import area
from evalkit.cli import main
from evalkit.counts import IOU_THRESHOLDS
from evalkit.formats.writing import to_json

PROTOCOL = Path(__file__).resolve().parents[1] / "book" / "protocol.md"
BOX = [0, 0, 10, 10]


def test_every_rule_of_the_protocol_has_a_test_and_every_test_a_rule():
    """A rule is an anchor before a term; an anchor before a heading is a section."""
    anchors = re.findall(r"^\((rule-[a-z-]+)\)=\n(?!#)", PROTOCOL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(set(anchors)) == len(anchors)
    for module in sorted(Path(__file__).parent.glob("test_*.py")):
        if "@rule(" in module.read_text(encoding="utf-8"):
            importlib.import_module(module.stem)  # its tests register their rules
    assert set(anchors) == RULES.keys()


@pytest.fixture
def read(tmp_path):
    """Read a plain benchmark, or JSON lines of gold and of one model ``m`` with options."""

    def read(gold, said=None, *, classes=("litter", "pothole"), ending="jsonl", gold_options=None, **options):
        if isinstance(gold, Plain):
            return evalkit.read_benchmark(write_plain(gold, tmp_path))
        listed = "".join(f"{at},{name},\n" for at, name in enumerate(classes))
        (tmp_path / "classes.csv").write_text("class_id,class_name,domain\n" + listed, encoding="utf-8")
        gold_file = "gold.json" if isinstance(gold, dict) else "gold.jsonl"
        for name, rows in ((gold_file, gold), (f"said.{ending}", said)):
            text = rows if isinstance(rows, str) else json.dumps(rows)
            text = "".join(json.dumps(row) + "\n" for row in rows) if isinstance(rows, list) else text
            (tmp_path / name).write_text(text, encoding="utf-8")
        written = {
            "classes": "classes.csv",
            "gold": {"path": gold_file, **(gold_options or {})},
            "predictions": {"m": {"path": f"said.{ending}", **options}} if said is not None else {},
        }
        (tmp_path / "benchmark.yml").write_text(json.dumps(written), encoding="utf-8")
        return evalkit.read_benchmark(tmp_path / "benchmark.yml")

    return read


def row(image, *boxes, **more):
    return {"image_id": image, "boxes": [{"class": name, "box": box} for name, box in boxes], **more}


def scores_of(benchmark, **options):
    return evalkit.scores(benchmark, evalkit.count(benchmark, **options))


def pick(table, **where):
    """The one row with these values; the others are: model m, scope valid, localisation at 0.50, overall micro."""
    where = {"model": "m", "scope": "valid", "task": "localisation", "level": "overall", "average": "micro", **where}
    for name, value in where.items():
        table = table[table[name] == value]
    if where["task"] == "localisation" and "iou" not in where:
        table = table[table["iou"] == 0.5]
    assert len(table) == 1
    return table.iloc[0]


def tp_fp_fn(table, **where):
    return tuple(int(pick(table, **where)[name]) for name in ("tp", "fp", "fn"))


def one_image(golds, boxes, name="litter"):
    return Plain(gold={"a": [(name, one) for one in golds]}, answers={"m": {"a": [(name, one) for one in boxes]}})


# -- boxes


@rule("coordinates")
def test_rule_coordinates_have_no_plus_one():
    assert area(np.array([[10, 20, 13, 24.5], [5, 5, 5, 9]])).tolist() == [(13 - 10) * (24.5 - 20), 0]
    touching = np.array([[0, 0, 10, 10.0]]), np.array([[10, 0, 20, 10.0]])
    assert evalkit.iou(*touching)[0] == 0.0  # half-open: neither box has the edge in common
    assert evalkit.iou(np.array([[0, 0, 10, 10.0]]), np.array([[0, 0, 10, 5.0]]))[0] == 50 / 100  # 66/121 with a "+1"


@rule("coordinates")
def test_rule_coordinates_may_be_fractions_of_a_pixel(read):
    plain = one_image([[0.25, 0.25, 0.75, 0.75]], [[0.25, 0.25, 0.75, 0.5]])
    assert tp_fp_fn(scores_of(read(plain))) == (1, 0, 0)  # 0.125 / 0.25


@rule("iou")
def test_rule_iou_is_not_rounded(read):
    """1999 / 4000 = 0.49975 would be 0.50 after rounding to two or three digits."""
    assert round(1999 / 4000, 3) == 0.5
    plain = one_image([[0, 0, 4000, 1]], [[0, 0, 1999, 1]])
    assert tp_fp_fn(scores_of(read(plain))) == (0, 1, 1)
    assert evalkit.iou(np.array([[0, 0, 3, 1.0]]), np.array([[0, 0, 1, 1.0]])).dtype == np.float64
    assert evalkit.iou(np.array([[0, 0, 3, 1.0]]), np.array([[0, 0, 1, 1.0]]))[0] == 1 / 3


@rule("iou-threshold")
def test_rule_iou_threshold_itself_matches(read):
    assert tp_fp_fn(scores_of(read(one_image([[0, 0, 2, 1]], [[0, 0, 1, 1]])))) == (1, 0, 0)  # 1/2
    assert tp_fp_fn(scores_of(read(one_image([[0, 0, 10, 1]], [[0, 0, 4, 1]]))), iou=0.4) == (1, 0, 0)  # 4/10
    assert tp_fp_fn(scores_of(read(one_image([[0, 0, 10, 1]], [[0, 0, 3, 1]]))), iou=0.3) == (1, 0, 0)  # 3/10


@rule("iou-threshold")
@pytest.mark.parametrize("level", [0.3, 0.4, 0.5, 0.6, 0.7])
def test_rule_iou_threshold_matches_whatever_the_rounding(read, level):
    """Boxes of width 0.1 k and height 0.1, of which the decimal ratio is the threshold."""
    golds = {str(k): [("litter", [0.1, 0.1, 0.1 + k, 0.2])] for k in range(1, 60)}
    boxes = {str(k): [("litter", [0.1, 0.1, 0.1 + round(level * 10) * k / 10, 0.2])] for k in range(1, 60)}
    assert tp_fp_fn(scores_of(read(Plain(gold=golds, answers={"m": boxes})), iou=[level]), iou=level) == (59, 0, 0)


@rule("iou-threshold")
def test_rule_iou_threshold_is_missed_just_below(read):
    assert tp_fp_fn(scores_of(read(one_image([[0, 0, 10000, 1]], [[0, 0, 4999, 1]])))) == (0, 1, 1)  # 0.4999
    assert tp_fp_fn(scores_of(read(one_image([[0, 0, 1e8, 1]], [[0, 0, 5e7 - 1, 1]])))) == (0, 1, 1)  # 0.5 - 1e-8


@rule("zero-area-prediction")
@pytest.mark.parametrize("flat", [[5, 5, 5, 5], [0, 0, 10, 0], [3, 0, 3, 10]])
def test_rule_zero_area_prediction_is_a_false_positive(read, flat):
    benchmark = read(one_image([BOX], [flat, BOX]))
    assert tp_fp_fn(scores_of(benchmark)) == (1, 1, 0)
    assert evalkit.coverage(benchmark)["valid"].tolist() == [1, 1, 1]
    assert evalkit.iou(np.array([flat], float), np.array([flat], float))[0] == 0.0
    notes = evalkit.data_notes(benchmark)
    assert notes.loc[notes["code"] == "zero_area", "count"].tolist() == [1]


@rule("gold-box")
@pytest.mark.parametrize(
    ("box", "word"),
    [
        ([5, 5, 5, 9], "the box has no area"),
        ([9, 5, 5, 9], "x_max must not be left of x_min"),
        ([5, 9, 9, 5], "nor y_max above y_min"),
        ([5, 5, float("nan"), 9], "four finite numbers"),
        ([5, 5, float("inf"), 9], "four finite numbers"),
        ([5, 5, 100.6, 9], "more than 0.5 pixels outside its image"),
        ([-0.6, 5, 9, 9], "more than 0.5 pixels outside its image"),
        ([5, 5, 9, 50.6], "more than 0.5 pixels outside its image"),
    ],
)
def test_rule_gold_box_must_be_sound(read, box, word):
    gold = [row("good", ("litter", BOX), width=100, height=50), row("bad", ("litter", box), width=100, height=50)]
    with pytest.raises(evalkit.DataError, match=r"^gold\.jsonl, line 2, boxes\[0\], image bad: ") as caught:
        read(gold)
    assert word in str(caught.value)
    assert len(caught.value.findings) == 1


@rule("gold-box")
def test_rule_gold_box_may_reach_half_a_pixel_out_or_any_way_where_the_size_is_unknown(read):
    gold = [row("a", ("litter", [-0.5, -0.5, 100.5, 50.5]), width=100, height=50), row("b", ("litter", [0, 0, 9e6, 9e6]))]
    assert len(read(gold).gold) == 2


@rule("predicted-box")
@pytest.mark.parametrize("box", [[9, 0, 5, 5], [0, 9, 5, 5], [0, 0, float("nan"), 5], [0, 0, float("inf"), 5], [0, 0, 5]])
def test_rule_predicted_box_that_is_bad_spoils_its_image_or_is_an_error(read, box):
    gold = [row("a", ("litter", BOX)), row("b", ("litter", BOX))]
    said = [row("a", ("litter", BOX), ("litter", box)), row("b", ("litter", BOX))]
    benchmark = read(gold, said)
    assert benchmark.responses["state"].tolist() == ["invalid", "valid"]
    assert tp_fp_fn(scores_of(benchmark)) == (1, 0, 0)  # image b alone
    with pytest.raises(evalkit.DataError, match=r"^said\.jsonl, line 1, boxes\[1\], image a: "):
        read(gold, said, bad_box="error")


@rule("outside-image")
def test_rule_outside_image_predictions_are_scored_as_given(read):
    """Clipped to the image the prediction would be the gold box; as given its IoU is 100/225."""
    said = [row("a", ("litter", [0, 0, 15, 15]))]
    benchmark = read([row("a", ("litter", BOX), width=10, height=10)], said)
    assert tp_fp_fn(scores_of(benchmark)) == (0, 1, 1)
    assert tp_fp_fn(scores_of(benchmark), iou=0.4) == (1, 0, 0)
    assert evalkit.match(benchmark, iou=[0.4])["overlap"].tolist() == [100 / 225]
    notes = evalkit.data_notes(benchmark)
    assert notes.loc[notes["code"] == "outside_image", ["source", "count", "examples"]].to_numpy().tolist() == [["m", 1, "a"]]


# -- matching


@rule("matching")
def test_rule_matching_is_the_largest_there_is(read):
    """The first prediction overlaps both golds, the second the left one only: greedy by overlap would leave one pair."""
    plain = one_image([[0, 0, 10, 10], [4, 0, 14, 10]], [[1, 0, 11, 10], [-3, 0, 7, 10]])
    assert tp_fp_fn(scores_of(read(plain))) == (2, 0, 0)


@rule("matching")
def test_rule_matching_is_one_to_one_within_image_and_class(read):
    gold = {"a": [("litter", BOX)], "b": [("pothole", BOX)]}
    said = {"a": [("litter", BOX), ("litter", BOX), ("pothole", BOX)], "b": []}
    assert tp_fp_fn(scores_of(read(Plain(gold=gold, answers={"m": said})))) == (1, 2, 1)


@rule("matching-ties")
def test_rule_matching_ties_go_by_overlap_then_by_coordinates(read):
    """Sums: 1 + 1 for equal boxes, 2/3 + 2/3 crosswise. Then a gold box midway between two predictions takes the left one."""
    golds = [[0, 0, 10, 10], [2, 0, 12, 10]]
    for order in (golds, golds[::-1]):
        found = evalkit.match(read(one_image(golds, order)), iou=[0.5])
        assert found["overlap"].tolist() == [1.0, 1.0]
        assert (found["gold_x_min"] == found["predicted_x_min"]).all()
    sides = [[0, 0, 10, 10], [4, 0, 14, 10]]
    for order in (sides, sides[::-1]):
        found = evalkit.match(read(one_image([[2, 0, 12, 10]], order)), iou=[0.5])
        assert found.loc[found["outcome"] == "tp", "predicted_x_min"].tolist() == [0]


@rule("duplicates")
def test_rule_duplicates_count_once_as_a_class_and_each_as_a_box(read):
    """Gold: two litter boxes and a pothole. Said: two litter boxes, of which one is in place."""
    gold = {"a": [("litter", BOX), ("litter", [50, 50, 60, 60]), ("pothole", [20, 20, 30, 30])]}
    said = {"a": [("litter", BOX), ("litter", [80, 80, 90, 90])]}
    scores = scores_of(read(Plain(gold=gold, answers={"m": said})))
    assert tp_fp_fn(scores, task="classification") == (1, 0, 1)
    assert tp_fp_fn(scores) == (1, 1, 2)


@rule("confidence")
def test_rule_confidence_is_carried_and_changes_nothing(read):
    gold = [row("a", ("litter", BOX), ("litter", [2, 0, 12, 10]))]
    tables = []
    for values in ([None, None, None], [0.0, 1.0, 0.5], [1.0, 0.0, -7.0]):
        said = row("a", ("litter", BOX), ("litter", [1, 0, 11, 10]), ("pothole", BOX))
        for box, value in zip(said["boxes"], values, strict=True):
            box |= {} if value is None else {"score": value}
        benchmark = read(gold, [said])
        assert [None if np.isnan(value) else value for value in benchmark.predictions["score"]] == values
        tables.append((scores_of(benchmark), evalkit.match(benchmark).drop(columns="score")))
    for scores, matches in tables[1:]:
        assert scores.equals(tables[0][0])
        assert matches.equals(tables[0][1])


@rule("crowd")
def test_rule_crowd_is_refused_unless_dropped(read):
    gold = {
        "images": [{"id": 1}],
        "categories": [{"id": 1, "name": "litter"}],
        "annotations": [
            {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10]},
            {"image_id": 1, "category_id": 1, "bbox": [0, 0, 90, 90], "iscrowd": 1},
        ],
    }
    with pytest.raises(evalkit.DataError, match=r"^gold\.json, annotations\[1\], image 1: .*iscrowd: 1.*`crowd: drop`"):
        read(gold)
    benchmark = read(gold, gold_options={"crowd": "drop"})
    assert len(benchmark.gold) == 1
    assert evalkit.data_notes(benchmark)[["source", "code", "count"]].to_numpy().tolist() == [["gold.json", "crowd_dropped", 1]]


# -- names and ids


@rule("class-names")
def test_rule_class_names_are_trimmed_collapsed_and_composed(read):
    gold = [row("a", ("broken kerb", BOX), ("m\u00fcll", BOX))]
    said = [row("a", ("  broken \t  kerb ", BOX), ("mu\u0308ll", BOX))]
    benchmark = read(gold, said, classes=["broken  kerb", "m\u00fcll"])
    assert benchmark.outside == []
    assert tp_fp_fn(scores_of(benchmark)) == (2, 0, 0)


@rule("class-names")
def test_rule_class_names_differ_by_case_and_the_message_says_so(read):
    benchmark = read([row("a", ("litter", BOX))], [row("a", ("Litter", BOX))])
    assert benchmark.outside == ["Litter"]
    assert tp_fp_fn(scores_of(benchmark)) == (0, 1, 1)
    notes = evalkit.data_notes(benchmark)
    assert notes.loc[notes["code"] == "class_outside_list", "examples"].tolist() == [
        "Litter ('Litter' differs only by case from 'litter')"
    ]
    with pytest.raises(evalkit.DataError, match=r"class 'Litter' is not in the class list \('Litter' differs only by case"):
        read([row("a", ("Litter", BOX))])


OUTSIDE = Plain(
    classes={"litter": "street", "pothole": "road"},
    gold={"a": [("litter", BOX)], "clean": []},
    answers={"m": {"a": [("litter", BOX), ("unicorn", BOX), ("ghost", BOX), ("ghost", BOX)], "clean": [("unicorn", BOX)]}},
)


@rule("outside-classes")
def test_rule_outside_classes_are_false_positives_of_overall_and_of_no_domain(read):
    benchmark = read(OUTSIDE)
    scores = scores_of(benchmark)
    assert benchmark.outside == ["ghost", "unicorn"]
    assert tp_fp_fn(scores, task="classification") == (1, 1 + 1 + 1, 0)  # unicorn, ghost; unicorn
    assert tp_fp_fn(scores, task="classification", level="outside") == (0, 1 + 1 + 1, 0)
    assert tp_fp_fn(scores) == (1, 4, 0)
    assert tp_fp_fn(scores, level="outside") == (0, 4, 0)
    assert tp_fp_fn(scores, level="domain", label="street") == (1, 0, 0)
    assert tp_fp_fn(scores, level="domain", label="road") == (0, 0, 0)
    assert set(scores.loc[scores["level"] == "class", "label"]) == {"litter", "pothole"}
    assert evalkit.coverage(benchmark)["negative_fpr"].tolist()[:2] == [1 / 1, 1 / 1]


@rule("outside-classes")
def test_rule_outside_classes_in_gold_are_an_error(read):
    with pytest.raises(
        evalkit.DataError, match=r"^gold\.jsonl, line 1, boxes\[0\], image a: class 'unicorn' is not in the class"
    ):
        read([row("a", ("unicorn", BOX))])


@rule("image-ids")
def test_rule_image_ids_are_text(read):
    benchmark = read([row("00012"), row(7)], [row("7")])
    assert list(benchmark.images["image_id"]) == ["00012", "7"]
    assert benchmark.responses["state"].tolist() == ["missing", "valid"]
    with pytest.raises(evalkit.DataError, match=r"image 12: gold has no image '12' \('12' differs only by leading zeros"):
        read([row("00012")], [row(12)])
    composed, apart = "K\u00f6ln", "Ko\u0308ln"
    assert read([row(composed)], [row(apart)]).responses["state"].tolist() == ["valid"]


@rule("image-ids")
@pytest.mark.parametrize("wrong", [1.5, 1.0, True, None])
def test_rule_image_ids_are_no_floats(read, wrong):
    with pytest.raises(evalkit.DataError, match=r"^gold\.jsonl, line 2, image .*image_id"):
        read([row("a"), row(wrong)])
    with pytest.raises(evalkit.DataError, match=r"^said\.jsonl, line 1, image .*image_id"):
        read([row("a")], [row(wrong)])


@rule("image-ids")
def test_rule_image_ids_of_predictions_must_be_in_gold_and_those_of_gold_may_be_missing(read):
    benchmark = read([row("a"), row("b")], [row("b")])
    assert benchmark.responses["state"].tolist() == ["missing", "valid"]
    with pytest.raises(evalkit.DataError, match=r"^said\.jsonl, line 2, image c: gold has no image 'c'"):
        read([row("a"), row("b")], [row("b"), row("c")])


# -- states

STATES = Plain(
    gold={"a": [("litter", BOX)], "b": [("litter", BOX)], "c": [], "d": [], "e": [("pothole", BOX)]},
    answers={
        "m": {"a": [("litter", BOX)], "b": [], "c": [("litter", BOX)], "d": "invalid"},  # e is missing
        "n": {"a": [("litter", BOX)], "b": "invalid", "c": [], "d": []},
    },
)


@rule("states")
def test_rule_states_add_up_and_only_valid_responses_are_scored(read):
    benchmark = read(STATES)
    coverage = evalkit.coverage(benchmark)
    assert (coverage["valid"] + coverage["invalid"] + coverage["missing"] == coverage["images"]).all()
    mine = coverage[(coverage["model"] == "m") & (coverage["scope"] == "valid")].iloc[0]
    assert mine[["images", "valid", "invalid", "missing"]].tolist() == [5, 3, 1, 1]
    assert mine["coverage"] == 3 / 5
    assert tp_fp_fn(scores_of(benchmark)) == (1, 1, 1)  # a; the box on c; b said to be empty
    assert set(benchmark.predictions.loc[benchmark.predictions["model"] == "m", "image_id"]) == {"a", "c"}


@rule("states")
def test_rule_states_follow_from_rows(read):
    gold = [row(name) for name in "abcdef"]
    said = [
        row("a"),
        {"image_id": "b", "status": "invalid"},
        {"image_id": "c", "error": "timeout"},
        {"image_id": "d", "boxes": None},
    ]
    benchmark = read(gold, [*said, {"image_id": "e", "status": "missing"}])
    assert benchmark.responses["state"].tolist() == ["valid", "invalid", "invalid", "missing", "missing", "missing"]
    assert benchmark.responses["reason"].tolist()[2].startswith("failed")


@rule("absent")
def test_rule_absent_images_are_missing_unless_the_file_says_empty(read):
    gold, said = [row("1", ("litter", BOX)), row("2")], [row("2")]
    assert read(gold, said).responses["state"].tolist() == ["missing", "valid"]
    assert read(gold, said, absent="missing").responses["state"].tolist() == ["missing", "valid"]
    benchmark = read(gold, said, absent="empty")
    assert benchmark.responses["state"].tolist() == ["valid", "valid"]
    assert tp_fp_fn(scores_of(benchmark)) == (0, 0, 1)


@rule("absent")
def test_rule_absent_images_of_coco_results_are_empty(read):
    gold = [row("1", ("litter", BOX)), row("2")]
    assert read(gold, "[]", ending="json").responses["state"].tolist() == ["valid", "valid"]
    assert read(gold, "[]", ending="json", absent="missing").responses["state"].tolist() == ["missing", "missing"]


@rule("scopes")
def test_rule_scopes_valid_and_common(read):
    """valid for m: a, b, c; for n: a, c, d. Common to both: a, c."""
    benchmark = read(STATES)
    scores, coverage = scores_of(benchmark), evalkit.coverage(benchmark)
    assert tp_fp_fn(scores, model="m") == (1, 1, 1)
    assert tp_fp_fn(scores, model="n") == (1, 0, 0)
    assert tp_fp_fn(scores, model="m", scope="common") == (1, 1, 0)
    assert tp_fp_fn(scores, model="n", scope="common") == (1, 0, 0)
    images = [int(pick(scores, model=model, scope=scope)["n_images"]) for model in "mn" for scope in ("valid", "common")]
    assert images == [3, 2, 3, 2]
    assert coverage.loc[coverage["scope"] == "common", "models"].tolist() == ["m, n", "m, n"]
    assert coverage.loc[coverage["scope"] == "valid", "models"].tolist() == ["m", "n"]


@rule("scopes")
def test_rule_scopes_that_are_empty_are_not_defined_and_say_why(read):
    gold = {"a": [("litter", BOX)], "b": []}
    benchmark = read(Plain(gold=gold, answers={"m": {"a": [("litter", BOX)]}, "n": {"b": []}}))
    scores = scores_of(benchmark)
    common = scores[scores["scope"] == "common"]
    assert len(common) == len(scores) / 3
    assert common[["tp", "fp", "fn", "precision", "recall", "f1", "f2"]].isna().all(axis=None)
    assert set(common["reason"]) == {"empty scope: no image with a valid response"}
    assert set(common["n_images"]) == {0}


@rule("view-all")
def test_rule_view_all_takes_invalid_and_missing_as_empty_without_a_negative_rate(read):
    benchmark = read(STATES)
    scores, coverage = scores_of(benchmark), evalkit.coverage(benchmark)
    assert tp_fp_fn(scores, scope="all") == (1, 1, 2)  # b said to be empty, e missing
    assert tp_fp_fn(scores, scope="all", model="n") == (1, 0, 2)  # b invalid, e missing
    assert int(pick(scores, scope="all")["n_images"]) == 5
    view = coverage[coverage["scope"] == "all"]
    assert view[["negative_fpr", "fp_boxes_per_negative"]].isna().all(axis=None)


@rule("negative-images")
def test_rule_negative_images_rate_and_boxes(read):
    gold = {"a": [("litter", BOX)], **{f"n{at}": [] for at in range(4)}}
    said = {"a": [("pothole", BOX)], "n0": [("litter", BOX)] * 3, "n1": [], "n2": [("unicorn", BOX)], "n3": "invalid"}
    coverage = evalkit.coverage(read(Plain(gold=gold, answers={"m": said})))
    valid = coverage[coverage["scope"] == "valid"].iloc[0]
    assert valid[["negative_images", "negative_with_boxes"]].tolist() == [3, 2]
    assert valid["negative_fpr"] == 2 / 3
    assert valid["fp_boxes_per_negative"] == (3 + 0 + 1) / 3


@rule("negative-images")
def test_rule_negative_images_are_lacking(read):
    coverage = evalkit.coverage(read(one_image([BOX], [BOX])))
    assert coverage["negative_images"].tolist() == [0, 0, 0]
    assert coverage["negative_fpr"].isna().all()


@rule("coverage")
def test_rule_coverage_is_no_failure_unless_completeness_is_required(tmp_path):
    path = write_plain(STATES, tmp_path / "data")
    asked = ["score", "--benchmark", str(path), "--out"]
    free = CliRunner().invoke(main, [*asked, str(tmp_path / "free")])
    assert free.exit_code == 0
    assert re.search(r"^ +m +5 +3 +1 +1 +0\.6000$", free.stdout, flags=re.MULTILINE)
    strict = CliRunner().invoke(main, [*asked, str(tmp_path / "strict"), "--require-complete"])
    assert strict.exit_code == 1
    assert strict.stderr == "Error: responses are not complete (m: 1 invalid, 1 missing, n: 1 invalid, 1 missing)\n"
    assert (tmp_path / "strict" / "scores.csv").read_bytes() == (tmp_path / "free" / "scores.csv").read_bytes()


# -- ratios and averages

# litter: TP 2 FP 1 FN 0; pothole: TP 1 FP 0 FN 2; crack: FP 1 only; rust: nothing; unicorn (not listed): FP 1
FAR = [[20 * at, 40, 20 * at + 10, 50] for at in range(9)]
RATIOS = Plain(
    classes={"litter": "street", "pothole": "road", "crack": "road", "rust": "metal"},
    gold={"a": [("litter", FAR[0]), ("litter", FAR[1]), ("pothole", FAR[2]), ("pothole", FAR[3]), ("pothole", FAR[4])]},
    answers={
        "m": {
            "a": [
                *(("litter", FAR[at]) for at in (0, 1, 5)),
                ("pothole", FAR[2]),
                ("crack", FAR[6]),
                ("unicorn", FAR[7]),
            ]
        }
    },
)


def f2(tp, fp, fn):
    return 5 * tp / (5 * tp + fp + 4 * fn)


@rule("ratios")
def test_rule_ratios_from_counts(read):
    found = pick(scores_of(read(RATIOS)))
    assert tuple(found[["tp", "fp", "fn", "n_gold"]]) == (3, 3, 2, 5)
    assert found["precision"] == 3 / (3 + 3)
    assert found["recall"] == 3 / (3 + 2)
    assert found["f1"] == 2 * 3 / (2 * 3 + 3 + 2)
    assert found["f2"] == 5 * 3 / (5 * 3 + 3 + 4 * 2)
    assert evalkit.fbeta(3, 3, 2, beta=3) == 10 * 3 / (10 * 3 + 3 + 9 * 2)


@rule("zero-division")
def test_rule_zero_division_is_zero_with_a_reason_or_nan_on_demand(read):
    scores = scores_of(read(RATIOS))
    found = {label: pick(scores, level="class", average="", label=label) for label in ("litter", "crack", "rust")}
    assert [found["rust"][name] for name in ("precision", "recall", "f1", "f2")] == [0.0] * 4
    assert {label: one["reason"] for label, one in found.items()} == {
        "litter": "",
        "crack": "no gold",
        "rust": "no gold, no predictions",
    }
    assert evalkit.precision(0, 0) == evalkit.recall(0, 0) == evalkit.fbeta(0, 0, 0) == 0.0
    assert np.isnan(evalkit.precision(0, 0, zero_division=np.nan))
    missed = pick(scores_of(read(one_image([BOX], []))))
    assert (missed["precision"], missed["recall"], missed["reason"]) == (0.0, 0 / 1, "no predictions")


@rule("zero-division")
def test_rule_zero_division_is_null_in_json(read):
    benchmark = read(RATIOS)
    table = evalkit.scores(benchmark, evalkit.count(benchmark), zero_division=np.nan)
    rows = json.loads(to_json(table))
    rust = next(one for one in rows if one["label"] == "rust" and one["iou"] == 0.5)
    assert [rust[name] for name in ("precision", "recall", "f1", "f2")] == [None] * 4
    assert [rust[name] for name in ("tp", "fp", "fn", "n_gold")] == [0] * 4


@rule("micro")
def test_rule_micro_pools_counts_first(read):
    scores = scores_of(read(RATIOS))
    assert tp_fp_fn(scores) == (2 + 1, 1 + 0 + 1 + 1, 0 + 2)
    road = pick(scores, level="domain", label="road")
    assert tuple(road[["tp", "fp", "fn"]]) == (1 + 0, 0 + 1, 2 + 0)
    assert road["f2"] == f2(1, 1, 2)
    assert tp_fp_fn(scores, level="domain", label="street") == (2, 1, 0)
    assert tp_fp_fn(scores, level="domain", label="metal") == (0, 0, 0)


@rule("macro")
def test_rule_macro_is_the_mean_over_represented_classes(read):
    """Represented: litter, pothole, crack; with gold: litter, pothole. unicorn is in neither, rust says nothing."""
    scores = scores_of(read(RATIOS))
    macro, macro_gold = (pick(scores, average=average) for average in ("macro", "macro_gold"))
    assert macro["f2"] == pytest.approx((f2(2, 1, 0) + f2(1, 0, 2) + f2(0, 1, 0)) / 3, rel=1e-15)
    assert macro["precision"] == pytest.approx((2 / 3 + 1 / 1 + 0 / 1) / 3, rel=1e-15)
    assert macro["recall"] == pytest.approx((2 / 2 + 1 / 3 + 0) / 3, rel=1e-15)
    assert macro_gold["f2"] == pytest.approx((f2(2, 1, 0) + f2(1, 0, 2)) / 2, rel=1e-15)
    assert macro_gold["precision"] == pytest.approx((2 / 3 + 1 / 1) / 2, rel=1e-15)
    assert macro_gold["recall"] == pytest.approx((2 / 2 + 1 / 3) / 2, rel=1e-15)


@rule("macro")
def test_rule_macro_takes_its_classes_from_the_scope(read):
    """pothole stands on an image that is not valid: in the scope valid it is not represented, in the view all it is."""
    gold = {"a": [("litter", BOX)], "b": [("pothole", BOX)]}
    scores = scores_of(read(Plain(gold=gold, answers={"m": {"a": [("litter", BOX)], "b": "invalid"}})))
    assert pick(scores, average="macro")["f2"] == 1 / 1
    assert pick(scores, average="macro", scope="all")["f2"] == (1 + 0) / 2


@rule("thresholds")
def test_rule_thresholds_are_three_from_one_pass(read):
    assert IOU_THRESHOLDS == (0.3, 0.4, 0.5)
    plain = one_image([FAR[0]] * 1 + [FAR[2]], [[0, 40, 4.5, 50], [40, 40, 43.5, 50]])  # IoU 0.45 and 0.35
    benchmark = read(plain)
    scores = scores_of(benchmark)
    assert [tp_fp_fn(scores, iou=level)[0] for level in IOU_THRESHOLDS] == [2, 1, 0]
    assert set(scores.loc[scores["task"] == "localisation", "iou"]) == set(IOU_THRESHOLDS)
    assert scores.loc[scores["task"] == "classification", "iou"].isna().all()
    pairs = evalkit.overlaps(benchmark)
    assert sorted(pairs["overlap"]) == [0.35, 0.45]
    one_pass = evalkit.count(benchmark, pairs=pairs)
    for level in IOU_THRESHOLDS:
        alone = evalkit.count(benchmark, iou=[level])
        columns = ["image_id", "class", "tp", "fp", "fn"]
        together = one_pass.loc[one_pass["iou"] == level, columns].reset_index(drop=True)
        assert together.equals(alone.loc[alone["iou"] == level, columns].reset_index(drop=True))

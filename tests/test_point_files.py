"""Point benchmarks from files: the ten data sets' own shards, JSON lines, the command line, bad input, and shared cases."""

import csv
import io
import json
import random

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from helpers import rule
from PIL import Image
from small import write_yml

import evalkit
from evalkit import DataError, EvalkitError, point_figures
from evalkit.cli import main
from evalkit.formats.options import options_from, point_options_from
from evalkit.point_benchmarks import NO_OBJECT, OBJECTS, POINT_BENCHMARKS, PROTOCOL
from evalkit.point_files import read_samples
from evalkit.point_metrics import SCORE_COLUMNS
from evalkit.point_records import read_point_samples, sample_rows
from evalkit.point_runs import every_point_sample
from evalkit.points import EVIDENCE, NON_STRICT, STRICT

WIDTH, HEIGHT = 100, 50
INSIDE = np.zeros((HEIGHT, WIDTH), bool)
INSIDE[10:20, 10:30] = True
HIT, MISS = "[150, 300]", "[900, 900]"  # of 1000: the pixels (15, 15) and (90, 45)
ORIENTATION = 0x0112


def png(values):
    buffer = io.BytesIO()
    Image.fromarray(values.astype(np.uint8) * 255 if values.dtype == bool else values).save(buffer, "PNG")
    return buffer.getvalue()


def picture(width=WIDTH, height=HEIGHT):
    return {"bytes": png(np.zeros((height, width, 3), np.uint8)), "path": None}


def answer(*points):
    return "[" + ", ".join(f'{{"point_2d": {point}}}' for point in points) + "]"


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_answers(path, texts):
    return write_lines(path, [{"sample_id": name, "response": text} for name, text in texts.items()])


@pytest.fixture
def score(tmp_path):
    """A function: samples (rows of JSON lines, or a path) and answers by id, to the table of samples and the notes."""

    def score(samples, answers, *, benchmark="Where2Place", missing="partial", reader="qwen-points"):
        (tmp_path / "mask.png").write_bytes(png(INSIDE))
        path = write_lines(tmp_path / "samples.jsonl", samples) if isinstance(samples, list) else samples
        write_answers(tmp_path / "m.jsonl", answers) if isinstance(answers, dict) else write_lines(
            tmp_path / "m.jsonl", answers
        )
        said = {"samples": str(path), "predictions": {"m": {"path": str(tmp_path / "m.jsonl"), "reader": reader}}}
        runs = evalkit.read_point_runs({benchmark: point_options_from(said, source="test")})
        return every_point_sample(runs, missing=missing)

    return score


def sample(name, **more):
    return {"sample_id": name, "width": WIDTH, "height": HEIGHT, "mask": "mask.png", **more}


def evidence(table):
    return [tuple(map(int, row)) for row in table[EVIDENCE].to_numpy()]


def counts(table):
    return [tuple(map(int, row)) for row in table[STRICT].to_numpy()]


# -- the data sets' own files -----------------------------------------------------------------------------------------

MASK = png(INSIDE)
TWO = np.zeros((2, HEIGHT, WIDTH), bool)
TWO[0, 10:20, 10:30], TWO[1, 30:40, 60:90] = True, True
SHARDS = {  # file name: columns; then the ids, subsets, and (P, G, M, H) of an answer with a hit and a miss
    "Pixmo-Points": (
        {
            "test-00000-of-00001.parquet": {
                "image": [picture(), picture()],
                "label": ["cups", "dogs"],
                "question": ["Where are the cups?", "Where are the dogs?"],
                "points": [[{"x": 20.0, "y": 30.0}, {"x": 75.0, "y": 70.0}], []],
                "masks": [TWO.tolist(), []],
            }
        },
        {"0": (OBJECTS, (2, 2, 1, 1)), "1": (NO_OBJECT, (2, 1, 0, 0))},
    ),
    "PointBench": (
        {
            "test.parquet": {
                "id": [53, 54],
                "question": ["Count", "Point"],
                "category": ["counting", "spatial"],
                "image": [picture(), picture(2 * WIDTH, 2 * HEIGHT)],
                "mask": [{"bytes": MASK, "path": None}] * 2,
                "expected_count": [3, 1],
            }
        },
        {"53": ("counting", (2, 3, 1, 1)), "54": ("spatial", (2, 1, 1, 1))},
    ),
    "Part-Affordance-2K": (
        {
            "a.parquet": {
                "question_id": ["7"],
                "problem": ["Grasp"],
                "image": [picture()],
                "mask": [MASK],
                "category_type": ["handle"],
            },
            "b.parquet": {
                "question_id": ["007"],
                "problem": ["Grasp"],
                "image": [picture()],
                "mask": [MASK],
                "category_type": ["blade"],
            },
        },
        {"7": ("handle", (2, 1, 1, 1)), "007": ("blade", (2, 1, 1, 1))},
    ),
    "RoboSpatial": (
        {
            "compatibility-00000-of-00001.parquet": {
                "category": ["compatibility"],
                "question": ["Can it fit?"],
                "answer": ["Yes"],
                "img": [picture()],
                "mask": [None],
            },
            "context-00000-of-00001.parquet": {
                "category": ["context"],
                "question": ["Where?"],
                "answer": ["[(0.1, 0.2)]"],
                "img": [picture()],
                "mask": [{"bytes": MASK, "path": None}],
            },
        },
        {"compatibility/0": ("compatibility", (0, 0, 0, 0)), "context/0": ("context", (2, 1, 1, 1))},
    ),
    "VABench-Point": (
        {"a.parquet": {"id": [1], "problem": ["Where?"], "image": [picture()], "mask": [MASK]}},
        {"1": ("", (2, 1, 1, 1))},
    ),
    "PIOBench": (
        {
            "a.parquet": {
                "image": [picture(3, 3)],
                "polygon": [[[10.0, 10.0], [29.0, 10.0], [29.0, 19.0], [10.0, 19.0]]],
                "width": [WIDTH],
                "height": [HEIGHT],
                "lang": ["the cup"],
                "s1_or_s2": ["S1"],
            }
        },
        {"0": ("s1", (2, 1, 1, 1))},
    ),
    "Where2Place": (
        {
            "a.parquet": {
                "question_id": [3],
                "question": ["Where?"],
                "question_type": ["free"],
                "image": [picture()],
                "mask": [INSIDE.tolist()],
            }
        },
        {"3": ("", (2, 1, 1, 1))},
    ),
    "RefSpatial-Bench": (
        {
            f"{name}-00000-of-00001.parquet": {"id": [0], "prompt": ["Where?"], "image": [picture()], "mask": [MASK]}
            for name in ("location", "placement", "unseen")
        },
        {f"{name}/0": (name, (2, 1, 1, 1)) for name in ("location", "placement", "unseen")},
    ),
    "RoboAfford": (
        {"a.parquet": {"question": ["Where?"], "category": ["tools"], "image": [picture()], "mask": [MASK]}},
        {"0": ("tools", (2, 1, 1, 1))},
    ),
}


@pytest.mark.parametrize("name", SHARDS)
def test_every_data_set_is_read_from_its_own_shards(name, score, tmp_path):
    files, expected = SHARDS[name]
    for file, columns in files.items():
        path = tmp_path / "data" / file
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path)
    answers = {one: "yes" if subset == "compatibility" else answer(HIT, MISS) for one, (subset, _) in expected.items()}
    table, notes = score(tmp_path / "data", answers, benchmark=name)
    found = {row.sample_id: (row.subset, values) for row, values in zip(table.itertuples(), evidence(table), strict=True)}
    assert found == expected
    assert table["answer_correct"].dropna().tolist() == [True] * ("compatibility/0" in expected)
    assert [note for _, note in notes] == ([("mask_resized", 1, "54")] if name == "PointBench" else [])


def test_roborefit_is_read_from_its_own_lines(score, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(picture()["bytes"])
    rows = [{"question": "Where?", "image_path": "images/a.png", "mask_path": "mask.png", "bbox": [0, 0, 1, 1]}] * 2
    path = write_lines(tmp_path / "qa.jsonl", rows)
    table, _ = score(path, {"0": answer(HIT, MISS), "1": answer(HIT)}, benchmark="RoboRefit")
    assert evidence(table) == [(2, 1, 1, 1), (1, 1, 1, 1)]
    assert {*SHARDS, "RoboRefit"} == set(POINT_BENCHMARKS)


def test_shards_and_lines_give_the_same_scores(score, tmp_path):
    rows = [sample(str(at)) for at in range(6)]
    answers = {str(at): answer(*[HIT, MISS, HIT][: 1 + at % 3]) for at in range(6)}
    lines, _ = score(rows, answers)
    columns = {"question_id": list(map(str, range(6))), "image": [picture()] * 6, "mask": [MASK] * 6}
    (tmp_path / "shards").mkdir()
    for part in range(2):
        half = {name: values[3 * part : 3 * part + 3] for name, values in columns.items()}
        pq.write_table(pa.table(half), tmp_path / "shards" / f"{part}.parquet", row_group_size=1)
    shards, _ = score(tmp_path / "shards", answers)
    pd.testing.assert_frame_equal(lines, shards)


def test_a_picture_that_exif_turns_has_its_displayed_size_and_is_told(score, tmp_path):
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    Image.new("RGB", (HEIGHT, WIDTH)).save(tmp_path / "turned.jpg", exif=exif)
    row = {"sample_id": "a", "image": "turned.jpg", "mask": "mask.png"}
    table, notes = score([row], {"a": answer(HIT)})
    assert evidence(table) == [(1, 1, 1, 1)]
    assert notes == [("Where2Place", ("picture_turned", 1, "a"))]


# -- shared cases -----------------------------------------------------------------------------------------------------


def square(low=2, high=7, size=100):
    values = np.zeros((size, size), np.uint8)
    values[low : high + 1, low : high + 1] = 1
    return values


def test_pts_04_the_sample_with_a_mask_of_another_size_is_named(case, score, tmp_path):
    (tmp_path / "small.png").write_bytes(png(np.ones(case.given["mask_wh"][::-1], bool)))
    width, height = case.given["image_wh"]
    row = {"sample_id": "s4", "width": width, "height": height, "mask": "small.png"}
    with pytest.raises(DataError, match=r"^samples\.jsonl, line 1, sample s4: the mask size 500 x 250 is not .* 1000 x 500"):
        score([row], {"s4": answer(str(case.given["point_1000"]))})
    with pytest.raises(DataError, match=r"sample s4: the sample needs `width` and `height`"):
        score([{"sample_id": "s4", "mask": "small.png"}], {"s4": "[]"})


def test_pts_06_all_points_count_and_the_gate_is_of_counting_alone(case, score, tmp_path):
    (tmp_path / "square.png").write_bytes(png(square()))
    about = {"category": case.given["category"], "expected_count": case.given["expected_count"], "mask": "square.png"}
    row = {"sample_id": "a", "width": 100, "height": 100, **about}
    text = answer(*map(str, case.given["points_px"]))
    table, _ = score([row], {"a": text}, benchmark="PointBench", reader="pixel-points")
    assert counts(table) == [tuple(case.expected[name] for name in ("tp", "fp", "fn"))]
    assert evidence(table) == [(2, 1, 1, 1)]
    table, _ = score([{**row, "category": "counting"}], {"a": text}, benchmark="PointBench", reader="pixel-points")
    assert counts(table) == [(0, 2, 1)]


def test_pts_10_answers_are_joined_on_ids(case, score, tmp_path):
    assert case.expected["invariant"] == "row_order"
    masks = {"q1": square(2, 7), "q2": square(50, 60)}
    for name, values in masks.items():
        (tmp_path / f"{name}.png").write_bytes(png(values))
    rows = [
        {"sample_id": one["id"], "width": 100, "height": 100, "mask": f"{one['id']}.png"} for one in case.given["questions"]
    ]
    texts = {"q1": answer("[5, 5]"), "q2": answer("[55, 55]")}
    in_order = [{"sample_id": name, "response": texts[name]} for name in texts]
    turned = [{"sample_id": name, "response": texts[name]} for name in case.given["answers_file_order"]]
    tables = [score(these, those, reader="pixel-points")[0] for these in (rows, rows[::-1]) for those in (in_order, turned)]
    for table in tables:
        assert counts(table) == [(1, 0, 0)] * 2
        assert evalkit.point_scores(table).equals(evalkit.point_scores(tables[0]))
    without = [{"response": text} for text in texts.values()]
    with pytest.raises(DataError, match="missing required field `sample_id`"):
        score(rows, without)
    with pytest.raises(DataError, match="a sample needs an id"):
        score([{name: value for name, value in row.items() if name != "sample_id"} for row in rows], in_order)


def test_pts_12_no_object_is_credited_for_an_explicit_empty_answer_alone(case, score):
    texts = dict(enumerate(case.given["responses"]))
    rows = [{**sample(name), "points": case.given["gold_points"], "masks": []} for name in texts]
    table, _ = score(rows, texts, benchmark="Pixmo-Points")
    assert table["strict_tp"].tolist() == case.expected["tp"]
    assert counts(table) == [(0, 0, 1), (1, 0, 0), (0, 0, 1), (0, 0, 1)]
    line = evalkit.point_scores(table).set_index("subset").loc[NO_OBJECT]
    assert (line["samples"], line["strict_recall"]) == (4, 1 / 4)


def test_pts_13_instance_masks_tell_what_a_union_mask_cannot(case, score, tmp_path):
    boxes = [slice(0, 20), slice(40, 60), slice(80, 100)]
    points = [[10.0, 10.0], [50.0, 50.0], [90.0, 90.0]]
    masks = []
    for at, box in enumerate(boxes[: case.given["instances"]]):
        values = np.zeros((100, 100), bool)
        values[box, box] = True
        (tmp_path / f"{at}.png").write_bytes(png(values))
        masks.append(values)
    (tmp_path / "union.png").write_bytes(png(np.any(masks, axis=0)))
    text = {"a": answer("[5, 5]", "[6, 6]", "[7, 7]")}
    size = {"sample_id": "a", "width": 100, "height": 100}
    instances = {**size, "points": points, "masks": [f"{at}.png" for at in range(3)]}
    table, _ = score([instances], text, benchmark="Pixmo-Points", reader="pixel-points")
    assert counts(table)[0][0] == case.expected["instance_tp"]
    assert evidence(table) == [(3, 3, 1, 3)]
    union = {**size, "mask": "union.png", "category": "counting", "expected_count": case.given["expected"]}
    table, _ = score([union], text, benchmark="PointBench", reader="pixel-points")
    assert counts(table) == [(3, 0, 0)]  # the union mask cannot tell, which the protocol page says


def test_pts_15_yes_and_no_are_scored(case, score):
    rows = [sample(str(at), category="compatibility", answer=case.given["gold"]) for at in range(4)]
    rows.append(sample("point", category="context"))
    texts = dict(zip(map(str, range(4)), case.given["responses"], strict=True))
    table, _ = score(rows, {**texts, "point": answer(HIT)}, benchmark="RoboSpatial")
    words = [
        "invalid" if state == "unparseable" else "correct" if right else "wrong"
        for state, right in zip(table["state"][:4], table["answer_correct"][:4], strict=True)
    ]
    assert words == case.expected["no"]
    row = evalkit.point_scores(table).iloc[0]
    assert row["overall_strict"] == (1 * 1 + 2) / 5


def test_pts_16_a_bow_tie_is_told(case, score):
    ring = [[100 * x, 100 * y] for x, y in case.given["points"]]
    row = {"sample_id": "a", "width": 100, "height": 100, "polygons": [ring], "category": "s2"}
    text = json.dumps([{"point_2d": case.given["pred"]}])
    table, notes = score([row], {"a": text}, benchmark="PIOBench", reader="unit-points")
    assert (table["raw_hit_count"].iloc[0] == 1) == case.expected["hit"]
    assert notes == [("PIOBench", ("ring_crossed", 1, "a"))]


def test_every_case_of_points_is_tested(cases):
    import test_masks
    import test_point_answers

    named = {name[5:11].upper().replace("_", "-") for module in (test_masks, test_point_answers) for name in dir(module)}
    named |= {name[5:11].upper().replace("_", "-") for name in globals()}
    assert {identity for identity, case in cases.items() if case["area"] == "points"} <= named


# -- missing and complete ---------------------------------------------------------------------------------------------


@rule("points-missing")
def test_rule_points_missing_is_left_out_unless_it_is_asked_for(score):
    rows = [sample("a"), sample("b"), sample("c")]
    answers = [{"sample_id": "a", "response": answer(HIT)}, {"sample_id": "b", "response": None}]
    table, _ = score(rows, answers)
    assert table["state"].tolist() == ["points", "missing", "missing"]
    row = evalkit.point_scores(table).iloc[0]
    assert row[["samples", "complete", "strict_tp", "strict_fn"]].tolist() == [1, False, 1, 0]
    table, _ = score(rows, answers, missing="unparseable")
    assert table["state"].tolist() == ["points", "missing", "missing"]
    row = evalkit.point_scores(table).iloc[0]
    assert row[["samples", "complete", "strict_tp", "strict_fp", "strict_fn"]].tolist() == [3, True, 1, 0, 2]
    with pytest.raises(EvalkitError, match="missing must be one of partial, unparseable, not 'zero'"):
        score(rows, answers, missing="zero")


def test_a_failed_call_is_unparseable(score):
    table, _ = score([sample("a"), sample("b")], [{"sample_id": "a", "error": "timeout"}, {"sample_id": "b", "response": "[]"}])
    assert table[["state", "reason"]].to_numpy().tolist() == [["unparseable", "failed"], ["empty", ""]]


@rule("points-resize")
@pytest.mark.parametrize("resized", [("54", "445", "775"), ("54", "445"), ("54", "445", "776")])
def test_rule_points_resize_is_of_three_known_masks_on_the_complete_set(score, tmp_path, resized):
    (tmp_path / "half.png").write_bytes(png(np.ones((HEIGHT // 2, WIDTH // 2), bool)))
    rows = [sample(str(at), category="spatial", expected_count=1) for at in range(966)]
    rows = [{**row, "mask": "half.png"} if row["sample_id"] in resized else row for row in rows]
    answers = {row["sample_id"]: answer(HIT) for row in rows}
    if set(resized) == {"54", "445", "775"}:
        table, notes = score(rows, answers, benchmark="PointBench")
        assert notes == [("PointBench", ("mask_resized", 3, "54, 445, 775"))]
        assert evalkit.point_scores(table)["complete"].all()
    else:
        with pytest.raises(DataError, match=r"the masks of another size must be those of 54, 445, 775, not of 54, 445"):
            score(rows, answers, benchmark="PointBench")
        del answers["965"]
        table, _ = score(rows[:-1], answers, benchmark="PointBench")  # a partial set is not asked
        assert not evalkit.point_scores(table)["complete"].any()


# -- bad input --------------------------------------------------------------------------------------------------------

BAD = {
    "a mask that is absent": ([sample("a", mask="no.png")], "Where2Place", r"line 1, sample a: there is no mask 'no.png'"),
    "no mask": ([{**sample("a"), "mask": None}], "Where2Place", "sample a: the sample has no mask"),
    "a path that is none": ([sample("a", mask=" ")], "Where2Place", "sample a: the path of the mask is ' '"),
    "a mask that is a number": ([sample("a", mask=7)], "Where2Place", "sample a: the mask must be a path, bytes or rows"),
    "an empty mask": ([sample("a", mask=[[0] * WIDTH] * HEIGHT)], "Where2Place", "sample a: the mask has no foreground"),
    "a sample twice": (
        [sample("a"), sample("a")],
        "Where2Place",
        r"line 2, sample a: duplicate sample: 'a' was there at .*line 1",
    ),
    "an id that is a fraction": ([sample(1.5)], "Where2Place", "a sample needs an id that is text or a whole number, not 1.5"),
    "a blank id": ([sample(" ")], "Where2Place", "a sample needs an id, not ' '"),
    "an unknown category": (
        [sample("a", category="x", expected_count=1)],
        "PointBench",
        "sample a: PointBench has no category 'x'",
    ),
    "no category": ([sample("a", expected_count=1)], "PointBench", "sample a: a sample of PointBench needs a category"),
    "no count": ([sample("a", category="spatial")], "PointBench", "expected_count must be a whole number from 1 on, not None"),
    "a count of 0": ([sample("a", category="counting", expected_count=0)], "PointBench", "expected_count must be .* not 0"),
    "a width of 0": ([sample("a", width=0)], "Where2Place", "sample a: width must be a whole number from 1 on, not 0"),
    "a width alone": ([sample("a", height=None)], "Where2Place", "sample a: height must be a whole number"),
    "an image that is none": (
        [{"sample_id": "a", "image": "samples.jsonl", "mask": "mask.png"}],
        "Where2Place",
        "read the size",
    ),
    "points without masks": ([sample("a", points=[[1, 1]], masks=[])], "Pixmo-Points", "there are 1 points and 0 masks"),
    "points that are none": ([sample("a", points=[[1]])], "Pixmo-Points", r"sample a: `points` must be a list of \[x, y\]"),
    "no points": ([sample("a")], "Pixmo-Points", r"sample a: `points` must be a list of \[x, y\], not None"),
    "a polygon of two": ([sample("a", polygons=[[0, 0], [1, 1]], category="s1")], "PIOBench", "at least three vertices"),
    "a yes/no without answer": ([sample("a", category="configuration")], "RoboSpatial", "must be yes or no, not None"),
    "no samples": ([], "Where2Place", "samples.jsonl.*the file is empty"),
    "a line that is no object": ([7], "Where2Place", "line 1: .*Expected `object`"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_samples_are_told_with_the_sample(name, score):
    rows, benchmark, message = BAD[name]
    with pytest.raises(DataError, match=message):
        score(rows, {"a": "[]"}, benchmark=benchmark)


def test_all_that_is_wrong_is_told_at_once(score):
    with pytest.raises(DataError) as caught:
        score([sample(str(at), mask="no.png") for at in range(7)], {"0": "[]"})
    assert len(caught.value.findings) == 7
    assert "and 2 more, 7 in all" in str(caught.value)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            [{"sample_id": "a", "response": "[]"}, {"sample_id": "00a", "response": "[]"}],
            "there is no sample '00a' .*leading zeros",
        ),
        ([{"sample_id": "a", "response": "[]"}] * 2, r"m\.jsonl, line 2, sample a: duplicate answer"),
        ([{"sample_id": "a"}], "an answer needs either `response` or `error`"),
        ([{"sample_id": "a", "response": "[]", "boxes": []}], "unknown field `boxes`"),
        ([{"sample_id": "a", "response": "sorry"}], r"m\.jsonl: Where2Place: none of 1 answers can be read under key=point_2d"),
    ],
)
def test_bad_answers_are_told(score, answers, message):
    with pytest.raises(DataError, match=message):
        score([sample("a")], answers)


def test_files_that_are_absent_or_broken_are_told(score, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing")
    for path, message in [
        (tmp_path / "no.jsonl", "there is no file"),
        (tmp_path / "no.parquet", "there is no file"),
        (tmp_path / "empty", "there is no Parquet file in the folder"),
        (tmp_path / "broken.parquet", "broken.parquet: cannot read it"),
    ]:
        with pytest.raises(DataError, match=message):
            score(path, {"a": "[]"})


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"Where2place": {"samples": "s.jsonl"}}, "there is no point benchmark 'Where2place'; did you mean 'Where2Place'"),
        ({"Chess": {"samples": "s.jsonl"}}, "there is no point benchmark 'Chess'; known are Pixmo-Points, PointBench"),
        ({"PointBench": {"sample": "s.jsonl"}}, "unknown key 'sample'; did you mean 'samples'"),
        ({"PointBench": {"samples": []}}, "samples must be the path"),
        (
            {"PointBench": {"samples": "s", "predictions": {"m": {"path": "m", "reader": "x"}}}},
            "predictions, m: reader: unknown",
        ),
        ({"PointBench": {"samples": "s", "predictions": {"m": {"path": "m", "reader": "qwen-boxes"}}}}, "reads boxes"),
        ({"PointBench": {"samples": "s", "predictions": {"m": {"path": "m", "absent": "x"}}}}, "unknown key 'absent'"),
        ({"PointBench": {"samples": "s", "predictions": {"m": ""}}}, "a model needs a name and a path"),
        ({"PointBench": "s.jsonl"}, "points, PointBench: Expected `object`"),
    ],
)
def test_bad_options_are_told(points, message):
    said = {"gold": "gold.jsonl", "points": points}
    with pytest.raises(EvalkitError, match=message):
        evalkit.read_point_runs(options_from(said, source="benchmark.yml").points)


# -- the file of samples ----------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(score):
    """Samples of every state, as a table."""
    context = [sample(f"c{at}", category="context") for at in range(5)]
    asked = [sample(f"y{at}", category="compatibility", answer="Yes") for at in range(4)]
    texts = {"c0": answer(HIT, MISS, HIT), "c1": "[]", "c2": "sorry", "c3": answer(MISS), "y0": "yes", "y1": "no", "y2": "hm"}
    return score(context + asked, texts, benchmark="RoboSpatial")[0]


def written(table, path):
    return write_lines(path, sample_rows(table))


@rule("points-samples-file")
@pytest.mark.parametrize("missing", ["partial", "unparseable"])
def test_rule_points_samples_file_gives_the_same_scores(mixed, tmp_path, missing):
    path = written(mixed, tmp_path / "point_samples.jsonl")
    again = read_point_samples(path, missing=missing)
    if missing == "partial":
        pd.testing.assert_frame_equal(again, mixed, check_categorical=False)
        assert evalkit.point_scores(again).equals(evalkit.point_scores(mixed))
    scores = evalkit.point_scores(again).iloc[0]
    assert scores[["samples", "complete"]].tolist() == [7 if missing == "partial" else 9, False]
    assert evalkit.point_scores(read_point_samples(written(again, path))).equals(evalkit.point_scores(again))


@rule("points-samples-file")
def test_rule_points_samples_file_has_the_names_of_the_protocol(mixed, tmp_path):
    rows = sample_rows(mixed)
    head = ["protocol", "benchmark", "model", "sample_id", "subset", "state", "answer_correct"]
    assert list(rows[0]) == [*head, *EVIDENCE, *STRICT, *NON_STRICT, "reason"]
    assert rows[0]["protocol"] == PROTOCOL
    states = {row["sample_id"]: (row["state"], row["answer_correct"], row["predicted_count"], row["gt_count"]) for row in rows}
    assert states["c0"] == ("points", None, 3, 1)
    assert states["c4"] == ("missing", None, None, 1)
    assert [states[f"y{at}"] for at in range(4)] == [
        *(("answered", True, None, None), ("answered", False, None, None)),
        *(("unparseable", False, None, None), ("missing", None, None, None)),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matched_count": 2}, r"sample c0: M > min\(P, G\).*\(P 3, G 1, M 2, H 2\)"),
        ({"raw_hit_count": 4}, r"sample c0: H > P"),
        ({"strict_fp": 1}, r"line 1, sample c0: the counts do not follow from the evidence \(strict_tp 1, strict_fp 1"),
        ({"non_strict_precision_hits": 1}, "sample c0: the counts do not follow from the evidence"),
        ({"raw_hit_count": None}, "sample c0: a point sample has all counts"),
        ({"predicted_count": -1}, "sample c0: a count is a whole number from 0 on, not -1"),
        ({"gt_count": 10**18}, "a count is a whole number from 0 on"),
        ({"protocol": "other"}, "sample c0: the protocol is 'other'"),
        ({"benchmark": "Chess"}, "sample c0: there is no point benchmark 'Chess'"),
        ({"subset": "kitchen"}, "sample c0: RoboSpatial has no category 'kitchen'"),
        ({"state": "fine"}, "sample c0: the state must be one of points, empty"),
        ({"state": "answered"}, "sample c0: a sample of the category 'context' cannot be 'answered'"),
        ({"answer_correct": True}, "sample c0: a point sample has all counts"),
        ({"subset": "configuration"}, "sample c0: a sample of the category 'configuration' cannot be 'points'"),
        ({"sample_id": "c1"}, r"line 2, sample c1: duplicate sample of the model 'm'"),
        ({"strict_tp": 1.5}, "Expected `int"),
    ],
)
def test_a_file_of_samples_that_cannot_be_is_told(mixed, tmp_path, change, message):
    rows = sample_rows(mixed)
    path = write_lines(tmp_path / "point_samples.jsonl", [{**rows[0], **change}, *rows[1:]])
    with pytest.raises(DataError, match=message):
        read_point_samples(path)


def test_the_order_of_the_lines_changes_no_score(mixed, tmp_path):
    rows = sample_rows(mixed)
    shuffled = random.Random(1).sample(rows, len(rows))
    one, other = (read_point_samples(write_lines(tmp_path / "x.jsonl", these)) for these in (rows, shuffled))
    assert evalkit.point_scores(one).equals(evalkit.point_scores(other))
    assert evalkit.point_intervals(one, replicates=100).equals(evalkit.point_intervals(other, replicates=100))


# -- the command line -------------------------------------------------------------------------------------------------


def run(*arguments, status=0):
    result = CliRunner().invoke(main, ["points", *map(str, arguments)])
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


@pytest.fixture
def files(tmp_path):
    """A benchmark.yml with two point benchmarks, and the folder of it."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "mask.png").write_bytes(png(INSIDE))
    write_lines(folder / "where.jsonl", [sample("a"), sample("b")])
    write_lines(folder / "ref.jsonl", [sample("a", category="location"), sample("b", category="unseen")])
    write_answers(folder / "one.jsonl", {"a": answer(HIT), "b": answer(HIT, MISS)})
    write_answers(folder / "two.jsonl", {"a": '<point x="15" y="30">'})
    write_lines(folder / "gold.jsonl", [{"image_id": "x", "boxes": []}])
    (folder / "classes.csv").write_text("class_id,class_name\n1,a\n")
    points = {
        "Where2Place": {"samples": "where.jsonl", "predictions": {"one": "one.jsonl"}},
        "RefSpatial-Bench": {
            "samples": ["ref.jsonl"],
            "predictions": {"one": "one.jsonl", "two": {"path": "two.jsonl", "reader": "molmo-points"}},
        },
    }
    write_yml(folder, gold="gold.jsonl", classes="classes.csv", points=points)
    return folder


def test_points_from_a_benchmark_file(files, tmp_path):
    out = tmp_path / "out"
    told = run("--benchmark", files / "benchmark.yml", "--out", out, "--replicates", 100)
    assert "partial: two on RefSpatial-Bench, 1 samples scored" in told
    with (out / "point_scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == SCORE_COLUMNS
    keys = [(row["benchmark"], row["model"], row["subset"]) for row in rows]
    assert keys[:2] == [("Where2Place", "one", "all"), ("RefSpatial-Bench", "one", "all")]
    record = json.loads((out / "run.json").read_text())
    assert record["protocol"] == PROTOCOL
    assert record["readers"]["RefSpatial-Bench"]["two"] == "key=tags,order=xy,scale=100"
    assert {"points Where2Place: where.jsonl", "points RefSpatial-Bench, predictions two: two.jsonl"} <= set(record["inputs"])
    first = record["summaries"][0]
    assert {"strict_micro_f1", "non_strict_micro_f1", "strict_overall_score", "non_strict_overall_score"} <= set(first)
    assert (first["primary"], first["strict_micro_f1"]) == ("non_strict_micro_f1", 2 * 2 / (2 * 2 + 1))
    assert first["non_strict_micro_f1"] == pytest.approx(2 * (2 / 3) / (2 / 3 + 1))
    run("--from", out / "point_samples.jsonl", "--out", tmp_path / "again", "--replicates", 100, "--quiet")
    for name in ("point_scores.csv", "point_intervals.csv", "point_samples.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes(), name


def test_points_from_parts_and_in_other_formats(files, tmp_path):
    out = tmp_path / "out"
    parts = [
        "--samples",
        files / "ref.jsonl",
        "--benchmark-name",
        "RefSpatial-Bench",
        "--predictions",
        f"two={files / 'two.jsonl'}",
    ]
    run(*parts, "--reader", "two=molmo-points", "--missing", "unparseable", "--format", "parquet", "--out", out, "--quiet")
    table = pd.read_parquet(out / "point_scores.parquet")
    assert table[["subset", "samples", "strict_tp", "strict_fn"]].to_numpy().tolist() == [
        *(["all", 2, 1, 1], ["location", 1, 1, 0], ["unseen", 1, 0, 1]),
    ]


def test_points_fail_where_a_complete_run_is_asked_for(files, tmp_path):
    arguments = ["--benchmark", files / "benchmark.yml", "--require-complete", "--quiet", "--replicates", 100]
    told = run(*arguments, "--out", tmp_path / "out", status=1)
    assert "runs are not complete (two on RefSpatial-Bench)" in told
    run(*arguments, "--models", "one", "--out", tmp_path / "one")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of --benchmark, --samples"),
        (["--benchmark", "b.yml", "--from", "x.jsonl"], "give one of --benchmark, --samples"),
        (
            ["--samples", "s.jsonl", "--predictions", "m=m.jsonl"],
            "--samples, --benchmark-name and --predictions belong together",
        ),
        (["--samples", "s.jsonl", "--benchmark-name", "Chess", "--predictions", "m=m.jsonl"], "no point benchmark 'Chess'"),
        (["--samples", "s", "--benchmark-name", "PIOBench", "--predictions", "m=m", "--reader", "n=x"], "has no --predictions"),
        (["--from", "nowhere.jsonl"], "there is no file 'nowhere.jsonl'"),
        (["--from", "x.jsonl", "--replicates", "7"], "replicates must be at least 100"),
    ],
)
def test_points_say_what_is_wrong_with_the_call(arguments, message, tmp_path):
    told = run(*arguments, "--out", tmp_path / "out", status=2)
    assert message in told
    assert not (tmp_path / "out").exists()


def test_points_say_what_is_wrong_with_the_data_and_write_nothing(files, tmp_path):
    (files / "mask.png").unlink()
    told = run("--benchmark", files / "benchmark.yml", "--out", tmp_path / "out", "--quiet", status=2)
    assert "where.jsonl, line 1, sample a: there is no mask 'mask.png' [mask.absent]" in told
    assert "ref.jsonl, line 2, sample b: there is no mask" in told
    assert not (tmp_path / "out").exists()


def test_points_of_a_file_without_any_are_refused(tmp_path, files):
    write_yml(files, gold="gold.jsonl", classes="classes.csv")
    assert "there are no points with predictions" in run(
        "--benchmark", files / "benchmark.yml", "--out", tmp_path / "o", status=2
    )
    told = run("--benchmark", files / "benchmark.yml", "--out", files / "o", status=2)
    assert "lies in the benchmark's own folder" in told


def test_check_tells_of_points_too(files):
    result = CliRunner().invoke(main, ["check", "--benchmark", str(files / "benchmark.yml")])
    assert result.exit_code == 0, result.output
    assert "RefSpatial-Bench   two        2       1      0         0            0        1" in result.output
    (files / "mask.png").write_bytes(png(np.zeros((HEIGHT, WIDTH), bool)))
    result = CliRunner().invoke(main, ["check", "--benchmark", str(files / "benchmark.yml")])
    assert result.exit_code == 2
    assert "sample b: the mask has no foreground [mask.empty]" in result.output
    assert "4 findings; nothing was scored" in result.output


@rule("published")
def test_rule_published_scores_of_points_are_checked(files, tmp_path):
    arguments = ["--benchmark", files / "benchmark.yml", "--replicates", 100, "--out", tmp_path / "out"]
    run(*arguments, "--quiet")
    table = pd.read_csv(tmp_path / "out" / "point_scores.csv")
    table.to_csv(tmp_path / "same.csv", index=False)
    told = run(*arguments, "--published", tmp_path / "same.csv")
    assert f"points: {len(table)} of {len(table)} published rows equal" in told
    table.loc[0, "strict_f1"] += 0.01
    table.to_csv(tmp_path / "other.csv", index=False)
    told = run(*arguments, "--published", tmp_path / "other.csv", "--quiet", status=1)
    assert f"published values are not reproduced;\npoints: {len(table) - 1} of {len(table)} published rows equal" in told
    assert "--published without a file needs" in run(*arguments, "--published", status=2)
    parts = ["--from", tmp_path / "out" / "point_samples.jsonl", "--out", tmp_path / "again", "--replicates", 100]
    run(*parts, "--published", tmp_path / "same.csv", "--quiet")
    assert "--published without a file needs" in run(*parts, "--published", status=2)


def test_gold_points_of_shards_are_percents_and_those_of_lines_pixels(tmp_path):
    """(20, 30) percent of 100 by 50 pixels are (20, 15)."""
    (tmp_path / "mask.png").write_bytes(png(INSIDE))
    row = {
        "image": picture(),
        "label": "cup",
        "points": [{"x": 20.0, "y": 30.0}],
        "masks": [{"bytes": png(INSIDE), "path": None}],
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "shard.parquet")
    line = {"sample_id": "a", "width": WIDTH, "height": HEIGHT, "points": [[20, 30]], "masks": ["mask.png"]}
    paths = [tmp_path / "shard.parquet", write_lines(tmp_path / "lines.jsonl", [line])]
    shard, lines = (next(read_samples([path], POINT_BENCHMARKS["Pixmo-Points"])) for path in paths)
    assert shard.points.tolist() == [[20 * WIDTH / 100, 30 * HEIGHT / 100]]
    assert lines.points.tolist() == [[20, 30]]


def test_answers_to_unknown_samples_are_told_for_every_model(tmp_path):
    (tmp_path / "mask.png").write_bytes(png(INSIDE))
    write_lines(tmp_path / "s.jsonl", [sample("a")])
    for model in ("one", "two"):
        write_answers(tmp_path / f"{model}.jsonl", {"a": answer(HIT), f"of {model}": answer(HIT)})
    said = {"samples": "s.jsonl", "predictions": {model: f"{model}.jsonl" for model in ("one", "two")}}
    runs = evalkit.read_point_runs({"Where2Place": point_options_from(said, source="test")}, folder=tmp_path)
    with pytest.raises(DataError) as error:
        every_point_sample(runs)
    assert [finding.rule for finding in error.value.findings] == ["answer.unknown"] * 2


def test_an_answer_is_drawn_also_where_its_picture_cannot_be_opened(tmp_path):
    (tmp_path / "mask.png").write_bytes(png(INSIDE))
    (tmp_path / "broken.png").write_bytes(b"no picture")
    rows = [sample("a", image="broken.png"), sample("b", image="absent.png"), sample("c")]
    write_lines(tmp_path / "s.jsonl", rows)
    write_answers(tmp_path / "m.jsonl", {"a": answer(HIT), "b": answer(MISS), "c": answer(HIT)})
    options = point_options_from({"samples": "s.jsonl", "predictions": {"m": "m.jsonl"}}, source="test")
    runs = evalkit.read_point_runs({"Where2Place": options}, folder=tmp_path)
    grid = point_figures.answers(runs, [("Where2Place", "m", name) for name in "abc"])
    titles = [axes.get_title() for axes in grid.flat]
    assert [title.split("\n")[1] for title in titles] == ["P 1  G 1  M 1  H 1", "P 1  G 1  M 0  H 0", "P 1  G 1  M 1  H 1"]
    plt.close("all")


def test_an_image_is_a_path_or_bytes(score):
    with pytest.raises(DataError, match=r"the image must be a path or bytes, not list \[sample.kind\]"):
        score([sample("a", image=[[0, 1]])], {"a": answer(HIT)})


def test_a_benchmark_that_nobody_answered_is_not_read(files, tmp_path):
    lines = (files / "ref.jsonl").read_text().replace("mask.png", "absent.png")
    (files / "ref.jsonl").write_text(lines)
    options = json.loads((files / "benchmark.yml").read_text())
    del options["points"]["RefSpatial-Bench"]["predictions"]["one"]
    (files / "benchmark.yml").write_text(json.dumps(options))
    run("--benchmark", files / "benchmark.yml", "--models", "one", "--out", tmp_path / "out", "--replicates", 100)


def test_points_of_an_earlier_run_keep_their_rule_of_missing_and_know_their_models(files, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    options = ["--replicates", 100, "--quiet"]
    run("--benchmark", files / "benchmark.yml", "--out", first, "--missing", "unparseable", *options)
    source = first / "point_samples.jsonl"
    run("--from", source, "--out", again, *options)
    assert (again / "point_scores.csv").read_bytes() == (first / "point_scores.csv").read_bytes()
    assert json.loads((again / "run.json").read_text())["parameters"]["missing"] == "unparseable"
    assert "there is no model 'nobody'; there are one, two" in run(
        "--from", source, "--models", "nobody", "--out", again, status=2
    )


def test_what_was_noticed_is_told_and_recorded(files, tmp_path):
    stored = Image.new("RGB", (HEIGHT, WIDTH))
    exif = stored.getexif()
    exif[ORIENTATION] = 6
    stored.save(files / "turned.jpg", exif=exif)
    turned = {"sample_id": "b", "image": "turned.jpg", "mask": "mask.png"}
    write_lines(files / "where.jsonl", [sample("a"), turned])
    out = tmp_path / "out"
    told = run("--benchmark", files / "benchmark.yml", "--out", out, "--replicates", 100)
    assert "Where2Place: picture_turned, 1 samples (b)" in told
    noticed = json.loads((out / "run.json").read_text())["noticed"]
    assert {"source": "Where2Place", "code": "picture_turned", "count": 1, "examples": "b"} in noticed

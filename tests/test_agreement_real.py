"""Agreement on real data: published numbers, and those that other code gave."""

import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from agreement_references import plain_agreement
from small import write_classes, write_yml

import evalkit
from evalkit.agreement import agree, mark, score_annotators

COLUMNS = {"class": "label", "x_min": "x1", "y_min": "y1", "x_max": "x2", "y_max": "y2"}


def overall(table, statistic, group="pooled"):
    rows = table[(table["group"] == group) & (table["level"] == "overall") & (table["statistic"] == statistic)]
    assert len(rows) == 1
    return rows.iloc[0]["estimate"]


# Pedestrians: seven workers an image, and experts


def crowd(shared, tmp_path, **more):
    folder = shared / "real/caltech-ped-crowd"
    options = {"path": str(folder / "boxes.csv"), "columns": COLUMNS, "where": {"source": "crowd"}}
    classes = write_classes(tmp_path / "classes.csv", ["pedestrian"])
    return write_yml(tmp_path, classes=classes, first_pass={"assignments": str(folder / "assignments.csv"), **options, **more})


def test_every_pair_of_workers_on_every_picture(shared, tmp_path):
    first = evalkit.read_first_pass(crowd(shared, tmp_path))
    assert len(first.images) == 1448
    assert len(first.seen) == 10_136
    assert len(first.annotators) == 43
    assert len(first.boxes) == 11_765  # of which 31 have no area and 1,439 reach outside: all of them stay
    marks = mark(first)
    assert len(marks.a) == 30_408 == 1448 * 7 * 6 // 2
    boxes = int(marks.boxes.sum())
    assert boxes == 11_765 * 6
    assert round(overall(agree(first, marks=marks, replicates=None), "pairwise_f1"), 4) == 0.8451
    assert 2 * marks.matched.sum() / boxes == overall(agree(first, marks=marks, replicates=None), "pairwise_f1")


def test_workers_against_experts(shared, tmp_path):
    """938 pictures have an expert; what the workers did on the others is left out before the comparison."""
    folder = shared / "real/caltech-ped-crowd"
    assigned = pd.read_csv(folder / "assignments.csv", dtype=str)
    boxes = pd.read_csv(folder / "boxes.csv", dtype=str)
    expert = boxes[boxes["source"] == "expert"]
    ids = assigned.loc[assigned["source"] == "expert", "image_id"]
    of_image = dict(list(expert.groupby("image_id")))
    rows = []
    for image in ids:
        mine = of_image.get(image, expert.iloc[:0])[["x1", "y1", "x2", "y2"]].astype(float).to_numpy().tolist()
        rows.append({"image_id": image, "boxes": [{"class": "pedestrian", "box": box} for box in mine]})
    assert len(rows) == 938
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, table in (("boxes", boxes), ("seen", assigned)):
        kept = table[table["image_id"].isin(ids) & (table["source"] == "crowd")]
        kept.to_csv(tmp_path / f"{name}.csv", index=False)
    classes = write_classes(tmp_path / "classes.csv", ["pedestrian"])
    options = {"path": "boxes.csv", "columns": COLUMNS, "assignments": "seen.csv"}
    path = write_yml(tmp_path, classes=classes, gold="gold.jsonl", first_pass=options)
    table = score_annotators(evalkit.read_first_pass(path), iou=[0.5], replicates=None)
    table = table[(table["task"] == "localisation") & (table["level"] == "overall") & (table["average"] == "micro")]
    single = table[~table["annotator"].astype(str).str.contains("+", regex=False)]
    assert single[["tp", "fp", "fn"]].sum().tolist() == [6884, 844, 1642]


# A kitchen video: two annotators, 4,983 frames


@pytest.fixture(scope="module")
def kitchen(shared):
    folder = shared / "real/kscgr-two-annotators"
    rows = []
    for who in (1, 2):
        for line in (folder / f"annotator_{who}.txt").read_text(encoding="utf-8").splitlines()[1:-2]:
            frame, label, points, *_ = line.split("\t")
            x, y, width, height = map(int, re.findall(r"-?\d+", points))
            rows.append((frame, f"annotator {who}", label.strip(), x, y, x + width, y + height))
    return pd.DataFrame(rows, columns=["image_id", "annotator", "class", "x_min", "y_min", "x_max", "y_max"])


@pytest.fixture(scope="module")
def kitchen_first_pass(kitchen, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kitchen")
    kitchen.to_csv(folder / "first_pass.csv", index=False)
    frames = [(frame, f"annotator {who}") for frame in range(4983) for who in (1, 2)]
    pd.DataFrame(frames, columns=["image_id", "annotator"]).to_csv(folder / "seen.csv", index=False)
    classes = write_classes(folder / "classes.csv", sorted(kitchen["class"].unique()))
    options = {"path": "first_pass.csv", "assignments": "seen.csv"}
    return evalkit.read_first_pass(write_yml(folder, classes=classes, first_pass=options))


def test_labels_and_boxes_of_the_kitchen_video(kitchen, kitchen_first_pass):
    labels = {who: Counter(zip(rows["image_id"], rows["class"], strict=True)) for who, rows in kitchen.groupby("annotator")}
    one, other = labels.values()
    both = sum((one & other).values())
    assert (both, sum((one - other).values()), sum((other - one).values())) == (61_427, 197, 29)
    marks = mark(kitchen_first_pass)
    assert len(marks.a) == 4983
    assert int(marks.unlike["exact_match"][:, 0].sum()) == 208
    assert int(marks.matched.sum()) == 61_401
    table = agree(kitchen_first_pass, marks=marks, replicates=None)
    assert overall(table, "exact_match") == (4983 - 208) / 4983
    assert overall(table, "pairwise_f1") == 2 * 61_401 / (61_624 + 61_456)
    assert overall(table, "mean_iou") > 0.9141  # that of some largest matching; ours has the largest sum of IoU
    assert int(mark(kitchen_first_pass, iou=0.7).matched.sum()) == 60_984


def test_blocks_of_frames_widen_the_interval(kitchen_first_pass):
    """Frames next to each other are near duplicates; in blocks of a hundred there is far less to draw from."""
    block = [f"{int(frame) // 100:02d}" for frame in kitchen_first_pass.images["image_id"]]
    spans = []
    for one in (None, block):
        table = agree(kitchen_first_pass, replicates=300, block=one)
        row = table[(table["group"] == "pooled") & (table["level"] == "overall") & (table["statistic"] == "exact_match")].iloc[
            0
        ]
        spans.append(row["high"] - row["low"])
    assert spans[1] > 3 * spans[0]


# Pictures with fruit


@pytest.mark.parametrize("name", ["fruits", "smile_fruits", "landscape_annotations", "test_annotation"])
def test_pictures_of_three_annotators_by_the_definitions(shared, tmp_path, name):
    path = shared / f"real/kalphacv-examples/{name}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    labels = {one["id"]: one["name"] for one in content["categories"]}
    ratings = {one["file_name"]: {} for one in content["images"]}
    for one in content["images"]:
        mine = [row for row in content["annotations"] if row["image_id"] == one["id"]]
        corners = [(labels[row["category_id"]], row["bbox"]) for row in mine]
        ratings[one["file_name"]][one["annotator"]] = [(label, [x, y, x + w, y + h]) for label, (x, y, w, h) in corners]
    first = evalkit.read_first_pass(write_yml(tmp_path, first_pass=str(path)))
    expected = plain_agreement(ratings, dict.fromkeys(labels.values(), ""))
    table = agree(first, replicates=None)
    table = table[table["group"] == "pooled"]
    for row in table.itertuples():
        value = expected.get((row.level, row.label, row.statistic))
        assert np.isnan(row.estimate) == (value is None), row
        assert value is None or row.estimate == pytest.approx(float(value), abs=1e-12), row


def test_the_worked_ious(shared):
    worked = json.loads((shared / "real/kalphacv-examples/worked_answers.json").read_text(encoding="utf-8"))["iou"]
    expected = [16 / 34, 2025 / 2975, 240100 / 259900, 1 / 49, 129000 / 271000, 0]
    assert [one["iou"] for one in worked] == ["16/34", "2025/2975", "240100/259900", "1/49", "129000/271000", "0"]
    corners = [np.array([one[side] for one in worked], float) for side in "ab"]
    for boxes in corners:
        boxes[:, 2:] += boxes[:, :2]
    assert evalkit.iou(*corners) == pytest.approx(expected, abs=1e-15)

"""Real data that others made: counts that are published or were measured by others, and ratios as arithmetic from them."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from small import counts, coverage, f2, rows, score, the_row, write_classes, write_yml

import evalkit
from evalkit import DataError, read_benchmark
from evalkit.cli import main

BOX = ["x_min", "y_min", "x_max", "y_max"]


def check(benchmark, expected, micro_f2=None, macro_f2=None, **where):
    """Check TP, FP, FN, and F2 to the six digits that are known and to the last bit of what the counts say."""
    row = score(benchmark, **where)
    assert counts(benchmark, **where) == dict(zip(("tp", "fp", "fn"), expected, strict=True))
    tp, fp, fn = expected
    assert (row["precision"], row["recall"]) == (tp / (tp + fp), tp / (tp + fn))
    assert (row["f1"], row["f2"]) == (2 * tp / (2 * tp + fp + fn), f2(tp, fp, fn))
    if micro_f2 is None:
        return
    assert f"{row['f2']:.6f}" == micro_f2
    table = evalkit.scores(benchmark, evalkit.count(benchmark, iou=[where.get("iou", 0.5)]))
    task = where.get("task", "localisation")
    classes = rows(table, scope="valid", task=task, level="class")[["tp", "fp", "fn"]].astype(int)
    assert classes.sum().tolist() == list(expected)
    represented = [f2(*one) for one in classes.to_numpy().tolist() if any(one)]
    macro = score(benchmark, average="macro", **where)["f2"]
    assert macro == pytest.approx(sum(represented) / len(represented), abs=1e-12)
    assert f"{macro:.6f}" == macro_f2


def in_order(table):
    """Boxes as rows of image, class and coordinates, in an order of their own."""
    return table[["image_id", "class", *BOX]].astype({"image_id": str, "class": str}).sort_values(["image_id", "class", *BOX])


# -- 100 images of VOC, a real detector -------------------------------------------------------------------------------

VOC = "real/voc-review-odm/data/database"
EMPTY = [  # the two images without a detection file are empty answers: their gold is missed
    ({"task": "classification"}, (150, 47, 14), "0.879250", "0.868888"),
    ({"iou": 0.5}, (226, 226, 47), "0.731865", "0.764409"),
    ({"iou": 0.4}, (230, 222, 43), "0.744819", "0.781372"),
    ({"iou": 0.3}, (232, 220, 41), "0.751295", "0.792687"),
]
MISSING = [  # they are missing: out of the valid scope
    ({"task": "classification"}, (150, 47, 12), "0.887574", "0.883496"),
    ({"iou": 0.5}, (226, 226, 45), "0.735677", "0.770005"),
]
GOLD = ["coco_format_v1/instances_default.json", "coco_format_v2/instances_v2.json"]
FORMS = ["coco", "abs_xywh", "abs_xyx2y2", "rel_xywh"]


@pytest.fixture
def voc(shared, tmp_path):
    """A function: the benchmark of a form of the detections, a layout of gold, and what an absent image means."""
    base = shared / VOC

    def read(form, absent, gold=GOLD[0]):
        if form == "coco":
            said = {"path": str(base / "dets/coco_format/coco_dets.json")}
        else:
            corners = {"abs_xywh": ["x_min", "y_min", "w", "h"], "abs_xyx2y2": BOX, "rel_xywh": ["cx", "cy", "w", "h"]}
            said = {"path": str(base / "dets" / form), "names": str(base / "voc.names")}
            said |= {"columns": ["class", "score", *corners[form]]}
            said |= {"units": "relative" if form == "rel_xywh" else "pixels"}
        return read_benchmark(
            write_yml(tmp_path, gold=str(base / "gts" / gold), predictions={"detector": said | {"absent": absent}})
        )

    return read


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("where", "expected", "micro", "macro"), EMPTY)
def test_voc_with_absent_images_empty(voc, form, where, expected, micro, macro):
    benchmark = voc(form, "empty")
    check(benchmark, expected, micro, macro, **where)
    assert coverage(benchmark)[["images", "valid", "missing"]].tolist() == [100, 100, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("where", "expected", "micro", "macro"), MISSING)
def test_voc_with_absent_images_missing(voc, form, where, expected, micro, macro):
    benchmark = voc(form, "missing")
    check(benchmark, expected, micro, macro, **where)
    assert coverage(benchmark)[["images", "valid", "missing"]].tolist() == [100, 98, 2]
    view = next(one for one in EMPTY if one[0] == where)  # the view of all images takes them as empty
    assert tuple(counts(benchmark, scope="all", **where).values()) == view[1]


@pytest.mark.parametrize("form", FORMS)
def test_voc_forms_hold_the_same_boxes(voc, form):
    one, other = (in_order(voc(name, "missing").predictions) for name in ("coco", form))
    assert len(other) == 452
    assert one[["image_id", "class"]].to_numpy().tolist() == other[["image_id", "class"]].to_numpy().tolist()
    tolerance = 1e-3 if form == "rel_xywh" else 0  # six decimals of at most 500 pixels
    assert np.abs(one[BOX].to_numpy() - other[BOX].to_numpy()).max() <= tolerance


def test_voc_gold_is_the_same_in_another_coco_layout(voc):
    one, other = (voc("abs_xywh", "empty", gold=name) for name in GOLD)
    check(other, *EMPTY[1][1:], **EMPTY[1][0])
    one, other = (in_order(benchmark.gold.assign(image_id=named(benchmark))) for benchmark in (one, other))
    assert len(one) == 273
    assert one.to_numpy().tolist() == other.to_numpy().tolist()


def named(benchmark):
    """The file name, without its ending, of the image of each gold box."""
    return benchmark.images["file_name"].str.removesuffix(".jpg").to_numpy()[benchmark.gold["image_id"].cat.codes]


def test_voc_gold_in_yolo_text_scores_alike(voc, shared, tmp_path):
    coco = voc("abs_xywh", "empty")
    base = shared / VOC
    sizes = coco.images.assign(image_id=coco.images["file_name"].str.removesuffix(".jpg"))
    sizes[["image_id", "width", "height"]].to_csv(tmp_path / "sizes.csv", index=False)
    names = (base / "gts/yolo_format/obj.names").read_text().split()
    text = {"path": str(base / "gts/yolo_format/obj_train_data"), "names": str(base / "gts/yolo_format/obj.names")}
    benchmark = read_benchmark(
        write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", names),
            gold=text | {"format": "yolo", "sizes": "sizes.csv"},
            predictions={
                "detector": {
                    **{"path": str(base / "dets/abs_xywh"), "names": str(base / "voc.names"), "absent": "empty"},
                    **{"columns": ["class", "score", "x_min", "y_min", "w", "h"], "units": "pixels"},
                }
            },
        )
    )
    check(benchmark, *EMPTY[1][1:], **EMPTY[1][0])
    one, other = in_order(coco.gold.assign(image_id=named(coco))), in_order(benchmark.gold)
    assert one[["image_id", "class"]].to_numpy().tolist() == other[["image_id", "class"]].to_numpy().tolist()
    assert np.abs(one[BOX].to_numpy() - other[BOX].to_numpy()).max() < 1e-3


# -- 100 images of COCO -----------------------------------------------------------------------------------------------

COCO = "real/coco100-fakebbox"


@pytest.fixture
def coco(shared, tmp_path):
    def write(**options):
        return write_yml(
            tmp_path,
            gold={"path": str(shared / COCO / "instances_val2014_100.json"), **options},
            predictions={"fake": str(shared / COCO / "instances_val2014_fakebbox100_results.json")},
        )

    return write


@pytest.mark.parametrize(
    ("where", "expected", "micro", "macro"),
    [
        ({"task": "classification"}, (272, 80, 38), "0.854271", "0.753549"),
        ({"iou": 0.5}, (650, 84, 180), "0.801677", "0.706895"),
    ],
)
def test_coco_with_crowd_boxes_dropped(coco, where, expected, micro, macro):
    benchmark = read_benchmark(coco(crowd="drop"))
    check(benchmark, expected, micro, macro, **where)
    assert the_row(evalkit.data_notes(benchmark), code="crowd_dropped")["count"] == 9
    assert (len(benchmark.gold), len(benchmark.predictions)) == (839 - 9, 734)
    assert coverage(benchmark)[["images", "valid"]].tolist() == [100, 100]  # a results list: an absent image is empty


def test_coco_with_crowd_boxes_is_refused_and_all_nine_are_named(coco, shared):
    gold = json.loads((shared / COCO / "instances_val2014_100.json").read_text())
    crowd = [(f"annotations[{at}]", str(one["image_id"])) for at, one in enumerate(gold["annotations"]) if one["iscrowd"]]
    assert len(crowd) == 9
    path = coco()
    with pytest.raises(DataError, match="and 4 more, 9 in all") as error:
        read_benchmark(path)
    assert [(finding.place, finding.image_id) for finding in error.value.findings] == crowd
    assert {finding.rule for finding in error.value.findings} == {"box.crowd"}
    result = CliRunner().invoke(main, ["check", "--benchmark", str(path)])
    assert result.exit_code == 2
    assert all(f"{place}, image {image}:" in result.output for place, image in crowd)


# -- two clips of pedestrians -----------------------------------------------------------------------------------------

TUD = "real/motmetrics_tud"


def long_csv(source, target):
    """MOTChallenge text (frame, id, left, top, width, height, …) as a long CSV with one image a frame."""
    with source.open() as said, target.open("w", newline="") as written:
        writer = csv.writer(written)
        writer.writerow(["image_id", "class", *BOX])
        for frame, _, *values in csv.reader(said):
            left, top, width, height = map(float, values[:4])
            writer.writerow([frame, "pedestrian", left, top, left + width, top + height])


@pytest.mark.parametrize(("clip", "tp"), [("TUD-Campus", 209), ("TUD-Stadtmitte", 704)])
def test_tud_has_the_published_errors(shared, tmp_path, clip, tp):
    published = json.loads((shared / TUD / "expected.json").read_text())[clip]
    for side in ("gt", "test"):
        long_csv(shared / TUD / f"{clip}_{side}.txt", tmp_path / f"{side}.txt")
    benchmark = read_benchmark(
        write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", ["pedestrian"]),
            gold={"path": "gt.txt", "format": "csv"},
            predictions={"tracker": {"path": "test.txt", "format": "csv"}},
        )
    )
    check(benchmark, (tp, published["FP"], published["FN"]), iou=0.5)
    row = score(benchmark)
    assert f"{100 * row['recall']:.1f}" == f"{published['Rcll']:.1f}"
    assert f"{100 * row['precision']:.1f}" == f"{published['Prcn']:.1f}"


# -- detections with classes that gold lacks --------------------------------------------------------------------------

CARTUCHO = "real/cartucho-map/input"


def text_boxes(folder, n_before):
    """Boxes of a folder as {(image, class): array}, read without evalkit."""
    found = {}
    for file in folder.glob("*.txt"):
        for line in file.read_text().splitlines():
            label, *values = line.split()
            found.setdefault((file.stem, label), []).append([float(value) for value in values[n_before:]])
    return {key: np.array(boxes) for key, boxes in found.items()}


def most_pairs(gold, predicted, threshold):
    """The largest number of one-to-one pairs, by augmenting paths (Kuhn): a plain second implementation."""
    low = np.maximum(gold[:, None, :2], predicted[None, :, :2])
    high = np.minimum(gold[:, None, 2:], predicted[None, :, 2:])
    shared_area = np.clip(high - low, 0, None).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (gold, predicted)]
    near = shared_area / (areas[0][:, None] + areas[1][None] - shared_area) >= threshold - 1e-9
    partner = {}

    def place(row, seen):
        for column in np.flatnonzero(near[row]):
            if column not in seen:
                seen.add(column)
                if column not in partner or place(partner[column], seen):
                    partner[column] = row
                    return True
        return False

    return sum(place(row, set()) for row in range(len(gold)))


@pytest.fixture
def cartucho(shared, tmp_path):
    """The two sides read without evalkit, and the benchmark: gold and detections in text folders, in pixels."""
    gold = text_boxes(shared / CARTUCHO / "ground-truth", 0)
    predicted = text_boxes(shared / CARTUCHO / "detection-results", 1)
    benchmark = read_benchmark(
        write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", sorted({label for _, label in gold})),
            gold={"path": str(shared / CARTUCHO / "ground-truth"), "columns": ["class", *BOX], "units": "pixels"},
            predictions={
                "detector": {
                    **{"path": str(shared / CARTUCHO / "detection-results"), "units": "pixels"},
                    **{"columns": ["class", "score", *BOX]},
                }
            },
        )
    )
    return gold, predicted, benchmark


def test_cartucho_holds_what_its_source_says(cartucho):
    _, _, benchmark = cartucho
    assert len(benchmark.images) == 85
    assert (len(benchmark.gold), benchmark.gold["class"].nunique()) == (686, 30)
    assert (len(benchmark.predictions), benchmark.predictions["class"].nunique()) == (494, 36)


def test_cartucho_counts_predicted_classes_outside_the_list(cartucho):
    gold, predicted, benchmark = cartucho
    listed, said = ({label for _, label in side} for side in (gold, predicted))
    strangers = said - listed
    # The source speaks of 6, which is 36 - 30; as two classes of gold (doll, shelf) are never predicted, it is 6 + 2.
    assert len(said) - len(listed) == 6
    assert len(strangers) == 6 + len(listed - said) == 6 + 2
    assert set(benchmark.outside) == strangers
    false = sum(len(boxes) for (_, label), boxes in predicted.items() if label in strangers)
    assert counts(benchmark, level="outside", label="outside") == {"tp": 0, "fp": false, "fn": 0}
    assert the_row(evalkit.data_notes(benchmark), code="class_outside_list")["count"] == false


@pytest.mark.parametrize("threshold", [0.3, 0.4, 0.5])
def test_cartucho_counts_are_those_of_a_second_implementation(cartucho, threshold):
    gold, predicted, benchmark = cartucho
    tp = sum(most_pairs(gold[key], predicted[key], threshold) for key in gold.keys() & predicted.keys())
    check(benchmark, (tp, 494 - tp, 686 - tp), iou=threshold)
    both, either = len(gold.keys() & predicted.keys()), (len(gold), len(predicted))
    check(benchmark, (both, either[1] - both, either[0] - both), task="classification")


# -- street issues, some of them on another scale ---------------------------------------------------------------------

CIVIC = "real/civic-issues-coco"


@pytest.mark.parametrize(("name", "boxes", "outside"), [("new_images", 1414, 107), ("garbage", 321, 224)])
def test_civic_boxes_outside_their_images_are_reported(shared, tmp_path, name, boxes, outside):
    path = shared / CIVIC / f"{name}_coco.json"
    said = json.loads(path.read_text())
    assert len(said["annotations"]) == boxes
    size = {image["id"]: (image["width"], image["height"]) for image in said["images"]}
    wrong = []
    for at, one in enumerate(said["annotations"]):
        (x, y, w, h), (width, height) = one["bbox"], size[one["image_id"]]
        if max(-x, -y, x + w - width, y + h - height) > 0.5:
            wrong.append((f"annotations[{at}]", str(one["image_id"])))
    benchmark = write_yml(tmp_path, gold=str(path))
    with pytest.raises(DataError) as error:
        read_benchmark(benchmark)
    found = [finding for finding in error.value.findings if finding.rule == "box.outside"]
    assert len(found) == outside
    assert sorted((finding.place, finding.image_id) for finding in found) == sorted(wrong)
    assert {finding.file for finding in found} == {path.name}
    result = CliRunner().invoke(main, ["check", "--benchmark", str(benchmark)])
    assert result.exit_code == 2
    assert result.output.count("[box.outside]") == outside


def test_civic_potholes_are_in_order(shared, tmp_path):
    benchmark = read_benchmark(write_yml(tmp_path, gold=str(shared / CIVIC / "pothole_coco.json")))
    assert (len(benchmark.images), len(benchmark.gold)) == (168, 192)
    assert set(benchmark.gold["class"]) == {"pothole"}
    assert benchmark.images[["width", "height"]].notna().all(axis=None)

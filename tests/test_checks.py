"""The layered check of the data: each code fires on data made for it, and on none besides."""

import json

import pytest
from click.testing import CliRunner
from PIL import Image
from small import rows, the_row, write_classes, write_yml

import evalkit
from evalkit import EvalkitError, checks
from evalkit.checks import CODES, COLUMNS, LAYERS, NOTED, data_check, fault_table
from evalkit.cli import main
from evalkit.tables import NOTES, Finding

BOX = [1, 1, 5, 5, "litter"]


def gold_of(boxes):
    """Six images of which each class is on five, and a clean one: nothing to notice."""
    plain = {f"p{at}": [[1, 1, 5, 5, name] for name in ("litter", "kerb", "lamp")] for at in range(5)}
    return {"a": boxes, **plain, "clean": []}


def found(benchmark, code):
    table = rows(data_check(benchmark), code=code)
    return table[["source", "count", "examples"]].to_numpy().tolist()


@pytest.fixture
def make(tmp_path):
    """A benchmark of sized images, whose gold is otherwise in order, and of the model ``m`` that repeats it."""

    def make(boxes=(BOX,), said=None, *, size=(10, 10), classes=("litter", "kerb", "lamp"), plain=True, **more):
        gold = gold_of(list(boxes)) if plain else {"a": list(boxes)}
        said = gold if said is None else said
        about = {} if size is None else {"width": size[0], "height": size[1]}

        def line(image, listed, about):
            return (
                json.dumps({"image_id": image, **about, "boxes": [{"class": box[4], "box": box[:4]} for box in listed]}) + "\n"
            )

        names = {"file_name": "{}.png"} if more else {}
        lines = [
            line(image, listed, about | {key: text.format(image) for key, text in names.items()})
            for image, listed in gold.items()
        ]
        (tmp_path / "gold.jsonl").write_text("".join(lines))
        (tmp_path / "m.jsonl").write_text("".join(line(image, listed, {}) for image, listed in said.items()))
        files = {"classes": write_classes(tmp_path / "classes.csv", list(classes)), "gold": "gold.jsonl", **more}
        return evalkit.read_benchmark(write_yml(tmp_path, predictions={"m": "m.jsonl"}, **files))

    return make


def test_data_in_order_has_no_findings(make):
    table = data_check(make())
    assert list(table.columns) == COLUMNS
    assert table.empty


GOLD_CASES = {
    "gold_over_edge": ([[-0.25, 1, 5, 5, "litter"], [1, 1, 5, 10.5, "kerb"]], 2),
    "gold_repeated": ([BOX, BOX, BOX, [1, 1, 5, 5, "kerb"]], 2),
    "gold_alike": ([[0, 0, 10, 10, "litter"], [0, 0, 10, 9, "litter"], [0, 0, 10, 9, "kerb"]], 1),  # IoU is 90 / 100
    "gold_below_a_pixel": ([[1, 1, 1.5, 9, "litter"], [1, 1, 2, 9, "kerb"]], 1),
}


@pytest.mark.parametrize("code", GOLD_CASES)
def test_gold_boxes_that_are_odd(make, code):
    boxes, count = GOLD_CASES[code]
    benchmark = make(boxes)
    assert found(benchmark, code) == [["gold", count, "a"]]
    assert set(data_check(benchmark)["code"]) - {"outside_image", "repeated_box"} == {code}  # which the model repeats


def test_boxes_that_are_less_alike_are_none(make):
    assert found(make([[0, 0, 10, 10, "litter"], [0, 0, 10, 8.9, "litter"]]), "gold_alike") == []


def test_the_distribution_of_classes(make):
    boxes = [[1, 1, 5, 5, "litter"], [2, 2, 9, 9, "litter"], [1, 1, 5, 5, "kerb"]]
    benchmark = make(boxes, classes=("litter", "kerb", "lamp", "sign"), plain=False)
    assert found(benchmark, "class_without_gold") == [["gold", 2, "lamp, sign"]]
    assert found(benchmark, "class_rare") == [["gold", 2, "litter, kerb"]]
    assert found(benchmark, "class_dominant") == [["gold", 1, "litter"]]
    assert found(benchmark, "no_clean_image") == [["gold", 1, ""]]


def test_a_class_is_rare_by_images_not_boxes(make):
    """Four images are few, whatever the number of boxes; five are not."""
    boxes = [[at, 1, at + 2, 5, "litter"] for at in range(8)]
    assert found(make(boxes, classes=("litter",), plain=False), "class_rare") == [["gold", 1, "litter"]]
    assert found(make(), "class_rare") == []


def test_a_model_that_never_names_a_class(make):
    said = {image: [box for box in boxes if box[4] != "kerb"] for image, boxes in gold_of([BOX]).items()}
    assert found(make(said=said), "class_never_predicted") == [["m", 1, "kerb"]]


def test_a_model_on_another_scale(make):
    """Its boxes are hardly ever near gold of their class, though it names the right classes."""
    said = {image: [[value / 10 for value in box[:4]] + box[4:] for box in boxes] for image, boxes in gold_of([BOX]).items()}
    assert found(make(said=said), "hardly_overlaps") == [["m", 16, "a, p0, p1"]]
    half = {image: boxes if at % 2 else said[image] for at, (image, boxes) in enumerate(gold_of([BOX]).items())}
    assert found(make(said=half), "hardly_overlaps") == []  # 9 of the 16 overlap: a poor model


def test_pictures_that_are_not_what_gold_says(make, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in ("a", "p0", "p1", "p2", "clean"):
        Image.new("RGB", (10, 10)).save(folder / f"{name}.png")
    Image.new("RGB", (20, 10)).save(folder / "p0.png")
    (folder / "p1.png").write_text("no picture")
    turned = Image.new("RGB", (10, 10))
    turned.getexif()[0x0112] = 6
    turned.save(folder / "p2.png", exif=turned.getexif())
    benchmark = make(images="pictures")
    assert found(benchmark, "picture_size_differs") == [["pictures", 1, "p0"]]
    assert found(benchmark, "picture_unreadable") == [["pictures", 1, "p1"]]
    assert found(benchmark, "picture_turned") == [["pictures", 1, "p2"]]
    assert found(benchmark, "picture_absent") == [["pictures", 2, "p3, p4"]]


def test_images_without_a_size(make):
    assert found(make(size=None), "size_unknown") == [["gold", 7, "a, p0, p1"]]


def test_notes_stand_among_the_findings_by_layer(make):
    said = gold_of([BOX, [1, 1, 1, 5, "litter"], [1, 1, 12, 5, "unicorn"]])
    del said["p4"]
    table = data_check(make([BOX, BOX], said))
    assert list(table["code"]) == ["zero_area", "outside_image", "gold_repeated", "class_outside_list", "missing"]
    assert list(table["layer"]) == ["values"] * 3 + ["gold against predictions"] * 2
    assert the_row(table, code="zero_area")["meaning"] == NOTES["zero_area"]


def test_every_code_has_a_layer_and_a_meaning():
    assert {layer for layer, _ in CODES.values()} | set(NOTED.values()) == set(LAYERS)
    assert NOTED.keys() <= NOTES.keys()
    assert all(meaning for _, meaning in CODES.values())
    assert checks.FAULTS.keys() & CODES.keys() == set()


# -- faults


def test_faults_are_counted_by_file_and_rule():
    findings = [
        Finding("a.json", "annotations[1]", "7", "box.outside", "the box is outside (box [1, 2, 3, 4])"),
        Finding("a.json", "annotations[2]", "7", "box.outside", "the box is outside (box [1, 2, 3, 5])"),
        Finding("labels/x.txt", "line 1", "", "line", "no line"),
        Finding("labels/y.txt", "line 2", "", "line", "no line either"),
    ]
    assert fault_table(findings).to_numpy().tolist() == [
        ["structure", "labels", "line", 2, "line 1, line 2", "no line"],
        ["values", "a.json", "box.outside", 2, "7", "the box is outside"],
    ]


@pytest.mark.parametrize(("name", "boxes", "outside"), [("new_images", 1414, 107), ("garbage", 321, 224)])
def test_real_boxes_outside_their_images(shared, tmp_path, name, boxes, outside):
    """The numbers are those of the notes that came with the data."""
    file = shared / "real" / "civic-issues-coco" / f"{name}_coco.json"
    assert len(json.loads(file.read_text())["annotations"]) == boxes
    path = write_yml(tmp_path, gold=str(file))
    found = the_row(data_check(path), code="box.outside")
    assert (found["layer"], found["source"], found["count"]) == ("values", file.name, outside)
    assert len(found["examples"].split(", ")) == 3
    done = CliRunner().invoke(main, ["check", "--benchmark", str(path)])
    assert done.exit_code == 2
    line = next(line for line in done.stdout.partition("By rule:")[2].splitlines() if file.name in line)
    assert line.split()[:4] == ["values", file.name, "box.outside", str(outside)]


def test_data_check_of_a_path(make, tmp_path):
    make([BOX, BOX])
    assert list(data_check(tmp_path / "benchmark.yml")["code"]) == ["repeated_box", "gold_repeated"]
    with pytest.raises(EvalkitError, match="there is no such file"):
        data_check(tmp_path / "absent.yml")


def test_check_prints_the_findings(make, tmp_path):
    make([BOX, BOX])
    done = CliRunner().invoke(main, ["check", "--benchmark", str(tmp_path / "benchmark.yml")])
    assert done.exit_code == 0
    words = next(line for line in done.stdout.splitlines() if "gold_repeated" in line).split()
    assert words == ["values", "gold", "gold_repeated", "1", "a"]

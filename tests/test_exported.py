"""Files that other tools export: real ones hold the same gold in every form, and what cannot be trusted is refused."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import rule
from PIL import Image
from small import write_classes, write_lines, write_yml

import evalkit
from evalkit import DataError, EvalkitError
from evalkit.formats.sizes import pixels
from evalkit.tables import BOX_COLUMNS

VOC = "real/voc-review-odm/data/database"
BOX = {"litter": [10, 20, 60, 50]}

# -- one gold in every form

FORMS = {  # path and options, and by how much the digits of the form move an edge of an image up to 500 pixels long
    "coco": ("coco_format_v1/instances_default.json", {}, 0),
    "coco, another layout": ("coco_format_v2/instances_v2.json", {}, 0),
    "voc": ("pascalvoc_format", {}, 0),
    "cvat": ("cvat_format/annotations.xml", {}, 0),
    "openimages": ("openimages_format/all_bounding_boxes.csv", {"format": "openimages", "sizes": "sizes.csv"}, 500 * 0.5e-10),
    "yolo": (  # half of the last of six digits, of the centre and of half of the size
        "yolo_format/obj_train_data",
        {"names": "yolo_format/obj.names", "sizes": "sizes.csv"},
        500 * (0.5e-6 + 0.25e-6),
    ),
}
DETECTIONS = {
    "coco": ("coco_format/coco_dets.json", {}),
    "abs_xywh": ("abs_xywh", {"columns": ["class", "score", "x_min", "y_min", "w", "h"], "units": "pixels"}),
    "abs_xyx2y2": ("abs_xyx2y2", {"columns": ["class", "score", *BOX_COLUMNS], "units": "pixels"}),
    "rel_xywh": ("rel_xywh", {"columns": ["class", "score", "cx", "cy", "w", "h"]}),
}


@pytest.fixture
def voc(shared, tmp_path):
    """Read a form of the gold and one of the detections."""
    base = shared / VOC
    write_classes(tmp_path / "classes.csv", [name.strip() for name in (base / "voc.names").read_text().split()])
    gold = json.loads((base / "gts" / FORMS["coco"][0]).read_text())
    with (tmp_path / "sizes.csv").open("w", newline="") as file:
        rows = [(Path(one["file_name"]).stem, one["width"], one["height"], one["file_name"]) for one in gold["images"]]
        csv.writer(file).writerows([("image_id", "width", "height", "file_name"), *rows])

    def read(form, detections="coco"):
        path, options, _ = FORMS[form]
        options = {key: str(base / "gts" / one) if key == "names" else one for key, one in options.items()}
        said, more = DETECTIONS[detections]
        more = more | ({"names": str(base / "voc.names")} if detections != "coco" else {})
        files = {
            "gold": {"path": str(base / "gts" / path), **options},
            "predictions": {"m": {"path": str(base / "dets" / said), "absent": "empty", **more}},
        }
        return evalkit.read_benchmark(write_yml(tmp_path, classes="classes.csv", **files))

    return read


def gold_table(benchmark):
    """Images with their sizes and gold boxes, by file name, since ids are numbers in COCO and paths elsewhere."""
    names = benchmark.images.set_index("image_id")["file_name"]
    gold = benchmark.gold.assign(
        file_name=names.loc[benchmark.gold["image_id"]].to_numpy(), label=benchmark.gold["class"].astype(str)
    )
    gold = gold.sort_values(["file_name", "label", *BOX_COLUMNS], ignore_index=True)
    images = benchmark.images.sort_values("file_name")[["file_name", "width", "height"]].to_numpy().tolist()
    return images, gold[["file_name", "label"]].to_numpy().tolist(), gold[BOX_COLUMNS].to_numpy()


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_gold_give_the_same_table(voc, form):
    images, labels, boxes = gold_table(voc("coco"))
    found_images, found_labels, found_boxes = gold_table(voc(form))
    assert (len(images), len(labels)) == (100, 273)
    assert found_images == images
    assert found_labels == labels
    assert np.abs(found_boxes - boxes).max() <= FORMS[form][2]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_gold_and_detections_give_the_same_scores(voc, form):
    expected = voc("coco")
    expected = evalkit.scores(expected, evalkit.count(expected))
    for detections in DETECTIONS if form in ("coco", "cvat") else ["rel_xywh"]:
        benchmark = voc(form, detections)
        assert len(benchmark.predictions) == 452
        pd.testing.assert_frame_equal(evalkit.scores(benchmark, evalkit.count(benchmark)), expected)


@rule("crowd")
def test_difficult_objects_are_ordinary_and_counted(voc):
    notes = evalkit.data_notes(voc("voc"))
    assert notes[["code", "count"]].to_numpy().tolist()[0] == ["difficult", 38]


def test_every_written_form_of_the_real_gold_reads_back(voc, tmp_path):
    images, labels, boxes = gold_table(voc("voc"))
    for to in ("jsonl", "csv", "parquet", "coco", "yolo"):
        found = evalkit.read_benchmark(evalkit.convert(voc("voc"), tmp_path / "out" / to, to=to))
        found_images, found_labels, found_boxes = gold_table(found)
        assert (found_images, found_labels) == (images, labels)
        assert np.abs(found_boxes - boxes).max() <= 500 * 1e-12


# -- small files


def read(folder, files, gold, *, classes=("litter", "kerb"), said=None, **more):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    if classes:
        more["classes"] = write_classes(folder / "classes.csv", list(classes))
    return evalkit.read_benchmark(write_yml(folder, gold=gold, predictions={"m": said} if said else {}, **more))


def voc_file(objects="", *, name="a.jpg", size="<width>100</width><height>80</height>"):
    return f"<annotation><filename>{name}</filename><size>{size}</size>{objects}</annotation>"


def voc_object(name="litter", edges=(10, 20, 60, 50), more=""):
    tags = ("xmin", "ymin", "xmax", "ymax")
    corners = "".join(f"<{tag}>{edge}</{tag}>" for tag, edge in zip(tags, edges, strict=True))
    return f"<object><name>{name}</name>{more}<bndbox>{corners}</bndbox></object>"


def cvat_file(inside='<box label="litter" xtl="1" ytl="2" xbr="3" ybr="4.5"/>', *, labels="", more=""):
    meta = f"<meta><job><labels>{labels}</labels></job></meta>" if labels else ""
    return f'<annotations>{meta}<image id="7" name="d/a.b.jpg" width="100" height="80">{inside}</image>{more}</annotations>'


def test_a_voc_folder(tmp_path):
    more = "<difficult>1</difficult><part><name>kerb</name><bndbox><xmin>1</xmin></bndbox></part>"
    files = {
        "xml/d/a.xml": voc_file(voc_object(more=more) + voc_object("kerb", (1.5, 2, 3, 4))),
        "xml/b.xml": voc_file(name=""),
    }
    benchmark = read(tmp_path, files, "xml")
    assert list(benchmark.images["image_id"]) == ["b", "d/a"]
    assert benchmark.images["file_name"].isna().tolist() == [True, False]
    assert benchmark.images["file_name"][1] == "d/a.jpg"
    assert benchmark.gold.drop(columns="image_id").to_numpy().tolist() == [["litter", 10, 20, 60, 50], ["kerb", 1.5, 2, 3, 4]]
    assert [note[1:] for note in benchmark.notes] == [("difficult", 1, "d/a")]


def test_a_cvat_file_brings_its_classes(tmp_path):
    labels = "".join(f"<label><name>{name}</name></label>" for name in ("kerb", "litter"))
    benchmark = read(tmp_path, {"gold.xml": cvat_file(labels=labels)}, "gold.xml", classes=None)
    assert list(benchmark.classes["class_name"]) == ["kerb", "litter"]
    assert benchmark.images[["image_id", "width", "height", "file_name"]].to_numpy().tolist() == [
        ["d/a.b", 100, 80, "d/a.b.jpg"]
    ]
    assert benchmark.gold[BOX_COLUMNS].to_numpy().tolist() == [[1, 2, 3, 4.5]]


OPENIMAGES = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf\n"
SIZES = "image_id,width,height\na,100,80\nb,200,80\n"


@rule("crowd")
def test_openimages_with_machine_ids_and_group_boxes(tmp_path):
    rows = 'a,/m/0abc,"0,1",0.5,0,1,0\na,litter,0,.5,0,1,1\nb,litter,0,1,0,1,1\n'
    files = {"boxes.csv": OPENIMAGES + rows, "sizes.csv": SIZES, "list.csv": "class_id,class_name\n/m/0abc,kerb\n1,litter\n"}
    gold = {"path": "boxes.csv", "format": "openimages", "sizes": "sizes.csv"}
    with pytest.raises(DataError) as error:
        evalkit.read_benchmark(_written(tmp_path, files, gold))
    assert [finding.place for finding in error.value.findings] == ["line 3", "line 4"]
    assert "boxes.csv, line 3, image a: a group box (IsGroupOf 1) is neither one object nor none" in str(error.value)
    benchmark = evalkit.read_benchmark(_written(tmp_path, files, gold | {"crowd": "drop"}))
    assert list(benchmark.images["image_id"]) == ["a", "b"]  # b was seen, though its only box is dropped
    assert benchmark.gold[["image_id", "class", *BOX_COLUMNS]].to_numpy().tolist() == [["a", "kerb", 10, 0, 50, 80]]
    assert [note[1:] for note in benchmark.notes] == [("crowd_dropped", 2, "a, b")]


def _written(folder, files, gold):
    for name, content in files.items():
        (folder / name).write_text(content)
    return write_yml(folder, classes="list.csv", gold=gold)


def test_xml_predictions_are_joined_by_path_or_picture(tmp_path):
    gold = {"image_id": "7", "file_name": "d/a.jpg", "width": 100, "height": 80}
    files = {"gold.jsonl": json.dumps(gold | {"boxes": []}), "said/d/a.xml": voc_file(voc_object(edges=(5, 5, 2, 9)))}
    benchmark = read(tmp_path, files, "gold.jsonl", said="said")
    assert benchmark.responses[["image_id", "state", "reason"]].to_numpy().tolist() == [["7", "invalid", "inverted"]]


# -- bad files

LAUGHS = '<!DOCTYPE annotation [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
OUTER = '<!DOCTYPE annotation [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
BAD_XML = {
    "an entity": (
        {"x/a.xml": LAUGHS + voc_file(voc_object("&b;"))},
        "x",
        ["x/a.xml, line 1: a document type", "[xml.doctype]"],
    ),
    "a file as entity": ({"x/a.xml": OUTER + voc_file(voc_object("&a;"))}, "x", ["a document type (<!DOCTYPE …>) is not read"]),
    "an entity in cvat": ({"g.xml": LAUGHS + cvat_file()}, "g.xml", ["g.xml, line 1: a document type"]),
    "an unknown entity": ({"x/a.xml": voc_file(voc_object("&c;"))}, "x", ["this is not XML: undefined entity", "line 1"]),
    "cut off": ({"x/a.xml": voc_file()[:-5]}, "x", ["x/a.xml, line 1: this is not XML"]),
    "empty": ({"x/a.xml": ""}, "x", ["a.xml: the file is empty"]),
    "an unknown encoding": ({"x/a.xml": '<?xml version="1.0" encoding="no"?>' + voc_file()}, "x", ["this is not XML"]),
    "another root": ({"x/a.xml": "<html></html>"}, "x", ["a Pascal VOC file holds <annotation>, not <html>"]),
    "no box": ({"x/a.xml": voc_file("<object><name>litter</name></object>")}, "x", ["an object needs <bndbox>", "[voc.box]"]),
    "no name": ({"x/a.xml": voc_file(voc_object(""))}, "x", ["x/a.xml, line 1, image a: a box needs a class"]),
    "no number": (
        {"x/a.xml": voc_file(voc_object(edges=(1, 2, "three", 4)))},
        "x",
        ["a box needs four numbers, not '1', '2', 'three'"],
    ),
    "a size in words": ({"x/a.xml": voc_file(size="<width>wide</width>")}, "x", ["width must be a number, not 'wide'"]),
    "a size of 0": ({"x/a.xml": voc_file(size="<width>0</width>")}, "x", ["width must be a positive number of pixels, not 0"]),
    "a box outside": (
        {"x/a.xml": "\n" + voc_file(voc_object(edges=(1, 2, 101, 9)))},
        "x",
        ["line 2, image a", "[box.outside]"],
    ),
    "an unknown class": (
        {"x/a.xml": voc_file(voc_object("Litter"))},
        "x",
        ["class 'Litter' is not in the class list", "by case"],
    ),
    "no folder": ({}, {"path": "x", "format": "voc"}, ["x: there is no folder"]),
    "a folder without XML": ({"x/a.md": ""}, {"path": "x", "format": "voc"}, ["x: the folder holds no .xml file"]),
    "another root in cvat": ({"g.xml": voc_file()}, "g.xml", ["a CVAT file holds <annotations>, not <annotation>"]),
    "a polygon": ({"g.xml": cvat_file('<polygon points="1,2"/>')}, "g.xml", ["<polygon> is no upright box", "[cvat.shape]"]),
    "a rotated box": (
        {"g.xml": cvat_file('<box label="litter" rotation="30"/>')},
        "g.xml",
        ["a rotated box is no upright box"],
    ),
    "a track": ({"g.xml": cvat_file(more='<track id="0"/>')}, "g.xml", ["tracks of a video are not read", "[cvat.track]"]),
    "an edge left out": ({"g.xml": cvat_file('<box label="litter" xtl="1"/>')}, "g.xml", ["four numbers, not '1', '', '', ''"]),
    "an image twice": ({"g.xml": cvat_file(more='<image name="d/a.b.png"/>')}, "g.xml", ["duplicate image row: 'd/a.b'"]),
    "an image without a name": ({"g.xml": cvat_file(more="<image/>")}, "g.xml", ["the image id is empty"]),
}


@pytest.mark.parametrize("case", BAD_XML)
def test_xml_that_breaks_a_rule(tmp_path, case):
    files, gold, words = BAD_XML[case]
    with pytest.raises(DataError) as error:
        read(tmp_path, files, gold)
    for word in words:
        assert word in str(error.value)


def test_deep_xml_ends_in_a_message_or_a_table(tmp_path):
    deep = "<a>" * 200_000 + "</a>" * 200_000
    assert len(read(tmp_path, {"x/a.xml": voc_file(deep)}, "x").images) == 1


BAD_OPENIMAGES = {  # rows below the header, further options, words
    "no number": ('a,litter,"0,1,2",1,0,1,0\n', {}, ["boxes.csv, line 2, image a: XMin must be a number, not '0,1,2'"]),
    "an empty number": ("a,litter,,1,0,1,0\n", {}, ["XMin must be a number, not ''"]),
    "no class": ("a, ,0,1,0,1,0\n", {}, ["a box needs a class"]),
    "no image": (",litter,0,1,0,1,0\n", {}, ["the image id is empty"]),
    "an image without a size": ("c,litter,0,1,0,1,0\n", {}, ["there is no image 'c'"]),
    "a silent image": ("a,litter,0,1,0,1,0\n", {}, ["image b: this image has no row; set `absent: empty`"]),
    "no sizes": ("", {"sizes": None}, ["relative gold boxes need `sizes`"]),
    "an unknown machine id": ("a,/m/0x,0,1,0,1,0\n", {"absent": "empty"}, ["class 'class id /m/0x' is not in the class list"]),
    "an option of others": ("", {"names": "list.csv"}, ["`names` is no option of gold in the format openimages"]),
}


@pytest.mark.parametrize("case", BAD_OPENIMAGES)
def test_openimages_that_break_a_rule(tmp_path, case):
    lines, options, words = BAD_OPENIMAGES[case]
    gold = {"path": "boxes.csv", "format": "openimages", "sizes": "sizes.csv", **options}
    files = {"boxes.csv": OPENIMAGES + lines, "sizes.csv": SIZES, "list.csv": ""}
    with pytest.raises(EvalkitError) as error:
        read(tmp_path, files, {key: one for key, one in gold.items() if one is not None})
    for word in words:
        assert word in str(error.value)


def test_openimages_without_a_column(tmp_path):
    with pytest.raises(DataError, match=r"boxes.csv, line 1: the header lacks YMax; it has ImageID, LabelName"):
        read(tmp_path, {"boxes.csv": "ImageID,LabelName,XMin,XMax,YMin\n"}, {"path": "boxes.csv", "format": "openimages"})


# -- what others hand out stays in its folder

GOLD = {"a": {"file_name": "a.png", "width": 4, "height": 4, "boxes": []}}


def test_paths_that_leave_the_folder_are_refused(tmp_path):
    (tmp_path / "secret.csv").write_text("class_id,class_name\n0,secret\n")
    mine = tmp_path / "mine"
    mine.mkdir()
    write_lines(mine / "gold.jsonl", GOLD)
    write_classes(mine / "classes.csv", ["litter"])
    keys = {
        "classes": {"classes": "../secret.csv"},
        "images": {"images": ".."},
        "gold, sizes": {"gold": {"path": "gold.jsonl", "sizes": "../x"}},
        "gold": {"gold": str(tmp_path / "secret.csv")},
        "predictions, m": {"predictions": {"m": "x/../../secret.csv"}},
        "predictions, m, names": {"predictions": {"m": {"path": "x", "names": "C:\\secret"}}},
        "slices": {"slices": "../secret.csv"},
        "semantic": {"semantic": {"path": "../secret.csv", "cutoff": "0.5"}},
        "inventory": {"inventory": "../secret.csv"},
        "published, scores": {"published": {"scores": "../secret.csv"}},
    }
    for key, said in keys.items():
        path = mine / "benchmark.yml"
        path.write_text(json.dumps({"classes": "classes.csv", "gold": "gold.jsonl", **said}))
        with pytest.raises(EvalkitError, match=rf"^benchmark.yml, {key}: .* is not in the benchmark's folder"):
            evalkit.read_benchmark(path)


def test_links_out_of_the_folder_are_refused(tmp_path):
    mine = tmp_path / "mine"
    (mine / "labels").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("0 0.5 0.5 1 1")
    write_lines(mine / "gold.jsonl", GOLD)
    write_classes(mine / "classes.csv", ["litter"])
    os.symlink(tmp_path / "secret.txt", mine / "labels" / "a.txt")
    os.symlink("gold.jsonl", mine / "other.jsonl")
    os.symlink(tmp_path / "secret.txt", mine / "link.jsonl")
    files = {"classes": "classes.csv", "predictions": {}}
    assert len(evalkit.read_benchmark(write_yml(mine, gold="other.jsonl", **files)).images) == 1  # one that stays is followed
    with pytest.raises(EvalkitError, match=r"gold: 'link.jsonl' is not in the benchmark's folder"):
        evalkit.read_benchmark(write_yml(mine, gold="link.jsonl", **files))
    files["predictions"] = {"m": "labels"}
    with pytest.raises(
        DataError, match=r"labels, a.txt: a link that leads out of the folder is not followed.*\[path.outside\]"
    ):
        evalkit.read_benchmark(write_yml(mine, gold="gold.jsonl", **files))


@pytest.mark.parametrize("name", ["../secret.png", "/secret.png", "x/../../secret.png", "..\\secret.png", "C:/secret.png"])
def test_file_names_that_leave_the_folder_of_pictures_are_refused(tmp_path, name):
    gold = {"a": GOLD["a"] | {"file_name": name}}
    write_lines(tmp_path / "gold.jsonl", gold)
    write_classes(tmp_path / "classes.csv", ["litter"])
    files = {"classes": "classes.csv", "gold": "gold.jsonl"}
    assert evalkit.read_benchmark(write_yml(tmp_path, **files)).images["file_name"][0] == name  # no more than a name
    (tmp_path / "pictures").mkdir()
    with pytest.raises(DataError, match=r"gold.jsonl, line 1, image a: file_name .* leaves the folder of the pictures"):
        evalkit.read_benchmark(write_yml(tmp_path, images="pictures", **files))
    with pytest.raises(DataError, match="is not in this folder"):
        pixels(tmp_path / "pictures", name)


def test_a_picture_that_is_a_link_out_of_the_folder_is_not_opened(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "secret.png")
    (tmp_path / "pictures").mkdir()
    os.symlink(tmp_path / "secret.png", tmp_path / "pictures" / "a.png")
    with pytest.raises(DataError, match=r"the picture 'a.png' is not in this folder"):
        pixels(tmp_path / "pictures", "a.png")
    assert pixels(tmp_path, "secret.png").shape == (4, 4, 3)
    assert pixels(tmp_path, "absent.png") is None
    assert pixels(tmp_path, "x" * 5000) is None


@pytest.mark.parametrize("side", [10_000, 20_000])
def test_giant_pictures_are_refused(tmp_path, monkeypatch, side):
    """Below twice Pillow's limit it only warns; either way nothing is decoded."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000**2 - 1)
    Image.new("1", (side, side)).save(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"a.png: cannot read it: .*decompression bomb"):
        pixels(tmp_path, "a.png")


def test_tags_in_a_benchmark_file_are_refused(tmp_path):
    write_lines(tmp_path / "gold.jsonl", GOLD)
    write_classes(tmp_path / "classes.csv", ["litter"])
    path = tmp_path / "benchmark.yml"
    path.write_text("classes: classes.csv\ngold: !!str gold.jsonl\n")  # says no more than that it is text, which it is
    assert len(evalkit.read_benchmark(path).images) == 1
    for tag in ("!x", "!!python/name:os.system", "!!binary", "!!int"):
        path.write_text(f"classes: classes.csv\ngold: {tag} 'gold.jsonl'\n")
        with pytest.raises(EvalkitError, match=r"benchmark.yml, line 2: .*tags are not understood"):
            evalkit.read_benchmark(path)

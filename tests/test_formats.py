"""Every format and option: the same data in all of them gives the same tables, and what a file says is what is read."""

import csv
import gzip
import io
import json
import unicodedata
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

import evalkit
from evalkit.formats import FORMATS, options_from, read_benchmark
from evalkit.formats.sizes import picture_size

CLASSES = "class_id,class_name,domain\n0,litter,street\n1,broken kerb,road\n"
NAMES = ["litter", "broken kerb"]
SIZES = {"1": (128, 64), "2": (64, 128), "3": (256, 32)}  # powers of 2: relative coordinates are exact
GOLD = {
    "1": [("litter", [10, 20, 60, 50]), ("broken kerb", [0, 0, 128, 64]), ("litter", [100, 5, 120, 60])],
    "2": [("broken kerb", [2, 4, 34, 68])],
    "3": [],
}
SAID = {
    "1": [("litter", [12, 18, 62, 50], 0.75), ("litter", [20, 20, 60, 60], 0.5)],
    "2": [],
    "3": [("unicorn", [10, 1, 20, 31], 0.25)],
}
PLAIN = {  # the same, as benchmarks without a mark for the format
    "classes.csv": CLASSES,
    "gold.jsonl": "".join(
        json.dumps(
            {
                "image_id": image,
                "width": width,
                "height": height,
                "boxes": [{"class": name, "box": box} for name, box in GOLD[image]],
            }
        )
        + "\n"
        for image, (width, height) in SIZES.items()
    ),
    "said.jsonl": "".join(
        json.dumps({"image_id": image, "boxes": [{"class": name, "box": box, "score": score} for name, box, score in boxes]})
        + "\n"
        for image, boxes in SAID.items()
    ),
}


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode("utf-8")
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            content(path)


def read(folder, files=PLAIN, gold="gold.jsonl", said="said.jsonl", classes="classes.csv"):
    """Read a benchmark of one model ``m`` from files by name and content."""
    write(folder, files)
    options = {"gold": gold, "predictions": {"m": said} if said else {}, **({"classes": classes} if classes else {})}
    (folder / "benchmark.yml").write_text(yaml.safe_dump(options), encoding="utf-8")
    return read_benchmark(folder / "benchmark.yml")


def boxes_of(table):
    """The boxes of a table by image: class, corners and, if there is one, the score; in the order of the file."""
    found = {}
    columns = ["image_id", "class", "x_min", "y_min", "x_max", "y_max", *(["score"] if "score" in table else [])]
    for image, name, *numbers in table[columns].itertuples(index=False):
        found.setdefault(image, []).append((name, numbers[:4], *(numbers[4:])))
    return found


def states_of(benchmark):
    rows = benchmark.responses[benchmark.responses["model"] == "m"]
    return dict(zip(rows["image_id"], rows["state"], strict=True))


def assert_is_the_data(benchmark, *, sizes=True, scores=True, order=list(SIZES)):  # noqa: B006 (read only)
    assert list(benchmark.images["image_id"]) == order
    if sizes:
        found = benchmark.images.set_index("image_id")[["width", "height"]].to_dict("index")
        assert found == {image: {"width": w, "height": h} for image, (w, h) in SIZES.items()}
    assert list(benchmark.classes["class_name"]) == NAMES
    assert list(benchmark.classes["class_id"]) == ["0", "1"]
    assert list(benchmark.classes["domain"]) == ["street", "road"]
    assert boxes_of(benchmark.gold) == {image: boxes for image, boxes in GOLD.items() if boxes}
    found = boxes_of(benchmark.predictions)
    if not scores:
        found = {image: [(name, box) for name, box, score in boxes if np.isnan(score)] for image, boxes in found.items()}
        assert found == {image: [(name, box) for name, box, _ in boxes] for image, boxes in SAID.items() if boxes}
    else:
        assert found == {image: boxes for image, boxes in SAID.items() if boxes}
    assert states_of(benchmark) == dict.fromkeys(order, "valid")
    assert benchmark.outside == ["unicorn"]


# -- the same data in every format


def coco_gold(**more):
    return {
        "images": [{"id": int(image), "width": w, "height": h} for image, (w, h) in SIZES.items()],
        "categories": [{"id": at, "name": name, "supercategory": domain} for at, (name, domain) in enumerate(DOMAINS.items())],
        "annotations": [
            {"id": 1, "image_id": int(image), "category_id": NAMES.index(name), "bbox": corner_size(box), **more}
            for image, boxes in GOLD.items()
            for name, box in boxes
        ],
    }


DOMAINS = {"litter": "street", "broken kerb": "road"}


def corner_size(box):
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def coco_said(image_key=int):
    """Predictions as a COCO object with scores in its annotations, and with categories of its own."""
    names = ["unicorn", "broken kerb", "litter"]
    return {
        "images": [{"id": image_key(image)} for image in SIZES],
        "categories": [{"id": 7 + at, "name": name} for at, name in enumerate(names)],
        "annotations": [
            {
                "image_id": image_key(image),
                "category_id": 7 + names.index(name),
                "bbox": corner_size(box),
                "score": score,
            }
            for image, boxes in SAID.items()
            for name, box, score in boxes
        ],
    }


def long_rows(boxes, *, size=False):
    rows = []
    for image, listed in boxes.items():
        for name, box, *score in listed or [("", [""] * 4)]:
            more = {"score": score[0]} if score else {}
            more |= {"width": SIZES[image][0], "height": SIZES[image][1]} if size else {}
            numbers = dict(zip(["x_min", "y_min", "x_max", "y_max"], box, strict=True))
            rows.append({"image_id": image, "class": name, **numbers, **more})
    return rows


def as_csv(rows):
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def as_parquet(rows):
    def to(path):
        pd.DataFrame(rows).replace("", None).infer_objects().to_parquet(path)

    return to


def yolo(boxes, *, relative=True):
    """One text file an image, centre and size."""
    files = {}
    for image, listed in boxes.items():
        width, height = SIZES[image] if relative else (1, 1)
        lines = []
        for name, box, *score in listed:
            numbers = [
                Fraction(box[0] + box[2], 2 * width),
                Fraction(box[1] + box[3], 2 * height),
                Fraction(box[2] - box[0], width),
                Fraction(box[3] - box[1], height),
            ]
            index = [*NAMES, "unicorn"].index(name)
            lines.append(" ".join(map(repr, [index, *map(float, numbers), *score])))
        files[f"{image}.txt"] = "\n".join(lines)
    return files


def in_folder(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


def voc(image):
    """A Pascal VOC file."""
    width, height = SIZES[image]
    objects = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}"
        "</ymax></bndbox></object>"
        for name, box in GOLD[image]
    )
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation><filename>{image}.png</filename>{size}{objects}</annotation>"


def cvat():
    """A CVAT file of images; its labels are not the class list, which stands beside it."""
    images = "".join(
        f'<image id="{9 - at}" name="{image}.png" width="{SIZES[image][0]}" height="{SIZES[image][1]}">'
        + "".join('<box label="{}" xtl="{}" ytl="{}" xbr="{}" ybr="{}" />'.format(name, *box) for name, box in GOLD[image])
        + "</image>"
        for at, image in enumerate(GOLD)
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>{images}</annotations>'


def openimages(boxes):
    """OpenImages, with decimal commas."""
    lines = ["ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf"]
    for image, listed in boxes.items():
        width, height = SIZES[image]
        for name, (x_min, y_min, x_max, y_max), *score in listed:
            numbers = [*(score or [1]), x_min / width, x_max / width, y_min / height, y_max / height]
            lines.append(f"{image}.jpg,,{name}," + ",".join(f'"{number}"'.replace(".", ",") for number in numbers) + ",0")
    return "\n".join(lines)


SIZE_FILE = "image_id,width,height\n" + "".join(f"{image},{w},{h}\n" for image, (w, h) in SIZES.items())
NAME_FILE = "litter\nbroken kerb\nunicorn\n"

GOLD_FORMS = {
    "jsonl": ({"gold.jsonl": PLAIN["gold.jsonl"]}, "gold.jsonl"),
    "jsonl.gz": ({"g.jsonl.gz": gzip.compress(PLAIN["gold.jsonl"].encode())}, "g.jsonl.gz"),
    "coco": ({"gold.json": json.dumps(coco_gold())}, "gold.json"),
    "coco.gz": ({"gold.json.gz": gzip.compress(json.dumps(coco_gold(iscrowd=0)).encode())}, "gold.json.gz"),
    "csv": ({"gold.csv": as_csv(long_rows(GOLD, size=True))}, "gold.csv"),
    "parquet": ({"gold.parquet": as_parquet(long_rows(GOLD, size=True))}, "gold.parquet"),
    "yolo": (
        {**in_folder("labels", yolo(GOLD)), "sizes.csv": SIZE_FILE, "names.txt": NAME_FILE},
        {"path": "labels", "sizes": "sizes.csv", "names": "names.txt"},
    ),
    "yolo in pixels": (
        {**in_folder("labels", yolo(GOLD, relative=False)), "sizes.csv": SIZE_FILE, "names.txt": NAME_FILE},
        {"path": "labels", "sizes": "sizes.csv", "names": "names.txt", "units": "pixels"},
    ),
    "voc": (in_folder("xml", {f"{image}.xml": voc(image) for image in GOLD}), "xml"),
    "cvat": ({"gold.xml": cvat()}, "gold.xml"),
    "openimages": (
        {"boxes.csv": openimages(GOLD), "sizes.csv": SIZE_FILE},
        {"path": "boxes.csv", "format": "openimages", "sizes": "sizes.csv", "absent": "empty"},
    ),
    "another ending": ({"gold.txt": PLAIN["gold.jsonl"]}, {"path": "gold.txt", "format": "jsonl"}),
}
SAID_FORMS = {
    "jsonl": ({"said.jsonl": PLAIN["said.jsonl"]}, "said.jsonl"),
    "jsonl.gz": ({"said.jsonl.gz": gzip.compress(PLAIN["said.jsonl"].encode())}, "said.jsonl.gz"),
    "coco dict": ({"said.json": json.dumps(coco_said())}, "said.json"),
    "coco dict, ids as text": ({"said.json": json.dumps(coco_said(str))}, "said.json"),
    "csv": ({"said.csv": as_csv(long_rows(SAID))}, "said.csv"),
    "openimages": ({"boxes.csv": openimages(SAID)}, {"path": "boxes.csv", "format": "openimages", "absent": "empty"}),
    "parquet": ({"said.parquet": as_parquet(long_rows(SAID))}, "said.parquet"),
    "yolo": (
        {**in_folder("said", yolo(SAID)), "names.txt": NAME_FILE},
        {"path": "said", "names": "names.txt", "sizes": "gold"},
    ),
    "yolo in pixels": (
        {**in_folder("said", yolo(SAID, relative=False)), "names.txt": NAME_FILE},
        {"path": "said", "names": "names.txt", "units": "pixels"},
    ),
}


@pytest.mark.parametrize("form", GOLD_FORMS)
def test_gold_is_the_same_in_every_format(tmp_path, form):
    files, gold = GOLD_FORMS[form]
    assert_is_the_data(read(tmp_path, {**PLAIN, **files}, gold=gold))


@pytest.mark.parametrize("form", SAID_FORMS)
def test_predictions_are_the_same_in_every_format(tmp_path, form):
    files, said = SAID_FORMS[form]
    assert_is_the_data(read(tmp_path, {**PLAIN, **files}, said=said))


def test_every_format_is_read_above():
    for forms, left_out in ((GOLD_FORMS, set()), (SAID_FORMS, {"voc", "cvat"})):  # which have no scores
        assert {name.replace(".", " ").split()[0] for name in forms} >= set(FORMATS) - left_out


@pytest.mark.parametrize("form", ["voc", "cvat"])
def test_predictions_in_xml_have_no_scores(tmp_path, form):
    files, path = GOLD_FORMS[form]
    benchmark = read(tmp_path, {**PLAIN, **files}, said=path)
    assert boxes_of(benchmark.gold) == boxes_of(benchmark.predictions.drop(columns="score"))
    assert benchmark.predictions["score"].isna().all()
    assert states_of(benchmark) == dict.fromkeys(SIZES, "valid")


def test_formats_can_be_mixed_and_give_the_same_scores(tmp_path):
    tables = []
    for number, (gold, said) in enumerate(zip(GOLD_FORMS.values(), SAID_FORMS.values(), strict=False)):
        benchmark = read(tmp_path / str(number), {**PLAIN, **gold[0], **said[0]}, gold=gold[1], said=said[1])
        tables.append(evalkit.scores(benchmark, evalkit.count(benchmark)))
    assert len(tables) == min(len(GOLD_FORMS), len(SAID_FORMS))
    for table in tables[1:]:
        pd.testing.assert_frame_equal(tables[0], table, check_exact=True)


# -- text files: marks, line ends, Unicode


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_marks_line_ends_and_a_missing_last_one_change_nothing(tmp_path, ends, mark, last):
    files = {**PLAIN, "said.csv": SAID_FORMS["csv"][0]["said.csv"], **SAID_FORMS["yolo"][0], "sizes.csv": SIZE_FILE}
    files = {name: mark + (text if last else text.rstrip("\n")).replace("\n", ends) for name, text in files.items()}
    yolo_options = {**SAID_FORMS["yolo"][1], "sizes": "sizes.csv"}
    for number, said in enumerate(["said.jsonl", "said.csv", yolo_options]):
        assert_is_the_data(read(tmp_path / str(number), files, said=said))


def test_benchmark_file_with_a_mark_and_other_line_ends(tmp_path):
    write(tmp_path, PLAIN)
    text = "name: Marked\nclasses: classes.csv\ngold: gold.jsonl\npredictions:\n  m: said.jsonl\n"
    (tmp_path / "benchmark.yml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    benchmark = read_benchmark(tmp_path / "benchmark.yml")
    assert benchmark.name == "Marked"
    assert_is_the_data(benchmark)


def test_blank_lines_are_passed_over_and_counted(tmp_path):
    gold = "\n" + PLAIN["gold.jsonl"].replace("\n", "\n \n")
    assert_is_the_data(read(tmp_path, {**PLAIN, "gold.jsonl": gold}))
    broken = gold.replace('"class": "broken kerb", "box": [2,', '"class": "nothing", "box": [2,')
    with pytest.raises(evalkit.DataError, match=r"gold\.jsonl, line 4, boxes\[0\], image 2: class 'nothing'"):
        read(tmp_path, {**PLAIN, "gold.jsonl": broken})


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("said_form", ["NFC", "NFD"])
def test_ids_and_names_are_compared_after_composition(tmp_path, form, said_form):
    def text(form, content):
        return unicodedata.normalize(form, content)

    classes = text(form, "class_id,class_name,domain\n1,Müll,Straße é\n")
    gold = text(form, '{"image_id": "Köln-1", "boxes": [{"class": "Müll", "box": [0, 0, 5, 5]}]}\n')
    said = text(said_form, '{"image_id": "Köln-1", "boxes": [{"class": " Müll ", "box": [0, 0, 5, 5]}]}\n')
    said_csv = text(said_form, "image_id,class,x_min,y_min,x_max,y_max\nKöln-1,Müll,0,0,5,5\n")
    files = {"classes.csv": classes, "gold.jsonl": gold, "said.jsonl": said, "said.csv": said_csv}
    assert text("NFC", "ü") != text("NFD", "ü")
    for name in ("said.jsonl", "said.csv"):
        benchmark = read(tmp_path / name, files, said=name)
        assert list(benchmark.images["image_id"]) == [text("NFC", "Köln-1")]
        assert list(benchmark.classes["class_name"]) == [text("NFC", "Müll")]
        assert benchmark.domains == [text("NFC", "Straße é")]
        assert boxes_of(benchmark.predictions)[text("NFC", "Köln-1")][0][0] == text("NFC", "Müll")
        assert benchmark.outside == []


@pytest.mark.parametrize("name", ["no", "1.0", "null", "NA", "nan", "True", "~", "1e3", "None", "-", "0"])
def test_names_and_ids_that_look_like_something_else_stay_text(tmp_path, name):
    """In the class list, in a model's name, in ids and in long tables."""
    files = {
        "classes.csv": f"class_id,class_name,domain\n{name},{name},{name}\n",
        "gold.csv": f"image_id,class,x_min,y_min,x_max,y_max\n{name},{name},0,0,4,4\nx,,,,,\n",
        "said.csv": f"image_id,class,x_min,y_min,x_max,y_max\n{name},{name},0,0,4,4\n",
        "benchmark.yml": f"name: {name}\nclasses: classes.csv\ngold: gold.csv\npredictions:\n  {name}: said.csv\n",
    }
    if name == "-":
        files["benchmark.yml"] = files["benchmark.yml"].replace("name: -", "name: '-'").replace("  -:", "  '-':")
    write(tmp_path, files)
    benchmark = read_benchmark(tmp_path / "benchmark.yml")
    assert benchmark.name == name
    assert benchmark.models == [name]
    assert benchmark.domains == [name]
    assert list(benchmark.classes["class_name"]) == [name]
    assert list(benchmark.classes["class_id"]) == [name]
    assert list(benchmark.images["image_id"]) == [name, "x"]
    assert boxes_of(benchmark.predictions) == {name: [(name, [0, 0, 4, 4], pytest.approx(np.nan, nan_ok=True))]}


def test_an_id_with_leading_zeros_is_not_the_number(tmp_path):
    gold = '{"image_id": "00012", "boxes": []}\n{"image_id": 12, "boxes": []}\n{"image_id": "012", "boxes": []}\n'
    said = '{"image_id": "12", "boxes": [{"class": "litter", "box": [0, 0, 1, 1]}]}\n'
    benchmark = read(tmp_path, {**PLAIN, "gold.jsonl": gold, "said.jsonl": said})
    assert list(benchmark.images["image_id"]) == ["00012", "12", "012"]
    assert states_of(benchmark) == {"00012": "missing", "12": "valid", "012": "missing"}
    for name, text in {
        "said.jsonl": '{"image_id": 13, "boxes": []}\n',
        "said.csv": "image_id,class,x_min,y_min,x_max,y_max\n13,,,,,\n",
    }.items():
        with pytest.raises(evalkit.DataError, match="'13' differs only by leading zeros from '00013'"):
            read(tmp_path, {**PLAIN, "gold.jsonl": '{"image_id": "00013", "boxes": []}\n', name: text}, said=name)


# -- JSON lines


def test_class_id_may_stand_for_the_class(tmp_path):
    gold = (
        PLAIN["gold.jsonl"].replace('"class": "litter"', '"class_id": 0').replace('"class": "broken kerb"', '"class_id": "1"')
    )
    said = PLAIN["said.jsonl"].replace('"class": "litter"', '"class_id": "0"')
    assert "class_id" in gold
    assert_is_the_data(read(tmp_path, {**PLAIN, "gold.jsonl": gold, "said.jsonl": said}))


def test_rows_without_boxes_and_with_a_status(tmp_path):
    gold = "".join(f'{{"image_id": "{name}", "boxes": []}}\n' for name in "abcdefg")
    said = [
        '{"image_id": "a", "boxes": []}',
        '{"image_id": "b", "status": "invalid", "reason": "truncated"}',
        '{"image_id": "c", "error": "timeout"}',
        '{"image_id": "d", "boxes": null}',
        '{"image_id": "e", "status": "missing"}',
        '{"image_id": "f", "status": "valid", "boxes": [{"class": "litter", "box": [0, 0, 1, 1]}]}',
    ]
    benchmark = read(tmp_path, {**PLAIN, "gold.jsonl": gold, "said.jsonl": "\n".join(said)})
    assert states_of(benchmark) == {
        "a": "valid",
        "b": "invalid",
        "c": "invalid",
        "d": "missing",
        "e": "missing",
        "f": "valid",
        "g": "missing",
    }
    assert list(benchmark.responses["reason"]) == ["", "truncated", "failed: timeout", "", "", "", ""]
    assert list(boxes_of(benchmark.predictions)) == ["f"]


@pytest.mark.parametrize("form", ["said.jsonl", "said.csv"])
@pytest.mark.parametrize(("absent", "state"), [(None, "missing"), ("missing", "missing"), ("empty", "valid")])
def test_absent_says_what_a_left_out_image_means(tmp_path, form, absent, state):
    files = {"said.jsonl": '{"image_id": "2", "boxes": []}\n', "said.csv": "image_id,class,x_min,y_min,x_max,y_max\n2,,,,,\n"}
    benchmark = read(tmp_path, {**PLAIN, **files}, said={"path": form, **({"absent": absent} if absent else {})})
    assert states_of(benchmark) == {"1": state, "2": "valid", "3": state}


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ("[5, 0, 1, 1]", "inverted"),
        ("[0, 5, 1, 1]", "inverted"),
        ("[NaN, 0, 1, 1]", "not_finite"),
        ("[0, 0, Infinity, 1]", "not_finite"),
        ("[0, 0, 1e999, 1]", "not_finite"),
        ("[0, 0, 1]", "not_finite"),
        ("[0, 0, 1, 1, 1]", "not_finite"),
        ("[]", "not_finite"),
        ("null", "not_finite"),
        ("[0, null, 1, 1]", "not_finite"),
    ],
)
def test_a_bad_box_makes_its_image_invalid_or_is_an_error(tmp_path, box, reason):
    good = '{"class": "litter", "box": [0, 0, 5, 5]}'
    rows = [
        f'{{"image_id": "1", "boxes": [{good}, {{"class": "litter", "box": {box}}}]}}',
        f'{{"image_id": "2", "boxes": [{good}]}}',
    ]
    said = "\n".join(rows)
    for options in ({}, {"bad_box": "invalid"}):
        benchmark = read(tmp_path, {**PLAIN, "said.jsonl": said}, said={"path": "said.jsonl", **options})
        assert states_of(benchmark) == {"1": "invalid", "2": "valid", "3": "missing"}
        assert list(benchmark.responses["reason"]) == [reason, "", ""]
        assert list(boxes_of(benchmark.predictions)) == ["2"]
    with pytest.raises(evalkit.DataError, match=r"^said\.jsonl, line 1, boxes\[1\], image 1: .*\[box\.(inverted|not_finite)\]"):
        read(tmp_path, {**PLAIN, "said.jsonl": said}, said={"path": "said.jsonl", "bad_box": "error"})


# -- COCO


def test_coco_results_are_empty_where_they_are_silent(tmp_path):
    entry = {"image_id": 1, "category_id": 0, "bbox": [10, 20, 50, 50], "score": 0.5}
    files = {**PLAIN, "said.json": json.dumps([entry])}
    benchmark = read(tmp_path, files, said="said.json")
    assert states_of(benchmark) == dict.fromkeys("123", "valid")
    assert boxes_of(benchmark.predictions) == {"1": [("litter", [10, 20, 60, 70], 0.5)]}
    benchmark = read(tmp_path, files, said={"path": "said.json", "absent": "missing"})
    assert states_of(benchmark) == {"1": "valid", "2": "missing", "3": "missing"}
    assert states_of(read(tmp_path, {**files, "said.json": "[]"}, said="said.json")) == dict.fromkeys("123", "valid")


def test_coco_gold_brings_its_classes_and_domains(tmp_path):
    gold = coco_gold()
    gold["categories"].append({"id": 5, "name": "crack", "supercategory": "none"})
    entry = {"image_id": 2, "category_id": 1, "bbox": [2, 4, 32, 64], "score": 1}
    benchmark = read(tmp_path, {"g.json": json.dumps(gold), "s.json": json.dumps([entry])}, "g.json", "s.json", classes=None)
    assert benchmark.classes.to_dict("list") == {
        "class_id": ["0", "1", "5"],
        "class_name": ["litter", "broken kerb", "crack"],
        "domain": ["street", "road", ""],
    }
    assert boxes_of(benchmark.predictions) == {"2": [("broken kerb", [2, 4, 34, 68], 1.0)]}


def test_coco_objects_are_joined_on_file_names_when_both_have_them(tmp_path):
    """The ids of the predictions mean other images than gold's; the file names decide."""
    gold, said = coco_gold(), coco_said()
    for image in gold["images"]:
        image["file_name"] = f"{image['id']}.png"
    new = {1: 3, 2: 1, 3: 2}
    for image in said["images"]:
        image["file_name"] = f"{image['id']}.png"
        image["id"] = new[image["id"]]
    for annotation in said["annotations"]:
        annotation["image_id"] = new[annotation["image_id"]]
    files = {**PLAIN, "gold.json": json.dumps(gold), "said.json": json.dumps(said)}
    assert_is_the_data(read(tmp_path, files, "gold.json", "said.json"))


def test_coco_objects_without_file_names_are_joined_on_ids_as_text(tmp_path):
    gold = coco_gold()
    for image in gold["images"]:
        image["file_name"] = f"{image['id']}.png"
    files = {**PLAIN, "gold.json": json.dumps(gold), "said.json": json.dumps(coco_said(str))}
    assert_is_the_data(read(tmp_path, files, "gold.json", "said.json"))


def test_a_file_name_that_two_gold_images_share_is_refused_when_it_joins(tmp_path):
    gold, said = coco_gold(), coco_said()
    for document in (gold, said):
        for image in document["images"]:
            image["file_name"] = f"{image['id']}.png"
    gold["images"][1]["file_name"] = "1.png"
    said["images"] = said["images"][:1]
    said["annotations"] = [one for one in said["annotations"] if one["image_id"] == 1]
    files = {**PLAIN, "gold.json": json.dumps(gold), "said.json": json.dumps(said)}
    with pytest.raises(evalkit.DataError, match=r"1\.png"):
        read(tmp_path, files, "gold.json", "said.json")


def test_coco_categories_are_joined_by_name_and_unknown_ids_are_names_outside(tmp_path):
    said = [{"image_id": 1, "category_id": number, "bbox": [0, 0, 5, 5]} for number in (1, 44)]
    benchmark = read(tmp_path, {**PLAIN, "said.json": json.dumps(said)}, said="said.json")
    assert [name for name, *_ in boxes_of(benchmark.predictions)["1"]] == ["broken kerb", "class id 44"]
    assert benchmark.outside == ["class id 44"]


def test_coco_crowds_are_refused_or_dropped(tmp_path):
    gold = coco_gold()
    gold["annotations"][1]["iscrowd"] = 1
    files = {**PLAIN, "gold.json": json.dumps(gold)}
    with pytest.raises(evalkit.DataError, match=r"gold\.json, annotations\[1\], image 1: a crowd box .*set `crowd: drop`"):
        read(tmp_path, files, gold="gold.json")
    benchmark = read(tmp_path, files, gold={"path": "gold.json", "crowd": "drop"})
    assert boxes_of(benchmark.gold) == {"1": [GOLD["1"][0], GOLD["1"][2]], "2": GOLD["2"]}
    notes = evalkit.data_notes(benchmark)
    assert notes.loc[notes["code"] == "crowd_dropped", ["source", "count"]].to_numpy().tolist() == [["gold.json", 1]]


def test_places_in_coco_count_the_dropped_crowds_too(tmp_path):
    gold = coco_gold()
    gold["annotations"][0]["iscrowd"] = 1
    gold["annotations"][2]["bbox"] = [5, 5, -1, 5]
    with pytest.raises(evalkit.DataError, match=r"^gold\.json, annotations\[2\], image 1: "):
        read(tmp_path, {**PLAIN, "gold.json": json.dumps(gold)}, gold={"path": "gold.json", "crowd": "drop"})


def test_other_keys_of_coco_are_passed_over(tmp_path):
    gold = coco_gold(segmentation=[[1, 2, 3]], area=5.5, attributes={"a": None}, iscrowd=0, ignore=1)
    gold |= {"info": {"year": 2020}, "licenses": []}
    gold["images"][0]["date_captured"] = "x"
    benchmark = read(tmp_path, {**PLAIN, "gold.json": json.dumps(gold)}, gold="gold.json")
    assert_is_the_data(benchmark)
    notes = evalkit.data_notes(benchmark)
    assert notes.loc[notes["code"] == "ignore_flag_not_used", "count"].tolist() == [4]


# -- long tables


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_long_tables_rename_and_select(tmp_path, form):
    rows = [
        {"photo": row["image_id"], "label": row["class"], "x0": row["x_min"], "y0": row["y_min"], "x1": row["x_max"]}
        | {"y1": row["y_max"], "score": row.get("score", ""), "source": "us", "image_id": "not this"}
        for row in long_rows(SAID)
    ]
    rows.insert(1, {**rows[0], "source": "crowd"})
    rows.append({**rows[0], "photo": "an image of theirs", "source": "crowd"})
    columns = dict(
        zip(["image_id", "class", "x_min", "y_min", "x_max", "y_max"], ["photo", "label", "x0", "y0", "x1", "y1"], strict=True)
    )
    content = as_csv(rows) if form == "csv" else as_parquet(rows)
    said = {"path": f"said.{form}", "columns": columns, "where": {"source": "us"}}
    assert_is_the_data(read(tmp_path, {**PLAIN, f"said.{form}": content}, said=said))


def test_swapped_columns_are_renamed_at_once(tmp_path):
    text = "image_id,class,y_min,x_min,y_max,x_max\n1,litter,1,2,3,4\n"
    said = {"path": "s.csv", "columns": {"x_min": "y_min", "y_min": "x_min", "x_max": "y_max", "y_max": "x_max"}}
    benchmark = read(tmp_path, {**PLAIN, "s.csv": text}, said=said)
    assert boxes_of(benchmark.predictions)["1"][0][1] == [1, 2, 3, 4]


def test_the_order_of_columns_and_further_ones_do_not_matter(tmp_path):
    text = "comment,y_max,x_max,class,score,y_min,x_min,image_id\n,4,3,litter,0.5,2,1,1\nseen,,,,,,,2\n"
    benchmark = read(tmp_path, {**PLAIN, "s.csv": text}, said="s.csv")
    assert boxes_of(benchmark.predictions) == {"1": [("litter", [1, 2, 3, 4], 0.5)]}
    assert states_of(benchmark) == {"1": "valid", "2": "valid", "3": "missing"}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_in_which_every_image_is_seen_and_empty(tmp_path, form):
    rows = long_rows({"1": [], "2": []})
    content = as_csv(rows) if form == "csv" else as_parquet(rows)
    benchmark = read(tmp_path, {**PLAIN, f"s.{form}": content}, said=f"s.{form}")
    assert states_of(benchmark) == {"1": "valid", "2": "valid", "3": "missing"}
    assert boxes_of(benchmark.predictions) == {}


def test_a_table_with_a_header_only_is_a_model_that_never_answered(tmp_path):
    header = "image_id,class,x_min,y_min,x_max,y_max\n"
    assert states_of(read(tmp_path, {**PLAIN, "s.csv": header}, said="s.csv")) == dict.fromkeys("123", "missing")
    benchmark = read(tmp_path, {**PLAIN, "s.csv": header}, said={"path": "s.csv", "absent": "empty"})
    assert states_of(benchmark) == dict.fromkeys("123", "valid")


def test_gold_in_a_table_may_be_negative_everywhere(tmp_path):
    text = "image_id,class,x_min,y_min,x_max,y_max\n1,,,,,\n2,,,,,\n3,,,,,\n"
    benchmark = read(tmp_path, {**PLAIN, "g.csv": text}, gold="g.csv")
    assert list(benchmark.images["image_id"]) == ["1", "2", "3"]
    assert len(benchmark.gold) == 0


def test_class_id_in_a_table(tmp_path):
    text = "image_id,class_id,x_min,y_min,x_max,y_max\n1,1,0,0,4,4\n1,77,0,0,4,4\n"
    benchmark = read(tmp_path, {**PLAIN, "s.csv": text}, said="s.csv")
    assert [name for name, *_ in boxes_of(benchmark.predictions)["1"]] == ["broken kerb", "class id 77"]


def test_quoted_cells_hold_commas_quotes_and_line_ends(tmp_path):
    files = {
        "classes.csv": 'class_id,class_name,domain\n1,"sign, ""bent""","a, b"\n',
        "gold.jsonl": json.dumps({"image_id": "a,1", "boxes": [{"class": 'sign, "bent"', "box": [0, 0, 4, 4]}]}),
        "s.csv": 'image_id,class,x_min,y_min,x_max,y_max,note\n"a,1","sign, ""bent""",0,0,4,4,"two\nlines"\n',
    }
    benchmark = read(tmp_path, files, said="s.csv")
    assert boxes_of(benchmark.predictions)["a,1"][0][:2] == ('sign, "bent"', [0, 0, 4, 4])
    assert benchmark.domains == ["a, b"]
    bad = files["s.csv"] + '"a,1",x,nought,0,4,4,\n'
    with pytest.raises(evalkit.DataError, match=r"s\.csv, line 4, image a,1: x_min must be a number, not 'nought'"):
        read(tmp_path, {**files, "s.csv": bad}, said="s.csv")


def test_numbers_of_parquet_keep_every_digit(tmp_path):
    value = 1 / 3
    rows = [
        {"image_id": "1", "class": "litter", "x_min": value, "y_min": np.nextafter(1.0, 2), "x_max": 1e2 + value, "y_max": 7}
    ]
    benchmark = read(tmp_path, {**PLAIN, "s.parquet": as_parquet(rows)}, said="s.parquet")
    assert boxes_of(benchmark.predictions)["1"][0][1] == [value, np.nextafter(1.0, 2), 1e2 + value, 7]


def test_integer_ids_of_parquet_become_text(tmp_path):
    rows = [{**row, "image_id": int(row["image_id"])} for row in long_rows(SAID)]
    assert_is_the_data(read(tmp_path, {**PLAIN, "s.parquet": as_parquet(rows)}, said="s.parquet"))


@pytest.mark.parametrize("rename", [False, True])
def test_float_ids_of_parquet_are_an_error(tmp_path, rename):
    rows = [{**row, "image_id": float(row["image_id"])} for row in long_rows(GOLD, size=True)]
    gold = "g.parquet"
    if rename:
        rows = [{"photo": row.pop("image_id"), **row} for row in rows]
        gold = {"path": gold, "columns": {"image_id": "photo"}}
    with pytest.raises(evalkit.DataError, match=r"g\.parquet: .* a column of floats; ids are text or integers"):
        read(tmp_path, {**PLAIN, "g.parquet": as_parquet(rows)}, gold=gold, said=None)


# -- text folders


@pytest.mark.parametrize(
    ("columns", "line", "units"),
    [
        ("class x_min y_min x_max y_max score", "litter 16 20 80 60 0.5", "pixels"),
        ("class score x_min y_min x_max y_max", "litter 0.5 16 20 80 60", "pixels"),
        ("x_min y_min w h - class score", "16 20 64 40 junk litter 0.5", "pixels"),
        ("class cx cy w h score", "litter 48 40 64 40 0.5", "pixels"),
        ("class x_min y_min x_max y_max score", "litter 0.125 0.3125 0.625 0.9375 0.5", "relative"),
        ("score class x_min y_min w h", "0.5 litter 0.125 0.3125 0.5 0.625", None),
    ],
)
def test_columns_and_units_of_a_text_folder(tmp_path, columns, line, units):
    said = {"path": "said", "columns": columns.split(), **({"units": units} if units else {})}
    benchmark = read(tmp_path, {**PLAIN, "said/1.txt": line}, said=said)
    (name, box, score), *more = boxes_of(benchmark.predictions)["1"]
    assert not more
    assert (name, score) == ("litter", 0.5)
    assert box == [16, 20, 80, 60]
    assert states_of(benchmark) == {"1": "valid", "2": "missing", "3": "missing"}


def test_the_confidence_of_a_text_line_may_be_left_out(tmp_path):
    text = "litter 0.5 0.5 0.25 0.5\nlitter 0.5 0.5 0.25 0.5 0.125\n\n"
    benchmark = read(tmp_path, {**PLAIN, "said/1.txt": text}, said="said")
    scores = [score for *_, score in boxes_of(benchmark.predictions)["1"]]
    assert np.isnan(scores[0])
    assert scores[1] == 0.125


def test_numbers_of_classes_count_the_lines_of_the_names_file(tmp_path):
    names = "zero\n\nlitter\n"  # a blank line is a line: 2 is litter
    files = {**PLAIN, "names.txt": names, "said/1.txt": "2 0.5 0.5 0.25 0.5\n9 0.5 0.5 0.25 0.5\n"}
    benchmark = read(tmp_path, files, said={"path": "said", "names": "names.txt"})
    assert [name for name, *_ in boxes_of(benchmark.predictions)["1"]] == ["litter", "class id 9"]


@pytest.mark.parametrize("source", ["file", "pictures"])
def test_sizes_of_a_text_folder(tmp_path, source):
    def picture(size):
        return lambda path: Image.new("RGB", size).save(path)

    pictures = {f"pics/{image}.png": picture(size) for image, size in SIZES.items()}
    files = {**PLAIN, **GOLD_FORMS["yolo"][0], **in_folder("said", yolo(SAID)), **pictures}
    sizes = {"file": "sizes.csv", "pictures": "pics"}[source]
    gold = {"path": "labels", "names": "names.txt", "sizes": sizes}
    benchmark = read(tmp_path, files, gold=gold, said={"path": "said", "names": "names.txt", "sizes": sizes})
    assert_is_the_data(benchmark)
    expected = [f"{image}.png" for image in SIZES] if source == "pictures" else [None] * 3
    assert [name if isinstance(name, str) else None for name in benchmark.images["file_name"]] == expected


def test_a_gold_image_without_a_text_file_must_be_allowed(tmp_path):
    files = {**PLAIN, **GOLD_FORMS["yolo"][0]}
    files.pop("labels/3.txt")
    gold = {"path": "labels", "names": "names.txt", "sizes": "sizes.csv"}
    with pytest.raises(evalkit.DataError, match=r"labels, image 3: this image has no file of boxes; set `absent: empty`"):
        read(tmp_path, files, gold=gold)
    assert_is_the_data(read(tmp_path, files, gold={**gold, "absent": "empty"}))


def test_text_files_are_joined_on_relative_paths_file_names_and_unique_base_names(tmp_path):
    def gold(*names):
        return "".join(
            json.dumps({"image_id": f"i{at}", "file_name": name, "boxes": []}) + "\n" for at, name in enumerate(names)
        )

    line = "litter 1 1 2 2"
    said = {"path": "said", "units": "pixels"}
    files = {**PLAIN, "gold.jsonl": gold("day/a.png", "night/a.png", "night/b.png"), "said/day/a.txt": line, "said/b.txt": line}
    assert states_of(read(tmp_path, files, said=said)) == {"i0": "valid", "i1": "missing", "i2": "valid"}
    with pytest.raises(evalkit.DataError, match=r"ambiguous id: 'a' may be day/a\.png and night/a\.png"):
        read(tmp_path, {**files, "said/a.txt": line}, said=said)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_size_of_a_picture_is_that_of_its_display(tmp_path, orientation):
    """EXIF orientations 5 to 8 turn the picture by a quarter."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    for ending in ("jpg", "png"):
        Image.new("RGB", (60, 40)).save(tmp_path / f"p.{ending}", exif=exif)
        assert picture_size(tmp_path / f"p.{ending}") == ((40, 60, True) if orientation >= 5 else (60, 40, False))
    files = {**PLAIN, "g/p.txt": "litter 0.5 0.5 1 1\n", "pics/p.jpg": (tmp_path / "p.jpg").read_bytes()}
    benchmark = read(tmp_path / "b", files, gold={"path": "g", "sizes": "pics"}, said=None)
    assert boxes_of(benchmark.gold) == {"p": [("litter", [0, 0, *((40, 60) if orientation >= 5 else (60, 40))])]}


# -- benchmark.yml and the table of classes


def test_paths_are_relative_to_the_benchmark_file(tmp_path, monkeypatch):
    write(tmp_path / "mine" / "data", PLAIN)
    text = "classes: data/classes.csv\ngold: data/gold.jsonl\npredictions: {m: data/said.jsonl}\nimages: pictures\n"
    (tmp_path / "mine" / "benchmark.yml").write_text(text)
    monkeypatch.chdir("/")
    benchmark = read_benchmark(tmp_path / "mine" / "benchmark.yml")
    assert_is_the_data(benchmark)
    assert benchmark.image_folder == tmp_path / "mine" / "pictures"
    assert benchmark.name == "mine"


def test_a_benchmark_from_its_parts(tmp_path):
    write(tmp_path, PLAIN)
    parts = {"classes": "classes.csv", "gold": "gold.jsonl", "predictions": {"m": {"path": "said.jsonl", "absent": "empty"}}}
    assert_is_the_data(read_benchmark(options_from(parts, source="test"), folder=tmp_path))


def test_models_come_in_the_order_asked_for(tmp_path):
    write(tmp_path, PLAIN)
    text = "classes: classes.csv\ngold: gold.jsonl\npredictions: {c: said.jsonl, a: said.jsonl, b: said.jsonl}\n"
    (tmp_path / "benchmark.yml").write_text(text)
    assert read_benchmark(tmp_path / "benchmark.yml").models == ["c", "a", "b"]
    assert read_benchmark(tmp_path / "benchmark.yml", models=["b", "c"]).models == ["b", "c"]
    with pytest.raises(evalkit.EvalkitError, match=r"benchmark\.yml: there is no model 'z'; it has c, a, b"):
        read_benchmark(tmp_path / "benchmark.yml", models=["z"])


def test_domains_may_be_left_out(tmp_path):
    benchmark = read(tmp_path, {**PLAIN, "classes.csv": "class_name,class_id\nlitter,0\nbroken  kerb ,1\n"})
    assert benchmark.domains == []
    assert list(benchmark.classes["class_name"]) == NAMES


def test_reading_changes_nothing(tmp_path):
    files, said = SAID_FORMS["yolo"]
    read(tmp_path, {**PLAIN, **files}, said=said)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()}
    read_benchmark(tmp_path / "benchmark.yml")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()} == before

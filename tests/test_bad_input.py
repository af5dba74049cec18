"""Bad input through the command line: status 2, one clear message, no traceback, nothing written, earlier results kept."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

import evalkit.cli

CLASSES = "class_id,class_name,domain\n1,litter,street\n2,pothole,road\n"
GOLD = (
    '{"image_id": "a1", "width": 100, "height": 100, "boxes": [{"class": "litter", "box": [10, 10, 50, 50]}]}\n'
    '{"image_id": "a2", "width": 100, "height": 100, "boxes": []}\n'
)
SAID = '{"image_id": "a1", "boxes": [{"class": "litter", "box": [10, 10, 50, 50]}]}\n{"image_id": "a2", "boxes": []}\n'
OPTIONS = {"name": "Bad", "classes": "classes.csv", "gold": "gold.jsonl", "predictions": {"m": "m.jsonl"}}
GOOD = {"classes.csv": CLASSES, "gold.jsonl": GOLD, "m.jsonl": SAID}
HEADER = "image_id,class,x_min,y_min,x_max,y_max\n"
DIGITS = "9" * 400
A_FOLDER = object()


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is A_FOLDER:
            path.mkdir()
        elif callable(content):
            content(path)
        elif content is not None:
            path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def refuse(tmp_path):
    """Score a benchmark that is bad, and return the message. Checks everything that holds for every refusal."""

    def refuse(files, *arguments, benchmark=None, options=None, out=None):
        data = tmp_path / "data"
        text = files.get("benchmark.yml", yaml.safe_dump({**OPTIONS, **(options or {})}))
        write(data, {**GOOD, **files, "benchmark.yml": text})
        kept = tmp_path / "earlier"
        write(kept, {"scores.csv": "earlier\n", "notes.txt": "mine\n"})
        before, data_before = contents(kept), contents(data)
        found = None
        for target in (out or tmp_path / "new", kept):
            asked = ["score", "--benchmark", str(benchmark or data / "benchmark.yml"), "--out", str(target), *arguments]
            found = CliRunner().invoke(evalkit.cli.main, asked)
            assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
            assert found.exit_code == 2, found.output
            assert found.stdout == ""
            assert found.stderr.startswith("Error: ") or found.stderr.startswith("Usage: ")
            assert "Traceback" not in found.stderr
            if out is not None:
                break
        assert contents(kept) == before
        assert contents(data) == data_before
        assert not (tmp_path / "new").exists()
        return found.stderr.removeprefix("Error: ").rstrip("\n")

    return refuse


def in_form(name, **options):
    """Predictions of the model in another file or folder."""
    return {"predictions": {"m": {"path": name, **options}}}


def parquet(**columns):
    base = {"image_id": ["a1"], "class": ["litter"], "x_min": [1.0], "y_min": [1.0], "x_max": [5.0], "y_max": [5.0]}
    table = pd.DataFrame({name: values for name, values in {**base, **columns}.items() if values is not None})
    return table.to_parquet


def coco(**changes):
    document = {
        "images": [{"id": 1, "width": 100, "height": 100}, {"id": 2}],
        "categories": [{"id": 1, "name": "litter"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 40]}],
    }
    return document | changes


def annotation(**changes):
    return {"annotations": [{"image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 40], **changes}]}


# -- the file as such

UNREADABLE = {
    "no gold file": ({"gold.jsonl": None}, ["gold.jsonl: there is no file", "[file.absent]"]),
    "no prediction file": ({"m.jsonl": None}, ["m.jsonl: there is no file", "[file.absent]"]),
    "no class list": ({"classes.csv": None}, ["classes.csv: there is no file", "[file.absent]"]),
    "gold is a folder": ({"gold.jsonl": A_FOLDER}, ["gold.jsonl: cannot read it", "directory", "[file.unreadable]"]),
    "predictions are a folder": ({"m.jsonl": A_FOLDER}, ["m.jsonl: cannot read it", "directory"]),
    "class list is a folder": ({"classes.csv": A_FOLDER}, ["classes.csv: cannot read it", "directory"]),
    "empty gold": ({"gold.jsonl": ""}, ["gold.jsonl: the file is empty [file.empty]"]),
    "gold of white space": ({"gold.jsonl": " \n\n\t"}, ["gold.jsonl: the file is empty [file.empty]"]),
    "gold of a mark only": ({"gold.jsonl": b"\xef\xbb\xbf"}, ["gold.jsonl: the file is empty [file.empty]"]),
    "empty predictions": ({"m.jsonl": ""}, ["m.jsonl: the file is empty [file.empty]"]),
    "empty class list": ({"classes.csv": ""}, ["classes.csv: the file is empty [file.empty]"]),
    "not UTF-8": ({"m.jsonl": SAID.encode() + b'{"image_id": "\xff", "boxes": []}\n'}, ["m.jsonl, line 3: ", "UTF-8"]),
    "class list not UTF-8": ({"classes.csv": CLASSES.encode() + b"3,\xe9,road\n"}, ["classes.csv", "not UTF-8"]),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read(refuse, case):
    files, words = UNREADABLE[case]
    message = refuse(files)
    for word in words:
        assert word in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (gzip.compress(SAID.encode() * 50)[:60], "end-of-stream"),
        (b"not gzip at all", "gzip"),
        (gzip.compress(SAID.encode())[:-8] + b"12345678", "CRC"),
        (gzip.compress(SAID.encode()) + b"more", "gzip"),
        (b"", "empty"),
    ],
    ids=["cut off", "no gzip", "wrong checksum", "more after the end", "empty"],  # its header holds the time
)
def test_a_broken_gzip_file(refuse, content, word):
    message = refuse({"m.jsonl.gz": content}, options=in_form("m.jsonl.gz"))
    assert message.startswith("m.jsonl.gz: ")
    assert word in message


RESULTS = '[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}]'


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize(
    "text", [RESULTS, "[]", json.dumps({"images": [], "annotations": []})], ids=["list", "nothing", "object"]
)
def test_a_document_in_another_encoding(refuse, text, encoding):
    message = refuse({"m.json": text.encode(encoding)}, options=in_form("m.json"))
    assert message.startswith("m.json: this is not UTF-8: ")
    assert message.endswith("[file.unreadable]")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32-be"])
def test_a_document_with_a_nul_after_each_character(refuse, encoding):
    assert "this is not JSON" in refuse({"m.json": RESULTS.encode(encoding)}, options=in_form("m.json"))


def test_lines_in_another_encoding(refuse):
    message = refuse({"m.jsonl": SAID.encode("utf-16")})
    assert message.startswith("m.jsonl, line 1: this is not JSON")


@pytest.mark.parametrize(
    "text",
    ['[{"a":' * 100_000, RESULTS.replace("{", '{"a": ' + "[" * 9_999 + "]" * 9_999 + ", "), '{"a":' * 100_000],
    ids=["cut off", "a key that nobody reads", "objects"],
)
def test_a_document_that_is_nested_too_deeply(refuse, text):
    assert refuse({"m.json": text}, options=in_form("m.json")) == "m.json: it is nested too deeply [json.malformed]"


@pytest.mark.parametrize(
    ("name", "word"),
    [("m.txt", "the format is not told by the ending; set `format` to one of jsonl"), ("m", "set `format`")],
)
def test_an_ending_that_tells_no_format(refuse, name, word):
    assert word in refuse({name: SAID}, options=in_form(name))


@pytest.mark.parametrize("name", ["m\0.jsonl", "gold.jsonl/m.jsonl", "m" * 300 + ".jsonl"])
def test_a_path_that_cannot_be(refuse, name):
    text = json.dumps({**OPTIONS, "predictions": {"m": name}})
    assert "jsonl" in refuse({"benchmark.yml": text})


# -- JSON lines: what is wrong, where, on which image, with which value

LINES = {
    "cut off": ("gold.jsonl", '{"image_id": "a1", "boxes": [\n', ["gold.jsonl, line 1: this is not JSON", "[json.malformed]"]),
    "one line of several": ("m.jsonl", SAID + "{]\n" + SAID, ["m.jsonl, line 3: this is not JSON"]),
    "two objects": ("m.jsonl", SAID.replace("\n", ""), ["m.jsonl, line 1: ", "trailing characters"]),
    "two objects and a space": ("m.jsonl", SAID.replace("\n", " "), ["m.jsonl, line 1: ", "trailing characters"]),
    "two objects, then one on two lines": (
        "m.jsonl",
        '{"image_id": "a1", "boxes": []} {"image_id": "a2",\n"boxes": []}\n',
        ["m.jsonl, line 1: "],
    ),
    "an object on two lines": ("m.jsonl", '{"image_id": "a1",\n"boxes": []}\n', ["m.jsonl, line 1: ", "m.jsonl, line 2: "]),
    "a list": ("m.jsonl", '["a1"]\n', ["m.jsonl, line 1: Expected `object`, got `array`"]),
    "null": ("m.jsonl", "null\n", ["m.jsonl, line 1: Expected `object`, got `null`"]),
    "text for boxes": ("m.jsonl", '{"image_id": "a1", "boxes": "x"}\n', ["m.jsonl, line 1, image a1: ", "array", "`$.boxes`"]),
    "no image id": ("m.jsonl", '{"boxes": []}\n', ["m.jsonl, line 1: ", "`image_id`"]),
    "unknown key": ("m.jsonl", '{"image_id": "a1", "boxs": []}\n', ["m.jsonl, line 1, image a1: ", "unknown field `boxs`"]),
    "unknown key of a box": ("gold.jsonl", GOLD.replace('"class"', '"label"'), ["gold.jsonl, line 1, image a1: ", "`label`"]),
    "unknown status": ("m.jsonl", '{"image_id": "a1", "status": "ok", "boxes": []}\n', ["m.jsonl, line 1, image a1: ", "'ok'"]),
    "no boxes and no reason": ("m.jsonl", '{"image_id": "a1"}\n', ["m.jsonl, line 1, image a1: a valid row needs `boxes`"]),
    "float id": ("m.jsonl", '{"image_id": 1.0, "boxes": []}\n', ["m.jsonl, line 1, image 1.0: ", "`float`", "`$.image_id`"]),
    "boolean id": ("m.jsonl", '{"image_id": true, "boxes": []}\n', ["m.jsonl, line 1", "`bool`", "`$.image_id`"]),
    "empty id": ("gold.jsonl", GOLD.replace('"a1"', '" "'), ["gold.jsonl, line 1", "the image id is empty [image.blank]"]),
    "image twice in gold": (
        "gold.jsonl",
        GOLD + GOLD[: GOLD.index("\n") + 1],
        ["gold.jsonl, line 3, image a1: duplicate image row: 'a1' was there at line 1 [image.twice]"],
    ),
    "image twice in predictions": (
        "m.jsonl",
        SAID + SAID,
        ["m.jsonl, line 3, image a1: duplicate image row", "line 4, image a2"],
    ),
    "image twice, as text and number": (
        "gold.jsonl",
        GOLD.replace('"a1"', "7").replace('"a2"', '"7"'),
        ["gold.jsonl, line 2, image 7: duplicate image row"],
    ),
    "id that gold lacks": (
        "m.jsonl",
        SAID.replace("a2", "zz"),
        ["m.jsonl, line 2, image zz: gold has no image 'zz' [image.unknown]"],
    ),
    "id with an ending": ("m.jsonl", SAID.replace("a2", "a2.png"), ["gold has no image 'a2.png' ('a2.png' differs", "'a2'"]),
    "unknown class in gold": (
        "gold.jsonl",
        GOLD.replace("litter", "zebra"),
        ["gold.jsonl, line 1, boxes[0], image a1: class 'zebra' is not in the class list", "[gold.class]"],
    ),
    "unknown class_id in gold": (
        "gold.jsonl",
        GOLD.replace('"class": "litter"', '"class_id": 9'),
        ["line 1, boxes[0], image a1: class_id 9"],
    ),
    "class and class_id": (
        "m.jsonl",
        SAID.replace('"class"', '"class_id": 1, "class"'),
        ["line 1, boxes[0], image a1", "just one of them"],
    ),
    "neither class nor class_id": (
        "m.jsonl",
        SAID.replace('"class": "litter", ', ""),
        ["line 1, boxes[0], image a1", "`class_id`"],
    ),
    "empty class": ("m.jsonl", SAID.replace('"litter"', '"  "'), ["m.jsonl, line 1, boxes[0], image a1: "]),
    "score as text": (
        "m.jsonl",
        SAID.replace("50]}", '50], "score": "high"}'),
        ["m.jsonl, line 1, image a1: ", "`$.boxes[0].score`"],
    ),
    "score too large": (
        "m.jsonl",
        SAID.replace("50]}", f'50], "score": {DIGITS}}}'),
        ["m.jsonl, line 1, image a1: ", "out of range"],
    ),
    "width 0": (
        "gold.jsonl",
        GOLD.replace('"width": 100', '"width": 0'),
        ["line 1, image a1: width must be a positive number", "not 0 "],
    ),
    "width below 0": (
        "gold.jsonl",
        GOLD.replace('"width": 100', '"width": -5'),
        ["line 1, image a1: width must be a positive", "not -5 "],
    ),
    "width infinite": (
        "gold.jsonl",
        GOLD.replace('"width": 100', '"width": 1e999'),
        ["line 1, image a1: width must be", "not inf "],
    ),
    "width too large": ("gold.jsonl", GOLD.replace('"width": 100', f'"width": {DIGITS}'), ["line 1, image a1: ", "`$.width`"]),
    "width as text": (
        "gold.jsonl",
        GOLD.replace('"width": 100', '"width": "100"'),
        ["line 1, image a1: ", "`str`", "`$.width`"],
    ),
    "nested deeply": ("m.jsonl", '{"image_id": "a1", "boxes": ' + "[" * 99999 + "]" * 99999 + "}\n", ["m.jsonl, line 1: "]),
    "nested deeply and cut off": ("m.jsonl", '{"image_id": "a1", "boxes": ' + "[" * 99999, ["m.jsonl, line 1: "]),
    "half a character in a class": ("m.jsonl", SAID.replace('"litter"', r'"\ud800"'), ["m.jsonl, line 1"]),
    "half a character in a reason": ("m.jsonl", r'{"image_id": "a1", "error": "\ud800"}', ["m.jsonl, line 1"]),
    "half a character in an id": ("gold.jsonl", GOLD.replace('"a1"', r'"\ud800"'), ["gold.jsonl, line 1"]),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line_that_breaks_a_rule(refuse, case):
    name, text, words = LINES[case]
    message = refuse({name: text})
    for word in words:
        assert word in message
    assert all(line.startswith(name + ", line ") for line in message.splitlines())


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ("[50, 10, 10, 50]", ["boxes[0], image a1: x_max must not be left of x_min", "[50, 10, 10, 50]", "[box.inverted]"]),
        ("[10, 50, 50, 10]", ["boxes[0], image a1: ", "nor y_max above y_min", "[10, 50, 50, 10]"]),
        ("[10, 10, 10, 50]", ["boxes[0], image a1: the box has no area", "[10, 10, 10, 50]", "[box.zero_area]"]),
        ("[10, 10, 50, 101]", ["boxes[0], image a1: the box is more than 0.5 pixels outside its image", "[10, 10, 50, 101]"]),
        ("[NaN, 10, 50, 60]", ["image a1: ", "four finite numbers", "nan, 10, 50, 60"]),
        ("[-Infinity, 10, 50, 60]", ["image a1: ", "four finite numbers", "-inf, 10, 50, 60"]),
        ("[1e400, 10, 50, 60]", ["image a1: ", "four finite numbers", "10, 50, 60"]),
        (f"[{DIGITS}, 10, 50, 60]", ["image a1: ", "10, 50, 60"]),
        ("[10, 10, 50]", ["image a1: ", "length 4, got 3", "`$.boxes[0].box`"]),
        ("[10, 10, 50, 50, 50]", ["image a1: ", "length 4, got 5"]),
        ("null", ["image a1: ", "got `null`", "`$.boxes[0].box`"]),
        ('["10", 10, 50, 50]', ["image a1: ", "`str`", "`$.boxes[0].box[0]`"]),
        ("[true, 10, 50, 50]", ["image a1: ", "`bool`", "`$.boxes[0].box[0]`"]),
        ('{"x": 1}', ["image a1: ", "`object`"]),
    ],
)
def test_a_gold_box_that_is_none(refuse, box, words):
    message = refuse({"gold.jsonl": GOLD.replace("[10, 10, 50, 50]", box)})
    assert message.startswith("gold.jsonl, line 1, ")
    for word in words:
        assert word in message
    assert "\n" not in message


def test_the_first_five_faults_and_the_total_are_shown_and_check_lists_all(refuse, tmp_path):
    said = "".join(f'{{"image_id": "z{number}", "boxes": []}}\n' for number in range(1, 9))
    message = refuse({"m.jsonl": said})
    lines = message.splitlines()
    assert [line.split(":")[0] for line in lines[:5]] == [f"m.jsonl, line {number}, image z{number}" for number in range(1, 6)]
    assert lines[5:] == ["... and 3 more, 8 in all; `evalkit check` lists every one"]
    found = CliRunner().invoke(evalkit.cli.main, ["check", "--benchmark", str(tmp_path / "data" / "benchmark.yml")])
    assert found.exit_code == 2
    every, _, by_rule = found.stdout.partition("\nBy rule:\n")
    assert by_rule.splitlines()[1].split() == ["structure", "m.jsonl", "image.unknown", "8", "z1,", "z2,", "z3"]
    assert [line.split(":")[0] for line in every.splitlines()] == [
        f"m.jsonl, line {number}, image z{number}" for number in range(1, 9)
    ]
    assert found.stderr == "Error: 8 findings; nothing was scored\n"


def test_faults_of_all_models_are_told_together(refuse):
    files = {"n.jsonl": SAID.replace("a1", "a3"), "m.jsonl": SAID.replace("a2", "a4")}
    message = refuse(files, options={"predictions": {"m": "m.jsonl", "n": "n.jsonl"}})
    assert [line.split(":")[0] for line in message.splitlines()] == ["m.jsonl, line 2, image a4", "n.jsonl, line 1, image a3"]


def test_a_bad_predicted_box_is_an_error_where_the_file_asks_for_one(refuse):
    message = refuse(
        {"m.jsonl": SAID.replace("[10, 10, 50, 50]", "[50, 10, 10, 50]")}, options=in_form("m.jsonl", bad_box="error")
    )
    assert message.startswith("m.jsonl, line 1, boxes[0], image a1: x_max must not be left of x_min")
    assert "[50, 10, 10, 50]" in message


# -- the class list

LISTS = {
    "name twice": (CLASSES + "3,litter,x\n", "classes.csv, line 4: class_name 'litter' was there at line 2 [classes.twice]"),
    "name twice but for spaces": (CLASSES + "3,  litter ,x\n", "classes.csv, line 4: class_name 'litter' was there at line 2"),
    "id twice": (CLASSES + "1,crack,x\n", "classes.csv, line 4: class_id '1' was there at line 2 [classes.twice]"),
    "no name": (CLASSES + "3,  ,x\n", "classes.csv, line 4: class_name is empty [classes.blank]"),
    "no id": (CLASSES + ",crack,x\n", "classes.csv, line 4: class_id is empty"),
    "other header": (
        "id,name\n1,litter\n",
        "classes.csv, line 1: the header lacks class_id, class_name; it has id, name [columns]",
    ),
    "header only": ("class_id,class_name,domain\n", "classes.csv: the class list is empty [classes.empty]"),
    "cell lacking": (CLASSES + "3,crack\n", "classes.csv, line 4: 2 cells under a header of 3 [csv]"),
    "cell too many": (CLASSES + "3,crack,x,y\n", "classes.csv, line 4: 4 cells under a header of 3 [csv]"),
    "column twice": ("class_id,class_name,class_name\n1,a,b\n", "classes.csv, line 1: the header names 'class_name' twice"),
    "open quote": (CLASSES + '3,"crack,x\n', "classes.csv, line 4: this is not CSV"),
}


@pytest.mark.parametrize("case", LISTS)
def test_a_class_list_that_breaks_a_rule(refuse, case):
    text, message = LISTS[case]
    assert message in refuse({"classes.csv": text})


def test_a_benchmark_without_a_class_list(refuse):
    options = {name: value for name, value in OPTIONS.items() if name != "classes"}
    assert "benchmark.yml: `classes` is needed" in refuse({"benchmark.yml": yaml.safe_dump(options)})


# -- benchmark.yml

FIRST = "classes: classes.csv\ngold: gold.jsonl\n"
WHOLE = FIRST + "predictions:\n  m: m.jsonl\n"
DOCUMENTS = {
    "empty": ("", ["benchmark.yml: ", "`gold:`"]),
    "a list": ("- gold\n", ["benchmark.yml: ", "`gold:`"]),
    "text": ("gold", ["benchmark.yml: ", "`gold:`"]),
    "no gold": ("classes: classes.csv\npredictions: {m: m.jsonl}\n", ["benchmark.yml: ", "`gold`"]),
    "gold without a value": (WHOLE.replace("gold: gold.jsonl", "gold:"), ["benchmark.yml", "gold"]),
    "no predictions": (FIRST, ["there are no predictions to score"]),
    "predictions in a list": (FIRST + "predictions: [m.jsonl]\n", ["benchmark.yml: ", "predictions"]),
    "predictions as text": (FIRST + "predictions: m.jsonl\n", ["benchmark.yml: ", "predictions"]),
    "a model in a list": (FIRST + "predictions: {m: [m.jsonl]}\n", ["benchmark.yml", "predictions", "m"]),
    "a model without a name": (FIRST + "predictions: {'': m.jsonl}\n", ["benchmark.yml", "predictions"]),
    "a model of white space": (FIRST + "predictions: {' ': m.jsonl}\n", ["benchmark.yml", "predictions"]),
    "a model that is a list": (FIRST + "predictions:\n  ? [a, b]\n  : m.jsonl\n", ["benchmark.yml"]),
    "a key that is a map": (WHOLE + "? {a: b}\n: c\n", ["benchmark.yml"]),
    "key twice": (WHOLE + "gold: other.jsonl\n", ["benchmark.yml, line 5: ", "'gold' stands there twice"]),
    "model twice": (WHOLE + "  m: other.jsonl\n", ["benchmark.yml, line 5: ", "'m' stands there twice"]),
    "misspelt key": (WHOLE.replace("gold:", "golds:"), ["benchmark.yml: unknown key 'golds'; did you mean 'gold'?"]),
    "unknown key": (WHOLE + "zz: 1\n", ["benchmark.yml: unknown key 'zz'; known keys are ", "predictions"]),
    "misspelt option": (
        FIRST + "predictions: {m: {path: m.jsonl, absnt: empty}}\n",
        ["predictions, m: unknown key 'absnt'", "'absent'"],
    ),
    "no path": (FIRST + "predictions: {m: {format: jsonl}}\n", ["benchmark.yml", "`path`"]),
    "unknown format": (FIRST + "predictions: {m: {path: m.jsonl, format: xml}}\n", ["benchmark.yml", "'xml'", "format"]),
    "unknown absent": (FIRST + "predictions: {m: {path: m.jsonl, absent: maybe}}\n", ["benchmark.yml", "'maybe'", "absent"]),
    "unknown bad_box": (FIRST + "predictions: {m: {path: m.jsonl, bad_box: drop}}\n", ["benchmark.yml", "'drop'", "bad_box"]),
    "unknown crowd": (FIRST.replace("gold.jsonl", "{path: gold.json, crowd: keep}"), ["benchmark.yml", "'keep'", "crowd"]),
    "option of another format": (
        FIRST + "predictions: {m: {path: m.jsonl, crowd: drop}}\n",
        ["m.jsonl: `crowd` is no option of the format jsonl"],
    ),
    "not YAML": (WHOLE + "  - x\n", ["benchmark.yml, line 5: this is not YAML"]),
    "tab": (WHOLE + "\tx: 1\n", ["benchmark.yml, line 5: this is not YAML"]),
    "unclosed": (WHOLE + "name: [\n", ["benchmark.yml, line 6: this is not YAML"]),
    "two documents": (WHOLE + "---\ngold: x\n", ["benchmark.yml, line 5: this is not YAML"]),
    "runs code": (
        WHOLE + "name: !!python/object/apply:os.mkdir [new]\n",
        ["benchmark.yml, line 5: ", "tags are not understood"],
    ),
    "contains itself": (WHOLE + "name: &a [*a]\n", ["benchmark.yml, line 5: "]),
    "nested deeply": (WHOLE + "name: " + "[" * 2000 + "]" * 2000 + "\n", ["benchmark.yml"]),
    "a number as a list": (WHOLE + "name: [1]\n", ["benchmark.yml", "name"]),
    "not UTF-8": (WHOLE.encode() + b"name: \xe9\n", ["benchmark.yml: cannot read it", "utf-8"]),
    "a control character": (WHOLE + "name: \0\n", ["benchmark.yml: this is not YAML"]),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_benchmark_file_that_breaks_a_rule(refuse, case):
    text, words = DOCUMENTS[case]
    message = refuse({"benchmark.yml": text})
    for word in words:
        assert word in message


@pytest.mark.parametrize("option", ["absent: maybe", "format: xml", "bad_box: drop"])
def test_a_wrong_option_names_the_model_that_has_it(refuse, option):
    text = FIRST + f"predictions: {{fine: m.jsonl, wrong-one: {{path: m.jsonl, {option}}}}}\n"
    assert "wrong-one" in refuse({"benchmark.yml": text})


def test_a_benchmark_file_that_is_not_there(refuse, tmp_path):
    message = refuse({}, benchmark=tmp_path / "data" / "none.yml")
    assert message == f"{tmp_path / 'data' / 'none.yml'}: there is no such file"
    assert "cannot read it" in refuse({}, benchmark=tmp_path / "data")


# -- COCO

OBJECTS = {
    "inverted": (coco(**annotation(bbox=[50, 50, -10, 10])), ["gold.json, annotations[0], image 1: x_max", "[50, 50, 40, 60]"]),
    "flat": (coco(**annotation(bbox=[50, 50, 0, 10])), ["gold.json, annotations[0], image 1: the box has no area"]),
    "NaN": (coco(**annotation(bbox=[float("nan"), 5, 1, 2])), ["gold.json, annotations[0], image 1: ", "four finite numbers"]),
    "too large": (
        coco(**annotation(bbox=[1e308, 5, 1e308, 2])),
        ["gold.json, annotations[0], image 1: ", "four finite numbers"],
    ),
    "outside": (coco(**annotation(bbox=[80, 80, 21, 5])), ["gold.json, annotations[0], image 1: ", "outside its image"]),
    "three numbers": (coco(**annotation(bbox=[1, 2, 3])), ["gold.json, annotations[0], image 1: ", "length 4, got 3"]),
    "no box": (coco(annotations=[{"image_id": 1, "category_id": 1}]), ["gold.json, annotations[0], image 1: ", "`bbox`"]),
    "float id": (coco(**annotation(image_id=1.0)), ["gold.json, annotations[0], image 1.0: ", "`float`"]),
    "no such image": (coco(**annotation(image_id=9)), ["gold.json, annotations[0], image 9: `images` has no id '9'"]),
    "no such category": (coco(**annotation(category_id=9)), ["gold.json, annotations[0], image 1: `categories` has no id 9"]),
    "crowd": (coco(**annotation(iscrowd=1)), ["gold.json, annotations[0], image 1: a crowd box", "`crowd: drop`"]),
    "image twice": (coco(images=[{"id": 1}, {"id": 1}]), ["gold.json, images[1], image 1: duplicate image row", "images[0]"]),
    "image twice, as text": (coco(images=[{"id": 1}, {"id": "1"}]), ["gold.json, images[1], image 1: duplicate image row"]),
    "float image": (coco(images=[{"id": 1.5}]), ["gold.json, images[0]: ", "`float`"]),
    "negative width": (coco(images=[{"id": 1, "width": -1}]), ["gold.json, images[0], image 1: width must be", "not -1"]),
    "no image": (coco(images=[], annotations=[]), ["gold.json: there is no image in it [gold.empty]"]),
    "category twice": (
        coco(categories=[{"id": 1, "name": "litter"}, {"id": 2, "name": "litter"}]),
        ["gold.json, categories[1]: class_name 'litter' was there at categories[0]"],
    ),
    "a list": ([], ["gold.json: COCO gold is an object with images, annotations and categories"]),
    "empty object": ({}, ["gold.json: ", "`images`"]),
    "text for images": (coco(images="x"), ["gold.json: ", "images"]),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_a_coco_object_that_breaks_a_rule(refuse, case):
    document, words = OBJECTS[case]
    options = {"gold": "gold.json"}
    message = refuse({"gold.json": json.dumps(document), "m.json": "[]"}, options={**options, **in_form("m.json")})
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"image_id": "a1", "category_id": 1, "bbox": [1, 2, 3, 4]}', ["m.json, line 1, column 60: this is not JSON"]),
        ("[]\n[]", ["m.json, line 2, column 1: this is not JSON"]),
        ("[" * 99999, ["m.json: it is nested too deeply"]),
        ("[" * 99999 + "]" * 99999, ["m.json: it is nested too deeply"]),
        (
            '[{"image_id": "zz", "category_id": 1, "bbox": [1, 2, 3, 4]}]',
            ["m.json, entry [0], image zz: gold has no image 'zz'"],
        ),
        ('[{"image_id": "a1", "bbox": [1, 2, 3, 4]}]', ["m.json, entry [0], image a1: ", "`category_id`"]),
        ('[{"image_id": "a1", "category_id": 1, "bbox": ["1", 2, 3, 4]}]', ["m.json, entry [0], image a1: ", "`$.bbox[0]`"]),
        (
            f'[{{"image_id": "a1", "category_id": 1, "bbox": [1, 2, 3, 4], "score": {DIGITS}}}]',
            ["m.json, entry [0], image a1: "],
        ),
        ("7", ["m.json: "]),
        (b"[\xff]", ["m.json: this is not UTF-8", "[file.unreadable]"]),
        (r'{"images": [{"id": "a1"}], "annotations": [], "categories": [{"id": 1, "name": "\ud800"}]}', ["m.json"]),
    ],
)
def test_coco_predictions_that_break_a_rule(refuse, text, words):
    message = refuse({"m.json": text}, options=in_form("m.json"))
    for word in words:
        assert word in message


# -- long tables

TABLES = {
    "column twice": (
        HEADER.replace("y_max", "y_max,x_min") + "a1,litter,1,1,5,5,1\n",
        ["m.csv, line 1: the header names 'x_min' twice"],
    ),
    "column lacking": (
        HEADER.replace(",y_max", "") + "a1,litter,1,1,5\n",
        ["m.csv: the header lacks y_max; it has image_id, class"],
    ),
    "no class column": (HEADER.replace("class", "kind") + "a1,litter,1,1,5,5\n", ["m.csv: the header lacks class"]),
    "semicolons": ((HEADER + "a1,litter,1,1,5,5\n").replace(",", ";"), ["m.csv: the header lacks image_id"]),
    "a word for a number": (HEADER + "a1,litter,ten,1,5,5\n", ["m.csv, line 2, image a1: x_min must be a number, not 'ten'"]),
    "a complex number": (HEADER + "a1,litter,1,1+2j,5,5\n", ["m.csv, line 2, image a1: y_min must be a number, not '1+2j'"]),
    "a boolean": (HEADER + "a1,litter,True,1,5,5\n", ["m.csv, line 2, image a1: x_min must be a number, not 'True'"]),
    "cell lacking": (HEADER + "a1,litter,1\n", ["m.csv, line 2: 3 cells under a header of 6"]),
    "no class": (HEADER + "a1,litter,1,1,5,5\na2,,1,1,5,5\n", ["m.csv, line 3, image a2: a box needs a class"]),
    "class of white space": (HEADER + "a1,litter,1,1,5,5\na2,  ,1,1,5,5\n", ["m.csv, line 3, image a2: a box needs a class"]),
    "no image id": (HEADER + ",litter,1,1,5,5\n", ["m.csv, line 2: the image id is empty"]),
    "unknown image": (HEADER + "zz,litter,1,1,5,5\n", ["m.csv, line 2, image zz: gold has no image 'zz'"]),
    "open quote": (HEADER + '"a1,litter,1,1,5,5\n', ["m.csv, line 2: this is not CSV"]),
    "a giant cell": (HEADER + "a1," + "x" * 200_000 + ",1,1,5,5\n", ["m.csv, line 2: this is not CSV"]),
    "not UTF-8": (HEADER.encode() + b"a1,\xff,1,1,5,5\n", ["m.csv", "not UTF-8"]),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_table_that_breaks_a_rule(refuse, case):
    text, words = TABLES[case]
    message = refuse({"m.csv": text}, options=in_form("m.csv"))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"where": {"source": "x"}}, "m.csv: `where` names the column 'source'; the file has image_id, class"),
        ({"columns": {"class": "label"}}, "m.csv: `columns` names 'label'; the file has image_id, class"),
        ({"columns": ["class"]}, "m.csv: `columns` of a long table maps our names to the file's"),
        ({"columns": {"klass": "class"}}, "m.csv"),
        ({"sizes": "gold"}, "m.csv: `sizes` is no option of the format csv"),
    ],
)
def test_options_of_a_table_that_do_not_fit(refuse, options, word):
    assert word in refuse({"m.csv": HEADER + "a1,litter,1,1,5,5\n"}, options=in_form("m.csv", **options))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a1,litter,1,1,5,5,100,100\na1,litter,1,1,5,5,101,100\n", ["line 3, image a1: width 101 contradicts 100 in line 2"]),
        ("a1,litter,1,1,5,5,-100,100\n", ["line 2, image a1: width must be a positive number of pixels, not -100"]),
        ("a1,zebra,1,1,5,5,100,100\n", ["line 2, image a1: class 'zebra' is not in the class list"]),
        ("a1,litter,5,1,1,5,100,100\n", ["line 2, image a1: x_max must not be left of x_min", "[5, 1, 1, 5]"]),
        ("a1,litter,nan,1,1,5,100,100\n", ["line 2, image a1: a box is four finite numbers", "nan, 1, 1, 5"]),
        ("a1,litter,,1,1,5,100,100\n", ["line 2, image a1: a box is four finite numbers"]),
        ("", ["gold.csv: there is no image in it [gold.empty]"]),
    ],
)
def test_a_gold_table_that_breaks_a_rule(refuse, rows, words):
    message = refuse({"gold.csv": HEADER.replace("\n", ",width,height\n") + rows}, options={"gold": "gold.csv"})
    assert message.startswith("gold.csv")
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PAR1 and not more", ["m.parquet: this is not Parquet"]),
        (b"", ["m.parquet"]),
        (parquet(image_id=[1.0]), ["m.parquet: image_id is a column of floats; ids are text or integers"]),
        (parquet(**{"class": None, "class_id": [1.0]}), ["m.parquet: class_id is a column of floats"]),
        (parquet(**{"class": None}), ["m.parquet: the header lacks class"]),
        (parquet(image_id=["zz"]), ["m.parquet", "image zz: gold has no image 'zz'"]),
        (parquet(image_id=[None]), ["m.parquet", "the image id is empty"]),
        (parquet(x_min=[[1, 2]]), ["m.parquet", "image a1: x_min must be a number, not '[1, 2]'"]),
        (parquet(x_min=["one"]), ["m.parquet", "image a1: x_min must be a number, not 'one'"]),
        (A_FOLDER, ["m.parquet"]),
    ],
)
def test_parquet_that_breaks_a_rule(refuse, content, words):
    message = refuse({"m.parquet": content}, options=in_form("m.parquet"))
    for word in words:
        assert word in message


# -- text folders

FOLDERS = {
    "no text file": ({"said/readme.md": "x"}, {}, ["said: the folder holds no .txt file"]),
    "no folder": ({}, {"format": "yolo"}, ["said: there is no folder"]),
    "a file for a folder": ({"said": "x"}, {"format": "yolo"}, ["said: there is no folder"]),
    "field lacking": (
        {"said/a1.txt": "litter 0.5\n"},
        {"bad_box": "error"},
        ["said, a1.txt, line 1, image a1: ", "a box is four finite numbers"],
    ),
    "class lacking": (
        {"said/a1.txt": ".5 .5\n"},
        {"columns": ["cx", "cy", "w", "h", "class"]},
        ["said/a1.txt, line 1, image a1: ", "this one has 2 fields"],
    ),
    "a word": ({"said/a1.txt": "\nlitter a .5 .5 .5\n"}, {}, ["said/a1.txt, line 2, image a1: cx must be a number, not 'a'"]),
    "unknown image": ({"said/zz.txt": "litter .5 .5 .5 .5\n"}, {}, ["said, zz.txt, image zz: there is no image 'zz'"]),
    "not UTF-8": ({"said/a1.txt": b"\xff .5 .5 .5 .5\n"}, {}, ["a1.txt", "utf-8"]),
    "columns": ({"said/a1.txt": ""}, {"columns": ["class", "cx"]}, ["said: `columns` must name class", "got class cx"]),
    "column twice": (
        {"said/a1.txt": "litter .5 .5 .5 .5 .5\n"},
        {"columns": ["class", "cx", "cx", "cy", "w", "h"]},
        ["said: `columns`", "cx cx"],
    ),
    "class twice": (
        {"said/a1.txt": "litter litter .5 .5 .5 .5\n"},
        {"columns": ["class", "class", "cx", "cy", "w", "h"]},
        ["said: `columns`", "class class"],
    ),
    "columns as a map": ({"said/a1.txt": ""}, {"columns": {"cx": "cy"}}, ["said: `columns` of a text folder is a list"]),
    "no names file": ({"said/a1.txt": "0 .5 .5 .5 .5\n"}, {"names": "n.txt"}, ["n.txt: there is no file"]),
    "names not UTF-8": ({"said/a1.txt": "0 .5 .5 .5 .5\n", "n.txt": b"\xff\n"}, {"names": "n.txt"}, ["n.txt", "UTF-8"]),
    "a name for a number": (
        {"said/a1.txt": "x .5 .5 .5 .5\n", "n.txt": "litter\n"},
        {"names": "n.txt"},
        ["said", "class 'x' must be"],
    ),
    "a giant number": (
        {"said/a1.txt": "9" * 5000 + " .5 .5 .5 .5\n", "n.txt": "litter\n"},
        {"names": "n.txt"},
        ["said", "n.txt"],
    ),
    "no sizes": ({"said/a1.txt": "litter .5 .5 .5 .5\n"}, {"sizes": "s.csv"}, ["s.csv: there is no file"]),
    "sizes without columns": (
        {"said/a1.txt": "", "s.csv": "a,b\n1,2\n"},
        {"sizes": "s.csv"},
        ["s.csv", "image_id, width, height"],
    ),
    "size lacking": (
        {"said/a1.txt": "", "s.csv": "image_id,width,height\na1,9,9\n"},
        {"sizes": "s.csv"},
        ["image a2: relative boxes need the image's size"],
    ),
    "size twice": (
        {"said/a1.txt": "", "s.csv": "image_id,width,height\na1,9,9\na1,9,9\na2,9,9\n"},
        {"sizes": "s.csv"},
        ["s.csv, line 3", "a1"],
    ),
    "size a word": (
        {"said/a1.txt": "", "s.csv": "image_id,width,height\na1,nine,9\na2,9,9\n"},
        {"sizes": "s.csv"},
        ["s.csv, line 2", "nine"],
    ),
    "size below 0": (
        {"said/a1.txt": "", "s.csv": "image_id,width,height\na1,-9,9\na2,9,9\n"},
        {"sizes": "s.csv"},
        ["s.csv, line 2", "-9"],
    ),
    "size row too long": (
        {"said/a1.txt": "", "s.csv": "image_id,width,height\na1,9,9,9\na2,9,9\n"},
        {"sizes": "s.csv"},
        ["s.csv, line 2: 4 cells under a header of 3"],
    ),
    "sizes not UTF-8": (
        {"said/a1.txt": "", "s.csv": b"image_id,width,height\n\xff,9,9\n"},
        {"sizes": "s.csv"},
        ["s.csv", "UTF-8"],
    ),
    "sizes with an open quote": (
        {"said/a1.txt": "", "s.csv": 'image_id,width,height\n"a1,9,9\n'},
        {"sizes": "s.csv"},
        ["s.csv, line 2: this is not CSV"],
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_text_folder_that_breaks_a_rule(refuse, case):
    files, options, words = FOLDERS[case]
    message = refuse(files, options=in_form("said", **options))
    for word in words:
        assert word in message


def test_gold_in_a_text_folder_needs_sizes_and_pictures_that_are_some(refuse):
    labels = {"labels/a1.txt": "litter .5 .5 .5 .5\n", "labels/a2.txt": ""}
    assert "labels: relative gold boxes need `sizes`" in refuse(labels, options={"gold": "labels"})
    message = refuse({**labels, "pics/a1.png": b"no picture"}, options={"gold": {"path": "labels", "sizes": "pics"}})
    assert message.startswith("a1.png: cannot read its size")


# -- arguments and output


def test_a_model_that_is_not_there(refuse):
    assert refuse({}, "--models", "zz") == "benchmark.yml: there is no model 'zz'; it has m"


@pytest.mark.parametrize("level", ["0", "-0.5", "1.1", "nan", "inf", "half"])
def test_a_threshold_that_is_none(refuse, level):
    message = refuse({}, "--iou", "0.5", "--iou", level)
    assert "iou" in message
    assert level in message


def test_an_output_that_is_a_file(refuse, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert refuse({}, out=tmp_path / "file").startswith(f"out: cannot write to {tmp_path / 'file'}: ")
    assert refuse({}, out=tmp_path / "file" / "below").startswith("out: cannot write to ")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_output_that_cannot_be_a_path(refuse):
    assert "out" in refuse({}, out="a\0b")


def test_an_output_without_permission(refuse, tmp_path, monkeypatch):
    original = os.mkdir

    def denied(path, *arguments, **options):
        if str(path).startswith(str(tmp_path / "locked")):
            raise PermissionError(13, "Permission denied", path)
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "mkdir", denied)
    message = refuse({}, out=tmp_path / "locked" / "results")
    assert message == f"out: cannot write to {tmp_path / 'locked' / 'results'}: Permission denied"
    assert not (tmp_path / "locked").exists()


def test_an_output_where_a_folder_stands_in_the_way_of_a_file(tmp_path):
    """The last of the files cannot take its place: the ones before it must not have taken theirs."""
    data, out = tmp_path / "data", tmp_path / "out"
    write(data, {**GOOD, "benchmark.yml": yaml.safe_dump(OPTIONS)})
    write(out, {"scores.csv": "earlier\n", "coverage.csv": "earlier\n", "counts.parquet": "earlier", "run.json/mine": "mine"})
    before = contents(out)
    found = CliRunner().invoke(evalkit.cli.main, ["score", "--benchmark", str(data / "benchmark.yml"), "--out", str(out)])
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: out: cannot write to {out}")
    assert contents(out) == before
    assert sorted(path.name for path in out.iterdir()) == ["counts.parquet", "coverage.csv", "run.json", "scores.csv"]


@pytest.mark.parametrize("stage", ["to_parquet", "to_csv"])
def test_a_write_that_fails_midway_leaves_the_earlier_results(tmp_path, monkeypatch, stage):
    data, out = tmp_path / "data", tmp_path / "out"
    write(data, {**GOOD, "benchmark.yml": yaml.safe_dump(OPTIONS)})
    asked = ["score", "--benchmark", str(data / "benchmark.yml"), "--out", str(out)]
    assert CliRunner().invoke(evalkit.cli.main, asked).exit_code == 0
    before = contents(out)
    assert len(before) == 8
    original = getattr(pd.DataFrame, stage)
    calls = []

    def full(table, *arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return original(table, *arguments, **options)

    monkeypatch.setattr(pd.DataFrame, stage, full)
    found = CliRunner().invoke(evalkit.cli.main, [*asked, "--iou", "0.9"])
    assert len(calls) == 2
    assert found.exit_code == 2
    assert found.stderr == f"Error: out: cannot write to {out}: No space left on device\n"
    assert contents(out) == before
    assert sorted(path.name for path in out.iterdir()) == sorted(str(name) for name in before)


# -- as a process of its own


def process(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "evalkit", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("command", "encoding", "image", "words"),
    [
        ("score", "utf-8", '"zz"', "m.jsonl, line 2, image zz: gold has no image"),
        ("check", "ascii", '"Köln"', "m.jsonl, line 2, image "),
        ("check", "utf-8", r'"\ud800"', "m.jsonl, line 2"),
    ],
)
def test_a_process_ends_with_status_2_and_no_traceback(tmp_path, command, encoding, image, words):
    """On terminals, too, that cannot show every character."""
    data, out = tmp_path / "data", tmp_path / "out"
    write(data, {**GOOD, "m.jsonl": SAID.replace('"a2"', image), "benchmark.yml": yaml.safe_dump(OPTIONS)})
    more = ["--out", out] if command == "score" else []
    found = process(command, "--benchmark", data / "benchmark.yml", *more, PYTHONIOENCODING=encoding)
    assert found.returncode == 2
    assert words in found.stderr + found.stdout
    assert "Traceback" not in found.stderr
    assert not out.exists()


def test_giant_predicted_boxes_are_scored_without_a_warning(tmp_path):
    """Finite numbers whose areas are not: no overlap with anything, no crash, no note on the terminal."""
    said = SAID.replace("[10, 10, 50, 50]", "[-1e308, -1e308, 1e308, 1e308]")
    write(tmp_path / "data", {**GOOD, "m.jsonl": said, "benchmark.yml": yaml.safe_dump(OPTIONS)})
    found = process("score", "--benchmark", tmp_path / "data" / "benchmark.yml", "--out", tmp_path / "out", "--quiet")
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    counts = pd.read_parquet(tmp_path / "out" / "counts.parquet").query("iou == 0.5")
    assert counts[["tp", "fp", "fn"]].to_numpy().tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("numbers", [DIGITS, "9" * 5000, "1e400", "NaN", "-Infinity"])
def test_a_predicted_number_beyond_all_bounds_is_a_response_that_is_invalid(tmp_path, numbers):
    said = SAID.replace("[10, 10, 50, 50]", f"[{numbers}, 10, 50, 50]")
    write(tmp_path / "data", {**GOOD, "m.jsonl": said, "benchmark.yml": yaml.safe_dump(OPTIONS)})
    benchmark = evalkit.read_benchmark(tmp_path / "data" / "benchmark.yml")
    assert benchmark.responses["state"].tolist() == ["invalid", "valid"]
    assert np.isfinite(benchmark.gold["x_min"]).all()

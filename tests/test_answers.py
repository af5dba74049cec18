"""Files of models' own answers: from text in a file to states, reasons, repairs and scores."""

import gzip
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from small import counts, coverage, rows, the_row, write_classes, write_lines, write_yml

import evalkit
from evalkit import DataError, EvalkitError
from evalkit.cli import main
from evalkit.formats import FORMATS
from evalkit.formats.options import BenchmarkOptions, FileOptions
from evalkit.responses import REASONS, REPAIRS

SIZE = (1000, 500)
CAT = '[{"bbox_2d":[100,100,200,200],"label":"cat"}]'
CAT_BOX = [100, 50, 200, 100, "cat"]  # in an image of SIZE
GOLD = {"a": [CAT_BOX], "b": [], "c": []}
SAID = {"a": CAT, "b": "[]", "c": "garbage"}
QWEN = "key=bbox_2d,order=xyxy,scale=1000"


def as_line(image_id, said):
    """A row of a text, of None, or of other fields."""
    return json.dumps({"image_id": image_id, **(said if isinstance(said, dict) else {"response": said})}) + "\n"


@pytest.fixture
def write(tmp_path):
    """A function that writes gold and the answers of the model ``m`` (a mapping, or bytes), and returns ``benchmark.yml``."""

    def written(said=SAID, gold=GOLD, *, reader="qwen-boxes", size=SIZE, file="said.jsonl", others=None, **options):
        if not isinstance(said, bytes):
            said = "".join(as_line(*pair) for pair in said.items()).encode()
        (tmp_path / file).write_bytes(said)
        lines = {}
        for image_id, boxes in gold.items():
            lines[image_id] = {"boxes": [{"box": box[:4], "class": box[4]} for box in boxes]}
            lines[image_id] |= dict(zip(("width", "height"), size or (), strict=False))
        options |= {"reader": reader} if reader is not None else {}
        return write_yml(
            tmp_path,
            name="small",
            classes=write_classes(tmp_path / "classes.csv", ["a", "cat", "dog"]),
            gold=write_lines(tmp_path / "gold.jsonl", lines),
            predictions={"m": {"path": file, **options}, **(others or {})},
        )

    return written


@pytest.fixture
def read(write):
    """As ``write``, and reads it."""
    return lambda *args, **options: evalkit.read_benchmark(write(*args, **options))


def run(*arguments):
    found = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def said_of(benchmark):
    """State, reason and repairs by image."""
    table = benchmark.responses
    return dict(zip(table["image_id"], zip(table["state"], table["reason"], table["repairs"], strict=True), strict=True))


def findings(read, *args, **options):
    with pytest.raises(DataError) as error:
        read(*args, **options)
    return list(map(str, error.value.findings))


def table_of(text, title):
    """The rows of a table that is printed under a title, as lists of words."""
    block = text.split(f"\n{title}\n")[1].split("\n\n")[0]
    return [line.split() for line in block.splitlines()]


# -- the shared cases -------------------------------------------------------------------------------------------------


def test_par_06_a_refusal_is_no_correct_negative(case, read):
    gold = {one["image"]: one["boxes"] for one in case.given["gold"]}
    benchmark = read(case.given["responses"], gold)
    assert said_of(benchmark) == {"n1": ("invalid", "no_block", ""), "n2": ("valid", "", "")}
    found = coverage(benchmark)
    assert found["negative_images"] == case.expected["neg_images_valid"]
    assert found["negative_with_boxes"] == case.expected["neg_images_fp"]
    assert found["invalid"] == case.expected["invalid"]


def test_par_18_values_above_the_scale_are_not_read_as_pixels(case, read):
    gold = {"i1": case.given["gold"], "i2": []}
    benchmark = read({"i1": case.given["response"], "i2": "[]"}, gold, size=case.given["image_wh"])
    assert said_of(benchmark)["i1"] == (case.expected["status"], "out_of_scale", "")
    assert counts(benchmark)["tp"] == case.expected["tp"]
    [(source, code, _, text)] = benchmark.notes
    assert (source, code) == ("m", "convention_warning")
    assert "1 of 1 answers with boxes exceed the declared scale of 1000" in text


def test_par_24_gemini_is_y_first(case, read):
    gold, said = {"i1": case.given["gold"]}, {"i1": case.given["response"]}
    expected = {name: case.expected[name] for name in ("tp", "fp", "fn")}
    assert counts(read(said, gold, reader="gemini-boxes", size=case.given["image_wh"])) == expected
    swapped = read(said, gold, reader="key=box_2d,order=xyxy,scale=1000", size=case.given["image_wh"])
    assert counts(swapped) == {"tp": 0, "fp": 1, "fn": 1}  # IoU 1 / 7


def test_geo_03_scaled_values_are_not_rounded(case, read):
    *box, label = case.given["pred_1000"][0]
    said = {"i1": json.dumps([{"bbox_2d": box, "label": label}])}
    benchmark = read(said, {"i1": case.given["gold"]}, size=case.given["image_wh"])
    assert benchmark.predictions[["x_max", "y_max"]].to_numpy().tolist() == [[30 * 427 / 1000, 100 * 640 / 1000]]
    assert counts(benchmark, iou=case.given["thr"]) == {name: case.expected[name] for name in ("tp", "fp", "fn")}


def test_agg_10_four_facts_stay_four(case, read):
    benchmark = read(case.given["rows"], {f"i{at}": [] for at in range(1, 6)})
    found = coverage(benchmark)
    assert {name: found[name] for name in case.expected} == case.expected
    assert found["valid"] + found["invalid"] + found["missing"] == found["images"] == 5
    assert (found["negative_with_boxes"], found["negative_images"]) == (0, 1)
    assert said_of(benchmark) == {
        "i1": ("valid", "", ""),
        "i2": ("invalid", "no_block", ""),
        "i3": ("invalid", "failed", ""),
        "i4": ("missing", "", ""),
        "i5": ("missing", "", ""),
    }


# -- reading ----------------------------------------------------------------------------------------------------------


def test_answers_score_as_the_structured_file_that_says_the_same(read):
    said = {"a": CAT, "b": '[{"bbox_2d":[0,0,10,10],"label":"unicorn"},{"bbox_2d":[0,0,10,20],"label":" dog "}]', "c": "?"}
    boxes = [{"box": [0, 0, 10, 5], "class": "unicorn"}, {"box": [0, 0, 10, 10], "class": "dog"}]
    same = {"a": {"boxes": [{"box": CAT_BOX[:4], "class": "cat"}]}, "b": {"boxes": boxes}, "c": {"status": "invalid"}}
    ours, theirs = read(said), read(same, reader=None)
    tables = [evalkit.scores(one, evalkit.count(one)) for one in (ours, theirs)]
    assert tables[0].equals(tables[1])
    assert ours.outside == theirs.outside == ["unicorn"]
    assert ours.predictions["score"].isna().all()
    assert theirs.responses["repairs"].tolist() == ["", "", ""]


def test_repairs_and_reasons_are_those_of_the_reader(read):
    said = {"a": CAT[:-1] + ",]", "b": CAT[1:-1].replace('"', "'"), "c": CAT.replace("200,200", "50,200")}
    assert said_of(read(said)) == {
        "a": ("valid", "", "trailing_comma"),
        "b": ("valid", "", "python_literal, single_object"),
        "c": ("invalid", "inverted", ""),
    }


@pytest.mark.parametrize(
    ("fault", "reason"), [("[200,100,100,200]", "inverted"), ("[0,0,NaN,1]", "not_finite"), ("[0,0,1e999,1]", "not_finite")]
)
def test_the_reason_is_the_same_for_text_and_for_a_structured_file(read, fault, reason):
    text = f'[{{"bbox_2d":{fault},"label":"cat"}}]'
    structured = f'{{"image_id":"a","boxes":[{{"box":{fault},"class":"cat"}}]}}\n'.encode()
    for benchmark in (read({"a": text, "b": "[]"}, reader="pixel-boxes"), read(structured, reader=None)):
        assert said_of(benchmark)["a"] == ("invalid", reason, "")
        assert reason in REASONS


def test_order_scale_and_pixels_are_as_declared(read):
    texts = {
        "pixel-boxes": '[{"bbox_2d":[100,50,200,100],"label":"cat"}]',
        "key=where,order=yxyx,scale=1": '[{"where":[0.1,0.1,0.2,0.2],"label":"cat"}]',
        "key=where,order=yxyx,scale=100": '[{"where":[10,10,20,20],"label":"cat"}]',
        " gemini-boxes ": '[{"box_2d":[100,100,200,200],"label":"cat"}]',
    }
    for reader, text in texts.items():
        assert counts(read({"a": text}, reader=reader)) == {"tp": 1, "fp": 0, "fn": 0}


def test_ids_are_compared_as_those_of_any_file(read):
    assert said_of(read({"12": "[]"}, {"12": [], "e\u0301": []}))["12"] == ("valid", "", "")
    assert said_of(read(b'{"image_id": 12, "response": "[]"}', {"12": []}))["12"] == ("valid", "", "")
    assert said_of(read({"e\u0301": "[]"}, {"\u00e9": []}))["\u00e9"] == ("valid", "", "")


def test_an_image_without_a_row_is_as_absent_says(read):
    assert coverage(read({"a": CAT}))[["valid", "missing"]].tolist() == [1, 2]
    assert coverage(read({"a": CAT}, absent="empty"))[["valid", "missing"]].tolist() == [3, 0]


@pytest.mark.parametrize("file", ["said.jsonl", "said.jsonl.gz"])
@pytest.mark.parametrize(("mark", "end"), [(b"", b"\n"), (b"\xef\xbb\xbf", b"\r\n")])
def test_marks_line_ends_and_gzip_make_no_difference(read, file, mark, end):
    data = mark + "".join(as_line(*pair) for pair in SAID.items()).encode().replace(b"\n", end)
    found = said_of(read(gzip.compress(data) if file.endswith("gz") else data, file=file))
    assert found == {"a": ("valid", "", ""), "b": ("valid", "", ""), "c": ("invalid", "no_block", "")}


def test_a_mark_at_the_start_of_an_answer_is_no_part_of_it(read):
    assert said_of(read({"a": "\ufeff" + CAT}))["a"] == ("valid", "", "")


def test_html_and_control_characters_in_answers_are_plain_text(read):
    label = "<script>alert(1)</script>\x1b[31m"
    said = {"a": json.dumps([{"bbox_2d": [1, 2, 3, 4], "label": label}]), "b": "<b>[]</b>", "c": "&#91;&#93;"}
    benchmark = read(said)
    assert benchmark.outside == [label]
    assert [one[:2] for one in said_of(benchmark).values()] == [
        ("valid", ""),
        ("invalid", "empty_in_prose"),
        ("invalid", "no_block"),
    ]


def test_half_a_character_in_an_answer_harms_nothing(read):
    line = b'{"image_id": "a", "response": "[{\\"bbox_2d\\":[1,2,3,4],\\"label\\":\\"\\ud800\\"}]"}\n'
    assert said_of(read(line + b'{"image_id": "b", "response": "[]"}\n'))["a"] == ("invalid", "bad_label", "")


# -- sizes ------------------------------------------------------------------------------------------------------------


def test_a_relative_scale_needs_the_size_of_each_image(read):
    said = {"a": CAT, "b": "garbage", "c": {"error": "timeout"}}
    for size in (None, SIZE[:1]):
        found = findings(read, said, size=size)
        assert [line.split(":")[0] for line in found] == ["said.jsonl, line 1, image a", "said.jsonl, line 2, image b"]
        assert all(
            line.endswith("`width` and `height`, which neither gold nor a picture gives [image.no_size]") for line in found
        )


def test_pixels_need_no_size(read):
    assert counts(read({"a": CAT}, {"a": [[100, 100, 200, 200, "cat"]]}, reader="pixel-boxes", size=None))["tp"] == 1


# -- bad input --------------------------------------------------------------------------------------------------------


def test_a_row_has_either_a_response_or_an_error(read):
    said = {"a": {}, "b": {"response": "[]", "error": "timeout"}, "c": {"response": None, "error": "timeout"}}
    found = findings(read, said)
    assert [line.split(":")[0] for line in found] == [f"said.jsonl, line {at + 1}, image {'abc'[at]}" for at in range(3)]
    assert all("either `response` or `error`" in line for line in found)


def test_values_of_a_wrong_type(read):
    found = findings(read, {"a": {"response": 5}, "b": {"error": None}, "c": {"response": "[]", "model": "m"}})
    assert found == [
        "said.jsonl, line 1, image a: Expected `str | null`, got `int` - at `$.response` [json.type]",
        "said.jsonl, line 2, image b: Expected `str`, got `null` - at `$.error` [json.type]",
        "said.jsonl, line 3, image c: Object contains unknown field `model` [json.type]",
    ]


@pytest.mark.parametrize(
    "data", [b'{"image_id": "a", "response": "\xff"}\n', b'{"image_id": "a", "response": "[]"\n', b"[[[\n"]
)
def test_lines_that_are_no_json(read, data):
    [found] = findings(read, b'{"image_id": "b", "response": "[]"}\n' + data)
    assert found.startswith("said.jsonl, line 2: this is not JSON: ")


DEEP = 100_000


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"image_id": "a", "response": "\xc3\x28"}\n', "this is not JSON: "),
        (b"\xff\xfe{\x00\n", "this is not JSON: "),
        (b'{"image_id": ' + b"9" * 5000 + b', "response": "[]"}\n', "gold has no image '1000"),
        (b'{"image_id": 1e999, "response": "[]"}\n', "got `float` - at `$.image_id`"),
        (b'{"image_id": "a", "response": ' + b"9" * 5000 + b"}\n", "Expected `str | null`"),
        (b'{"image_id": "a", "response": ' + b"[" * DEEP + b"]" * DEEP + b"}\n", "this is not JSON: "),
        (b'{"image_id": "a", "response": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}\n", "this is not JSON: "),
        (b'{"image_id": "a", "boxes": [[[[1]]]]}\n', "wrong reader for the file"),
        (b'[{"image_id": "a", "response": "[]"}]\n', "Expected `object`, got `array`"),
    ],
)
def test_bad_lines_end_with_one_clear_message(write, data, told):
    path = write(b'{"image_id": "b", "response": "[]"}\n' + data)
    out = path.parent.parent / "out"
    found = run("score", "--benchmark", path, "--out", out)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("Error: said.jsonl, line 2")
    assert told in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert not out.exists()


def test_answers_without_end_are_invalid_and_nothing_worse(read):
    """5 MB of nested brackets or of digits, in a file: each reason is told, the rest is scored."""
    size = 5_000_000
    said = {
        "a": "[" * size,
        "b": "[" * (size // 2) + "]" * (size // 2),
        "c": CAT.replace("200]", "9" * size + "]"),
        "d": '{"a":' * (size // 5),
        "e": "9" * size,
        "f": CAT,
    }
    benchmark = read(said, {name: [CAT_BOX] for name in said})
    assert [one[:2] for one in said_of(benchmark).values()] == [
        ("invalid", "truncated"),
        ("invalid", "too_deep"),
        ("invalid", "not_finite"),
        ("invalid", "truncated"),
        ("invalid", "no_block"),
        ("valid", ""),
    ]
    assert counts(benchmark) == {"tp": 1, "fp": 0, "fn": 0}


@pytest.mark.parametrize("row", [{"boxes": []}, {"status": "invalid"}, {"response": "[]", "boxes": []}])
def test_a_structured_file_under_a_reader_is_the_wrong_reader(read, row):
    [found] = findings(read, {"a": "[]", "b": row, "c": row})
    assert re.match(r"said\.jsonl, line 2, image b: wrong reader for the file: `(boxes|status)` is of a structured file", found)
    assert "(2 such lines)" in found


@pytest.mark.parametrize("row", [{"response": "[]"}, {"response": None}, {"response": "[]", "boxes": []}])
def test_answers_without_a_reader_are_the_wrong_reader(read, row):
    [found] = findings(read, {"a": {"boxes": []}, "b": row}, reader=None)
    assert found.startswith(
        "said.jsonl, line 2, image b: wrong reader for the file: `response` is a model's own text; say with `reader`"
    )


@pytest.mark.parametrize("reader", ["qwen", "", "key=bbox_2d", "key=bbox_2d,order=xyxy,scale=7"])
def test_an_unknown_reader_is_told_with_its_model(write, reader):
    path = write(reader=reader)
    for command in (["check"], ["score", "--out", path.parent.parent / "out"]):
        found = run(*command, "--benchmark", path)
        assert found.exit_code == 2
        assert found.stderr.startswith("Error: benchmark.yml, predictions, m: reader: ")
    options = BenchmarkOptions(gold=FileOptions(path="gold.jsonl"), classes="classes.csv", predictions={})
    options.predictions["m"] = FileOptions(path="said.jsonl", reader=reader)
    with pytest.raises(EvalkitError, match=r"^reader: "):
        evalkit.read_benchmark(options, folder=path.parent)


def test_a_reader_is_for_predictions_as_json_lines_alone(write, tmp_path):
    assert [name for name, form in FORMATS.items() if "reader" in form.options] == ["jsonl"]
    said = json.loads(write().read_text())
    (tmp_path / "said.csv").write_text("image_id,class,x_min,y_min,x_max,y_max\na,,,,,\n")
    wrong = {
        "`reader` is no option of the format csv": {"predictions": {"m": {"path": "said.csv", "reader": "qwen-boxes"}}},
        "`reader` is no option of gold in the format jsonl": {"gold": {"path": "gold.jsonl", "reader": "qwen-boxes"}},
        "`bad_box` is no option of a file with `reader`": {
            "predictions": {"m": {"path": "said.jsonl", "reader": "qwen-boxes", "bad_box": "error"}}
        },
    }
    for text, change in wrong.items():
        with pytest.raises(EvalkitError, match=text):
            evalkit.read_benchmark(write_yml(tmp_path, **{**said, **change}))


def test_ids_that_gold_lacks_come_first(read):
    [found] = findings(read, {"z": "garbage"})
    assert found.startswith("said.jsonl, line 1, image z: gold has no image 'z'")
    assert found.endswith("[image.unknown]")
    [found] = findings(read, {"z": CAT}, size=None)
    assert found.endswith("[image.unknown]")
    twice = as_line("c", "garbage").encode() * 2
    [found] = findings(read, twice)
    assert found.endswith("[image.twice]")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"a": "garbage", "b": "", "c": "nothing"}, r"none of 3 responses is valid .*\(no_block 2, blank 1\)"),
        ({"a": {"error": "timeout"}, "b": None}, r"none of 1 responses is valid .*\(failed 1\)"),
        ({"a": None}, "none of 0 responses is valid"),
        ({"a": CAT.replace("bbox", "box")}, r"none of 1 .*\(other_key 1\).*1 of 1 answers: an object has the key of another"),
    ],
)
def test_a_run_without_any_valid_response_is_an_error(write, said, told):
    path = write(said)
    with pytest.raises(DataError, match=rf"^said\.jsonl: {told}"):
        evalkit.read_benchmark(path)
    found = run("check", "--benchmark", path)
    assert found.exit_code == 2
    assert re.match(rf"said\.jsonl: {told}", found.stdout)
    found = run("score", "--benchmark", path, "--out", path.parent.parent / "out")
    assert found.exit_code == 2
    assert re.match(rf"Error: said\.jsonl: {told}", found.stderr)


# -- the command line -------------------------------------------------------------------------------------------------


def test_check_prints_states_reasons_and_repairs(write, tmp_path):
    others = {"box": write_lines(tmp_path / "box.jsonl", {"a": {"error": "5:07 timeout"}, "b": [[5, 0, 1, 1, "cat"]]})}
    found = run("check", "--benchmark", write({"a": CAT[1:-1], "b": CAT[:-1] + ",]", "c": "garbage"}, others=others))
    assert found.exit_code == 0, found.stderr
    assert found.stderr == ""
    assert table_of(found.stdout, "Answers:") == [
        ["model", "state", "reason", "answers"],
        ["m", "valid", "–", "2"],
        ["m", "invalid", "no_block", "1"],
        ["box", "invalid", "failed", "1"],
        ["box", "invalid", "inverted", "1"],
        ["box", "missing", "–", "1"],
    ]
    repairs = table_of(found.stdout, "Repairs:")
    assert repairs == [["model", "repair", "answers"], ["m", "single_object", "1"], ["m", "trailing_comma", "1"]]
    assert {row[1] for row in repairs[1:]} <= REPAIRS.keys()


def test_check_counts_an_answer_under_each_of_its_repairs(write):
    found = run("check", "--benchmark", write({"a": CAT[1:-1].replace('"', "'"), "b": CAT[1:-1]}))
    assert table_of(found.stdout, "Repairs:")[1:] == [["m", "python_literal", "1"], ["m", "single_object", "2"]]


def test_check_says_that_there_are_no_repairs(write):
    assert "\nRepairs: none\n" in run("check", "--benchmark", write()).stdout
    structured = run("check", "--benchmark", write({"a": {"boxes": []}}, reader=None)).stdout
    assert "Answers:" not in structured
    assert "Repairs:" not in structured


def test_the_states_of_a_run_add_up_to_its_answers(write):
    said = {str(at): text for at, text in enumerate([CAT, "[]", "?", "", None, {"error": "e"}, CAT[:-1], "none", "null"])}
    path = write(said, {str(at): [] for at in range(12)})
    found = coverage(evalkit.read_benchmark(path))
    assert found[["valid", "invalid", "missing"]].tolist() == [4, 4, 4]
    printed = table_of(run("check", "--benchmark", path).stdout, "Answers:")
    assert sum(int(row[-1]) for row in printed[1:]) == found["images"] == 12


def test_warnings_are_loud_and_kept(write, tmp_path):
    path = write({"a": '[{"bbox_2d":[0.1,0.1,0.2,0.2],"label":"cat"}]', "b": "[]"})
    text = "the coordinate convention is probably wrong: 1 of 1 boxes have no value above 1; the scale is declared as 1000"
    for command in (["check"], ["check", "--quiet"], ["score", "--no-intervals", "--out", tmp_path.parent / "out"]):
        found = run(*command, "--benchmark", path)
        assert (found.exit_code, found.stderr) == (0, f"warning: m: {text}\n")
    note = the_row(evalkit.data_notes(evalkit.read_benchmark(path)), code="convention_warning")
    assert (note["source"], note["count"], note["examples"]) == ("m", 1, text)
    assert rows(evalkit.data_notes(evalkit.read_benchmark(write())), code="convention_warning").empty


def parts(path, *readers):
    folder = path.parent
    named = [option for reader in readers for option in ("--reader", reader)]
    files = [
        "--classes",
        folder / "classes.csv",
        "--gold",
        folder / "gold.jsonl",
        "--predictions",
        f"m={folder / 'said.jsonl'}",
    ]
    return [*files, *named]


@pytest.mark.parametrize("reader", ["qwen-boxes", QWEN])
def test_a_reader_can_be_named_with_the_parts(write, reader):
    path = write()
    found = run("check", *parts(path, f"m={reader}"))
    assert found.exit_code == 0, found.stderr
    assert found.stdout.partition(":")[2] == run("check", "--benchmark", path).stdout.partition(":")[2]


@pytest.mark.parametrize(
    ("readers", "told"),
    [
        (["m"], "--reader takes NAME=READER, not 'm'"),
        (["=qwen-boxes"], "--reader takes NAME=READER"),
        (["n=qwen-boxes"], "--reader names 'n', which has no --predictions"),
        (["m=qwen-boxes", "m=qwen-boxes"], "--reader names a model twice"),
        (["m=qwen"], "command line, predictions, m: reader: unknown preset 'qwen'"),
        ([], "wrong reader for the file"),
    ],
)
def test_readers_that_are_named_wrongly(write, readers, told):
    found = run("check", *parts(write(), *readers))
    assert found.exit_code == 2
    assert told in found.output


def test_a_reader_does_not_go_with_a_benchmark_file(write):
    found = run("check", "--benchmark", write(), "--reader", "m=qwen-boxes")
    assert found.exit_code == 2
    assert "give either --benchmark or its parts" in found.stderr


def test_the_run_record_says_the_readers(write, tmp_path):
    others = {"box": write_lines(tmp_path / "box.jsonl", {"a": [CAT_BOX]})}
    out = tmp_path.parent / f"{tmp_path.name}-out"
    assert run("score", "--no-intervals", "--benchmark", write(others=others), "--out", out).exit_code == 0
    assert json.loads((out / "run.json").read_text())["readers"] == {"m": QWEN}
    assert run("score", "--no-intervals", "--benchmark", write({"a": {"boxes": []}}, reader=None), "--out", out).exit_code == 0
    assert "readers" not in json.loads((out / "run.json").read_text())


def test_no_answers_are_counted_where_nothing_is_predicted(write, tmp_path):
    path = write_yml(tmp_path, **{**json.loads(write().read_text()), "predictions": {}})
    benchmark = evalkit.read_benchmark(path)
    assert list(benchmark.responses) == ["model", "image_id", "state", "reason", "repairs"]
    assert np.size(benchmark.notes) == 0
    assert "Answers:" not in run("check", "--benchmark", path).stdout

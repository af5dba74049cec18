"""Reading a model's own text: the shared cases by id, every reason and every repair, and no text that does harm."""

import itertools
import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import counts, coverage

from evalkit import EvalkitError, responses
from evalkit.responses import FAILED, PRESETS, REASONS, REPAIRS, Reader, Response, check_run, read_boxes, reader, warnings

QWEN, GEMINI, PIXELS = (reader(name) for name in ("qwen-boxes", "gemini-boxes", "pixel-boxes"))
CAT = '{"bbox_2d":[100,100,200,200],"label":"cat"}'
DOG = '{"bbox_2d":[1,2,30,40],"label":"dog"}'
TICKS = "```"


def read(text, convention=QWEN, *, size=(1000, 1000)):
    return read_boxes(text, convention, width=size[0], height=size[1])


def fenced(block, language="json"):
    return f"{TICKS}{language}\n{block}\n{TICKS}"


def one(box, label='"cat"', key="bbox_2d"):
    """A list of one object, from the JSON text of its values."""
    return f'[{{"{key}":{box},"label":{label}}}]'


def is_valid_cat(response, *repairs):
    return response[:5] == ("valid", "", ("cat",), ((100, 100, 200, 200),), repairs)


def is_empty(response):
    return response == Response("valid")


# -- the shared cases -------------------------------------------------------------------------------------------------


@pytest.fixture
def scored(make_benchmark):
    """A function: gold boxes and answers, both by image, to a benchmark of what was read."""

    def make(gold, answers):
        said = {
            image: {"status": answer.state, "reason": answer.reason, "boxes": rows(answer)} for image, answer in answers.items()
        }
        return make_benchmark(gold, {"model": said}, classes=["cat", "a"])

    def rows(answer):
        return [{"class": label, "box": box} for label, box in zip(answer.labels, answer.boxes, strict=True)]

    return make


def counts_of(expected):
    return {name: expected[name] for name in ("tp", "fp", "fn")}


def test_par_01_prose_around_one_block(case):
    response = read(case.given["response"], size=case.given["image_wh"])
    assert is_valid_cat(response)
    assert len(response.boxes) == case.expected["n_boxes"]


def test_par_03_thoughts_are_not_the_answer(case):
    for text in case.given["responses"]:
        response = read(text)
        assert is_valid_cat(response)
        assert list(response.labels) == case.expected["labels"]


def test_par_04_a_cut_off_block_is_invalid(case):
    response = read(case.given["response"])
    assert (response.state, response.reason) == (case.expected["status"], case.expected["reason"])
    assert response.boxes == ()


def test_par_06_a_refusal_is_no_correct_negative(case, scored):
    gold = {one["image"]: one["boxes"] for one in case.given["gold"]}
    table = coverage(scored(gold, {image: read(text) for image, text in case.given["responses"].items()}))
    assert table["negative_images"] == case.expected["neg_images_valid"]
    assert table["negative_with_boxes"] == case.expected["neg_images_fp"]
    assert table["invalid"] == case.expected["invalid"]


def test_par_07_explicit_empty_forms_are_a_closed_list(case):
    read_as = [read(text) for text in case.given["responses"]]
    for number, expected in case.expected.items():
        assert is_empty(read_as[int(number)]) if expected == "ok_empty" else read_as[int(number)].state == "invalid"
    # What the case leaves to a policy: the one word "None" is in our list, the sentence and "no" are not.
    assert is_empty(read_as[2])
    assert [read_as[number].reason for number in (3, 4, 5, 6)] == ["no_block", "null_box", "placeholder", "no_block"]


def test_par_09_an_extra_level_of_lists_is_invalid(case):
    # The case would also allow flattening; it is no repair of ours.
    assert [read(text).reason for text in case.given["responses"]] == ["bad_item", "bad_box", "bad_item"]


def test_par_10_single_quotes_are_repaired_and_no_more(case):
    first, *others = (read(text) for text in case.given["responses"])
    assert is_valid_cat(first, "python_literal")
    assert [response.reason for response in others] == ["not_json", "not_json"]


def test_par_12_a_trailing_comma_is_a_counted_repair(case):
    assert is_valid_cat(read(case.given["response"]), "trailing_comma")


def test_par_13_one_broken_object_makes_the_answer_invalid(case):
    response = read(case.given["response"])
    assert (response.state, response.reason, response.boxes) == (case.expected["status"], "bad_box", ())


def test_par_15_booleans_are_no_numbers(case):
    response = read(case.given["response"])
    assert (response.state, response.reason) == (case.expected["status"], "boolean")


def test_par_16_numbers_are_finite(case):
    for text in case.given["responses"]:
        response = read(text)
        assert (response.state, response.reason) == (case.expected["status"], "not_finite")


def test_par_18_values_above_the_scale_are_not_read_as_pixels(case, scored):
    assert case.given["declared"] == "0-1000"
    response = read(case.given["response"], size=case.given["image_wh"])
    assert (response.state, response.reason) == (case.expected["status"], "out_of_scale")
    assert response.exceeds_scale
    assert counts(scored({"i1": case.given["gold"], "i2": []}, {"i1": response, "i2": read("[]")}))["tp"] == case.expected["tp"]


def test_par_19_a_giant_integer(case):
    text = re.sub('"<digit 9 repeated 5000 times, unquoted>"', "9" * 5000, case.given["response"])
    assert "9" * 5000 in text
    response = read(text)
    assert (response.state, response.reason) == (case.expected["status"], "not_finite")


def test_par_21_fractions_are_scored_as_declared_with_a_warning(case):
    response = read(case.given["response"], size=case.given["image_wh"])
    assert response.boxes == ((0.28 * 640 / 1000, 0.5 * 480 / 1000, 0.52 * 640 / 1000, 0.7 * 480 / 1000),)
    assert bool(warnings([response], QWEN)) == case.expected["warn"]


def test_par_22_no_scale_is_guessed_for_one_value(case):
    x, y = json.loads(case.given["response"])[0]["point_2d"]  # the case has a point: here a corner of a box
    corner = read(one(f"[{x},{y},500,500]"), size=(1, 1)).boxes[0][:2]
    assert corner == pytest.approx((case.expected["x_norm"], case.expected["y_norm"]), rel=1e-15)


def test_par_24_gemini_is_y_first(case, scored):
    response = read(case.given["response"], GEMINI, size=case.given["image_wh"])
    assert counts(scored({"i1": case.given["gold"]}, {"i1": response})) == counts_of(case.expected)
    swapped = read(case.given["response"], reader("key=box_2d,order=xyxy,scale=1000"), size=case.given["image_wh"])
    assert counts(scored({"i1": case.given["gold"]}, {"i1": swapped})) == {"tp": 0, "fp": 1, "fn": 1}  # IoU 1 / 7


def test_par_25_a_duplicate_key(case):
    response = read(case.given["response"])
    assert (response.state, response.reason) == (case.expected["status"], "duplicate_key")


def test_par_27_objects_without_a_list(case):
    for text in case.given["responses"]:
        response = read(text)
        assert (response.state, response.reason) == (case.expected["status"], "objects_without_list")


def test_par_28_blocks_that_differ(case):
    response = read(case.given["response"])
    assert {"status": response.state} in case.expected["one_of"]
    assert response.reason == "several_blocks"


def test_geo_03_scaled_values_are_not_rounded(case, scored):
    *box, label = case.given["pred_1000"][0]
    response = read(one(json.dumps(box), json.dumps(label)), size=case.given["image_wh"])
    assert response.boxes == ((0, 0, 30 * 427 / 1000, 100 * 640 / 1000),)
    assert counts(scored({"i1": case.given["gold"]}, {"i1": response})) == counts_of(case.expected)


def test_geo_09_the_size_that_is_given_counts(case, scored):
    *box, label = case.given["pred_1000"][0]
    displayed = case.given["stored_wh"][::-1]  # orientation 6 is a quarter turn
    response = read(one(json.dumps(box), json.dumps(label)), size=displayed)
    gold = {"i1": case.given["gold_in_displayed_frame"]}
    assert counts(scored(gold, {"i1": response})) == counts_of(case.expected)


def test_every_case_of_the_area_has_a_test(cases):
    tested = {f"PAR-{found[1]}" for name in globals() if (found := re.match(r"test_par_(\d\d)_", name))}
    assert tested == {identity for identity, case in cases.items() if case["area"] == "parsing"}


# -- the convention ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("qwen-boxes", "key=bbox_2d,order=xyxy,scale=1000"),
        ("gemini-boxes", "key=box_2d,order=yxyx,scale=1000"),
        ("pixel-boxes", "key=bbox_2d,order=xyxy,scale=pixels"),
    ],
)
def test_a_preset_is_a_name_for_its_parts(name, parts):
    assert (
        reader(name) == reader(parts) == reader(" scale = {2}, key = {0}, order = {1} ".format(*re.findall("=(\\w+)", parts)))
    )
    assert str(reader(name)) == parts


def test_every_preset_is_tested_and_reads_its_own_parts():
    assert {name for name, preset in PRESETS.items() if preset.kind == "boxes"} == {"qwen-boxes", "gemini-boxes", "pixel-boxes"}
    assert all(reader(str(preset), kind=preset.kind) == preset for preset in PRESETS.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["unknown preset ''", "qwen-boxes", "gemini-boxes", "pixel-boxes", "key=...,order=...,scale=..."]),
        ("qwen", ["unknown preset 'qwen'", "qwen-boxes"]),
        ("key=a,order=xyxy,scale=1000,size=3", ["unknown part 'size'", "key, order, scale"]),
        ("key=a,order=xyxy,", ["unknown part ''"]),
        ("key=a,order=xyxy", ["key, order and scale must each be given once"]),
        ("key=a,key=b,order=xyxy,scale=1", ["key, order and scale must each be given once"]),
        ("key=a,order=xywh,scale=1000", ["order must be one of xyxy, yxyx", "'xywh'"]),
        ("key=a,order=xyxy,scale=999", ["scale must be one of 1000, 100, 1, pixels", "'999'"]),
        ("key=,order=xyxy,scale=1", ["key must be a plain name other than `label`", "''"]),
        ("key=label,order=xyxy,scale=1", ["key must be a plain name other than `label`", "'label'"]),
        ('key=a"b,order=xyxy,scale=1', ["key must be a plain name"]),
    ],
)
def test_a_convention_that_is_not_understood(text, words):
    with pytest.raises(EvalkitError, match=r"^reader: ") as error:
        reader(text)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize("scale", ["1000", "100", "1", "pixels"])
@pytest.mark.parametrize("order", ["xyxy", "yxyx"])
def test_order_and_scale(order, scale):
    said = [0.125, 0.25, 0.5, 0.75]
    factor = 1 if scale == "pixels" else int(scale)
    response = read(one(json.dumps(said), key="here"), reader(f"key=here,order={order},scale={scale}"), size=(640, 480))
    x_min, y_min, x_max, y_max = said if order == "xyxy" else (0.25, 0.125, 0.75, 0.5)
    width, height = (1, 1) if scale == "pixels" else (640, 480)
    assert response.boxes == (
        (x_min * width / factor, y_min * height / factor, x_max * width / factor, y_max * height / factor),
    )
    assert all(type(value) is float for value in response.boxes[0])


@pytest.mark.parametrize("size", [(None, None), (0, 10), (10, float("nan")), (float("inf"), 10)])
def test_a_scale_needs_the_size_of_the_image_and_pixels_do_not(size):
    with pytest.raises(EvalkitError, match="width, height: the scale 1000 needs the size"):
        read(f"[{CAT}]", size=size)
    assert is_valid_cat(read(f"[{CAT}]", PIXELS, size=size))


def test_pixels_may_lie_outside_the_image():
    assert read(one("[-5,-6.5,2000,40]"), PIXELS, size=(640, 480)).boxes == ((-5, -6.5, 2000, 40),)


def test_both_ends_of_the_scale_are_inside_it():
    assert read(one("[0,0,1000,1000]"), size=(640, 480)).boxes == ((0, 0, 640, 480),)


def test_a_box_without_area_is_read():
    assert read(one("[5,6,5,6]")).boxes == ((5, 6, 5, 6),)


# -- what is valid ----------------------------------------------------------------------------------------------------

WORDS = ["no object", "no-object", "no_object", "none", "null"]


@pytest.mark.parametrize("word", WORDS)
def test_explicit_empty_words(word):
    for text, stop in itertools.product((word, word.upper(), word.title()), ("", ".", "!")):
        assert is_empty(read(text + stop))
        assert is_empty(read(fenced(text + stop)))
        assert is_empty(read(fenced(text + stop, "")))
        assert is_empty(read(f"<think>{CAT}</think>\n {text}{stop} "))
    assert is_empty(read(f"{TICKS}{word}{TICKS}"))


@pytest.mark.parametrize("word", WORDS)
def test_nothing_longer_than_an_empty_word(word):
    for text in (
        f"{word}..",
        f"{word}?",
        f"{word} here",
        f"There is {word}",
        f'"{word}"',
        f"Sure:\n{fenced(word)}",
        f"{TICKS}\n{word}",
    ):
        assert read(text).reason == "no_block", text


@pytest.mark.parametrize("text", ["[]", "[ \n ]", " [] ", "\ufeff[]", "<think>a [</think>[]", f"{TICKS}json\n[]"])
def test_an_empty_list_alone(text):
    assert is_empty(read(text))
    assert is_empty(read(fenced(text.strip("\ufeff`json\n ")))) or "think" in text


def test_an_empty_list_in_a_fence_amid_prose_is_a_block():
    assert is_empty(read(f"I looked closely.\n{fenced('[]')}\nThat is all."))


@pytest.mark.parametrize(
    "text",
    [
        f"[{CAT}]",
        fenced(f"[{CAT}]"),
        fenced(f"[{CAT}]", ""),
        f"{TICKS}json\n[{CAT}]",
        f"Here: [{CAT}]. Bye",
        f"\ufeff [{CAT}]\r\n",
        f"As in [1] and [see note, p. 2]: [{CAT}]",
        f"It is at [100, 100, 200, 200].\n{fenced(f'[{CAT}]')}",
        f"The driver's view [the driver's seat]: [{CAT}]",
        f"{fenced('print(1)', 'python')}\n[{CAT}]",
        f"{fenced(f'[{CAT}]')}\nAgain:\n{fenced(f'[ {CAT} ]', '')}",
        f"<think>a</think> b {TICKS} </think>[{CAT}]",
    ],
)
def test_exactly_one_block_wherever_it_stands(text):
    assert is_valid_cat(read(text))


def test_labels_are_as_written_and_other_keys_are_passed_over():
    label = 'a ]} \\"big\\" [{ \\u00e9 l\'été'
    response = read(f'So: [{{"label":"{label}","bbox_2d":[1,2,3,4],"score":0.5,"parts":[{{"a":null}}]}}]')
    assert response.labels == (json.loads(f'"{label}"'),)
    assert response.boxes == ((1, 2, 3, 4),)


# -- repairs ----------------------------------------------------------------------------------------------------------

REPAIRED = [
    (f"[{CAT},]", ["trailing_comma"]),
    (f"[{CAT[:-1]},}}]", ["trailing_comma"]),
    (one("[100,100,200,200, ]"), ["trailing_comma"]),
    (CAT, ["single_object"]),
    (f"Here: {CAT}.", ["single_object"]),
    (fenced(CAT), ["single_object"]),
    (one('["100","100.0","200",200]'), ["decimal_strings"]),
    ("[{'label':'cat','bbox_2d':[100,100,200,200]}]", ["python_literal"]),
    ("[{'label':\"cat\",'bbox_2d':[100,100,200,200],'hard':False,'of':None}]", ["python_literal"]),
    ("So: {'label':'cat','bbox_2d':['100',100,200,200,],}", None),
    ("{'label':'cat','bbox_2d':['100',100,200,200],}", list(REPAIRS)),
]


@pytest.mark.parametrize(("text", "repairs"), REPAIRED)
def test_repairs_are_named(text, repairs):
    response = read(text)
    if repairs is None:  # two trailing commas are one too many
        assert response == Response("invalid", "not_json")
    else:
        assert is_valid_cat(response, *sorted(repairs))


def test_every_repair_is_tested_alone_and_has_words():
    assert {tuple(repairs) for _, repairs in REPAIRED if repairs and len(repairs) == 1} == {(name,) for name in REPAIRS}
    assert all(re.fullmatch(r"[a-z].*[a-z]", words) for words in REPAIRS.values())


@pytest.mark.parametrize(
    ("label", "is_read_as"),
    [
        (r"driver\'s \"hat\"", 'driver\'s "hat"'),
        ('a "b" ]', 'a "b" ]'),
        (r"tab\t\\ \u00e9", "tab\t\\ é"),
        ("True, None,]", "True, None,]"),
    ],
)
def test_strings_in_single_quotes_keep_their_text(label, is_read_as):
    response = read(f"[{{'bbox_2d':[1,2,3,4],'label':'{label}'}}]")
    assert (response.labels, response.repairs) == ((is_read_as,), ("python_literal",))


# -- reasons ----------------------------------------------------------------------------------------------------------

INVALID = {
    "blank": ["", " \n", "\ufeff", f"<think>{CAT}</think> "],
    "unclosed_think": [f"<think>{CAT}", f"<think>a</think><think>[{CAT}]"],
    "no_block": ["I cannot help with that.", "There are none.", "no", "See [1] and [2].", "cat at [1,2,3,4]", "(1, 2)"],
    "empty_in_prose": ["There are none: []", "[].", "[] [1]"],
    "several_blocks": [
        f"[{CAT}] or [{DOG}]",
        f"[{CAT}]\n[{CAT}]",
        f"[{CAT}]\n{fenced(f'[{CAT}]')}",
        f"{fenced(f'[{CAT}]')}\n[{CAT}]",
        f"{fenced(f'[{CAT}]')}{fenced('[]')}",
        f"[]\nNo: [{CAT}]",
        f"[{{bbox_2d: wrong}}] [{CAT}]",
        f"{CAT} [{DOG}]",
    ],
    "objects_without_list": [
        f"{CAT},{DOG}",
        f"{CAT}\n{CAT}",
        f"{fenced(CAT)}\n{fenced(DOG)}",
        f"{CAT},",
        f"{CAT} ,\n{DOG[:9]}",
    ],
    "truncated": ["[", f"[{CAT}", f"[{CAT},", f"[{CAT[:-3]}", fenced(f"[{CAT}"), "[{'label':'ca", f"[{CAT}] and [{CAT}"],
    "unbalanced": [f"[{CAT}]]", f"}}[{CAT}]", "]"],
    "not_json": [
        one("[1,2,3,4,,]"),
        one("[01,2,3,4]"),
        one("[1 2 3 4]"),
        one("[1,2,3,4]", '"a\nb"'),
        f"[{CAT},,]",
        "[{'bbox_2d':[1,2,3,4],'label':'the boys' hats'}]",
        '[{"bbox_2d":[1,2,3,4],"label":"cat","hard":True}]',
        "[{'bbox_2d':(1,2,3,4),'label':'cat'}]",
        "[,]",
    ],
    "too_deep": ["[" * 100_000 + "]" * 100_000, "[" + '{"a":' * 100_000 + "1" + "}" * 100_000 + "]"],
    "duplicate_key": [
        '[{"bbox_2d":[1,2,3,4],"label":"a","label":"a"}]',
        '[{"bbox_2d":[1,2,3,4],"label":"a","x":{"y":1,"y":2}}]',
        '[{"bbox_2d":[1,2,3,4],"label":"a","l\\u0061bel":"b"}]',
        "[{'bbox_2d':[1,2,3,4],'label':'a','label':'a'}]",
    ],
    "not_finite": [
        one("[1,2,3,-Infinity]"),
        one('["1","2","3","' + "9" * 400 + '"]'),
        f'[{CAT[:-1]},"score":NaN}}]',
        one("[1,2,3,1e999]"),
    ],
    "bad_item": [f"[[{CAT}]]", "[1]", f"[{CAT},null]", fenced("[245,[234,543,542,244]]"), f'["{TICKS}"]'],
    "other_key": [
        one("[1,2,3,4]", key="box_2d"),
        one("[1,2]", key="point_2d"),
        '[{"bbox_2d":[1,2,3,4],"box_2d":[1,2,3,4],"label":"cat"}]',
    ],
    "no_key": [one("[1,2,3,4]", key="bbox"), "{}", "[{}]", f'{{"objects":[{CAT}]}}', "See {}."],
    "bad_label": [one("[1,2,3,4]", label) for label in ("null", "3", '""', '" "', '["cat"]', '"\\ud800"')]
    + ['[{"bbox_2d":[1,2,3,4]}]', '[{"bbox_2d":[1,2,3,4],"class":"cat"}]', one("[1,2,3,4]", '"\ud800"')],
    "null_box": [one("null"), f"[{CAT},{one('null')[1:-1]}]"],
    "boolean": [one("[1,2,3,true]"), "[{'bbox_2d':[False,2,3,4],'label':'a'}]"],
    "bad_box": [
        one(box)
        for box in ("[1,2,3]", "[1,2,3,4,5]", '"1,2,3,4"', "[[1,2,3,4]]", "[1,2,3,null]", '["1e2","2","3","4"]', "{}", "7")
    ],
    "placeholder": [one("[0,0,0,0]"), one("[0.0,-0.0,0,0]"), f"[{CAT},{one('[0,0,0,0]')[1:-1]}]"],
    "out_of_scale": [one("[1,2,3,1000.001]"), one("[-0.001,2,3,4]"), one("[1,2,3,4e9]")],
    "inverted": [one("[3,2,1,4]"), one("[1,4,3,2]")],
}


@pytest.mark.parametrize(("reason", "text"), [(reason, text) for reason, texts in INVALID.items() for text in texts])
def test_invalid_with_a_reason(reason, text):
    response = read(text)
    assert response[:5] == ("invalid", reason, (), (), ())


def test_every_reason_is_tested_and_has_words():
    assert INVALID.keys() | {FAILED.reason} == REASONS.keys()
    assert all(re.fullmatch(r"[a-z].*[a-z`]", words) for words in REASONS.values())


def test_a_giant_pixel_coordinate():
    assert read(one("[1,2,3,1.1e9]"), PIXELS).reason == "not_finite"
    assert read(one("[-1.1e9,2,3,4]"), PIXELS).reason == "not_finite"
    assert read(one("[-1e9,2,3,1e9]"), PIXELS).state == "valid"


# -- a run ------------------------------------------------------------------------------------------------------------


def test_a_warning_when_most_boxes_are_fractions():
    small, large = one("[0.1,0.2,0.3,1]"), one("[1,2,3,4]")
    for convention in (QWEN, PIXELS, reader("key=bbox_2d,order=xyxy,scale=100")):
        assert warnings([read(small, convention), read(large, convention), read("[]", convention)], convention) == []
        (told,) = warnings([read(small, convention)] * 2 + [read(large, convention)], convention)
        assert "2 of 3 boxes" in told
        assert str(convention.scale or "pixels") in told
    unit = reader("key=bbox_2d,order=xyxy,scale=1")
    assert warnings([read(small, unit)], unit) == []


def test_a_warning_when_most_answers_exceed_the_scale():
    over, within = read(one("[1,2,3,1001]")), read(one("[1,2,3,4]"))
    assert over.exceeds_scale
    assert not read(one("[-1,2,3,4]")).exceeds_scale
    assert warnings([over, within], QWEN) == []
    (told,) = warnings([over, over, within, read("[]"), read("[]")], QWEN)  # empty answers have no scale
    assert "2 of 3 answers" in told


@pytest.mark.parametrize(("reason", "text"), [("other_key", one("[1,2,3,4]", key="box_2d")), ("inverted", one("[3,2,1,4]"))])
def test_a_warning_when_most_answers_contradict_the_order(reason, text):
    assert warnings([read(text), read("[]")], QWEN) == []
    (told,) = warnings([read(text)] * 2 + [read("[]")], QWEN)
    assert "2 of 3 answers" in told
    assert REASONS[reason] in told
    assert "order=xyxy" in told


def test_a_run_without_a_valid_response_is_an_error():
    with pytest.raises(
        EvalkitError, match=r"none of 3 responses is valid under key=bbox_2d.*out_of_scale 2, failed 1.*exceed"
    ) as error:
        check_run([read(one("[1,2,3,2000]"))] * 2 + [FAILED], QWEN)
    assert "\n" not in str(error.value)
    with pytest.raises(EvalkitError, match="none of 0 responses"):
        check_run([], QWEN)
    assert check_run([FAILED, read("[]")], QWEN) == []


# -- no text does harm ------------------------------------------------------------------------------------------------

FRAGMENTS = [
    *"[]{},:\"'\\`<> \n019-.eE",
    *(
        CAT,
        DOG,
        '"bbox_2d"',
        '"label"',
        "'label'",
        TICKS,
        "json",
        "</think>",
        "<think>",
        "NaN",
        "null",
        "None",
        "true",
        "\ufeff",
        "\ud800",
    ),
]
NEAR_ANSWERS = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)


@st.composite
def mutated(draw):
    """A good answer from which pieces are taken and into which others are put."""
    text = draw(st.sampled_from([f"[{CAT},{DOG}]", fenced(f"[{CAT}]"), f"[{CAT}]".replace('"', "'"), "[]", f"So: [{DOG}]."]))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(st.sampled_from(["", *FRAGMENTS])) + text[start + draw(st.integers(0, 3)) :]
    return text


@settings(deadline=None)
@given(st.one_of(st.text(), NEAR_ANSWERS, mutated()), st.sampled_from([QWEN, GEMINI, PIXELS]))
def test_any_text_is_valid_or_invalid_with_a_reason(text, convention):
    response = read(text, convention, size=(640, 480))
    assert (response.state, response.reason in REASONS) in (("valid", False), ("invalid", True))
    assert len(response.boxes) == len(response.labels)
    assert set(response.repairs) <= set(REPAIRS)
    assert not (response.state == "invalid" and (response.boxes or response.repairs))
    for x_min, y_min, x_max, y_max in response.boxes:
        assert x_min <= x_max
        assert y_min <= y_max
        assert convention is PIXELS or (x_min >= 0 and y_min >= 0 and x_max <= 640 and y_max <= 480)


@settings(deadline=None)
@given(st.one_of(NEAR_ANSWERS, mutated()))
def test_the_short_ways_read_what_the_long_way_reads(text):
    short = read(text)
    with pytest.MonkeyPatch.context() as patch:
        for way in ("_short", "_clean"):
            patch.setattr(responses, way, lambda text, key, *repairs: None)
            assert read(text) == short


NUMBERS = st.floats(0, 1000, allow_subnormal=False)
OBJECTS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.text(st.characters(codec="utf-8"), min_size=1)), max_size=5)


@settings(deadline=None)
@given(OBJECTS, st.booleans(), st.booleans())
def test_what_was_read_reads_the_same_when_written_again(objects, in_fence, ascii_only):
    said = [
        {"bbox_2d": [min(a, c), min(b, d), max(a, c), max(b, d) + 1e-3], "label": f"x{label}"}
        for a, b, c, d, label in objects
        if max(b, d) < 999
    ]

    def written(labels, boxes):
        text = json.dumps(
            [{"bbox_2d": box, "label": label} for label, box in zip(labels, boxes, strict=True)], ensure_ascii=ascii_only
        )
        return fenced(text) if in_fence else text

    text = written([one["label"] for one in said], [one["bbox_2d"] for one in said])
    if "think>" in text:
        return
    first = read(text, PIXELS)
    assert first[:4] == ("valid", "", tuple(one["label"] for one in said), tuple(tuple(one["bbox_2d"]) for one in said))
    assert read(written(first.labels, first.boxes), PIXELS) == first
    assert read(repr(said), PIXELS)[:4] == first[:4] or "\\" in repr(said)


HOSTILE = {
    "open brackets": ("", "[", ""),
    "open braces": ("", "{", ""),
    "open objects": ("", '{"a":', ""),
    "pairs": ("", "[]", ""),
    "citations": ("", "[1] ", ""),
    "digits": ("", "9", ""),
    "digits in a list": ("[", "9", "]"),
    "digits in a box": ('[{"label":"a","bbox_2d":[1,2,3,', "9", "]}]"),
    "digits in quotation marks": ('[{"label":"a","bbox_2d":[1,2,3,"', "9", '"]}]'),
    "infinities": ("[", "1e999,", "1]"),
    "escaped quotes": ('["', '\\"', ""),
    "escaped quotes without a string": ("[", "\\'", ""),
    "single quotes": ("[", ",'", ""),
    "strings that start objects": ("", '{"\\"', ""),
    "commas": ("[", ", ", "]"),
    "spaces": ("[1", " ", "]x"),
    "backticks": ("", "`", ""),
    "fences": ("", f"{TICKS}a ", ""),
    "fenced objects": ("", f"{TICKS}a\n[{{}}]\n{TICKS}\n", ""),
    "word after a fence": (TICKS, "a", ""),
    "thoughts": ("", "<think>", ""),
    "words": ("[", "None ", "]"),
    "objects in an open list": ("[", "{},", ""),
    "lists and objects": ("", "[{}{a[b]}", ""),
    "lists of strings": ("", "['a',\"b\"", ""),
    "objects of strings": ("", "{'a':[\"b\",'c']", ""),
    "decimal strings": ('[{"label":"a","bbox_2d":["1","2","3",', '"4",', '"5"]}]'),
    "single quotes and commas": ("[{", "'a',", ",]}]"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time_and_is_invalid(name):
    head, piece, tail = HOSTILE[name]

    def seconds(length):
        text = head + piece * (length // len(piece)) + tail
        start = time.process_time()
        assert read(text).state == "invalid"
        return time.process_time() - start

    # Eight times the text may take 8 times the time, here up to 24; in quadratic time it would be 64.
    short, long = (min(seconds(length) for _ in range(3)) for length in (40_000, 320_000))
    assert long <= 24 * max(short, 0.002), (short, long)


def test_an_answer_of_five_megabytes():
    for piece in ("[", "9", '{"a":['):
        assert read(piece * (5_000_000 // len(piece))).state == "invalid"


def test_a_reader_is_a_value():
    assert hash(reader("qwen-boxes")) == hash(Reader("bbox_2d", "xyxy", 1000, "boxes"))

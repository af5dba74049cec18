"""The protocol's rules of reading a model's own text, each by its name."""

import itertools
import json

import pytest
from helpers import rule
from PIL import Image
from small import counts, coverage, the_row, write_classes, write_lines, write_yml

import evalkit
from evalkit import EvalkitError

BOX = [10, 20, 30, 60]
SIZE = (100, 80)
ITEM = '{"bbox_2d": [100, 250, 300, 750], "label": "cat"}'  # BOX in an image of SIZE
LIST = f"[{ITEM}]"
FENCED = f"```json\n{LIST}\n```"


@pytest.fixture
def read(tmp_path):
    """A function that reads answers to images that all have BOX, or the gold that is given."""

    def read(*words, reader="qwen-boxes", size=SIZE, gold=(("cat", BOX),), **more):
        images = {
            str(at): {
                "boxes": [{"class": name, "box": box} for name, box in gold],
                **dict(zip(("width", "height"), size, strict=True)),
            }
            for at in range(len(words))
        }
        path = write_lines(tmp_path / "said.jsonl", {str(at): {"response": text} for at, text in enumerate(words)})
        source = write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", ["cat"]),
            gold=write_lines(tmp_path / "gold.jsonl", images),
            predictions={"m": {"path": path, "reader": reader}},
            **more,
        )
        return evalkit.read_benchmark(source)

    return read


def reasons(benchmark):
    return benchmark.responses["reason"].tolist()


@rule("convention")
def test_rule_convention_is_the_declared_one_and_never_guessed(read):
    assert counts(read(LIST)) == {"tp": 1, "fp": 0, "fn": 0}
    assert counts(read(LIST, reader="key=bbox_2d,order=yxyx,scale=1000")) == {"tp": 0, "fp": 1, "fn": 1}
    assert counts(read(LIST, reader="pixel-boxes")) == {"tp": 0, "fp": 1, "fn": 1}
    assert reasons(read("[]", LIST.replace("bbox_2d", "box_2d"), LIST.replace("750", "1001"))) == [
        "",
        "other_key",
        "out_of_scale",
    ]


@rule("empty-forms")
def test_rule_empty_forms_are_these_alone_or_in_one_fence(read):
    words = ["no object", "no-object", "no_object", "none", "null"]
    words = [form(word) + stop for word, form, stop in itertools.product(words, (str, str.upper, str.title), ("", ".", "!"))]
    words += ["[]", *(f"```\n{word}\n```" for word in ("[]", "none"))]
    found = coverage(read(*words, gold=()))
    assert found[["valid", "negative_images", "negative_with_boxes"]].tolist() == [len(words), len(words), 0]
    longer = ["There is no object", "none here", "no", "I cannot help with that", "none..", "nothing: []", ""]
    found = coverage(read("[]", *longer, gold=()))
    assert found[["valid", "invalid", "negative_images"]].tolist() == [1, len(longer), 1]


@rule("one-block")
def test_rule_one_block_amid_prose_and_no_other(read):
    for text in (f"Here: {LIST}. Bye", f"So: {FENCED}", f"{FENCED}\nagain\n{FENCED}", f"As in [1]: {LIST}"):
        assert counts(read(text)) == {"tp": 1, "fp": 0, "fn": 0}, text
    other = FENCED.replace("750", "760")
    bad = f"[{ITEM}, {ITEM.replace('750', 'null')}]"
    words = ["A cat.", f"{FENCED} or {other}", LIST[:-9], f"{ITEM}\n{ITEM}", bad]
    found = read("[]", *words)
    assert reasons(found) == ["", "no_block", "several_blocks", "truncated", "objects_without_list", "bad_box"]
    assert len(found.predictions) == 0


@rule("numbers")
def test_rule_numbers_are_four_and_finite(read):
    faults = {
        "[1, 2, 3, true]": "boolean",
        "null": "null_box",
        "[1, 2, 3, NaN]": "not_finite",
        "[1, 2, 3, -Infinity]": "not_finite",
        f"[1, 2, 3, {'9' * 5000}]": "not_finite",
        "[0, 0, 0, 0]": "placeholder",
        "[1, 2, 3]": "bad_box",
        '[1, 2, 3, 4], "bbox_2d": [1, 2, 3, 4]': "duplicate_key",
    }
    assert reasons(read("[]", *(f'[{{"label": "cat", "bbox_2d": {box}}}]' for box in faults))) == ["", *faults.values()]


@rule("repairs")
def test_rule_repairs_are_these_and_counted(read):
    mended = {
        LIST[:-1] + ",]": "trailing_comma",
        ITEM: "single_object",
        LIST.replace("750", '"750"'): "decimal_strings",
        repr(json.loads(LIST)): "python_literal",
    }
    benchmark = read(*mended, LIST)
    assert benchmark.responses["repairs"].tolist() == [*mended.values(), ""]
    assert counts(benchmark) == {"tp": 5, "fp": 0, "fn": 0}
    words = [
        "[]",
        LIST[:-1] + ",,]",
        LIST.replace('"label"', "label"),
        LIST.replace("750", '"7.5e2"'),
        LIST.replace("750", "0750"),
    ]
    assert reasons(read(*words)) == ["", "not_json", "not_json", "bad_box", "not_json"]


@rule("thoughts")
def test_rule_thoughts_are_no_part_of_the_answer(read):
    draft = LIST.replace("cat", "dog")
    assert counts(read(f"<think>{draft}</think>\n{LIST}")) == {"tp": 1, "fp": 0, "fn": 0}
    assert counts(read(f"{draft}</think>{draft}</think>{LIST}")) == {"tp": 1, "fp": 0, "fn": 0}
    assert reasons(read("[]", f"<think>{LIST}", f"<think>a</think><think>{LIST}")) == ["", "unclosed_think", "unclosed_think"]


@rule("picture-sizes")
def test_rule_picture_sizes_are_those_on_display(read, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    Image.new("RGB", SIZE[::-1]).save(tmp_path / "0.jpg", exif=exif)
    benchmark = read(LIST, size=(None, None), images=".")
    assert counts(benchmark) == {"tp": 1, "fp": 0, "fn": 0}
    assert the_row(evalkit.data_notes(benchmark), code="picture_turned")["examples"] == "0"
    with pytest.raises(EvalkitError, match="needs the image's `width` and `height`"):
        read(LIST, LIST, size=(None, None), images=".")


@rule("convention-warning")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((LIST, LIST.replace("100, 250, 300, 750", "0.1, 0.2, 0.3, 0.7")), None),
        ((LIST, *[LIST.replace("100, 250, 300, 750", "0.1, 0.2, 0.3, 0.7")] * 2), "2 of 3 boxes have no value above 1"),
        ((LIST, LIST.replace("750", "7500"), "[]"), None),
        ((LIST, *[LIST.replace("750", "7500")] * 2), "2 of 3 answers with boxes exceed the declared scale"),
    ],
)
def test_rule_convention_warning_from_more_than_half_on(read, words, told):
    notes = [text for _, code, _, text in read(*words).notes if code == "convention_warning"]
    assert len(notes) == bool(told)
    assert all(told in text for text in notes)


@rule("convention-warning")
def test_rule_convention_warning_becomes_an_error_if_nothing_is_valid(read):
    with pytest.raises(EvalkitError, match="none of 2 responses is valid"):
        read("a cat", LIST.replace("750", "7500"))


@rule("axes")
def test_rule_axes_are_told_and_change_no_score(read):
    """In an image of 100 by 80, BOX is 100 250 300 750 on the scale; y first it is 250 100 750 300."""
    benchmark = read(LIST, LIST.replace("100, 250, 300, 750", "250, 100, 750, 300"), "garbage")
    before = counts(benchmark)
    found = the_row(evalkit.axis_swap(benchmark))
    assert found[["images", "better", "worse", "equal"]].tolist() == [2, 1, 1, 0]
    assert counts(benchmark) == before == {"tp": 1, "fp": 1, "fn": 1}

"""Regular lists of numbers are read as the JSON parser of Python reads them, and any other text is left alone."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import evalkit
from evalkit.formats import coco, options_from, read_benchmark
from evalkit.formats.regular import regular_columns

KINDS = {"n": int, "x": float, "box": float}
ENTRY = '{"n": 7, "x": 0.5, "box": [1, -2.25]}'


def expected(text):
    """The slow reference: columns of the wanted keys from what `json` makes of the text."""
    entries = json.loads(text)
    return {key: np.array([entry[key] for entry in entries], dtype=KINDS[key]) for key in entries[0] if key in KINDS}


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, column in wanted.items():
        assert found[key].dtype == column.dtype
        assert found[key].shape == column.shape
        assert (found[key] == column).all()
        assert (np.signbit(found[key]) == np.signbit(column)).all()


def decimals():
    """Decimals as programs write them: with or without point and sign, of 1 to 15 digits."""

    def cut(digits, point, sign):
        whole, fraction = digits[: len(digits) - point], digits[len(digits) - point :]
        whole = (whole.lstrip("0") or "0")[: 15 - len(fraction)]
        return sign + whole + (f".{fraction}" if fraction else "")

    return st.builds(cut, st.text("0123456789", min_size=1, max_size=15), st.integers(0, 14), st.sampled_from(["", "-"]))


def whole_numbers():
    return st.integers(-(10**15) + 1, 10**15 - 1).map(str)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(whole_numbers(), decimals(), decimals(), decimals()), min_size=1, max_size=9),
    st.sampled_from([", ", ",", ",\n", "\n ,\t"]),
    st.sampled_from(
        [
            '{{"n": {}, "x": {}, "box": [{}, {}]}}',
            '{{"n":{},"x":{},"box":[{},{}]}}',
            '{{\n "n" : {} , "x": {},\r\n"box": [ {}\n,{} ] }}',
        ]
    ),
    st.sampled_from(["[{}]", " [ {} ]\n", "\n[\n{}\n]"]),
)
def test_regular_lists_are_read_as_json(rows, between, form, around):
    text = around.format(between.join(form.format(*row) for row in rows))
    assert_same(regular_columns(text.encode(), KINDS), expected(text))


@pytest.mark.parametrize("places", range(1, 5))
def test_every_short_decimal_is_the_nearest_float(places):
    decimals = [f"{number // 10**places}.{number % 10**places:0{places}}" for number in range(30_000)]
    text = ",".join(f'{{"x":{one}}}' for one in decimals)
    assert (regular_columns(f"[{text}]".encode(), KINDS)["x"] == [float(one) for one in decimals]).all()


@pytest.mark.parametrize("length", range(1, 16))
def test_numbers_of_every_length_and_point(length):
    digits = "918273645546372"[:length]
    numbers = [digits, f"-{digits}", *(f"{digits[:point]}.{digits[point:]}" for point in range(1, length))]
    for one in numbers:
        assert regular_columns(f'[{{"x":{one}}}]'.encode(), KINDS)["x"].tolist() == [float(one)]
    text = (
        "[" + ", ".join(f'{{"x": {one}, "box": [{one}, {other}]}}' for one, other in itertools.pairwise([*numbers, "0"])) + "]"
    )
    assert_same(regular_columns(text.encode(), KINDS), expected(text))


@settings(max_examples=3000, deadline=None)
@given(st.data())
@example(None)
def test_a_changed_text_is_read_as_json_or_not_at_all(data):
    text = "[" + ", ".join(ENTRY.replace("7", str(n)) for n in (7, 10, 12345678)) + "]"
    if data is not None:
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(text)))
            stop = data.draw(st.integers(start, min(start + 3, len(text))))
            put = data.draw(st.text('0123456789.-+eE{}[],:" nxbo\t\n\0', max_size=3))
            text = text[:start] + put + text[stop:]
    found = regular_columns(text.encode(), KINDS)
    if found is not None:
        entries = json.loads(text)  # the changed text is still JSON, and still regular
        assert all(entry.keys() == entries[0].keys() for entry in entries)
        assert_same(found, expected(text))
    else:
        assert data is not None


ALSO_REGULAR = {  # where every entry is written so
    ENTRY.replace("1, -2.25", "1"),
    ENTRY.replace("1, -2.25", "1, 2, 3"),
    ENTRY.replace("[1, -2.25]", "1"),
    ENTRY.replace('"x"', '"y"'),
    ENTRY.replace('"n": 7, "x": 0.5', '"x": 0.5, "n": 7'),
    ENTRY.replace('"n": 7, ', ""),
    ENTRY.replace(": 7", ":7"),
}


@pytest.mark.parametrize(
    "entry",
    [
        ENTRY.replace("7", wrong)
        for wrong in (
            "07",
            "-",
            "-07",
            "--7",
            "+7",
            "7.",
            ".7",
            "7.0",
            "7e0",
            "7E1",
            "",
            "7 7",
            "null",
            "true",
            '"7"',
            "NaN",
            "1" * 16,
        )
    ]
    + [
        ENTRY.replace("0.5", wrong)
        for wrong in (
            *(
                "00.5",
                ".5",
                "5.",
                "-.5",
                "0.5.5",
                "0.-5",
                "0..5",
                "5e-1",
                "5E1",
                "0.5e1",
                "Infinity",
                "null",
                "[]",
                "{}",
                "0,5",
            ),
            *("0." + "1" * 15, "1" * 8 + "." + "1" * 8, "1" * 16, "1" * 17, "1" * 400, "0." + "0" * 40 + "1"),
        )
    ]
    + [
        ENTRY.replace("1, -2.25", "1"),
        ENTRY.replace("1, -2.25", "1, 2, 3"),
        ENTRY.replace("1, -2.25", "[1], 2"),
        ENTRY.replace("[1, -2.25]", "1"),
        ENTRY.replace('"x"', '"y"'),
        ENTRY.replace('"x"', '"x1"'),
        ENTRY.replace('"x"', '"x '),
        ENTRY.replace('"n": 7, "x": 0.5', '"x": 0.5, "n": 7'),
        ENTRY.replace('"n": 7, ', '"n": 7, "n": 8, '),
        ENTRY.replace('"n": 7, ', ""),
        ENTRY.replace(": 7", ":7"),
        ENTRY.replace(" 7", "\v7"),
        ENTRY + "}",
        ENTRY[:-1],
        ENTRY.replace("}", ', "s": "}, {"}'),
        "7",
        "[]",
        "{}",
        "",
    ],
)
@pytest.mark.parametrize("place", ["first", "middle", "last", "all"])
def test_what_is_written_in_another_way_is_left_alone(entry, place):
    wrong = {"first": {0}, "middle": {1}, "last": {2}, "all": {0, 1, 2}}[place]
    text = ", ".join(entry if k in wrong else ENTRY for k in range(3))
    if place == "all" and entry in ALSO_REGULAR:
        assert_same(regular_columns(f"[{text}]".encode(), KINDS), expected(f"[{text}]"))
    else:
        assert regular_columns(f"[{text}]".encode(), KINDS) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[1]",
        "[{}]",
        "[{}, {}]",
        ENTRY,
        f"[{ENTRY}",
        f"{ENTRY}]",
        f"[{ENTRY},]",
        f"[,{ENTRY}]",
        f"[{ENTRY}{ENTRY}]",
        f"[{ENTRY} {ENTRY}]",
        f"[{ENTRY}, {ENTRY} {ENTRY}]",
        f"[{ENTRY},, {ENTRY}]",
        f"[{ENTRY}, {ENTRY},{ENTRY}]",
        f"[{ENTRY}] 1",
        f"1 [{ENTRY}]",
        f"[1{ENTRY}]",
        f"[{ENTRY}1]",
        f"[{ENTRY}, 1{ENTRY}]",
        f"[{ENTRY}1, {ENTRY}]",
        f"[{ENTRY}],",
        f"[[{ENTRY}]]",
        f"[{ENTRY}]\0",
        f"\v[{ENTRY}]",
        f"\ufeff[{ENTRY}]",
        f"[{ENTRY},{' ' * 200}{ENTRY}, {ENTRY}]",
        '{"annotations": [' + ENTRY + "]}",
        '[{"a b": 1}]',
        '[{"\\u006e": 1}]',
        '[{"n": 1}, {"\\u006e": 1}]',
        '[{"n": 1, "n": []}]',
        '[{"n": [], "n": 1}]',
        '[{"n": [], "x": 0.5, "box": [1, 2], "n": 7}]',
        '[{"other": [], "n": 7, "x": 0.5, "other": 8}]',
        '[{"n": 1, "n": 2}]',
        '[{"ń": 1}]',
    ],
)
def test_other_texts_are_left_alone(text):
    assert regular_columns(text.encode(), KINDS) is None


def test_no_other_byte_passes_for_a_digit():
    text = f"[{ENTRY}, {ENTRY}, {ENTRY}]".encode()
    for byte in set(range(256)) - set(b"0123456789"):
        for digit in (b"7", b"5", b"1"):
            for place in (text.index(digit), text.rindex(digit)):
                assert regular_columns(text[:place] + bytes([byte]) + text[place + 1 :], KINDS) is None


def test_text_that_is_not_utf8_is_left_alone():
    assert regular_columns(f"[{ENTRY}]".encode().replace(b"x", b"\xff"), KINDS) is None


def test_numbers_that_nobody_wants_may_be_of_any_length():
    rows = [("0", 54330.243200000004), ("1" * 99, 2.5), ("-12345678", -0.123456789012345678), ("12345678.0", 7)]
    text = (
        "[" + ", ".join(f'{{"id": {identity}, "n": 1, "area": {area}, "more": [{area}, 1]}}' for identity, area in rows) + "]"
    )
    assert_same(regular_columns(text.encode(), KINDS), expected(text))
    for wrong in ("01", "1.", "-", "1e5", ".5", "1.5.5", "", "null"):
        assert regular_columns(text.replace('"id": 12345678.0', f'"id": {wrong}').encode(), KINDS) is None


def test_the_sign_of_zero_is_that_of_json():
    text = '[{"n": -0, "x": -0, "box": [-0, -0.0]}, {"n": 0, "x": -0.00, "box": [0, 0.0]}]'
    assert_same(regular_columns(text.encode(), KINDS), expected(text))


def test_an_entry_may_be_alone():
    assert_same(regular_columns(f"[{ENTRY}]".encode(), KINDS), expected(f"[{ENTRY}]"))


# -- through the door: a results list says the same in whatever way it is written ---------------------------------------

IMAGES = [{"id": number, "width": 640, "height": 480, "file_name": f"{number}.jpg"} for number in (1, 2, 3)]
GOLD = {
    "images": IMAGES,
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20]}],
    "categories": [{"id": 1, "name": "litter"}, {"id": 2, "name": "pothole"}],
}


def read(folder, text, **options):
    folder.mkdir()
    (folder / "gold.json").write_text(json.dumps(GOLD))
    (folder / "m.json").write_text(text)
    asked = options_from({"gold": "gold.json", "predictions": {"m": {"path": "m.json", **options}}}, source="b.yml")
    return read_benchmark(asked, folder=folder)


def both_ways(entries):
    """A results list as it is written by `json`, and one that differs by a word in its first entry."""
    text = json.dumps(entries)
    return text, text.replace("{", '{"note": "", ', 1)


ENTRIES = [
    {"image_id": 2, "category_id": 2, "bbox": [1, 2.5, 3, 4], "score": 0.25},
    {"image_id": 1, "category_id": 1, "bbox": [10.1, 10, 20, 20.7], "score": 0.5},
    {"image_id": 2, "category_id": 9, "bbox": [5, 5, 10, 10], "score": 1},
]


@pytest.mark.parametrize("change", [{}, {"ignore": 1}, {"iscrowd": 0}, {"iscrowd": 0, "ignore": 0, "id": 10**17, "area": 0.1}])
def test_a_regular_results_list_says_what_an_irregular_one_does(tmp_path, change):
    regular, irregular = both_ways([{**entry, **change} for entry in ENTRIES])
    assert regular_columns(regular.encode(), coco.KINDS)
    assert regular_columns(irregular.encode(), coco.KINDS) is None
    one, other = read(tmp_path / "one", regular), read(tmp_path / "other", irregular)
    for name in ("images", "gold", "responses", "predictions"):
        assert getattr(one, name).equals(getattr(other, name))
    assert one.notes == other.notes
    assert bool(one.notes) == bool(change.get("ignore"))


def test_dropped_crowds_of_a_regular_results_list(tmp_path):
    texts = both_ways([{**entry, "iscrowd": int(k == 0)} for k, entry in enumerate(ENTRIES)])
    one, other = (read(tmp_path / str(k), text, crowd="drop") for k, text in enumerate(texts))
    assert one.predictions.equals(other.predictions)
    assert one.notes == other.notes == (("m.json", "crowd_dropped", 1, "2"),)
    assert len(one.predictions) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_id": 77}, "m.json, entry [2], image 77: gold has no image '77' [image.unknown]"),
        ({"image_id": 1.5}, "m.json, entry [2], image 1.5: "),
        ({"category_id": None}, "m.json, entry [2], image 2: "),
        ({"iscrowd": 1}, "m.json, entry [2], image 2: a crowd box "),
        ({"bbox": [1, 2, -3, 4]}, "m.json, entry [2], image 2: x_max must not be left of x_min"),
        ({"bbox": [1, 2, 3]}, "m.json, entry [2], image 2: a box is four finite numbers"),
    ],
)
def test_faults_of_a_results_list_are_told_alike(tmp_path, change, message):
    for k, text in enumerate(
        both_ways([{**one, "iscrowd": 0} for one in ENTRIES[:2]] + [{**ENTRIES[2], "iscrowd": 0, **change}])
    ):
        with pytest.raises(evalkit.DataError) as caught:
            read(tmp_path / str(k), text, bad_box="error")
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "change", [{"score": None}, {"score": 1e-7}, {"image_id": "1"}, {"bbox": [0.1, 0.2, 0.30000000000000004, 1]}]
)
def test_one_entry_of_another_kind_changes_no_other(tmp_path, change):
    texts = both_ways([*ENTRIES[:2], {**ENTRIES[2], **change}])
    one, other = (read(tmp_path / str(k), text).predictions for k, text in enumerate(texts))
    assert one.equals(other)
    assert (
        one.iloc[:2]
        .drop(columns="class")
        .equals(read(tmp_path / "few", json.dumps(ENTRIES[:2])).predictions.drop(columns="class"))
    )

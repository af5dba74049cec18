"""Reading points, yes and no from a model's own text: the shared cases by id, every reason, and no text that does harm."""

import json
import time

import pytest
from helpers import rule
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit import EvalkitError
from evalkit.point_answers import POINT_REASONS, PointAnswer, check_point_run, read_points, read_yes_or_no
from evalkit.points import pixels
from evalkit.responses import PRESETS, Reader, reader

QWEN, GEMINI, MOLMO, UNIT, PIXELS = (
    reader(f"{name}-points", kind="points") for name in ("qwen", "gemini", "molmo", "unit", "pixel")
)
TICKS = "```"
ONE = '[{"point_2d":[250,500],"label":"cup"}]'
EMPTY = PointAnswer("empty")


def points(text, convention=QWEN):
    return read_points(text, convention).points


def reason(text, convention=QWEN):
    found = read_points(text, convention)
    assert found.points == ()
    assert (found.state == "unparseable") == bool(found.reason)
    return found.reason


# -- the shared cases


def test_par_22_values_are_read_as_declared_one_by_one(case):
    (point,) = points(case.given["response"])
    assert case.given["declared"] == "0-1000"
    assert [value / 1000 for value in point] == pytest.approx([case.expected["x_norm"], case.expected["y_norm"]], abs=1e-15)
    assert pixels([point], scale=1000, size=(10_000, 1000))[0].tolist() == [[5, 238]]


def test_pts_07_tuples_are_not_the_standard_json(case):
    assert case.expected["strict"] == "invalid"
    assert [reason(text) for text in case.given["responses"]] == ["not_json"] * 3


def test_pts_09_a_box_is_no_point(case):
    assert case.expected["status_in"] == ["invalid"]
    assert reason(case.given["answer"]) == "not_json"
    assert reason('[{"point_2d":[0.25,0.25,0.75,0.75]}]', UNIT) == "bad_point"
    assert reason('[{"bbox_2d":[250,250,750,750]}]') == "no_key"


def test_pts_15_yes_and_no_are_whole_first_words(case):
    found = [read_yes_or_no(text).yes for text in case.given["responses"]]
    assert [{None: "invalid", False: "correct", True: "wrong"}[one] for one in found] == case.expected["no"]
    # A sentence form is left to a stated rule; ours is that the first word decides.
    assert [read_yes_or_no(text).yes for text in case.given["responses2"]] == [True, None]


# -- the strict reader


@rule("points-strict-reader")
@pytest.mark.parametrize(
    "text",
    [ONE, f"{TICKS}json\n{ONE}\n{TICKS}", f"{TICKS}\n{ONE}\n{TICKS}", f"  {ONE}\n", f"\ufeff{ONE}", ONE[1:-1]],
)
def test_rule_points_strict_reader_takes_the_standard_json_and_a_fence(text):
    assert points(text) == ((250.0, 500.0),)


@rule("points-strict-reader")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"The cup is here: {ONE}", "not_json"),
        (f"{ONE} I hope that helps.", "not_json"),
        (f"Sure\n{TICKS}json\n{ONE}\n{TICKS}", "not_json"),
        (f"{TICKS}json\n{ONE}", "not_json"),
        (f"{TICKS}json\n{ONE}\n{TICKS}\n{TICKS}json\n{ONE}\n{TICKS}", "not_json"),
        (f"{TICKS}python\n{ONE}\n{TICKS}", "not_json"),
        ("[{'point_2d':[250,500]}]", "not_json"),
        ('[{"point_2d":[250,500]},]', "not_json"),
        ('{"point_2d":[250,500]}, {"point_2d":[1,2]}', "not_json"),
        (ONE[:-4], "not_json"),
        ("7", "not_json"),
        ('"[]"', "not_json"),
        (f"[{ONE}]", "bad_item"),
        ("[[250,500]]", "bad_item"),
        ('[{"point":[250,500]}]', "no_key"),
        ('[{"point_2d":[250]}]', "bad_point"),
        ('[{"point_2d":["250","500"]}]', "bad_point"),
        ('[{"point_2d":[[250,500]]}]', "bad_point"),
        ('[{"point_2d":null}]', "bad_point"),
        ('[{"point_2d":[true,500]}]', "boolean"),
        ('[{"point_2d":[NaN,500]}]', "not_finite"),
        ('[{"point_2d":[1e999,500]}]', "not_finite"),
        (f'[{{"point_2d":[{"9" * 5000},500]}}]', "not_finite"),
        ('[{"point_2d":[1,2],"point_2d":[3,4]}]', "duplicate_key"),
        ("[" * 100_000, "too_deep"),
        ("", "blank"),
        ("<think>here", "unclosed_think"),
    ],
)
def test_rule_points_strict_reader_takes_nothing_else(text, expected):
    assert reason(text) == expected


@rule("points-strict-reader")
def test_rule_points_strict_reader_does_not_look_into_thoughts():
    assert points(f'<think>[{{"point_2d":[1,2]}}]</think>{ONE}') == ((250.0, 500.0),)
    assert points(f'[{{"point_2d":[1,2]}}]</think>\n{ONE}') == ((250.0, 500.0),)


@rule("points-empty-forms")
@pytest.mark.parametrize(
    "text",
    [
        *("[]", "[ ]", f"{TICKS}json\n[]\n{TICKS}", "No object", "no-object.", "NO_OBJECT!", "none", "None.", "null"),
        *(f"{TICKS}\nno object\n{TICKS}", "<think>it is not there</think>\n[]"),
    ],
)
def test_rule_points_empty_forms_are_a_closed_list(text):
    assert [read_points(text, convention) for convention in (QWEN, GEMINI, MOLMO)] == [EMPTY] * 3


@rule("points-empty-forms")
@pytest.mark.parametrize(
    "text", ["There are none.", "no", "none of them", "absent", "[] none", "{}", '[{"point_2d":[]}]', "N/A"]
)
def test_rule_points_empty_forms_have_nothing_longer(text):
    assert read_points(text, QWEN).state == "unparseable"


def test_points_out_of_the_scale_stay():
    assert points('[{"point_2d":[-5,2000]}]') == ((-5.0, 2000.0),)


# -- other conventions


@rule("points-conventions")
def test_rule_points_conventions_are_declared():
    assert points('[{"point":[500,250],"label":"x"}]', GEMINI) == ((250.0, 500.0),)  # [y, x]
    assert points(ONE, UNIT) == points(ONE, PIXELS) == ((250.0, 500.0),)
    assert str(QWEN) == "key=point_2d,order=xy,scale=1000"
    assert reader("key=point,order=yx,scale=1000", kind="points") == GEMINI
    assert all(reader(str(one), kind="points") == one for one in PRESETS.values() if one.kind == "points")


@rule("points-conventions")
@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("qwen-boxes", "points", "reader: 'qwen-boxes' reads boxes, and the file holds points"),
        ("qwen-points", "boxes", "reader: 'qwen-points' reads points, and the file holds boxes"),
        (
            "llama",
            "points",
            "unknown preset 'llama'; known are qwen-points, gemini-points, molmo-points, unit-points, pixel-points",
        ),
        ("key=point_2d,order=xyxy,scale=1000", "points", "order must be one of xy, yx, not 'xyxy'"),
        ("key=point_2d,order=xy,scale=10", "points", "scale must be one of 1000, 100, 1, pixels"),
    ],
)
def test_rule_points_conventions_that_are_unknown_are_told(text, kind, message):
    with pytest.raises(EvalkitError) as caught:
        reader(text, kind=kind)
    assert message in str(caught.value)


@rule("points-tags")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<point x="63.5" y="44.5" alt="cup">cup</point>', [(63.5, 44.5)]),
        ('The cup: <point alt="a > b" y="44.5" x="63.5">cup</point>, there.', [(63.5, 44.5)]),
        ("<point x='1' y='2'>", [(1, 2)]),
        ('<points x1="1" y1="2" x2="30" y2="40.25" alt="two">two</points>', [(1, 2), (30, 40.25)]),
        ('<points y2="40" x1="1" x2="30" y1="2">', [(1, 2), (30, 40)]),
        ('<point x="1" y="2"/> and <point x="3" y="4"/>', [(1, 2), (3, 4)]),
        ('<point x=" 1" y="120">', [(1, 120)]),
    ],
)
def test_rule_points_tags_have_their_attributes_in_any_order(text, expected):
    assert list(points(text, MOLMO)) == expected


@rule("points-tags")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("There are none.", "no_tag"),
        (ONE, "no_tag"),
        ("a pointless answer", "no_tag"),
        ('<point x="63.5"', "bad_tag"),
        ('<point x="63.5" y="44.5', "bad_tag"),
        ('<point x="1" y="2"> <point x="3', "bad_tag"),
        ('<point x="63.5">', "bad_tag"),
        ("<points>", "bad_tag"),
        ('<point x="1e3" y="2">', "bad_tag"),
        ("<point x=1 y=2>", "bad_tag"),
        ('<point x="1" x="3" y="2">', "bad_tag"),
        ('<points x1="1" y2="2">', "bad_tag"),
        (f'<point x="{"9" * 400}" y="2">', "not_finite"),
    ],
)
def test_rule_points_tags_that_are_broken_make_the_answer_unparseable(text, expected):
    assert reason(text, MOLMO) == expected


# -- yes or no


@rule("points-yes-no")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (text, True)
            for text in ("yes", "Yes.", "YES!", "**Yes**", "`yes`", '"Yes"', "Yes, it does", "yes. It fits", "_Yes_")
        ),
        *((text, True) for text in ("<think>no</think>Yes", "\ufeffyes", "# Yes")),
        *((text, False) for text in ("no", "No.", "no, it does not fit", "**No**, it does not")),
    ],
)
def test_rule_points_yes_no_by_the_first_word(text, expected):
    assert read_yes_or_no(text) == PointAnswer("answered", yes=expected)


@rule("points-yes-no")
@pytest.mark.parametrize(
    "text",
    [
        "Not sure",
        "None of these",
        "nothing fits",
        "The answer is yes.",
        "yes it does",
        "yes or no",
        "yesterday",
        "no-one",
        "maybe, yes",
    ],
)
def test_rule_points_yes_no_has_no_other_form(text):
    assert read_yes_or_no(text) == PointAnswer("unparseable", "not_yes_or_no")


def test_yes_or_no_of_a_blank_or_unfinished_text():
    assert [read_yes_or_no(text).reason for text in ("", "<think>yes")] == ["blank", "unclosed_think"]


# -- runs


@rule("points-run")
def test_rule_points_run_warns_of_another_scale_and_refuses_a_run_that_cannot_be_read():
    small = [read_points('[{"point_2d":[0.3,0.6]}]', QWEN)] * 3
    assert (
        "3 of 4 points have no value above 1; the scale is declared as 1000"
        in check_point_run([*small, read_points(ONE, QWEN)], QWEN)[0]
    )
    large = [read_points('[{"point_2d":[1300,600]}]', QWEN)] * 2
    assert (
        "2 of 3 answers with points exceed the declared scale of 1000"
        in check_point_run([*large, read_points(ONE, QWEN)], QWEN)[0]
    )
    assert check_point_run([read_points(ONE, QWEN), *large[:1], EMPTY], QWEN) == []
    assert check_point_run([read_points('[{"point_2d":[0.3,0.6]}]', UNIT)], UNIT) == []
    with pytest.raises(EvalkitError, match=r"none of 2 answers can be read under key=point_2d,.* \(not_json 2\)"):
        check_point_run([read_points("sorry", QWEN)] * 2, QWEN)


def test_every_reason_has_words_and_is_met_by_some_test():
    met = {
        "failed",
        "not_yes_or_no",
        "bad_item",
        "bad_point",
        "bad_tag",
        "blank",
        "boolean",
        "duplicate_key",
        "no_key",
        "no_tag",
    }
    assert set(POINT_REASONS) == met | {"not_finite", "not_json", "too_deep", "unclosed_think"}


@settings(deadline=None, max_examples=300)
@given(
    st.text(alphabet="[]{}\"'`,:.<>/=point_2dxy 019jsonobetrue\\\n-eNa", max_size=120), st.sampled_from([QWEN, GEMINI, MOLMO])
)
def test_no_text_raises(text, convention):
    for found in (read_points(text, convention), read_yes_or_no(text)):
        assert found.state in ("points", "empty", "answered", "unparseable")
        assert found.reason in POINT_REASONS or found.reason == ""


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.floats(-2000, 2000)] * 2), min_size=1, max_size=5))
def test_what_is_written_is_read(said):
    text = json.dumps([{"point_2d": point, "label": "x"} for point in said])
    assert list(points(text)) == [tuple(map(float, point)) for point in said]
    swapped = json.dumps([{"at": point[::-1]} for point in said])
    assert list(points(swapped, Reader("at", "yx", 1000, "points"))) == [tuple(map(float, point)) for point in said]


@pytest.mark.parametrize(
    "text", ["<point " * 100_000, '<point x="' * 50_000, "<point 'a" * 50_000, "`" * 300_000, "*" * 300_000]
)
def test_long_texts_take_time_in_proportion(text):
    start = time.process_time()
    read_points(text, MOLMO)
    read_points(text, QWEN)
    read_yes_or_no(text)
    assert time.process_time() - start < 2

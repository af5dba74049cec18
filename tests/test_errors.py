"""Where the errors are: reasons against their definitions, the confusion matrix against the counts, and the list of images."""

import functools
import itertools
from collections import Counter
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from helpers import rule
from hypothesis import given, settings
from hypothesis import strategies as st
from references import (
    Plain,
    best_by_search,
    exact_iou,
    image_counts,
    images_of,
    plain_scores,
    qualifies,
    write_plain,
)

import evalkit
from evalkit import boxes, errors, figures
from evalkit.cli import main
from evalkit.tables import BOX_COLUMNS

CLASSES = {"litter": "street", "pothole": "road", "nothing": ""}  # a class may have any name
LEVELS = (0.05, 0.3, 0.5, 1.0)
WHOLE, ELSEWHERE = [0, 0, 10, 10], [50, 50, 60, 60]


def read(plain, folder):
    return evalkit.read_benchmark(write_plain(plain, folder))


def explained(benchmark, iou=(0.5,)):
    return evalkit.explain(evalkit.match(benchmark, iou=iou))


@pytest.fixture
def reasons(tmp_path):
    """The reasons of one image: a function of its gold boxes, predicted boxes and a threshold."""

    def reasons(gold, said, *, level=0.5):
        table = explained(read(Plain(CLASSES, {"i": gold}, {"m": {"i": said}}), tmp_path), [level])
        found = {}
        for row in table[table["outcome"] != "tp"].to_dict("records"):
            side = "gold" if row["outcome"] == "fn" else "predicted"
            box = tuple(row[f"{side}_{name}"] for name in BOX_COLUMNS)
            found.setdefault((row["outcome"], row["class"], box), []).append(row["reason"])
        return found

    return reasons


# -- one reason each, and which of several


FALSE = [0, 0, 10, 8]
CLUES_OF_FALSE = {  # what makes the false box a case of each reason at 0.50
    "duplicate": ([("litter", WHOLE)], [("litter", WHOLE)]),  # IoU 8/10 with a gold box that has a better partner
    "wrong_class": ([("pothole", FALSE)], []),
    "poor_iou": ([("litter", [0, 0, 10, 3])], []),  # IoU 3/8
}
CLUES_OF_MISSED = {"wrong_class": [("pothole", WHOLE)], "poor_iou": [("litter", [0, 0, 10, 3])]}


def subsets(names):
    return [subset for size in range(len(names) + 1) for subset in itertools.combinations(names, size)]


@rule("reasons")
@pytest.mark.parametrize("clues", subsets(CLUES_OF_FALSE))
def test_rule_reasons_of_a_false_box_in_every_conflict(reasons, clues):
    gold, said = ([one for clue in clues for one in CLUES_OF_FALSE[clue][side]] for side in (0, 1))
    found = reasons([("nothing", ELSEWHERE), *gold], [*said, ("litter", FALSE)])
    expected = next((name for name in ("duplicate", "wrong_class", "poor_iou") if name in clues), "nothing")
    assert found["fp", "litter", tuple(FALSE)] == [expected]


@rule("reasons")
@pytest.mark.parametrize("clues", subsets(CLUES_OF_MISSED))
def test_rule_reasons_of_a_missed_box_in_every_conflict(reasons, clues):
    found = reasons([("litter", WHOLE)], [("nothing", ELSEWHERE), *(one for clue in clues for one in CLUES_OF_MISSED[clue])])
    expected = next((name for name in ("wrong_class", "poor_iou") if name in clues), "missed")
    assert found["fn", "litter", tuple(WHOLE)] == [expected]


@rule("reasons")
def test_rule_reasons_stand_in_the_order_of_precedence():
    assert list(errors.REASONS) == ["duplicate", "wrong_class", "poor_iou", "nothing", "missed"]
    assert {"fp": list(errors.REASONS)[:4], "fn": ["wrong_class", "poor_iou", "missed"]} == errors.REASONS_OF


@rule("reasons")
def test_rule_reasons_a_box_that_has_a_partner_was_no_attempt_at_another(reasons):
    """Each prediction lies on a gold box of its own, and over the missed one: with IoU 1/3, 1 and 7/13."""
    missed, neighbour, on_top = ("litter", WHOLE), ("litter", [5, 0, 15, 10]), ("pothole", WHOLE)
    assert reasons([missed, neighbour], [neighbour])["fn", *key(missed)] == ["missed"]
    assert reasons([missed, on_top], [on_top])["fn", *key(missed)] == ["missed"]
    near = ("litter", [3, 0, 13, 10])
    assert reasons([missed, near], [near])["fn", *key(missed)] == ["missed"]


@rule("reasons")
def test_rule_reasons_of_a_false_box_look_at_found_gold_boxes_too(reasons):
    found = ("litter", WHOLE)
    assert reasons([found], [found, ("litter", [8, 0, 18, 10])])["fp", "litter", (8, 0, 18, 10)] == ["poor_iou"]  # 2/18
    assert reasons([found], [found, ("pothole", WHOLE)])["fp", "pothole", tuple(WHOLE)] == ["wrong_class"]


@rule("reasons")
@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ([0, 0, 10, 1], "poor_iou"),  # 1/10
        ([0, 0, 10, 0.9999], "nothing"),  # just below
        ([0, 0, 10, 4.9999], "poor_iou"),  # just below the threshold
        ([0, 0, 10, 0], "nothing"),  # no area
    ],
)
def test_rule_reasons_poor_is_from_a_tenth_to_below_the_threshold(reasons, box, reason):
    found = reasons([("litter", WHOLE)], [("litter", box)])
    assert found == {
        ("fp", "litter", tuple(box)): [reason],
        ("fn", "litter", tuple(WHOLE)): [{"nothing": "missed"}.get(reason, reason)],
    }


@rule("reasons")
def test_rule_reasons_another_class_must_reach_the_threshold(reasons):
    gold = [("litter", WHOLE)]
    reached, short = ("pothole", [0, 0, 10, 5]), ("pothole", [0, 0, 10, 4.9999])
    assert reasons(gold, [reached]) == {("fp", *key(reached)): ["wrong_class"], ("fn", *key(gold[0])): ["wrong_class"]}
    assert reasons(gold, [short]) == {("fp", *key(short)): ["nothing"], ("fn", *key(gold[0])): ["missed"]}


@rule("reasons")
def test_rule_reasons_a_name_outside_the_list_is_a_class_like_others(reasons):
    stranger = ("stranger", WHOLE)
    found = reasons([("litter", WHOLE)], [stranger, stranger, ("stranger", ELSEWHERE)])
    assert found["fp", *key(stranger)] == ["wrong_class", "wrong_class"]
    assert found["fp", "stranger", tuple(ELSEWHERE)] == ["nothing"]
    assert found["fn", "litter", tuple(WHOLE)] == ["wrong_class"]


@rule("reasons")
def test_rule_reasons_at_a_threshold_below_a_tenth_know_nothing_poor(reasons):
    box = ("litter", [0, 0, 10, 0.4])  # 1/25
    assert reasons([("litter", WHOLE)], [box], level=0.05)["fp", *key(box)] == ["nothing"]


def key(one):
    return one[0], tuple(one[1])


# -- against the definitions


corner = st.integers(0, 8)
box = st.builds(lambda x, y, w, h: [x, y, x + w, y + h], corner, corner, st.integers(1, 8), st.integers(1, 8))


@st.composite
def benchmarks(draw):
    """Two models on a few images, with predicted names outside the list and answers that are invalid or missing."""

    def said(names, most):
        return draw(st.lists(st.tuples(st.sampled_from(names), box), max_size=most))

    images = [f"i{number}" for number in range(draw(st.integers(1, 3)))]
    gold = {image: said(list(CLASSES), 6) for image in images}
    answers = {}
    for model in "ab":
        states = {image: draw(st.sampled_from(["valid", "valid", "valid", "invalid", "missing"])) for image in images}
        answers[model] = {
            image: "invalid" if state == "invalid" else said([*CLASSES, "stranger", "alien"], 6)
            for image, state in states.items()
            if state != "missing"
        }
    return Plain(CLASSES, gold, answers)


def slow_reasons(rows, level):
    """The reason of every row of one image, model and threshold, word for word by the definition."""
    golds = [row for row in rows if row["outcome"] != "fp"]
    false = [row for row in rows if row["outcome"] == "fp"]

    def clues(mine, my_side, others, side):
        for other in others:
            overlap = exact_iou(
                *([row[f"{at}_{name}"] for name in BOX_COLUMNS] for row, at in ((mine, my_side), (other, side)))
            )
            reached = overlap >= Fraction(str(level)) - Fraction(1, 10**9)
            if reached:
                yield "duplicate" if mine["class"] == other["class"] else "wrong_class"
            elif overlap >= Fraction(1, 10) - Fraction(1, 10**9) and mine["class"] == other["class"]:
                yield "poor_iou"

    for row in rows:
        if row["outcome"] == "tp":
            yield None
            continue
        is_false = row["outcome"] == "fp"
        found = set(clues(row, "predicted", golds, "gold") if is_false else clues(row, "gold", false, "predicted"))
        assert is_false or "duplicate" not in found
        order = ("duplicate", "wrong_class", "poor_iou")
        yield next((name for name in order if name in found), "nothing" if is_false else "missed")


@given(benchmarks())
@settings(max_examples=40, deadline=None)
def test_reasons_are_those_of_the_definition(tmp_path_factory, plain):
    table = explained(read(plain, tmp_path_factory.mktemp("reasons")), LEVELS)
    for (_, level, _), rows in table.groupby(["model", "iou", "image_id"], observed=True):
        found = [None if pd.isna(reason) else reason for reason in rows["reason"]]
        assert found == list(slow_reasons(rows.to_dict("records"), level))


@given(benchmarks())
@settings(max_examples=40, deadline=None)
def test_leftovers_are_paired_by_a_largest_matching_of_the_largest_overlap(tmp_path_factory, plain):
    """Pairs are recognised by their classes: how many of each there are must be a best matching's, and its sum attainable."""
    table = explained(read(plain, tmp_path_factory.mktemp("partners")), [0.3, 0.5])
    for (_, level, _), rows in table.groupby(["model", "iou", "image_id"], observed=True):
        missed, false = (rows[rows["outcome"] == name].to_dict("records") for name in ("fn", "fp"))
        weights = {}
        for (g, gold), (p, predicted) in itertools.product(enumerate(missed), enumerate(false)):
            pair = [gold[f"gold_{name}"] for name in BOX_COLUMNS], [predicted[f"predicted_{name}"] for name in BOX_COLUMNS]
            if qualifies(*pair, level):
                weights[g, p] = exact_iou(*pair)
        best = best_by_search(weights)
        mine = {  # only pairs of the classes that were booked, and only boxes that were booked as paired
            (g, p): weight
            for (g, p), weight in weights.items()
            if (missed[g]["confused_with"], false[p]["confused_with"]) == (false[p]["class"], missed[g]["class"])
        }
        assert best_by_search(mine) == best
        booked = [sum(not pd.isna(row["confused_with"]) for row in side) for side in (missed, false)]
        assert booked == [best[0], best[0]]
        for row in (row for row in [*missed, *false] if not pd.isna(row["confused_with"])):
            assert row["reason"] in ("wrong_class", "duplicate")
            assert row["reason"] == "wrong_class" or row["outcome"] == "fp"


@rule("confusion")
@given(benchmarks())
@settings(max_examples=40, deadline=None)
def test_rule_confusion_margins_are_the_counts_of_every_scope(tmp_path_factory, plain):
    benchmark = read(plain, tmp_path_factory.mktemp("margins"))
    iou = (0.3, 0.5)
    table = evalkit.confusion(benchmark, explained(benchmark, iou), iou=iou)
    assert list(table.columns) == ["model", "scope", "iou", "gold", "predicted", "count"]
    assert (table["count"] > 0).all()
    assert not table.duplicated(["model", "scope", "iou", "gold", "predicted"]).any()
    assert not (table["gold"].isna() & table["predicted"].isna()).any()
    rows, columns, diagonal = Counter(), Counter(), Counter()
    for *where, gold, predicted, count in table.itertuples(index=False, name=None):
        rows[*where, gold] += count
        columns[*where, predicted] += count
        diagonal[*where, gold] += count * (gold == predicted)
    for model, scope, level in itertools.product(plain.answers, ("valid", "common", "all"), iou):
        for name in [*CLASSES, "stranger", "alien"]:
            counts = [image_counts(plain, model, image, level).get(name, (0, 0, 0)) for image in images_of(plain, model, scope)]
            tp, fp, fn = (sum(one) for one in zip((0, 0, 0), *counts, strict=True))
            where = model, scope, level, name
            assert (diagonal[where], rows[where], columns[where]) == (tp, tp + fn, tp + fp)


@given(benchmarks())
@settings(max_examples=40, deadline=None)
def test_reasons_add_up_to_the_scores(tmp_path_factory, plain):
    """In every scope, for every class, every domain and the names outside the list."""
    benchmark = read(plain, tmp_path_factory.mktemp("sums"))
    table = evalkit.error_counts(benchmark, explained(benchmark, (0.3, 0.5)), iou=(0.3, 0.5))
    assert list(table.columns) == ["model", "scope", "iou", "domain", "class", "outcome", "reason", "count"]
    assert not table.duplicated([*table.columns[:-1]]).any()
    for outcome, reason in zip(table["outcome"], table["reason"], strict=True):
        assert reason in errors.REASONS_OF[outcome]
    sums = Counter()
    for model, scope, level, domain, name, outcome, _, count in table.itertuples(index=False, name=None):
        of_class = ("class", name) if name in CLASSES else ("outside", "outside")
        for part in (("overall", "overall"), ("domain", domain), of_class):
            sums[model, scope, level, *part, outcome] += count
    for (model, scope, task, level, kind, average, label), row in plain_scores(plain, (0.3, 0.5)).items():
        if task == "localisation" and not average.startswith("macro"):
            for outcome in ("fp", "fn"):
                assert sums[model, scope, level, kind, label, outcome] == row[outcome]


@given(benchmarks())
@settings(max_examples=20, deadline=None)
def test_images_are_listed_with_their_counts_the_worst_first(tmp_path_factory, plain):
    benchmark = read(plain, tmp_path_factory.mktemp("images"))
    table = evalkit.worst_images(benchmark, evalkit.count(benchmark, iou=(0.3, 0.5)))
    expected = []
    for model, level in itertools.product(plain.answers, (0.3, 0.5)):
        rows = []
        for image in images_of(plain, model, "valid"):
            counts = [*image_counts(plain, model, image, level).values(), (0, 0, 0)]
            tp, fp, fn = np.sum(counts, axis=0).tolist()
            rows += [(model, level, image, tp, fp, fn)] if fp + fn else []
        expected += sorted(rows, key=lambda row: (-row[4] - row[5], -row[5], row[2]))
    assert list(table.columns) == ["model", "iou", "image_id", "tp", "fp", "fn"]
    assert list(table.itertuples(index=False, name=None)) == expected


def test_of_equally_bad_images_the_one_with_more_missed_boxes_is_worse_then_the_ids_decide(make_benchmark):
    gold, false = [*WHOLE, "litter"], [*ELSEWHERE, "litter"]
    images = {"0": ([], [false]), "b": ([gold], []), "a": ([gold], []), "both": ([gold], [false]), "fine": ([gold], [gold])}
    benchmark = make_benchmark(
        {image: sides[0] for image, sides in images.items()}, {"m": {image: sides[1] for image, sides in images.items()}}
    )
    table = evalkit.worst_images(benchmark, evalkit.count(benchmark, iou=[0.5]))
    assert table["image_id"].tolist() == ["both", "a", "b", "0"]


# -- what must not matter


def as_text(table):
    """A table without the categories' order, sorted by all that it holds."""
    table = table.astype({name: object for name in table if table[name].dtype == "category"})
    return table.sort_values(list(table.columns), ignore_index=True)


@rule("reasons")
@rule("confusion")
@given(benchmarks(), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_rules_reasons_and_confusion_do_not_depend_on_the_order_of_rows(tmp_path_factory, plain, chance):
    def mixed(said):
        return said if said == "invalid" else chance.sample(said, len(said))

    images = chance.sample(list(plain.gold), len(plain.gold))
    gold = {image: mixed(plain.gold[image]) for image in images}
    answers = {model: {image: mixed(said[image]) for image in images if image in said} for model, said in plain.answers.items()}
    first, second = (read(one, tmp_path_factory.mktemp("order")) for one in (plain, Plain(CLASSES, gold, answers)))
    matches = evalkit.match(second)
    tables = [explained(first, (0.3, 0.4, 0.5)), evalkit.explain(matches)]
    shuffled = matches.iloc[chance.sample(range(len(matches)), len(matches))]
    tables.append(evalkit.explain(shuffled))
    for table in tables[1:]:
        pd.testing.assert_frame_equal(as_text(table), as_text(tables[0]), check_exact=True)
    for function in (evalkit.confusion, evalkit.error_counts):
        pd.testing.assert_frame_equal(as_text(function(second, tables[2])), as_text(function(first, tables[0])))


@given(benchmarks())
@settings(max_examples=20, deadline=None)
def test_reasons_do_not_depend_on_how_the_pairs_are_cut(tmp_path_factory, plain):
    matches = evalkit.match(read(plain, tmp_path_factory.mktemp("cut")), iou=LEVELS)
    whole = evalkit.explain(matches)
    with pytest.MonkeyPatch.context() as patch:
        for chunk in (1, 3):
            patch.setattr(errors, "pair_chunks", functools.partial(boxes.pair_chunks, chunk=chunk))
            pd.testing.assert_frame_equal(evalkit.explain(matches), whole)


@rule("reasons")
def test_rule_reasons_change_nothing_that_was_there(tmp_path):
    gold, said = [("litter", WHOLE), ("pothole", ELSEWHERE)], [("pothole", WHOLE), ("litter", [0, 0, 10, 4])]
    benchmark = read(Plain(CLASSES, {"i": gold}, {"m": {"i": said}}), tmp_path)
    matches = evalkit.match(benchmark)
    before = matches.copy()
    found = evalkit.explain(matches)
    pd.testing.assert_frame_equal(matches, before)
    pd.testing.assert_frame_equal(found.drop(columns=["reason", "confused_with"]), before)
    counts = evalkit.count(benchmark)
    for table in (evalkit.error_counts, evalkit.confusion):
        table(benchmark, found)
    pd.testing.assert_frame_equal(evalkit.count(benchmark), counts)


# -- the confusion matrix by hand


@rule("confusion")
def test_rule_confusion_pairs_leftovers_one_to_one(tmp_path):
    """Two potholes where gold has one piece of litter: one is taken for it, the other for nothing, which is no class."""
    gold = {"i": [("litter", WHOLE), ("pothole", ELSEWHERE)], "unread": [("litter", WHOLE)]}
    said = {"i": [("pothole", WHOLE), ("pothole", [0, 0, 10, 9]), ("nothing", [80, 80, 90, 90])], "unread": "invalid"}
    benchmark = read(Plain(CLASSES, gold, {"m": said}), tmp_path)
    table = evalkit.confusion(benchmark, explained(benchmark))
    cells = {
        scope: {
            tuple(None if pd.isna(name) else name for name in pair[:2]): pair[2]
            for pair in rows[["gold", "predicted", "count"]].itertuples(index=False, name=None)
        }
        for scope, rows in table.groupby("scope")
    }
    expected = {("litter", "pothole"): 1, ("pothole", None): 1, (None, "pothole"): 1, (None, "nothing"): 1}
    assert cells["valid"] == cells["common"] == expected
    assert cells["all"] == {**expected, ("litter", None): 1}


@rule("confusion")
def test_rule_confusion_takes_the_largest_overlap_then_coordinates_then_the_class(tmp_path):
    """A missed box under two false ones: the better one is its partner; of equal ones the left one, then the first class."""
    gold = ("litter", [2, 0, 12, 10])
    for said, partner in (
        ([("nothing", gold[1]), ("pothole", [2, 0, 12, 9])], "nothing"),
        ([("nothing", [0, 0, 10, 10]), ("pothole", [4, 0, 14, 10])], "nothing"),  # 8/12 either way
        ([("pothole", [0, 0, 10, 10]), ("nothing", [4, 0, 14, 10])], "pothole"),
        ([("nothing", gold[1]), ("pothole", gold[1])], "pothole"),
    ):
        for order in (said, said[::-1]):
            matches = evalkit.match(read(Plain(CLASSES, {"i": [gold]}, {"m": {"i": order}}), tmp_path), iou=[0.5])
            for rows in (matches, matches.iloc[::-1]):
                table = evalkit.explain(rows)
                assert table.loc[table["outcome"] == "fn", "confused_with"].tolist() == [partner]
                assert table.loc[table["confused_with"] == "litter", "class"].tolist() == [partner]


# -- nothing to look at


@pytest.mark.parametrize("said", [{}, {"i": "invalid"}, {"i": []}])
@pytest.mark.parametrize("gold", [[], [("litter", WHOLE)]])
def test_without_matches_the_tables_have_their_columns_and_the_view_its_gold(tmp_path, gold, said):
    benchmark = read(Plain(CLASSES, {"i": gold}, {"m": said}), tmp_path)
    table = explained(benchmark, [0.7])
    assert table["reason"].dropna().tolist() == (["missed"] if gold and said == {"i": []} else [])
    found = evalkit.error_counts(benchmark, table, iou=[0.7])
    assert list(found.columns) == errors.ERROR_COLUMNS
    view = found[found["scope"] == "all"]
    assert view[["iou", "class", "reason", "count"]].to_numpy().tolist() == [[0.7, "litter", "missed", 1]] * len(gold)
    assert evalkit.confusion(benchmark, table, iou=[0.7])["count"].sum() == len(gold) * (3 if said == {"i": []} else 1)
    assert list(evalkit.worst_images(benchmark, evalkit.count(benchmark, iou=[0.7])).columns) == errors.IMAGE_COLUMNS


# -- the figures and files


@pytest.fixture
def mixed(tmp_path):
    """One image with an error of every reason, and the names that a figure must bear."""
    gold = [("litter", WHOLE), ("pothole", ELSEWHERE), ("litter", [20, 20, 30, 30]), ("nothing", [80, 0, 90, 10])]
    said = [("litter", WHOLE), ("litter", [0, 0, 10, 9]), ("$x^", ELSEWHERE), ("litter", [20, 20, 30, 24])]
    said.append(("pothole", [80, 80, 90, 90]))
    return read(
        Plain(CLASSES, {"i": gold, "j": []}, {"m": {"i": said, "j": []}, "perfect": {"i": gold, "j": []}}), tmp_path / "data"
    )


def test_bars_of_the_reasons_are_as_long_as_the_counts(mixed):
    counts = evalkit.error_counts(mixed, explained(mixed))
    both = figures.reasons(counts[counts["scope"] == "valid"], mixed.models)
    for axes, outcome in zip(both, ("fp", "fn"), strict=True):
        words = [text.get_text() for text in axes.get_legend().get_texts()]
        assert words == [errors.REASON_WORDS[reason] for reason in errors.REASONS_OF[outcome]]
        assert [[bar.get_width() for bar in bars] for bars in axes.containers] == [[1, 0]] * len(words)
        styles = [(bars[0].get_facecolor(), bars[0].get_hatch()) for bars in axes.containers]
        assert len({hatch for _, hatch in styles}) == len(styles)  # told apart without colour
        assert [text.get_text() for text in axes.get_yticklabels()] == ["m", "perfect"]
    plt.close(both[0].figure)


def test_reasons_of_no_error_are_drawn_as_empty_bars(mixed):
    counts = evalkit.error_counts(mixed, explained(mixed))
    both = figures.reasons(counts[counts["model"] == "perfect"], ["perfect"])
    assert [bar.get_width() for axes in both for bars in axes.containers for bar in bars] == [0] * 7
    plt.close(both[0].figure)


def test_the_matrix_has_the_classes_that_occur_and_nothing_last(mixed):
    table = evalkit.confusion(mixed, explained(mixed))
    axes = figures.confusion(table[(table["scope"] == "valid") & (table["model"] == "m")])
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == [text.get_text() for text in axes.get_xticklabels()] == ["litter", "pothole", "nothing", r"\$x^", "nothing"]
    cells = {(names[round(y)], names[round(x)], text.get_text()) for text in axes.texts for x, y in [text.get_position()]}
    assert ("pothole", r"\$x^", "1") in cells
    assert ("litter", "litter", "1") in cells
    plt.close(axes.figure)


def test_outcomes_are_told_apart_by_their_lines():
    lines = [style[1:] for style in figures.OUTCOME_STYLES.values()]
    assert len(set(lines)) == len(lines)
    axes = figures.outcomes_key()
    assert [text.get_text() for text in axes.texts] == list(figures.OUTCOME_STYLES)
    plt.close(axes.figure)


def test_names_of_boxes_that_would_lie_on_each_other_are_left_out(tmp_path):
    said = [("litter", [10 + at, 40, 60 + at, 70]) for at in range(8)] + [("pothole", [5, 5, 15, 15])]
    benchmark = read(Plain(CLASSES, {"i": [("pothole", [90, 90, 99, 99])]}, {"m": {"i": said}}), tmp_path)
    axes = figures.pictures(benchmark, ["i"], matches=evalkit.match(benchmark, iou=[0.5]), columns=1)[0, 0]
    names = [text.get_text() for text in axes.texts]
    assert names.count("pothole") == 2
    assert 1 <= names.count("litter") <= 2
    plt.close(axes.figure)


def test_score_writes_what_adds_up_to_its_scores(mixed, tmp_path):
    out = tmp_path / "out"
    command = ["score", "--benchmark", str(tmp_path / "data" / "benchmark.yml"), "--out", str(out), "--no-intervals", "--quiet"]
    assert CliRunner().invoke(main, command).exit_code == 0
    scores, found, matrix = (
        pd.read_csv(out / f"{name}.csv", keep_default_na=False) for name in ("scores", "errors", "confusion")
    )
    overall = scores[(scores["level"] == "overall") & (scores["average"] == "micro") & (scores["task"] == "localisation")]
    for row in overall.to_dict("records"):
        here, cells = (t[(t[["model", "scope"]] == [row["model"], row["scope"]]).all(axis=1)] for t in (found, matrix))
        here, cells = (t[t["iou"] == float(row["iou"])] for t in (here, cells))
        assert [here.loc[here["outcome"] == name, "count"].sum() for name in ("fp", "fn")] == [int(row["fp"]), int(row["fn"])]
        assert cells.loc[cells["gold"] != "", "count"].sum() == int(row["n_gold"])
        assert cells.loc[cells["predicted"] != "", "count"].sum() == int(row["tp"]) + int(row["fp"])
    matches = pd.read_parquet(out / "matches.parquet")
    assert set(matches.loc[matches["outcome"] != "tp", "reason"]) == set(errors.REASONS)
    assert pd.read_csv(out / "worst_images.csv").query("iou == 0.5").to_numpy().tolist() == [["m", 0.5, "i", 1, 4, 3]]

"""Semantic relaxation: every rule of the choice among matchings, a search over all of them, and the files it comes from."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import small
from click.testing import CliRunner
from helpers import rule
from hypothesis import given, settings
from hypothesis import strategies as st
from references import Plain, relaxed_image_counts, write_plain

import evalkit
from evalkit.cli import main
from evalkit.semantic import accepted_pairs, gains, related_pairs, relaxed_counts

CLASSES = ["bin", "litter", "rubbish", "waste"]
BOX = [0, 0, 10, 10]


def matrix(**cells):
    """A matrix as text: ones on the diagonal, else what ``gold_predicted=value`` says, else 0."""
    rows = [",".join(["", *CLASSES])]
    rows += [",".join([a, *(str(cells.get(f"{a}_{b}", int(a == b))) for b in CLASSES)]) for a in CLASSES]
    return "\n".join(rows) + "\n"


def write(folder, gold, said, relation, cutoff="0.5", classes=CLASSES):
    """A benchmark with a relation; ``gold`` and ``said`` are the boxes of one image, or mappings from images."""
    gold, said = (side if isinstance(side, dict) else {"a": side} for side in (gold, said))
    folder.mkdir(exist_ok=True, parents=True)
    plain = Plain(classes=dict.fromkeys(classes, ""), gold=gold, answers={"m": said})
    path = write_plain(plain, folder)
    (folder / "semantic.csv").write_text(relation, encoding="utf-8")
    options = json.loads(path.read_text())
    path.write_text(json.dumps(options | {"semantic": {"path": "semantic.csv", "cutoff": cutoff}}))
    return path


def relaxed(path, iou=(0.5,)):
    """The semantic counts of a benchmark, ``{class: (tp, fp, fn)}`` by threshold; 0 stands for class sets."""
    benchmark = evalkit.read_benchmark(path)
    counts = relaxed_counts(evalkit.count(benchmark, iou=iou), accepted_pairs(benchmark, iou=iou))
    assert (counts["relation"] == "semantic").all()
    return {
        level: {row[0]: row[1:] for row in rows[["class", "tp", "fp", "fn"]].itertuples(index=False, name=None)}
        for level, rows in counts.assign(iou=counts["iou"].fillna(0)).groupby("iou")
    }


@rule("semantic")
def test_a_related_class_is_accepted_from_the_cutoff_on(tmp_path):
    said = [("rubbish", BOX)]
    for value, found in (("0.5", True), ("0.49", False)):
        counts = relaxed(write(tmp_path / value, [("litter", BOX)], said, matrix(litter_rubbish=value)))
        for level in (0, 0.5):
            assert counts[level] == {"litter": (int(found), 0, int(not found)), "rubbish": (0, int(not found), 0)}


@rule("semantic")
def test_the_relation_has_a_direction(tmp_path):
    counts = relaxed(write(tmp_path, [("rubbish", BOX)], [("litter", BOX)], matrix(litter_rubbish=1)))
    assert counts[0] == {"rubbish": (0, 0, 1), "litter": (0, 1, 0)}


@rule("semantic")
def test_the_diagonal_is_accepted_whatever_it_says(tmp_path):
    counts = relaxed(write(tmp_path, [("bin", BOX)], [("bin", BOX)], matrix(bin_bin=0), cutoff="1"))
    assert counts == {0: {"bin": (1, 0, 0)}, 0.5: {"bin": (1, 0, 0)}}


@rule("semantic-choice")
def test_the_number_of_pairs_comes_before_exact_pairs(tmp_path):
    # litter-litter would leave bin and waste unmatched: bin takes litter, litter takes waste
    gold, said = [("bin", BOX), ("litter", BOX)], [("litter", BOX), ("waste", BOX)]
    counts = relaxed(write(tmp_path, gold, said, matrix(bin_litter=0.6, litter_waste=0.6)))
    assert counts[0] == counts[0.5] == {"bin": (1, 0, 0), "litter": (1, 0, 0), "waste": (0, 0, 0)}


@rule("semantic-choice")
def test_exact_pairs_come_before_the_sum_of_the_relation(tmp_path):
    # two pairs either way: litter-litter with bin-waste (0.5), or bin-litter with litter-waste (0.9 + 0.9)
    gold, said = [("bin", BOX), ("litter", BOX)], [("litter", BOX), ("waste", BOX), ("rubbish", BOX)]
    relation = matrix(bin_litter=0.9, litter_waste=0.9, bin_rubbish=0.5, litter_litter=0.1)
    benchmark = evalkit.read_benchmark(write(tmp_path, gold, said, relation))
    found = accepted_pairs(benchmark, iou=[0.5])
    for task in ("classification", "localisation"):
        rows = found[found["task"] == task]
        assert set(zip(rows["gold_class"], rows["predicted_class"], strict=True)) == {("litter", "litter"), ("bin", "rubbish")}


@rule("semantic-choice")
def test_the_sum_of_the_relation_comes_before_the_overlap(tmp_path):
    gold = [("litter", BOX)]
    said = [("rubbish", [0, 0, 10, 6]), ("waste", BOX)]  # IoU 0.6 and 1
    counts = relaxed(write(tmp_path, gold, said, matrix(litter_rubbish=0.9, litter_waste=0.8)))
    assert counts[0.5] == {"litter": (1, 0, 0), "rubbish": (0, 0, 0), "waste": (0, 1, 0)}


@rule("semantic-choice")
def test_the_overlap_comes_before_the_order_of_classes(tmp_path):
    said = [("rubbish", [0, 0, 10, 6]), ("waste", BOX)]
    counts = relaxed(write(tmp_path, [("litter", BOX)], said, matrix(litter_rubbish=0.8, litter_waste=0.8)))
    assert counts[0.5] == {"litter": (1, 0, 0), "rubbish": (0, 1, 0), "waste": (0, 0, 0)}
    assert counts[0] == {"litter": (1, 0, 0), "rubbish": (0, 0, 0), "waste": (0, 1, 0)}  # a class set has no overlap


@rule("semantic-choice")
def test_the_order_of_the_class_list_comes_last(tmp_path):
    gold, said = [("litter", BOX), ("bin", BOX)], [("waste", BOX)]
    relation = matrix(litter_waste=0.8, bin_waste=0.8)
    first = relaxed(write(tmp_path / "one", gold, said, relation))
    assert first[0] == first[0.5] == {"bin": (1, 0, 0), "litter": (0, 0, 1), "waste": (0, 0, 0)}
    other = relaxed(write(tmp_path / "two", gold, said, relation, classes=["litter", "bin", "rubbish", "waste"]))
    assert other[0] == other[0.5] == {"bin": (0, 0, 1), "litter": (1, 0, 0), "waste": (0, 0, 0)}


@rule("semantic")
def test_a_name_outside_the_class_list_is_accepted_for_nothing(tmp_path):
    everything = {f"{a}_{b}": 1 for a in CLASSES for b in CLASSES}
    counts = relaxed(write(tmp_path, [("litter", BOX)], [("unicorn", BOX)], matrix(**everything), cutoff="0"))
    assert counts[0] == counts[0.5] == {"litter": (0, 0, 1), "unicorn": (0, 1, 0)}


side = st.lists(
    st.tuples(
        st.sampled_from([*CLASSES, "unicorn"]),
        st.builds(lambda x, w: [x, 0, x + w, 4], st.integers(0, 3), st.integers(2, 5)),
    ),
    max_size=5,
)
quarters = st.dictionaries(
    st.sampled_from([(a, b) for a in CLASSES for b in CLASSES]), st.sampled_from(["0", "0.25", "0.5", "0.75", "1"])
)


@given(
    side.map(lambda boxes: [one for one in boxes if one[0] != "unicorn"]), side, quarters, st.sampled_from(["0", "0.5", "0.75"])
)
@settings(deadline=None, max_examples=150)
def test_counts_are_those_of_a_search_over_all_matchings(tmp_path_factory, gold, said, cells, cutoff):
    relation = matrix(**{f"{a}_{b}": value for (a, b), value in cells.items()})
    path = write(tmp_path_factory.mktemp("search"), gold, said, relation, cutoff)
    values = {(a, b): Fraction(cells.get((a, b), str(int(a == b)))) for a in CLASSES for b in CLASSES}
    found = relaxed(path, iou=(0.3, 0.5))
    for level in (0, 0.3, 0.5):
        expected = relaxed_image_counts(gold, said, CLASSES, values, Fraction(cutoff), level or None)
        assert found.get(level, {}) == expected, level


def test_an_identity_relation_gives_the_exact_counts(toytown):
    names = toytown.classes["class_name"]
    identity = evalkit.tables.Relation(pd.DataFrame(np.eye(len(names)), index=names, columns=names), 0.5)
    exact = evalkit.count(toytown)
    found = relaxed_counts(exact, accepted_pairs(dataclasses.replace(toytown, relation=identity)))
    pd.testing.assert_frame_equal(found.drop(columns="relation"), exact.drop(columns="relation"))


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    """A small sample; its relation is the sample's own."""
    from evalkit.sample import write_sample

    return evalkit.read_benchmark(write_sample(tmp_path_factory.mktemp("semantic") / "toytown", images=60))


def test_gains_and_related_pairs_add_up(toytown):
    counts = evalkit.count(toytown)
    accepted = accepted_pairs(toytown)
    scores = evalkit.scores(toytown, pd.concat([counts, relaxed_counts(counts, accepted)], ignore_index=True))
    table = gains(scores)
    keys = ["model", "scope", "task", "iou", "level", "average", "label"]
    assert not table.duplicated(keys).any()
    for row in table[(table["level"] == "overall") & (table["average"] == "micro")].itertuples():
        where = {"model": row.model, "scope": row.scope, "task": row.task, "level": "overall", "average": "micro"}
        where["iou"] = None if np.isnan(row.iou) else row.iou
        one, other = (small.the_row(scores, relation=name, **where) for name in ("exact", "semantic"))
        assert (row.tp_exact, row.tp_semantic, row.gain) == (one["tp"], other["tp"], other["f2"] - one["f2"])
        assert row.tp_semantic >= row.tp_exact
        assert one["n_gold"] == other["n_gold"]
        assert one["tp"] + one["fp"] == other["tp"] + other["fp"]
        pairs = small.rows(accepted, model=row.model, task=row.task, iou=where["iou"])
        if row.scope == "valid":
            assert len(pairs) == row.tp_semantic
            related = small.rows(related_pairs(accepted), model=row.model, task=row.task, iou=where["iou"])
            assert related["pairs"].sum() == (pairs["gold_class"].astype(str) != pairs["predicted_class"].astype(str)).sum()


def test_the_order_of_rows_decides_nothing(tmp_path):
    gold = [("litter", [x, 0, x + 10, 10]) for x in (0, 1, 2)] + [("bin", [0, 0, 10, 10])]
    said = [("rubbish", [x, 0, x + 10, 10]) for x in (2, 0)] + [("litter", [1, 0, 11, 10])]
    relation = matrix(litter_rubbish=0.8, bin_rubbish=0.8, bin_litter=0.7)
    tables = []
    for at, (one, other) in enumerate([(gold, said), (gold[::-1], said[::-1])]):
        path = write(tmp_path / str(at), one, other, relation)
        found = accepted_pairs(evalkit.read_benchmark(path), iou=[0.3])
        tables.append(found.sort_values(["task", "gold_class", "predicted_class", "overlap"], ignore_index=True))
    pd.testing.assert_frame_equal(*tables)


BROKEN = {
    "not square": (
        "," + ",".join(CLASSES) + "\nbin,1,0,0,0\n",
        "semantic.csv: the matrix has 1 rows and 4 columns of classes; it must be square",
    ),
    "lacks a class": (",bin,litter\nbin,1,0\nlitter,0,1\n", "class 'rubbish' of the class list is missing [relation.class]"),
    "unknown class": (
        matrix().replace("waste,", "Waste,"),
        "class 'Waste' is not in the class list ('Waste' differs only by case",
    ),
    "twice": (matrix().replace("waste,", "bin,"), "semantic.csv, line 5: class 'bin' stands there twice"),
    "above one": (matrix(bin_litter=1.5), "line 2: 'bin' by 'litter' must be a number from 0 to 1, not '1.5'"),
    "no number": (matrix(bin_litter="x"), "'bin' by 'litter' must be a number from 0 to 1, not 'x'"),
    "empty cell": (matrix(bin_litter=""), "'bin' by 'litter' must be a number from 0 to 1, not ''"),
    "nan": (matrix(bin_litter="nan"), "'bin' by 'litter' must be a number from 0 to 1, not 'nan'"),
    "only a header": (",".join(CLASSES) + "\n", "the matrix has 0 rows and 4 columns"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_matrix_is_refused(tmp_path, name):
    relation, message = BROKEN[name]
    done = CliRunner().invoke(main, ["check", "--benchmark", str(write(tmp_path, [("bin", BOX)], [], relation))])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize("cutoff", ["1.5", "-0.1", "half", "", "nan"])
def test_a_cutoff_outside_zero_to_one_is_refused(tmp_path, cutoff):
    done = CliRunner().invoke(main, ["check", "--benchmark", str(write(tmp_path, [("bin", BOX)], [], matrix(), cutoff))])
    assert done.exit_code == 2
    assert f"benchmark.yml, semantic: the cut-off must be a number from 0 to 1, not {cutoff!r}" in done.output


def test_rows_without_names_stand_in_the_order_of_the_header(tmp_path):
    relation = "waste,bin,litter,rubbish\n1,0,0,0\n0,1,0,0\n0,0,1,0.7\n0,0,0,1\n"
    found = evalkit.read_benchmark(write(tmp_path, [("bin", BOX)], [], relation)).relation.values
    assert list(found.index) == list(found.columns) == CLASSES
    assert found.loc["litter", "rubbish"] == 0.7
    assert found.to_numpy().sum() == 4.7


def test_without_a_relation_there_are_no_semantic_counts(make_benchmark):
    with pytest.raises(evalkit.EvalkitError, match="the benchmark has no semantic relation"):
        accepted_pairs(make_benchmark({"a": [[0, 0, 1, 1, "bin"]]}, {"m": {"a": []}}))


def test_score_writes_semantic_rows_beside_the_exact_ones(tmp_path):
    path = write(tmp_path / "data", [("litter", BOX)], [("rubbish", BOX)], matrix(litter_rubbish=1))
    plain = tmp_path / "plain"
    parts = ["--classes", str(path.parent / "classes.csv"), "--gold", str(path.parent / "gold.jsonl")]
    parts += ["--predictions", f"m={path.parent / 'answers0.jsonl'}"]
    relation = ["--semantic", str(path.parent / "semantic.csv"), "--cutoff", "0.5"]
    for out, options in (
        (tmp_path / "yml", ["--benchmark", str(path)]),
        (plain, parts),
        (tmp_path / "parts", [*parts, *relation]),
    ):
        done = CliRunner().invoke(main, ["score", *options, "--out", str(out), "--replicates", "100"])
        assert done.exit_code == 0, done.output
    scores = pd.read_csv(tmp_path / "yml" / "scores.csv")
    exact, relaxed_rows = (scores[scores["relation"] == name].drop(columns="relation") for name in ("exact", "semantic"))
    assert len(exact) == len(relaxed_rows)
    pd.testing.assert_frame_equal(exact.reset_index(drop=True), pd.read_csv(plain / "scores.csv").drop(columns="relation"))
    pd.testing.assert_frame_equal(scores, pd.read_csv(tmp_path / "parts" / "scores.csv"))
    pairs = pd.read_csv(tmp_path / "yml" / "semantic_pairs.csv")
    assert list(pairs.columns) == ["model", "task", "iou", "gold_class", "predicted_class", "value", "pairs"]
    assert set(pairs["gold_class"]) == {"litter"}
    assert set(pairs["predicted_class"]) == {"rubbish"}
    assert (pairs["pairs"] == 1).all()
    assert not (plain / "semantic_pairs.csv").exists()
    assert set(pd.read_parquet(tmp_path / "yml" / "counts.parquet")["relation"]) == {"exact", "semantic"}


@pytest.mark.parametrize("options", [["--semantic", "x.csv"], ["--cutoff", "0.5"]])
def test_the_matrix_and_the_cutoff_come_together(options):
    done = CliRunner().invoke(main, ["check", "--gold", "gold.jsonl", *options])
    assert done.exit_code == 2
    assert "--semantic and --cutoff" in done.output

"""Published values against ours: what is equal, what differs, what is missing, and files that cannot be compared."""

import json
import re

import pandas as pd
import pytest
import small
from click.testing import CliRunner
from helpers import rule

import evalkit
from evalkit.cli import main
from evalkit.formats.options import PublishedOptions
from evalkit.published import TABLES, check_file, failed, summary

BOX, FAR = [0, 0, 10, 10, "bin"], [50, 50, 60, 60, "bin"]
GOLD = {"a": [BOX], "b": [BOX, FAR], "c": []}
SAID = {"m": {"a": [BOX], "b": [BOX], "c": [FAR]}}  # boxes: TP 2, FP 1, FN 1
HEAD = {"model": "m", "scope": "valid", "task": "localisation", "iou": "0.50", "relation": "exact"}
HEAD |= {"level": "overall", "average": "micro", "label": "overall"}
F2 = 5 * 2 / (5 * 2 + 1 + 4 * 1)


@pytest.fixture
def computed(make_benchmark):
    benchmark = make_benchmark(GOLD, SAID)
    return evalkit.scores(benchmark, evalkit.count(benchmark))


def published(folder, *rows, name="published.csv"):
    path = folder / name
    pd.DataFrame(rows, dtype=object).to_csv(path, index=False)
    return path


def check(computed, path, **options):
    return check_file(computed, path.parent, PublishedOptions(path=path.name, **options), table="scores")


@rule("published")
@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"f2": f"{F2:.12f}"}, "equal"),
        ({"f2": f"{F2 + 0.9e-9:.12f}"}, "equal"),
        ({"f2": f"{F2 + 1.1e-9:.12f}"}, "differs"),
        ({"f2": "0.667"}, "equal"),  # 2/3 in the three digits that were published
        ({"f2": "0.666"}, "differs"),
        ({"tp": "2", "fp": "1", "fn": "1"}, "equal"),
        ({"tp": "2", "fp": "2", "fn": "1"}, "differs"),
        ({"f2": ""}, "equal"),  # a blank was not published
        ({"f2": "0.6666666667", "recall": "0.67"}, "differs"),  # the most digits of the file count for all of it
    ],
)
def test_counts_are_equal_and_ratios_agree_in_the_digits_published(computed, tmp_path, values, result):
    found = check(computed, published(tmp_path, HEAD | values))
    assert found["result"].iloc[0] == result
    assert found["compared"].iloc[0] == sum(cell != "" for cell in values.values())
    assert bool(found["differences"].iloc[0]) == (result == "differs")
    assert failed(found) == (result == "differs")


def test_what_differs_is_told_in_words(computed, tmp_path):
    found = check(computed, published(tmp_path, HEAD | {"tp": "3", "f2": "0.7"}))
    assert found["differences"].iloc[0] == "tp 3 published, 2 computed"  # 0.7 is 2/3 to one digit
    assert summary(found, table="scores").startswith("scores: 0 of 1 published rows equal; 1 differ; ")


@rule("published")
def test_missing_and_extra_rows_are_reported(computed, tmp_path):
    found = check(computed, published(tmp_path, HEAD | {"tp": "2"}, HEAD | {"model": "other", "tp": "2"}))
    assert list(found["result"][:2]) == ["equal", "missing"]
    assert set(found["result"][2:]) == {"not published"}
    assert len(found) == len(computed) + 1
    assert failed(found) == 1  # a row that nobody published is no failure


@rule("published")
def test_interval_ends_have_a_tolerance_of_their_own(make_benchmark, tmp_path):
    benchmark = make_benchmark(GOLD, SAID)
    counts = evalkit.count(benchmark)
    table = evalkit.add_intervals(evalkit.scores(benchmark, counts), evalkit.bootstrap(benchmark, counts, replicates=100))
    low = small.headline(table)["f2_low"]
    path = published(tmp_path, HEAD | {"f2": f"{F2:.12f}", "f2_low": f"{low + 0.004:.12f}"})
    assert check(table, path)["result"].iloc[0] == "differs"
    assert check(table, path, interval_tolerance="0.005")["result"].iloc[0] == "equal"


def test_a_number_that_is_undefined_in_ours_differs(make_benchmark, tmp_path):
    benchmark = make_benchmark({"a": [BOX]}, {"m": {"a": None}})
    table = evalkit.scores(benchmark, evalkit.count(benchmark))
    found = check(table, published(tmp_path, HEAD | {"f2": "0.0"}))
    assert found["differences"].iloc[0] == "f2 0.0 published, undefined computed"


def test_names_of_columns_are_mapped_and_constants_filled(computed, tmp_path):
    row = {"name": "m", "threshold": 0.5, "F2": f"{F2:.12f}", "f2": "another column"}
    fill = {name: HEAD[name] for name in TABLES["scores"].key if name not in ("model", "iou")}
    found = check(computed, published(tmp_path, row), columns={"model": "name", "iou": "threshold", "f2": "F2"}, fill=fill)
    assert (found["result"].iloc[0], found["compared"].iloc[0]) == ("equal", 1)


@pytest.mark.parametrize("shape", ["list", "objects"])
def test_json_is_read_with_its_digits(computed, tmp_path, shape):
    cell = {"iou": 0.5, "f2": "F2_CELL", "note": {"nested": 1}}
    rows = [{"model": "m", **cell}] if shape == "list" else {"m": cell}
    path = tmp_path / "published.json"
    path.write_text(json.dumps({"results": {"boxes": rows}}).replace('"F2_CELL"', "0.6670"), encoding="utf-8")
    fill = {name: HEAD[name] for name in TABLES["scores"].key if name not in ("model", "iou")}
    options = {"records": "results.boxes", "index": "model" if shape == "objects" else "", "fill": fill}
    assert check(computed, path, **options)["differences"].iloc[0].startswith("f2 0.6670 published, 0.666666666667 computed")
    path.write_text(path.read_text().replace("0.6670", "0.667"), encoding="utf-8")
    assert check(computed, path, **options)["result"].iloc[0] == "equal"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([HEAD | {"f2": "high"}], "published.csv, line 2: f2 must be a number, not 'high' [published.number]"),
        ([HEAD | {"f2": "inf"}], "f2 must be a number, not 'inf'"),
        ([HEAD | {"tp": "2"}, HEAD | {"tp": "2", "iou": "0.5"}], "published.csv, line 3: a row with this key was there"),
        ([{"model": "m", "f2": "1"}], "it lacks the key columns scope, task, iou, relation, level, average, label"),
        ([HEAD], "none of its columns is a value of scores"),
    ],
)
def test_a_table_that_cannot_be_compared_is_refused(computed, tmp_path, rows, message):
    with pytest.raises(evalkit.DataError) as error:
        check(computed, published(tmp_path, *rows))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "records", "message"),
    [
        ("[1]", "", "its rows must be a list of objects"),
        ("{", "", "this is not JSON"),
        ('{"a": []}', "b", "`records` 'b': there is no 'b'"),
        ("[]", "", "it lacks the key column"),
    ],
)
def test_json_that_cannot_be_compared_is_refused(computed, tmp_path, text, records, message):
    (tmp_path / "p.json").write_text(text, encoding="utf-8")
    with pytest.raises(evalkit.DataError) as error:
        check(computed, tmp_path / "p.json", records=records)
    assert message in str(error.value)


def test_the_command_fails_on_a_difference_and_keeps_its_results(write_benchmark, tmp_path):
    path = write_benchmark(GOLD, SAID)
    run = CliRunner().invoke
    first = ["score", "--benchmark", str(path), "--replicates", "100"]
    assert run(main, [*first, "--out", str(tmp_path / "one")]).exit_code == 0
    table = tmp_path / "one" / "scores.csv"
    same = run(main, [*first, "--out", str(tmp_path / "two"), "--published", str(table)])
    assert same.exit_code == 0, same.output
    rows = len(pd.read_csv(table))
    assert f"scores: {rows:,} of {rows:,} published rows equal" in same.output
    assert (pd.read_csv(tmp_path / "two" / "published_scores.csv")["result"] == "equal").all()

    (path.parent / "m.jsonl").write_text((path.parent / "m.jsonl").read_text().replace("[50, 50, 60, 60]", "[0, 0, 10, 10]"))
    other = run(main, [*first, "--out", str(tmp_path / "three"), "--published", str(table)])
    assert other.exit_code == 0  # the false box moved, and is false still: no score can tell
    (path.parent / "m.jsonl").write_text('{"image_id": "a", "boxes": []}\n')
    changed = run(main, [*first, "--out", str(tmp_path / "four"), "--published", str(table)])
    assert changed.exit_code == 1
    assert "published values are not reproduced" in changed.output
    assert (tmp_path / "four" / "scores.csv").exists()


def test_the_table_that_the_benchmark_names_is_used(write_benchmark, tmp_path):
    path = write_benchmark(GOLD, SAID)
    run = CliRunner().invoke
    score = ["score", "--benchmark", str(path), "--no-intervals", "--out", str(tmp_path / "out")]
    nothing = run(main, [*score, "--published"])
    assert nothing.exit_code == 2
    assert "needs `published: {scores: ...}` in benchmark.yml" in nothing.output
    published(path.parent, HEAD | {"f2": "0.7777"}, name="p.csv")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"published": {"scores": "p.csv"}}))
    assert run(main, score).exit_code == 0  # it is asked for, not forced
    found = run(main, [*score, "--published"])
    assert found.exit_code == 1
    assert "f2 0.7777 published, 0.666666666667 computed" in found.output


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"scores": {"path": "p.csv", "colums": {}}}, "benchmark.yml, published, scores: unknown key 'colums'"),
        ({"score": "p.csv"}, "benchmark.yml, published: unknown key 'score'; did you mean 'scores'?"),
        ({"scores": {"path": "p.csv", "interval_tolerance": "-1"}}, "interval_tolerance must be a number from 0 on, not '-1'"),
        ({"scores": "absent.csv"}, "absent.csv: there is no file"),
        ("p.csv", "benchmark.yml, published: "),
    ],
)
def test_a_wrong_block_is_refused(write_benchmark, tmp_path, said, message):
    path = write_benchmark(GOLD, SAID)
    published(path.parent, HEAD | {"f2": "0.7"}, name="p.csv")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"published": said}))
    done = CliRunner().invoke(
        main, ["score", "--benchmark", str(path), "--published", "--no-intervals", "--out", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert message in done.output


def test_the_tables_have_the_columns_of_ours(computed):
    known = TABLES["scores"]
    assert set(known.key + known.counts + known.values + known.intervals) <= set(computed.columns)
    assert not computed.duplicated(known.key).any()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["score", "agree", "points"])
def test_the_sample_reproduces_its_frozen_tables(tmp_path, command):
    """Frozen values, not derived ones (tests/freeze.py): they hold still what the sample comes out as."""
    from evalkit.sample import write_sample

    path = write_sample(tmp_path / "toytown")
    done = CliRunner().invoke(main, [command, "--benchmark", str(path), "--published", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert re.search(r": ([\d,]+) of \1 published rows equal", done.output)


def test_a_smaller_sample_names_no_published_tables(tmp_path):
    from evalkit.sample import write_sample

    path = write_sample(tmp_path / "toytown", images=12)
    assert "published:" not in path.read_text()
    assert not (path.parent / "published").exists()

"""The command line: what each command prints and writes, and with which status it ends."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import small
from click.testing import CliRunner
from references import OUTCOMES, Plain, ratios, write_plain

import evalkit
from evalkit.cli import main
from evalkit.intervals import COMPARISON_COLUMNS

PROJECT = Path(__file__).resolve().parents[1]
BOX = [0, 0, 10, 10]
PLAIN = Plain(
    classes={"litter": "street", "pothole": "road", "crack": "road"},
    gold={"a": [("litter", BOX), ("pothole", [20, 20, 30, 30])], "b": [("litter", BOX)], "c": []},
    answers={
        "careful": {"a": [("litter", [0, 0, 10, 6])], "b": [], "c": []},
        "eager": {"a": [("litter", BOX), ("unicorn", BOX)], "b": "invalid"},
    },
)
SCORES = [
    *("model", "scope", "task", "iou", "relation", "level", "average", "label", "tp", "fp", "fn", "precision", "recall", "f1"),
    *("f2", "f2_low", "f2_high", "replicates", "undefined", "reason", "n_images", "n_gold"),
]
COUNTS = ["model", "task", "iou", "relation", "image_id", "class", "tp", "fp", "fn"]
COVERAGE = [
    *("model", "scope", "models", "images", "valid", "invalid", "missing", "coverage", "negative_images"),
    *("negative_with_boxes", "negative_fpr", "negative_fpr_low", "negative_fpr_high", "fp_boxes_per_negative"),
]
FILES = [
    *("confusion.csv", "counts.parquet", "coverage.csv", "errors.csv", "matches.parquet", "run.json", "scores.csv"),
    "worst_images.csv",
]


@pytest.fixture
def path(tmp_path):
    return write_plain(PLAIN, tmp_path / "data")


def run(*arguments):
    found = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


def score(path, out, *arguments):
    found = run("score", "--benchmark", path, "--out", out, *arguments)
    assert found.exit_code == 0, found.stderr
    return found


def process(*arguments):
    return subprocess.run([sys.executable, "-m", "evalkit", *arguments], capture_output=True, text=True, check=False)


# -- help


def test_help_and_version_as_a_module():
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    found = process("--version")
    assert (found.returncode, found.stdout, found.stderr) == (0, f"evalkit, version {declared}\n", "")
    assert evalkit.__version__ == declared
    found = process("--help")
    assert found.returncode == 0
    assert "Exit status: 0 all is well, 1 a check failed, 2 bad input or usage." in found.stdout


@pytest.mark.parametrize("command", [*main.commands])
def test_every_command_explains_itself(command):
    for option in ("--help", "-h"):
        found = run(command, option)
        assert found.exit_code == 0
        assert f"Usage: main {command} [OPTIONS]" in found.stdout
    for parameter in main.commands[command].params:
        assert parameter.help, parameter.name
        assert parameter.opts[0] in found.stdout
    assert main.commands[command].help.splitlines()[0] != ""


def test_the_commands_are_listed():
    assert {"check", "score", "sample", "report"} <= main.commands.keys()
    found = run("--help")
    for command in main.commands:
        assert re.search(rf"^  {command} +\S", found.stdout, flags=re.MULTILINE)


@pytest.mark.parametrize("arguments", [["scores"], ["score"], ["score", "--benchmark"], ["check", "--none"], ["sample"]])
def test_wrong_usage_is_status_2_and_says_what_is_wrong(arguments):
    found = run(*arguments)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Error: " in found.stderr
    assert "Traceback" not in found.stderr


# -- check


def test_check_tells_what_there_is_and_what_was_noticed(path):
    found = run("check", "--benchmark", path)
    assert found.exit_code == 0
    first, *rest = found.stdout.splitlines()
    assert first == "Plain: images 3, negative images 1, gold boxes 3, classes 3, domains 2, models 2"
    table = [line.split() for line in rest]
    assert ["careful", "3", "3", "0", "0", "1.0000"] in table
    assert ["eager", "3", "1", "1", "1", "0.3333"] in table
    noticed = found.stdout.split("Noticed and accepted:\n")[1]
    against = [line.removeprefix("gold against predictions").split() for line in noticed.splitlines() if "eager" in line]
    assert against[:3] == [
        ["eager", "class_outside_list", "1", "unicorn"],
        ["eager", "invalid", "1", "b"],
        ["eager", "missing", "1", "c"],
    ]
    assert run("check", "--benchmark", path, "--quiet").output == ""


def test_check_of_one_model(path):
    found = run("check", "--benchmark", path, "--models", "careful")
    assert "models 1" in found.stdout
    assert "eager" not in found.stdout
    noticed = [line for line in found.stdout.partition("Noticed and accepted:\n")[2].splitlines() if "careful" in line]
    assert all("class_never_predicted" in line for line in noticed)  # its answers are in order


def test_check_writes_nothing(path, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    assert run("check", "--benchmark", path).exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before


# -- score: the files


def test_score_writes_the_tables_with_their_columns_in_order(path, tmp_path):
    found = score(path, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == FILES
    assert (tmp_path / "out" / "scores.csv").read_text().splitlines()[0] == ",".join(SCORES)
    assert (tmp_path / "out" / "coverage.csv").read_text().splitlines()[0] == ",".join(COVERAGE)
    assert list(pd.read_parquet(tmp_path / "out" / "counts.parquet").columns) == COUNTS
    matches = pd.read_parquet(tmp_path / "out" / "matches.parquet")
    assert {"model", "iou", "image_id", "class", "outcome", "overlap", "score"} <= set(matches.columns)
    assert found.stdout.splitlines()[-1].startswith(f"written to {tmp_path / 'out'}: ")
    for name in FILES:
        assert name in found.stdout.splitlines()[-1]


def test_scores_are_the_sums_of_the_counts_beside_them(path, tmp_path):
    score(path, tmp_path / "out")
    scores = pd.read_csv(tmp_path / "out" / "scores.csv", keep_default_na=False, dtype=str)  # every digit, on every pandas
    counts = pd.read_parquet(tmp_path / "out" / "counts.parquet")
    rows = scores.query("scope == 'all' and average == 'micro' and level == 'overall' and task == 'localisation'")
    assert len(rows) == 2 * 3
    for row in rows.itertuples():
        mine = counts[(counts["model"] == row.model) & (counts["iou"] == float(row.iou))]
        assert [int(getattr(row, name)) for name in OUTCOMES] == [mine[name].sum() for name in OUTCOMES]
        assert {name: float(getattr(row, name)) for name in ("precision", "recall", "f1", "f2")} == ratios(
            *(mine[name].sum() for name in OUTCOMES)
        )


def test_rows_of_the_scores_hold_the_documented_values(path, tmp_path):
    score(path, tmp_path / "out")
    scores = pd.read_csv(tmp_path / "out" / "scores.csv", keep_default_na=False)
    assert set(scores["model"]) == {"careful", "eager"}
    assert set(scores["scope"]) == {"valid", "common", "all"}
    assert set(scores["task"]) == {"classification", "localisation"}
    assert set(scores["iou"]) == {"", "0.3", "0.4", "0.5"}
    assert set(scores["relation"]) == {"exact"}
    assert set(scores["level"]) == {"overall", "domain", "class", "outside"}
    assert set(scores.loc[scores["level"] == "overall", "average"]) == {"micro", "macro", "macro_gold"}
    assert set(scores.loc[scores["level"] == "class", "average"]) == {""}
    assert set(scores.loc[scores["level"] == "domain", "label"]) == {"street", "road"}
    macro = scores[scores["average"].str.startswith("macro")]
    assert (macro[list(OUTCOMES)] == "").all(axis=None)
    assert set(scores["replicates"].astype(str)) == {"2000"}
    bounded = scores[scores["f2_low"] != ""]
    assert len(bounded) > 0
    for end, sign in (("f2_low", 1), ("f2_high", -1)):
        assert (sign * (bounded["f2"].astype(float) - bounded[end].astype(float)) >= -1e-12).all()
    bare = tmp_path / "bare"
    score(path, bare, "--no-intervals")
    without = pd.read_csv(bare / "scores.csv", keep_default_na=False)
    assert (without[["f2_low", "f2_high", "replicates", "undefined"]] == "").all(axis=None)
    rest = scores[~scores["average"].str.startswith("macro")]
    assert (rest["n_gold"].astype(int) == rest["tp"].astype(int) + rest["fn"].astype(int)).all()


def test_two_runs_write_the_same_bytes(path, tmp_path):
    score(path, tmp_path / "one")
    score(path, tmp_path / "two")
    for name in FILES:
        first, second = ((tmp_path / out / name).read_bytes() for out in ("one", "two"))
        if name == "run.json":
            records = [json.loads(text) for text in (first, second)]
            for record in records:
                assert record.pop("wall_time_seconds") >= 0
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.pop("time"))
            assert records[0] == records[1]
        else:
            assert first == second, name


def test_a_second_run_replaces_the_first_and_leaves_other_files(path, tmp_path):
    out = tmp_path / "out"
    score(path, out)
    (out / "notes.txt").write_text("mine")
    score(path, out, "--iou", "0.7")
    assert sorted(file.name for file in out.iterdir()) == sorted([*FILES, "notes.txt"])
    assert (out / "notes.txt").read_text() == "mine"
    assert set(pd.read_csv(out / "scores.csv")["iou"].dropna()) == {0.7}


def test_the_run_record_says_what_ran_on_which_files(path, tmp_path):
    score(path, tmp_path / "out", "--iou", "0.5", "--iou", "0.3")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["name"] == "Plain"
    assert record["parameters"] == {
        "benchmark": "benchmark.yml",
        "models": ["careful", "eager"],
        "iou": [0.3, 0.5],
        "zero_division": "0",
        "require_complete": False,
        "intervals": True,
        "replicates": 2000,
        "level": 0.95,
        "seed": 20260817,
    }
    assert record["states"] == {
        "careful": {"images": 3, "valid": 3, "invalid": 0, "missing": 0},
        "eager": {"images": 3, "valid": 1, "invalid": 1, "missing": 1},
    }
    inputs = {
        "classes": "classes.csv",
        "gold": "gold.jsonl",
        "predictions careful": "answers0.jsonl",
        "predictions eager": "answers1.jsonl",
    }
    hashes = {f"{role}: {name}": hashlib.sha256((path.parent / name).read_bytes()).hexdigest() for role, name in inputs.items()}
    assert record["inputs"] == hashes
    assert {"iou", "matcher", "confidence", "scope valid", "scope common", "view all", "macro"} <= record["rules"].keys()
    assert {"python", "evalkit", "numpy", "scipy", "pandas"} <= record["versions"].keys()
    assert str(tmp_path) not in (tmp_path / "out" / "run.json").read_text()


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_other_formats_hold_the_same_numbers(path, tmp_path, kind):
    score(path, tmp_path / "csv")
    score(path, tmp_path / kind, "--format", kind)
    names = [str(Path(name).with_suffix(f".{kind}")) if name.endswith(".csv") else name for name in FILES]
    assert sorted(file.name for file in (tmp_path / kind).iterdir()) == sorted(names)
    for table, columns in (("scores", SCORES), ("coverage", COVERAGE)):
        expected = pd.read_csv(tmp_path / "csv" / f"{table}.csv", keep_default_na=False, dtype=str).to_dict("records")
        file = tmp_path / kind / f"{table}.{kind}"
        if kind == "json":
            found = json.loads(file.read_text(), parse_constant=pytest.fail)
            assert all(list(row) == columns for row in found)
        else:
            assert list(pd.read_parquet(file).columns) == columns
            found = pd.read_parquet(file).astype(object).to_dict("records")
        assert len(found) == len(expected)
        for row, text in zip(found, expected, strict=True):
            undefined = undefined_ratios(text) if kind == "json" and table == "scores" else set()
            for name in columns:
                value = "" if row[name] is None or row[name] != row[name] or row[name] is pd.NA else row[name]
                if name in undefined:
                    assert value == ""
                elif text[name] == "" or isinstance(value, str):
                    assert value == str(text[name]), (table, name, text)
                else:
                    assert float(value) == float(text[name]), (table, name, text)


def undefined_ratios(row):
    """The ratios of a row of scores whose denominator is 0."""
    if row["average"].startswith("macro") or row["tp"] == "":
        return set()
    counts = (int(row[name]) for name in OUTCOMES)
    return {name for name, value in ratios(*counts, undefined=None).items() if value is None}


def test_json_has_null_for_what_is_undefined_and_only_there(path, tmp_path):
    score(path, tmp_path / "out", "--format", "json")
    rows = json.loads((tmp_path / "out" / "scores.json").read_text())
    one = [row for row in rows if (row["model"], row["scope"], row["iou"]) == ("careful", "valid", 0.5)]
    crack = next(row for row in one if row["label"] == "crack")
    assert [crack[name] for name in ("tp", "fp", "fn", "precision", "recall", "f1", "f2")] == [0, 0, 0, None, None, None, None]
    assert crack["reason"] == "no gold, no predictions"
    pothole = next(row for row in one if row["label"] == "pothole")  # missed: no prediction of it, one gold box
    assert [pothole[name] for name in ("precision", "recall", "f1", "f2")] == [None, 0 / 1, 0 / 1, 0 / 1]
    macro = next(row for row in one if row["average"] == "macro")  # litter: TP 1, FN 1; pothole: FN 1
    assert macro["recall"] == (1 / 2 + 0 / 1) / 2
    assert macro["f2"] == (5 / (5 + 4) + 0) / 2
    assert [macro[name] for name in OUTCOMES] == [None] * 3


def test_undefined_ratios_may_be_nan(path, tmp_path):
    score(path, tmp_path / "out", "--zero-division", "nan")
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    rows = scores.query("scope == 'valid' and model == 'careful' and iou == 0.5")
    crack = rows[rows["label"] == "crack"].iloc[0]
    assert crack[["precision", "recall", "f1", "f2"]].isna().all()
    assert rows.loc[rows["average"] == "macro", "recall"].tolist() == [(1 / 2 + 0 / 1) / 2]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["parameters"]["zero_division"] == "nan"


# -- score: the options


def test_models_define_the_common_scope(path, tmp_path):
    score(path, tmp_path / "both")
    score(path, tmp_path / "one", "--models", "careful")
    score(path, tmp_path / "turned", "--models", "eager", "--models", "careful")
    tables = {name: pd.read_csv(tmp_path / name / "coverage.csv") for name in ("both", "one", "turned")}
    common = {name: table.loc[table["scope"] == "common", "models"].tolist() for name, table in tables.items()}
    assert common == {"both": ["careful, eager"] * 2, "one": ["careful"], "turned": ["eager, careful"] * 2}
    scores = {name: pd.read_csv(tmp_path / name / "scores.csv") for name in tables}
    images = {name: set(table.loc[table["scope"] == "common", "n_images"]) for name, table in scores.items()}
    assert images == {"both": {1}, "one": {3}, "turned": {1}}
    assert list(dict.fromkeys(scores["turned"]["model"])) == ["eager", "careful"]
    assert set(scores["one"]["model"]) == {"careful"}


def test_thresholds_are_sorted_and_each_stands_once(path, tmp_path):
    score(path, tmp_path / "out", "--iou", "0.75", "--iou", "0.6", "--iou", "0.75")
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert list(dict.fromkeys(scores["iou"].dropna())) == [0.6, 0.75]
    rows = scores.query("model == 'careful' and scope == 'valid' and level == 'overall' and average == 'micro'")
    assert rows["tp"].tolist() == [1, 1, 0]  # the class set; IoU 60/100 at 0.60 and at 0.75


def test_the_terminal_shows_states_and_the_headline(path, tmp_path):
    found = score(path, tmp_path / "out")
    assert re.search(r"^careful +3 +3 +0 +0 +1\.0000$", found.stdout.replace(" careful", "careful"), flags=re.MULTILINE)
    assert "localisation 0.50 F2 micro" in found.stdout
    assert f"{5 * 1 / (5 * 1 + 0 + 4 * 2):.4f}" in found.stdout  # careful: one of three gold boxes, nothing false
    assert score(path, tmp_path / "quiet", "--quiet").output == ""


def test_require_complete_fails_with_status_1_and_still_writes(path, tmp_path):
    found = run("score", "--benchmark", path, "--out", tmp_path / "out", "--require-complete", "--quiet")
    assert found.exit_code == 1
    assert found.stderr == "Error: responses are not complete (eager: 1 invalid, 1 missing)\n"
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == FILES
    score(path, tmp_path / "out", "--require-complete", "--models", "careful")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["parameters"]["require_complete"] is True


@pytest.mark.parametrize("where", ["", "results", "deep/er", "../data/results"])
def test_results_are_not_written_among_the_data(path, where):
    before = sorted(path.parent.rglob("*"))
    found = run("score", "--benchmark", path, "--out", path.parent / where)
    assert found.exit_code == 2
    assert "lies in the benchmark's own folder; results are kept apart from data" in found.stderr
    assert sorted(path.parent.rglob("*")) == before


def test_a_link_into_the_data_is_no_way_around(path, tmp_path):
    (tmp_path / "link").symlink_to(path.parent, target_is_directory=True)
    assert run("score", "--benchmark", path, "--out", tmp_path / "link" / "results").exit_code == 2
    assert run("score", "--benchmark", tmp_path / "link" / "benchmark.yml", "--out", path.parent / "results").exit_code == 2
    assert not (path.parent / "results").exists()


def test_results_beside_the_data_are_welcome(path, tmp_path):
    score(path, tmp_path / "data-results")
    assert (tmp_path / "data-results" / "scores.csv").is_file()


# -- parts instead of a benchmark file


def parts(path, *models):
    folder = path.parent
    named = [text for at, model in enumerate(models) for text in ("--predictions", f"{model}={folder}/answers{at}.jsonl")]
    return ["--gold", folder / "gold.jsonl", "--classes", folder / "classes.csv", *named]


def test_parts_give_the_same_scores_as_the_benchmark_file(path, tmp_path):
    score(path, tmp_path / "file")
    found = run("score", *parts(path, "careful", "eager"), "--out", tmp_path / "parts")
    assert found.exit_code == 0
    for name in ("scores.csv", "coverage.csv", "counts.parquet", "matches.parquet"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "file" / name).read_bytes()
    record = json.loads((tmp_path / "parts" / "run.json").read_text())
    assert record["parameters"]["benchmark"] is None
    assert sorted(name.split(": ")[1] for name in record["inputs"]) == [
        *("answers0.jsonl", "answers1.jsonl", "classes.csv", "gold.jsonl")
    ]
    assert "models 2" in run("check", *parts(path, "careful", "eager")).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --benchmark, or --gold with --classes and --predictions"),
        (["--benchmark", "{folder}/benchmark.yml", "--gold", "x"], "give either --benchmark or its parts"),
        (["--gold", "{folder}/gold.jsonl", "--predictions", "m"], "--predictions takes NAME=PATH, not 'm'"),
        (["--gold", "{folder}/gold.jsonl", "--predictions", "=m"], "--predictions takes NAME=PATH, not '=m'"),
        (["--gold", "{folder}/gold.jsonl", "--predictions", "m="], "--predictions takes NAME=PATH, not 'm='"),
        (["--gold", "x", "--predictions", "m=a", "--predictions", "m=b"], "--predictions names a model twice"),
        (["--gold", "{folder}/gold.jsonl", "--classes", "{folder}/classes.csv"], "there are no predictions to score"),
        (["--gold", "{folder}/gold.jsonl", "--predictions", "m={folder}/answers0.jsonl"], "classes"),
        (["--predictions", "m={folder}/answers0.jsonl"], "give --benchmark, or --gold"),
    ],
)
def test_parts_that_do_not_fit(path, tmp_path, arguments, message):
    found = run("score", *(text.format(folder=path.parent) for text in arguments), "--out", tmp_path / "out")
    assert found.exit_code == 2
    assert found.stderr.startswith(f"Error: {message}") or message in found.stderr
    assert not (tmp_path / "out").exists()


# -- clean data, empty data


@pytest.mark.parametrize("said", [[], "invalid"])
def test_a_benchmark_without_any_box_is_scored(tmp_path, said):
    path = write_plain(Plain(gold={"a": []}, answers={"m": {"a": said}}), tmp_path / "data")
    for kind in ("csv", "json", "parquet"):
        found = score(path, tmp_path / kind, "--format", kind)
        assert "written to" in found.stdout
    scores = pd.read_csv(tmp_path / "csv" / "scores.csv", keep_default_na=False)
    assert set(scores["scope"]) == {"valid", "common", "all"}
    assert "" not in set(scores["reason"])
    assert run("check", "--benchmark", path).exit_code == 0


# -- sample


def test_sample_can_be_checked_and_scored(tmp_path):
    found = run("sample", "--out", tmp_path / "toy", "--images", "12", "--seed", "3", "--quiet")
    assert (found.exit_code, found.output) == (0, "")
    path = tmp_path / "toy" / "benchmark.yml"
    assert run("check", "--benchmark", path).stdout.split(":")[1].startswith(" images 12,")
    score(path, tmp_path / "out")
    coverage = pd.read_csv(tmp_path / "out" / "coverage.csv")
    assert coverage["model"].nunique() == 6
    assert (coverage["valid"] + coverage["invalid"] + coverage["missing"] == 12).all()


def test_sample_says_where_it_is_and_repeats_itself(tmp_path):
    found = run("sample", "--out", tmp_path / "a", "--images", "3")
    assert found.exit_code == 0
    assert f"written: {tmp_path / 'a' / 'benchmark.yml'}" in found.stdout
    run("sample", "--out", tmp_path / "b", "--images", "3", "--quiet")
    files = [sorted(file.relative_to(tmp_path / out) for file in (tmp_path / out).rglob("*") if file.is_file()) for out in "ab"]
    assert files[0] == files[1]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files[0])


@pytest.mark.parametrize(("option", "value"), [("--images", "0"), ("--images", "-1"), ("--images", "many")])
def test_sample_of_no_images(tmp_path, option, value):
    found = run("sample", "--out", tmp_path / "toy", option, value)
    assert found.exit_code == 2
    assert "images" in found.stderr
    assert not (tmp_path / "toy").exists()


def test_sample_does_not_overwrite_what_it_did_not_write(tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "mine.txt").write_text("mine")
    found = run("sample", "--out", tmp_path / "toy", "--images", "2")
    assert found.exit_code == 2
    assert [file.name for file in (tmp_path / "toy").iterdir()] == ["mine.txt"]


def test_compare_writes_every_pair_on_the_common_scope(path, tmp_path):
    found = run("compare", "--benchmark", path, "--out", tmp_path / "out", "--replicates", "200", "--statistic", "recall")
    assert "localisation at IoU 0.50, micro, common scope" in found.stdout
    table = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert list(table.columns) == COMPARISON_COLUMNS
    assert set(zip(table["model_a"], table["model_b"], strict=True)) == {("careful", "eager")}
    assert set(table["scope"]) == {"common"}
    assert set(table["statistic"]) == {"f2", "recall"}
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["parameters"]["statistics"] == ["f2", "recall"]
    assert record["parameters"]["replicates"] == 200
    assert set(table["replicates"]) == {200}
    again = tmp_path / "again"
    run("compare", "--benchmark", path, "--out", again, "--replicates", "200", "--statistic", "recall", "--jobs", "3")
    assert (again / "comparison.csv").read_bytes() == (tmp_path / "out" / "comparison.csv").read_bytes()


def test_compare_needs_two_models(path, tmp_path):
    found = run("compare", "--benchmark", path, "--models", "eager", "--out", tmp_path / "out")
    assert found.exit_code == 2
    assert "a comparison needs at least two models" in found.stderr
    assert not (tmp_path / "out").exists()


def test_compare_says_when_no_p_value_can_be_small(tmp_path):
    """Six models are 15 pairs, so 100 replicates leave p (Holm) at 15 x 2 / 101 or more."""
    run("sample", "--out", tmp_path / "toy", "--images", "20", "--quiet")
    said = {}
    for replicates in ("100", "2000"):
        out = tmp_path / replicates
        said[replicates] = run(
            "compare", "--benchmark", tmp_path / "toy" / "benchmark.yml", "--out", out, "--replicates", replicates
        ).stdout
    assert "no p_holm can be below 0.3 with 100 replicates and 6 models" in said["100"]
    assert "can be below" not in said["2000"]


@pytest.mark.parametrize("command", ["score", "compare"])
@pytest.mark.parametrize("iou", ["0.7", "1.0"])
def test_a_benchmark_in_which_nothing_is_marked_has_scores_and_intervals(tmp_path, command, iou):
    folder = tmp_path / "data"
    folder.mkdir()
    data = small.write_yml(
        folder,
        classes=small.write_classes(folder / "classes.csv", ["a"]),
        gold=small.write_lines(folder / "gold.jsonl", {"1": [], "2": []}),
        predictions={name: small.write_lines(folder / f"{name}.jsonl", {"1": [], "2": []}) for name in ("m", "n")},
    )
    found = run(command, "--benchmark", data, "--out", tmp_path / "out", "--replicates", "100", "--iou", iou)
    assert found.exit_code == 0, found.output
    table = pd.read_csv(tmp_path / "out" / f"{'scores' if command == 'score' else 'comparison'}.csv")
    assert set(table["iou"].dropna()) == {float(iou)}


@pytest.mark.parametrize("command", ["score", "compare", "agree", "points"])
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--seed", "-1", "seed must be a whole number from 0 on, not -1"),
     ("--replicates", "1000001", "replicates must be at most 1,000,000, not 1,000,001")],
)  # fmt: skip
def test_draws_that_cannot_be_are_refused_before_anything_is_read(path, tmp_path, command, option, value, words):
    found = run(command, "--benchmark", path, "--out", tmp_path / "out", option, value)
    assert (found.exit_code, found.stderr) == (2, f"Error: {words}\n")


@pytest.mark.parametrize("command", ["score", "compare"])
def test_fewer_than_100_replicates_are_refused(path, tmp_path, command):
    found = run(command, "--benchmark", path, "--out", tmp_path / "out", "--replicates", "99")
    assert found.exit_code == 2
    assert "replicates must be at least 100, not 99" in found.stderr
    assert not (tmp_path / "out").exists()

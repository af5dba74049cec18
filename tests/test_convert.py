"""Writing: what is written in any format reads back as it was, and what a format cannot hold is refused in one message."""

import dataclasses
import json
import math
import unicodedata

import numpy as np
import pandas as pd
import pytest
import small
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import evalkit
from evalkit.cli import main
from evalkit.formats import CONVERTIBLE, export
from evalkit.formats.export import BY_SIZE, DROPPABLE, PRECISION, WRITERS, convert
from evalkit.sample import write_sample
from evalkit.tables import BOX_COLUMNS

TABLES = ["classes", "images", "gold", "responses", "predictions"]


def plain(table, *, rounded=()):
    """A table as lists of text and numbers, its boxes by image; ``rounded`` columns are left out."""
    rows = table.drop(columns=list(rounded))
    if "image_id" in rows and "class" in rows:
        model = rows["model"].cat.codes if "model" in rows else 0
        order = np.lexsort([np.arange(len(rows)), rows["image_id"].cat.codes, np.broadcast_to(model, len(rows))])
        rows = rows.iloc[order]
    numbers = rows.select_dtypes("number")
    text = rows.drop(columns=numbers.columns).astype(object)
    return text.where(text.notna(), None).to_numpy(object).tolist(), numbers.to_numpy(float)


def assert_same(one, other, *, exact=True):
    assert (one.name, one.note) == (other.name, other.note)
    for name in TABLES:
        boxes = () if exact or name not in ("gold", "predictions") else BOX_COLUMNS
        (text, numbers), (other_text, other_numbers) = (plain(getattr(each, name), rounded=boxes) for each in (one, other))
        assert text == other_text, name
        np.testing.assert_array_equal(numbers, other_numbers, err_msg=name)
        if boxes:
            assert_close(*(plain(getattr(each, name)[["image_id", "class", *BOX_COLUMNS]])[1] for each in (one, other)), one)


def assert_close(boxes, others, benchmark):
    """Edges agree to the digits that a size can hold beside the largest number there is."""
    size = np.nan_to_num(benchmark.images[["width", "height"]].to_numpy()).max(initial=0)
    assert np.abs(boxes - others).max(initial=0) <= PRECISION * max(size, np.abs(boxes).max(initial=0))


# -- round trips over anything that can be in a benchmark

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda text: text.strip())
WORDS = st.one_of(
    TEXT,
    st.sampled_from(["no", "1.0", "NA", "nan", "null", "007", "7", "a,b", 'a"b', "a\nb", "a\rb", "é", "e\u0301", "\ufeffa"]),
)
PATHS = st.from_regex(r"[a-z0-9_é]{1,6}(/[a-z0-9_.]{0,4}[a-z0-9]){0,2}", fullmatch=True)
EDGES = st.one_of(st.integers(0, 640).map(float), st.floats(0, 640, width=32), st.floats(0, 640))
ANYWHERE = st.one_of(EDGES, st.floats(-1e6, 1e6))
SCORES = st.one_of(st.none(), st.floats(0, 1), st.floats(allow_nan=False, allow_infinity=False))


def name_of(text):
    return unicodedata.normalize("NFC", " ".join(text.split()))


@st.composite
def boxes(draw, edges, *, flat):
    x, y = (sorted([draw(edges), draw(edges)]) for _ in "xy")
    if not flat:  # gold has an area
        x, y = ((low, high if high > low + 1e-3 else low + 1) for low, high in (x, y))
    return [x[0], y[0], x[1], y[1]]


@st.composite
def benchmarks(draw, ids=WORDS, sizes=({}, {"width": 700, "height": 641.5})):
    """Rows of gold and of two models."""
    classes = draw(st.lists(WORDS.map(name_of).filter(bool), min_size=1, max_size=4, unique=True))
    domains = [draw(st.sampled_from(["", "road", "none"])) for _ in classes]
    images = draw(st.lists(ids.map(lambda text: unicodedata.normalize("NFC", text)), min_size=1, max_size=5, unique=True))
    gold, said = [], {"m": [], "another/model é": []}
    for image in images:
        listed = draw(st.lists(st.tuples(st.sampled_from(classes), boxes(EDGES, flat=False)), max_size=3))
        row = {"image_id": image, "boxes": [{"class": name, "box": box} for name, box in listed]}
        size = draw(st.sampled_from(sizes))
        name = draw(st.sampled_from([{}, {"file_name": f"{image}.png"}]))
        gold.append(row | size | name)
        for rows in said.values():
            rows += draw(answers(image, classes))
    return classes, domains, gold, said


@st.composite
def answers(draw, image, classes):
    kind = draw(st.sampled_from(["valid"] * 5 + ["invalid", "missing", "absent"]))
    if kind == "absent":
        return []
    if kind != "valid":
        return [{"image_id": image, "status": kind, "reason": draw(st.sampled_from(["", "cut off", "é, \n"]))}]
    names = st.one_of(st.sampled_from(classes), WORDS.filter(lambda text: name_of(text)))
    listed = draw(st.lists(st.tuples(names, boxes(ANYWHERE, flat=True), SCORES), max_size=3))
    rows = [{"class": name, "box": box} | ({} if score is None else {"score": score}) for name, box, score in listed]
    repairs = draw(st.sampled_from([{}, {"repairs": "one trailing comma"}]))
    return [{"image_id": image, "boxes": rows} | repairs]


def read(folder, classes, domains, gold, said):
    folder.mkdir(parents=True)
    small.write_classes(folder / "classes.csv", dict(zip(classes, domains, strict=True)))
    files = {"gold": "gold.jsonl", "predictions": {}}
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold), encoding="utf-8")
    for number, (model, rows) in enumerate(said.items()):
        if rows:
            (folder / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            files["predictions"][model] = f"{number}.jsonl"
    return evalkit.read_benchmark(small.write_yml(folder, name="é: x", note="#1", classes="classes.csv", **files))


ANY = settings(
    max_examples=25,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@ANY
@given(said=benchmarks())
def test_json_lines_hold_everything(tmp_path_factory, said):
    folder = tmp_path_factory.mktemp("convert")
    benchmark = read(folder / "from", *said)
    assert_same(benchmark, evalkit.read_benchmark(convert(benchmark, folder / "to", to="jsonl")))


@pytest.mark.parametrize("to", ["csv", "parquet", "coco"])
@ANY
@given(said=benchmarks())
def test_what_is_written_reads_back(tmp_path_factory, to, said):
    folder = tmp_path_factory.mktemp("convert")
    benchmark = read(folder / "from", *said)
    answers = benchmark.responses
    plain_answers = (answers["state"] != "invalid") & (answers["reason"] == "") & (answers["repairs"] == "")
    if not plain_answers.all():
        with pytest.raises(evalkit.EvalkitError, match=f"^{to} cannot hold it: "):
            convert(benchmark, folder / "to", to=to)
        assert not (folder / "to").exists()
    found = evalkit.read_benchmark(convert(benchmark, folder / "to", to=to, drop=list(DROPPABLE)))
    if not plain_answers.all():
        states = answers["state"].astype(str).replace("invalid", "missing")
        assert (found.responses["state"].astype(str) == states).all()
        assert (found.responses[["reason", "repairs"]] == "").all(axis=None)
    else:
        assert_same(benchmark, found, exact=to not in BY_SIZE)


@ANY
@given(said=benchmarks(ids=PATHS, sizes=[{"width": 700, "height": 641.5}]))
def test_a_text_folder_reads_back_or_refuses(tmp_path_factory, said):
    """It needs an answer of each model at all."""
    folder = tmp_path_factory.mktemp("convert")
    benchmark = read(folder / "from", *said)
    first = said[0][0]  # a byte order mark at the head of the list of names is lost, and so is a class that boxes have
    used = any((boxes["class"] == first).any() for boxes in (benchmark.gold, benchmark.predictions))
    if not benchmark.valid.any(axis=1).all() or (used and first.startswith("\ufeff")):
        with pytest.raises(evalkit.EvalkitError, match=r"^yolo cannot hold it: "):
            convert(benchmark, folder / "to", to="yolo", drop=list(DROPPABLE))
        assert not (folder / "to").exists()
        return
    found = evalkit.read_benchmark(convert(benchmark, folder / "to", to="yolo", drop=list(DROPPABLE)))
    state = benchmark.responses["state"].astype(str).replace("invalid", "missing")
    left = benchmark.responses.assign(state=state, reason="", repairs="")
    assert_same(dataclasses.replace(benchmark, responses=left), found, exact=False)


# -- by hand


@pytest.fixture
def toy(tmp_path):
    return read(
        tmp_path / "from",
        ["litter", "kerb"],
        ["street", "road"],
        [
            {"image_id": "00012", "width": 100, "height": 50, "file_name": "p/a.png",
             "boxes": [{"class": "kerb", "box": [0.1, 0.2, 0.3, 0.7]}, {"class": "litter", "box": [1, 2, 3, 4]}]},
            {"image_id": "12", "width": 100, "height": 50, "file_name": "p/b.png", "boxes": []},
        ],
        {"m": [{"image_id": "12", "boxes": [{"class": "unicorn", "box": [1, 2, 3, 2], "score": 0.5}]}]},
    )  # fmt: skip


def test_every_format_that_is_offered_is_written(toy, tmp_path):
    assert tuple(WRITERS) == CONVERTIBLE
    options = {one.name: one.type for one in main.commands["convert"].params}
    assert (tuple(options["to"].choices), list(options["drop"].choices)) == (CONVERTIBLE, list(DROPPABLE))
    for to in CONVERTIBLE:
        for again in CONVERTIBLE:  # and from it into each of the others
            first = evalkit.read_benchmark(convert(toy, tmp_path / f"{to} before {again}", to=to))
            second = convert(first, tmp_path / f"{again} after {to}", to=again)
            assert_same(toy, evalkit.read_benchmark(second), exact=False)


def test_scores_are_the_same_in_every_format(toy, tmp_path):
    scores = evalkit.scores(toy, evalkit.count(toy))
    for to in CONVERTIBLE:
        found = evalkit.read_benchmark(convert(toy, tmp_path / to, to=to))
        pd.testing.assert_frame_equal(evalkit.scores(found, evalkit.count(found)), scores)


def test_coco_is_what_other_tools_read(toy, tmp_path):
    folder = convert(toy, tmp_path / "to", to="coco").parent
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    assert [one["id"] for one in gold["categories"]] == [0, 1]  # the numbers of the class list
    assert [one["id"] for one in gold["images"]] == ["00012", "12"]  # not numbers, since one is none
    box = gold["annotations"][1]
    assert box["bbox"] == [1, 2, 3 - 1, 4 - 2]
    assert (box["area"], box["iscrowd"], box["category_id"], box["image_id"]) == (4, 0, 0, "00012")
    said = json.loads((folder / "predictions" / "m.json").read_text(encoding="utf-8"))
    assert said["images"] == [{"id": "12"}]  # the only one that was answered
    assert said["categories"][2] == {"id": 2, "name": "unicorn", "supercategory": ""}
    assert said["annotations"][0]["score"] == 0.5


def test_a_text_folder_is_named_after_the_pictures(toy, tmp_path):
    folder = convert(toy, tmp_path / "to", to="yolo").parent
    assert (folder / "gold" / "p" / "b.txt").read_text() == ""
    first, second = (folder / "gold" / "p" / "a.txt").read_text().splitlines()
    assert second.split() == ["0", *map(repr, [2 / 100, 3 / 50, 2 / 100, 2 / 50])]
    assert first.startswith("1 ")
    assert not (folder / "predictions" / "m" / "p" / "a.txt").exists()
    assert (folder / "predictions" / "m.names").read_text() == "litter\nkerb\nunicorn\n"


@settings(max_examples=200)
@given(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)).map(sorted))
def test_an_edge_that_is_held_as_a_size_is_off_by_its_last_digit_at_most(edges):
    low, high = edges
    assert abs(low + (high - low) - high) <= np.spacing(high) < PRECISION * max(high, 1)


# -- what is refused


REFUSED = {
    "an image without size": ("yolo", {"sizes": {}}, ["yolo cannot hold it: gold, image", "1 images have no size"]),
    "ids that are names of other pictures": (
        "yolo",
        {"ids": ["a", "b"], "names": ["b.png", "a.png"]},
        ["yolo cannot hold it: gold: the ids or file names are no paths that tell the images apart: ambiguous id"],
    ),
    "an id above the folder": ("yolo", {"ids": ["../b", "b"], "names": None}, ["no paths that tell the images apart: '../b'"]),
    "an absolute id": ("yolo", {"ids": ["/b", "c"], "names": None}, ["no paths that tell the images apart: '/b'"]),
    "an infinite score": ("coco", {"score": math.inf}, ["coco cannot hold it: JSON has no numbers that are infinite"]),
    "an infinite score in lines": ("jsonl", {"score": math.inf}, ["jsonl cannot hold it: JSON has no numbers"]),
    "an invalid response": (
        "csv",
        {"status": "invalid"},
        ["csv cannot hold it: m: 1 invalid responses (jsonl can; --drop invalid"],
    ),
    "a reason": (
        "coco",
        {"status": "missing"},
        ["coco cannot hold it: m: 1 reasons or repairs", "--drop reasons gives them up"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_format_cannot_hold_is_refused(tmp_path, case):
    to, given, words = REFUSED[case]
    ids = given.get("ids", ["a", "b"])
    size = {"width": 10, "height": 10}
    gold = [{"image_id": name, "boxes": [], **size} for name in ids]
    for row, name in zip(gold, given.get("names", ["a.png", "b.png"]) or [], strict=False):
        row["file_name"] = name
    if "sizes" in given:
        del gold[1]["width"]
    answer = {"boxes": [{"class": "litter", "box": [1, 1, 2, 2], "score": given.get("score", 0.5)}]}
    if "status" in given:
        answer = {"status": given["status"], "reason": "cut off"}
    benchmark = read(tmp_path / "from", ["litter"], [""], gold, {"m": [{"image_id": ids[0], **answer}]})
    before = sorted(path.read_bytes() for path in (tmp_path / "from").rglob("*") if path.is_file())
    asked = ["convert", "--benchmark", str(tmp_path / "from" / "benchmark.yml"), "--to", to, "--out", str(tmp_path / "to")]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 2
    assert result.stdout == ""
    for word in words:
        assert word in result.stderr
    assert not (tmp_path / "to").exists()
    assert sorted(path.read_bytes() for path in (tmp_path / "from").rglob("*") if path.is_file()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["from"]
    assert len(benchmark.images) == 2


def test_what_stays_behind_is_told(toy, tmp_path):
    data = write_sample(tmp_path / "toytown", images=12)
    asked = ["convert", "--to", "jsonl", "--benchmark"]
    result = CliRunner().invoke(main, [*asked, str(data), "--out", str(tmp_path / "to")])
    assert "not converted: images, first_pass, points, inventory; add them to the new benchmark.yml" in result.stdout
    result = CliRunner().invoke(main, [*asked, str(tmp_path / "to" / "benchmark.yml"), "--out", str(tmp_path / "again")])
    assert result.stdout == f"written: {tmp_path / 'again' / 'benchmark.yml'}\n"


def test_a_folder_that_holds_something_is_left_alone(toy, tmp_path):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "mine.txt").write_text("mine")
    with pytest.raises(evalkit.EvalkitError, match="out: must be a new or empty folder"):
        convert(toy, tmp_path / "to", to="csv")
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["mine.txt"]
    with pytest.raises(evalkit.EvalkitError, match="out: must be a new or empty folder"):
        convert(toy, tmp_path / "to" / "mine.txt", to="csv")


def test_unknown_names_are_refused(toy, tmp_path):
    with pytest.raises(evalkit.EvalkitError, match="to: 'xml' is none of jsonl, csv"):
        convert(toy, tmp_path / "to", to="xml")
    with pytest.raises(evalkit.EvalkitError, match="drop: 'boxes' is none of reasons, invalid"):
        convert(toy, tmp_path / "to", to="csv", drop=["boxes"])


def test_models_whose_names_look_alike_keep_files_of_their_own(tmp_path):
    row = {"image_id": "a", "boxes": []}
    said = {name: [row] for name in ("A/b", "a b", "a-b", "..", "gold")}
    benchmark = read(tmp_path / "from", ["litter"], [""], [row], said)
    found = evalkit.read_benchmark(convert(benchmark, tmp_path / "to", to="csv"))
    assert found.models == list(said)


def test_a_write_that_changes_something_is_not_kept(toy, tmp_path, monkeypatch):
    """Whatever a writer does wrong shows when it is read again."""

    def shifted(part, path, classes):
        return WRITERS["jsonl"](part._replace(boxes=part.boxes.assign(x_min=part.boxes["x_min"] + 1e-9)), path, classes)

    monkeypatch.setitem(export.WRITERS, "csv", shifted)
    with pytest.raises(evalkit.EvalkitError, match="csv cannot hold it: boxes of gold and boxes of m would change"):
        convert(toy, tmp_path / "to", to="csv")
    assert not (tmp_path / "to").exists()


def test_the_tables_beside_gold_are_written_too(tmp_path):
    """The class list has its ids and domains, the relation its cut-off, and slices may say several things of an image."""
    (tmp_path / "s.csv").write_text('image_id,attribute,value\nb,time,"day, late"\na,time,night\nb,time,dusk\n')
    (tmp_path / "r.csv").write_text("kerb,litter\n1,0.123456789012345\n0,1\n")
    (tmp_path / "c.csv").write_text("class_id,class_name,domain\n7,kerb,\nx,litter,street\n")
    rows = [{"image_id": name, "width": 9, "height": 9, "boxes": []} for name in "ab"]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = {"classes": "c.csv", "gold": "gold.jsonl", "semantic": {"path": "r.csv", "cutoff": "0.1"}, "slices": "s.csv"}
    benchmark = evalkit.read_benchmark(small.write_yml(tmp_path, **files))
    for to in CONVERTIBLE:
        found = evalkit.read_benchmark(convert(benchmark, tmp_path.parent / f"{tmp_path.name}-{to}", to=to))
        assert_same(benchmark, found)
        assert found.relation.cutoff == 0.1
        pd.testing.assert_frame_equal(found.relation.values, benchmark.relation.values)
        pd.testing.assert_frame_equal(found.slices, benchmark.slices)


def test_a_models_own_text_becomes_a_structured_file(tmp_path):
    """With the state and the reason of each answer, and what was mended in it."""
    text = {"a": '[{"bbox_2d": [100, 100, 200, 200], "label": "litter"},]', "b": "no idea", "c": "[]"}
    rows = [{"image_id": name, "response": said} for name, said in text.items()]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold = [{"image_id": name, "width": 1000, "height": 1000, "boxes": []} for name in text]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold))
    small.write_classes(tmp_path / "classes.csv", ["litter"])
    files = {"classes": "classes.csv", "gold": "gold.jsonl", "predictions": {"m": {"path": "m.jsonl", "reader": "qwen-boxes"}}}
    benchmark = evalkit.read_benchmark(small.write_yml(tmp_path, **files))
    assert list(benchmark.responses["state"]) == ["valid", "invalid", "valid"]
    assert benchmark.responses["repairs"][0]
    found = evalkit.read_benchmark(convert(benchmark, tmp_path.parent / f"{tmp_path.name}-to", to="jsonl"))
    assert_same(benchmark, found)

"""The sample's first pass: three annotators, three groups that share people, and clean images in each."""

import json
from collections import defaultdict

import pytest

import evalkit
from evalkit.sample import SEED, scene, write_sample
from evalkit.sample_first_pass import ANNOTATORS, GROUPS, first_pass


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("sample") / "toytown", images=160)


def test_three_groups_share_annotators(toytown):
    first = evalkit.read_first_pass(toytown)
    assert first.annotators == sorted(ANNOTATORS)
    assert sorted(first.groups) == sorted(GROUPS)
    who = first.seen.groupby("group", observed=True)["annotator"].unique()
    assert {group: sorted(names) for group, names in who.items()} == GROUPS
    assert len(set.intersection(*map(set, GROUPS.values()))) == 1
    assert first.images["image_id"].tolist() == evalkit.read_benchmark(toytown).images["image_id"].tolist()
    assert set(first.seen["image_id"]) == set(first.images["image_id"])


def test_each_group_has_a_clean_image_that_all_of_it_saw_empty(toytown):
    said = [json.loads(line) for line in (toytown.parent / "first_pass.jsonl").read_text(encoding="utf-8").splitlines()]
    boxes = defaultdict(dict)
    for row in said:
        boxes[row["group"], row["image_id"]][row["annotator"]] = row["boxes"]
    clean = {f"toy-{number:05d}" for number in range(1, 161) if not scene(SEED, number).boxes}
    for group, people in GROUPS.items():
        rows = [marks for (name, image), marks in boxes.items() if name == group and image in clean]
        assert all(sorted(marks) == people for marks in rows)
        assert any(not any(marks.values()) for marks in rows)


def test_rows_do_not_depend_on_the_number_of_images(toytown):
    lines = (toytown.parent / "first_pass.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for number in range(1, 31) for row in first_pass(SEED, number)]
    assert [json.loads(line) for line in lines[: len(rows)]] == json.loads(json.dumps(rows))


def test_the_three_characters_show(toytown):
    """Ada finds most, Ben misses much, Cleo invents."""
    table = evalkit.score_annotators(evalkit.read_first_pass(toytown), replicates=None)
    rows = table[(table["iou"] == 0.5) & (table["level"] == "overall") & (table["average"] == "micro")]
    rows = rows.set_index(rows["annotator"].astype(str)).loc[list(ANNOTATORS)]
    assert rows["recall"].idxmax() == "Ada"
    assert rows["recall"].idxmin() == "Ben"
    assert rows["precision"].idxmin() == "Cleo"

"""The sample's point benchmarks: targets that lie on what is drawn, all ten, and four characters of answers."""

import hashlib
import json

import numpy as np
import pytest
from PIL import Image

import evalkit
from evalkit.point_benchmarks import ALL, NO_OBJECT, POINT_BENCHMARKS
from evalkit.point_runs import every_point_sample, read_point_runs
from evalkit.sample import KINDS, scene, write_sample
from evalkit.sample_points import MODELS, SAMPLES, drawn


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("sample") / "toytown", images=200)


@pytest.fixture(scope="module")
def samples(toytown):
    return every_point_sample(read_point_runs(toytown))


def test_all_ten_are_there_with_four_models(toytown, samples):
    runs = read_point_runs(toytown)
    assert set(runs) == set(POINT_BENCHMARKS)
    assert all(run.models == list(MODELS) for run in runs.values())
    table, notes = samples
    assert len(table) == 10 * 4 * SAMPLES
    assert [note for _, note in notes] == [("mask_resized", 1, "54")]
    for name, benchmark in POINT_BENCHMARKS.items():
        found = set(table.loc[table["benchmark"] == name, "subset"])
        assert set(benchmark.subsets) <= found, name


def test_the_pictures_show_the_objects_where_the_masks_are(toytown):
    """Each visible pixel of an object has one of the colours of its class."""
    folder = toytown.parent
    for number in (2, 5, 9):
        one = drawn(scene(20260817, number))
        with Image.open(folder / "images" / f"{one.shown.image_id}.png") as picture:
            shown = np.asarray(picture)
        for at, (kind, _) in enumerate(one.shown.boxes, 1):
            colours = {tuple(bytes.fromhex(colour[1:])) for colour in kind.colours}
            assert {tuple(pixel) for pixel in shown[one.objects == at].tolist()} <= colours
    assert any(scene(20260817, number).boxes for number in (2, 5, 9))


def test_models_have_the_characters_they_are_named_for(samples):
    table, _ = samples
    states = table.groupby("model", observed=True)["state"].value_counts(normalize=True).unstack(fill_value=0)
    assert states["empty"].idxmax() == "silent"
    assert states["unparseable"].idxmax() == "mumbler"
    assert states.loc["mumbler", "missing"] > 0
    points = table[table["state"] == "points"].groupby("model", observed=True)["predicted_count"].mean()
    assert points.idxmax() == "sprayer"
    scores = evalkit.point_scores(table)
    whole = scores[scores["subset"] == ALL].groupby("model", observed=True)["overall_non_strict"].mean()
    assert whole.idxmax() == "pointer"
    assert whole["pointer"] > 0.7


def test_some_samples_have_no_object_and_strict_and_non_strict_part(samples):
    table, _ = samples
    assert (table["subset"] == NO_OBJECT).any()
    scores = evalkit.point_scores(table)
    apart = scores[(scores["model"] == "sprayer") & (scores["subset"] == ALL)]
    assert (apart["non_strict_f1"] > apart["strict_f1"] + 0.005).sum() >= 5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("images", [1, 3, 12])
def test_few_pictures_give_few_benchmarks_and_no_error(tmp_path, images, seed):
    runs = read_point_runs(write_sample(tmp_path / "toytown", images=images, seed=seed))
    if runs:
        every_point_sample(runs)
    for run in runs.values():
        assert 0 < len(list(run.samples())) <= images


def test_frozen_regression_values_of_points(tmp_path):
    """Frozen values, not derived ones: they hold still what every machine has to write. Change them only on purpose."""
    folder = write_sample(tmp_path / "tiny", images=30, seed=7).parent / "points"
    text = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))))
    masks = hashlib.sha256()
    for path in sorted((folder / "masks").iterdir()):
        with Image.open(path) as picture:
            masks.update(np.asarray(picture).tobytes())
    assert (text.hexdigest()[:16], masks.hexdigest()[:16]) == ("4e62e1809dc7af54", "a98ac2d35f4dbe87")


def test_answers_are_in_the_conventions_that_the_file_declares(toytown):
    for name in POINT_BENCHMARKS:
        for model, words in (("sprayer", "<point "), ("pointer", '"point_2d"'), ("mumbler", '"point"')):
            path = toytown.parent / "points" / name.lower() / f"{model}.jsonl"
            assert words in "".join(json.loads(line)["response"] or "" for line in path.read_text().splitlines())
    assert len(KINDS) == 12

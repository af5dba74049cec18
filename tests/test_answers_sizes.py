"""Sizes of images from the pictures, where a model's own text needs them and gold lacks them."""

import json
import re

import pytest
from click.testing import CliRunner
from PIL import Image
from small import as_row, counts, rows, the_row, write_classes, write_yml

import evalkit
from evalkit import DataError
from evalkit.cli import main

BOX = [10, 20, 30, 60]
WORDS = json.dumps([{"bbox_2d": [100, 250, 300, 750], "label": "cat"}])  # BOX in an image of 100 by 80


@pytest.fixture
def write(tmp_path):
    """A function that writes pictures ``{path: size or (size, EXIF orientation) or bytes}``, gold rows and the answers."""

    def written(pictures, gold, *, reader="qwen-boxes", said=None, folder="pictures"):
        for name, made in pictures.items():
            path = tmp_path / "pictures" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(made, bytes):
                path.write_bytes(made)
                continue
            size, orientation = made if isinstance(made[0], tuple) else (made, 1)
            exif = Image.Exif()
            exif[0x0112] = orientation
            Image.new("RGB", size).save(path, exif=exif)
        lines = [as_row(name, {"boxes": [{"class": "cat", "box": BOX}], **more}) for name, more in gold.items()]
        (tmp_path / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = said or dict.fromkeys(gold, WORDS)
        (tmp_path / "said.jsonl").write_text(
            "".join(json.dumps({"image_id": name, "response": text}) + "\n" for name, text in said.items())
        )
        return write_yml(
            tmp_path,
            classes=write_classes(tmp_path / "classes.csv", ["cat"]),
            gold="gold.jsonl",
            predictions={"m": {"path": "said.jsonl", "reader": reader}},
            **({"images": folder} if folder else {}),
        )

    return written


def findings(path):
    with pytest.raises(DataError) as error:
        evalkit.read_benchmark(path)
    return list(map(str, error.value.findings))


@pytest.mark.parametrize(
    ("picture", "image_id", "more"),
    [
        ("a.png", "a", {"file_name": "a.png"}),
        ("day/one.jpg", "a", {"file_name": "day/one.jpg"}),
        ("a.png", "a", {}),
        ("a.webp", "a.webp", {}),
        ("day/a.png", "day/a", {}),
        ("a.png", "a", {"width": 100}),
    ],
)
def test_a_size_that_gold_lacks_is_that_of_the_picture(write, picture, image_id, more):
    benchmark = evalkit.read_benchmark(write({picture: (100, 80)}, {image_id: more}))
    assert the_row(benchmark.images)[["width", "height"]].tolist() == [100, 80]
    assert counts(benchmark) == {"tp": 1, "fp": 0, "fn": 0}
    assert benchmark.notes == ()


def test_a_size_that_gold_gives_counts_and_no_picture_is_opened(write):
    path = write({"a.png": b"no picture"}, {"a": {"width": 100, "height": 80}})
    assert counts(evalkit.read_benchmark(path))["tp"] == 1


def test_pixels_need_no_size_and_no_picture_is_opened(write):
    benchmark = evalkit.read_benchmark(write({"a.png": b"no picture"}, {"a": {}}, reader="pixel-boxes"))
    assert benchmark.images[["width", "height"]].isna().all(axis=None)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_picture_counts_as_it_is_shown_and_is_reported(write, orientation):
    """EXIF orientations 5 to 8 turn the picture by a quarter."""
    turned = orientation >= 5
    stored = (80, 100) if turned else (100, 80)
    path = write({"a.jpg": (stored, orientation), "b.jpg": (100, 80)}, {"a": {}, "b": {"file_name": "b.jpg"}})
    benchmark = evalkit.read_benchmark(path)
    assert benchmark.images[["width", "height"]].to_numpy().tolist() == [[100, 80]] * 2
    assert counts(benchmark) == {"tp": 2, "fp": 0, "fn": 0}
    told = rows(evalkit.data_notes(benchmark), code="picture_turned")
    assert told[["source", "count", "examples"]].to_numpy().tolist() == [["gold.jsonl", 1, "a"]] * turned


def test_gold_is_checked_against_the_size_that_is_found(write):
    [found] = findings(write({"a.png": (100, 40)}, {"a": {}}))
    assert "more than 0.5 pixels outside its image" in found


def test_every_picture_that_fails_is_told(write):
    pictures = {"a.png": b"no picture", "b.png": (100, 80), "b.jpg": (100, 80), "c.png": (100, 80)}
    found = findings(write(pictures, {name: {} for name in "abc"}))
    assert len(found) == 2
    assert re.match(r"a\.png, picture: cannot read its size: |a\.png: cannot read its size: ", found[0]), found
    assert found[1].startswith("pictures, image b: two pictures have one id: b.jpg and b.png")


@pytest.mark.parametrize("folder", ["pictures", "nowhere", None])
def test_an_answer_to_an_image_without_any_size_is_an_error(write, folder):
    path = write({"b.png": (100, 80)}, {"a": {}, "b": {"width": 100, "height": 80}, "c": {"file_name": "c.png"}}, folder=folder)
    found = findings(path)
    assert [line.split(":")[0] for line in found] == ["said.jsonl, line 1, image a", "said.jsonl, line 3, image c"]
    assert all("the scale 1000 needs the image's `width` and `height`" in line for line in found)
    shown = CliRunner().invoke(main, ["check", "--benchmark", str(path)])
    assert shown.exit_code == 2
    assert "2 findings; nothing was scored" in shown.stderr


def test_an_image_without_an_answer_needs_no_size(write):
    path = write({"a.png": (100, 80)}, {"a": {}, "b": {}}, said={"a": WORDS})
    assert evalkit.read_benchmark(path).responses["state"].tolist() == ["valid", "missing"]

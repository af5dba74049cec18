"""Whole books of unusual benchmarks: the same pages, nothing too wide, and a sentence where there is nothing to show."""

import re

import book_checks
import numpy as np
import pytest
import small
from helpers import copy_project

from evalkit import report

pytestmark = pytest.mark.slow
ARABIC, HEBREW = "شارع الملك عبد العزيز", "רחוב הרצל"
LONG = "a name that somebody made from a whole sentence and_never_a_blank_" + "x" * 200


def build(folder, *, classes, gold, predictions, **more):
    data = folder / "data"
    data.mkdir(parents=True)
    path = small.write_yml(
        data,
        name=more.pop("name", "unusual"),
        classes=small.write_classes(data / "classes.csv", classes),
        gold=small.write_lines(data / "gold.jsonl", gold),
        predictions={
            model: small.write_lines(data / f"model{number}.jsonl", said)
            for number, (model, said) in enumerate(predictions.items())
        },
        **more,
    )
    return report.build(path, project=copy_project(folder / "project"), progress=False).parent


def words(html, page):
    text = (html / "book" / "executed" / f"{page}.html").read_text("utf-8")
    return " ".join(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL).split())


def test_one_image_of_one_class_and_one_model(tmp_path):
    """No negative image, no domain, nothing to compare, nothing that varies."""
    gold = {"only": [[10, 10, 40, 40, "litter"]]}
    html = build(tmp_path, classes=["litter"], gold=gold, predictions={"alone": gold})
    assert book_checks.check_results(html) == []
    assert "at least two models" in words(html, "51_compare")
    assert "names no domains" in words(html, "20_scores")
    assert "no image without a gold box" in words(html, "20_scores")


def test_an_image_without_gold_and_without_predictions(tmp_path):
    html = build(tmp_path, classes=["litter"], gold={"only": []}, predictions={"silent": {"only": []}, "mute": {"only": []}})
    assert book_checks.check_results(html) == []
    assert "No headline score is defined" in (html / "book" / "index.html").read_text("utf-8")


def test_three_hundred_classes(tmp_path):
    """Pages stay below their size, figures show the classes with most gold, and say so."""
    generator = np.random.default_rng(1)
    names = [f"class {number:03}" for number in range(300)]

    def boxes():
        corners = generator.integers(0, 80, (12, 2))
        return [[int(x), int(y), int(x) + 20, int(y) + 20, names[generator.integers(300)]] for x, y in corners]

    gold = {f"i{number}": boxes() for number in range(60)}
    models = {f"model {at}": {name: rows[at:] for name, rows in gold.items()} for at in range(6)}
    domains = {name: f"domain {number // 30}" for number, name in enumerate(names)}
    html = build(tmp_path, classes=domains, gold=gold, predictions=models)
    assert book_checks.check_results(html) == []
    assert "of 300 classes" in words(html, "20_scores")
    assert "of 300 classes" in words(html, "10_data")
    assert "of 300 classes" in words(html, "26_errors")


def test_long_and_right_to_left_names(tmp_path):
    names = {ARABIC: HEBREW, LONG: LONG, f"{HEBREW} 12": HEBREW}
    boxes = [[10, 10 + 50 * number, 60, 50 + 50 * number, name] for number, name in enumerate(names)]
    gold = {f"{ARABIC}/1": boxes, f"{LONG}/2": boxes[:1], "3": []}
    predictions = {ARABIC: gold, LONG: {**gold, "3": boxes[:1]}, f"{HEBREW} (2)": gold}
    html = build(tmp_path, name=f"{HEBREW} {LONG}", note=f"{ARABIC} {LONG}", classes=names, gold=gold, predictions=predictions)
    assert book_checks.check_results(html) == []
    for text in (ARABIC, HEBREW, LONG):
        assert text in words(html, "20_scores")

"""Whole books, opened in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import book_checks
import pytest
import small
from helpers import copy_project, shared
from PIL import Image

from evalkit import report
from evalkit.sample import write_sample

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("check", [*book_checks.IN_BROWSER, book_checks.check_files], ids=lambda check: check.__name__)
def test_the_sample_book_is_sound(book, check):
    assert book_checks.check(book, [check]) == []


def test_a_book_of_real_data_is_sound_and_shows_its_numbers(tmp_path):
    """A benchmark.yml for the VOC sample of Padilla et al.: COCO gold, one detector in two forms, no pictures, no domains."""
    data = shared("real/voc-review-odm/data/database")
    shutil.copytree(data, tmp_path / "voc" / "database")
    said = {
        "name": "VOC sample <i>&</i> its detector",
        "gold": "database/gts/coco_format_v1/instances_default.json",
        "predictions": {
            "coco form": {"path": "database/dets/coco_format/coco_dets.json", "absent": "empty"},
            "text form": {
                "path": "database/dets/abs_xywh",
                "names": "database/voc.names",
                "columns": ["class", "score", "x_min", "y_min", "w", "h"],
                "units": "pixels",
            },
        },
    }
    benchmark = tmp_path / "voc" / "benchmark.yml"
    benchmark.write_text(json.dumps(said), encoding="utf-8")  # JSON is YAML
    project = copy_project(tmp_path / "project")
    front = report.build(benchmark, project=project, progress=False)
    assert book_checks.check_results(front.parent) == []
    page = (front.parent / "book/executed/20_scores.html").read_text("utf-8")
    text = re.sub(r"<[^>]*>", " ", page)
    # absent: empty for the one, missing for the other; the published counts at IoU 0.50 with their F2
    for tp, fp, fn in [(226, 226, 47), (226, 226, 45)]:
        ratios = [tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn), 5 * tp / (5 * tp + fp + 4 * fn)]
        row = " ".join([str(tp), str(fp), str(fn), *(f"{ratio:.3f}" for ratio in ratios)])
        assert row in " ".join(text.split()), row


def test_names_of_other_people_are_text_on_every_page(tmp_path):
    """HTML, Markdown, formulas and control characters in names of classes, images, models and the benchmark, and in answers."""
    bad = "<script>document.title='run'</script> *a* `b` $x$ [c](d) {ref}`e` \x07\x1b[31m\u202e\u2028 &lt;b&gt;"
    worse = f"{bad} </pre></dl> \x00 \ud800 \n\n# Title\n\n---\n```{{raw}} html\n{bad}\n```\n"
    box = [10, 10, 40, 40, f"class {bad}"]
    images = {f"image {number} {bad}": [box] if number % 2 else [] for number in range(4)}
    answers = {**images, f"image 0 {bad}": {"status": "invalid", "reason": f"reason {bad}"}}
    item = json.dumps({"bbox_2d": box[:4], "label": f"label {bad}"})
    words = [f"prose {worse}", f"[{item},]", f"<think>thought {worse}</think>[{item}]"]
    said = {name: {"response": text} for name, text in zip(images, words, strict=False)} | {
        [*images][3]: {"error": f"error {worse}"}
    }
    data = tmp_path / "data"
    data.mkdir()
    marked = [{"annotator": f"annotator {who} {bad}", "group": f"group {bad}"} for who in "ab"]
    boxes = [{"class": box[4], "box": box[:4]}]
    rows = [{"image_id": name, "boxes": boxes, **one} for name in images for one in marked]
    (data / "first.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Image.new("L", (40, 40), 255).save(data / "mask.png")
    asked = {"mask": "mask.png", "category": f"category {bad}", "question": f"question {bad}"}
    (data / "asked.jsonl").write_text(json.dumps({"sample_id": f"sample {bad}", "width": 40, "height": 40, **asked}) + "\n")
    pointed = {"sample_id": f"sample {bad}", "response": json.dumps([{"point_2d": [500, 500], "label": f"label {bad}"}])}
    (data / "pointed.jsonl").write_text(json.dumps(pointed) + "\n")
    path = small.write_yml(
        data,
        name=f"name {bad}",
        note=f"note {bad}",
        classes=small.write_classes(data / "classes.csv", {f"class {bad}": f"domain {bad}"}),
        gold=small.write_lines(data / "gold.jsonl", images),
        predictions={
            f"model {bad}": small.write_lines(data / "m.jsonl", answers),
            f"talker {bad}": {"path": small.write_lines(data / "said.jsonl", said), "reader": "pixel-boxes"},
            "other": small.write_lines(data / "other.jsonl", images),
        },
        first_pass="first.jsonl",
        points={"RoboAfford": {"samples": "asked.jsonl", "predictions": {f"pointer {bad}": "pointed.jsonl"}}},
    )
    front = report.build(path, project=copy_project(tmp_path / "project"), progress=False)
    assert book_checks.check_results(front.parent) == []
    pages = [page.read_text("utf-8") for page in front.parent.rglob("*.html")]
    for text in ("<script>document.title", *"\x00\x07\x1b\u202e\u2028"):
        assert not any(text in page for page in pages), text
    kinds = ("class", "model", "talker", "name", "note", "reason", "domain", "image 0", "prose", "label", "error")
    for kind in (*kinds, "annotator a", "group", "pointer", "category"):
        assert any(f"{kind} &lt;script&gt;" in page for page in pages), kind


def test_the_page_on_new_predictions_does_what_it_says(tmp_path):
    """Its shell lines and its Python run as they stand, in a checkout whose environment is this one."""
    project = copy_project(tmp_path / "project")
    toytown = write_sample(project / "toytown", images=12)
    page = (project / "book" / "rerun.md").read_text("utf-8")
    blocks = re.findall(r"```(json|yaml|sh|python)\n(.*?)```", page, flags=re.DOTALL)
    environment = tmp_path / "venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (environment / "python").chmod(0o755)
    (environment.parent / "installed").touch()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    options = {"cwd": project, "env": {**os.environ, "PATH": path, "PYTHONPATH": str(project), "VENV": str(environment.parent)}}
    printed = []
    for kind, text in blocks:
        if kind == "json":
            (toytown.parent / "predictions" / "mine.jsonl").write_text(text)
        elif kind == "yaml":
            toytown.write_text(toytown.read_text().replace("predictions:\n", f"predictions:\n{text}", 1))
        else:
            command = ["sh", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
            done = subprocess.run(command, **options, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
            printed.append(done.stdout)
    assert "mine" in (project / "_build" / "html" / "book" / "executed" / "20_scores.html").read_text("utf-8")
    assert "mine" in (project / "scores-of-mine.ipynb").read_text("utf-8")
    assert (project / "results" / "scores.csv").exists()
    assert any("mine" in text and "common" in text for text in printed)


def test_the_checks_find_what_they_look_for(book, tmp_path):
    """A page with one fault of each kind: a check that finds nothing there would find nothing anywhere."""
    head = "<html><head><meta charset='utf-8'></head><body>"
    faults = {
        "console: ": "<script>console.error('a word')</script>",
        "script: ": "<script>undefined.x</script>",
        "outside: ": "<img src='http://127.0.0.1:9/x.png'>",
        "wider than the window": "<div style='width: 3000px'>wide</div>",
        "text: np.float64(": "<p>np.float64(0.5)</p>",
        "formulas are not set": "<span class='math'>x</span>",
        "dead link": "<a href='nowhere.html'>x</a>",
        "dead anchor": "<a href='#nowhere'>x</a>",
        "image-alt": "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>",
    }
    html = tmp_path / "_build" / "html"
    html.mkdir(parents=True)
    (html / "index.html").write_text(head + "".join(faults.values()))
    with book_checks.chromium() as browser:
        found = book_checks.check_desktop(html, browser) + book_checks.check_links(html)
    for fault in faults:
        assert any(fault in line for line in found), fault

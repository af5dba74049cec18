"""Pictures of images with their boxes: what is drawn and how, the size of the canvas, and what is refused."""

import io
import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from PIL import Image
from small import write_classes, write_yml

import evalkit
from evalkit import DataError, EvalkitError, figures, rendering
from evalkit.cli import main
from evalkit.rendering import render

GOLD = [{"class": "litter", "box": [10, 10, 30, 30]}, {"class": "kerb", "box": [50, 10, 70, 30]}]
SAID = [
    {"class": "litter", "box": [12, 10, 32, 30]},
    {"class": "lamp", "box": [10, 60, 30, 70]},
]  # found, false; kerb is missed
INK = {"gold, found": "solid", "its match": "dashed", "gold, missed": "solid", "false": "dotted"}


@pytest.fixture
def folder(tmp_path):
    images = {"a": GOLD, "b": [], "c": GOLD[:1]}
    lines = [
        json.dumps({"image_id": name, "width": 100, "height": 80, "file_name": f"{name}.png", "boxes": boxes})
        for name, boxes in images.items()
    ]
    (tmp_path / "gold.jsonl").write_text("\n".join(lines))
    said = [{"image_id": "a", "boxes": SAID}, {"image_id": "b", "status": "invalid", "reason": "cut off"}]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, said)))
    (tmp_path / "pictures").mkdir()
    Image.new("RGB", (100, 80), "#ff0000").save(tmp_path / "pictures" / "a.png")
    files = {"classes": write_classes(tmp_path / "classes.csv", ["litter", "kerb", "lamp"]), "gold": "gold.jsonl"}
    write_yml(tmp_path, images="pictures", predictions={"m": "m.jsonl"}, **files)
    return tmp_path


@pytest.fixture
def drawn(folder, monkeypatch):
    """The figure that is drawn, kept open."""

    def draw(*image_ids, **options):
        monkeypatch.setattr(plt, "close", lambda: None)
        render(evalkit.read_benchmark(folder / "benchmark.yml"), image_ids, **options)
        figure = plt.gcf()
        monkeypatch.undo()
        return figure

    yield draw
    plt.close("all")


def boxes(axes):
    """The boxes of a panel: edges, colour, line, width; without their white ground and the edge of the canvas."""
    found = []
    for patch in axes.patches:
        colour = to_hex(patch.get_edgecolor())
        if isinstance(patch, Rectangle) and colour not in ("#ffffff", to_hex(figures.MUTED)):
            x, y = patch.get_xy()
            edges = [x, y, x + patch.get_width(), y + patch.get_height()]
            found.append((edges, colour.upper(), patch.get_linestyle(), patch.get_linewidth()))
    return found


def test_matched_missed_and_false_boxes_differ_in_line_and_width(drawn):
    gold, found = drawn("a", model="m").axes[:2]
    assert [box[0] for box in boxes(gold)] == [one["box"] for one in GOLD]
    assert {box[2] for box in boxes(gold)} == {"solid"}
    styles = {tuple(box[0]): box[1:] for box in boxes(found)}
    expected = {"gold, found": GOLD[0], "its match": SAID[0], "gold, missed": GOLD[1], "false": SAID[1]}
    assert styles == {tuple(one["box"]): figures.OUTCOME_STYLES[name] for name, one in expected.items()}
    assert {name: line for name, (_, line, _) in figures.OUTCOME_STYLES.items()} == INK
    widths = [width for _, line, width in figures.OUTCOME_STYLES.values() if line == "solid"]
    assert max(widths) >= 2 * min(widths)  # two solid lines, told apart by their width


def test_gold_boxes_have_their_names_and_the_key_says_what_lines_mean(drawn):
    figure = drawn("a", model="m")
    assert {text.get_text() for text in figure.axes[0].texts} == {"litter", "kerb"}
    assert any("kerb" in text.get_text() for text in figure.axes[1].texts)
    assert any("lamp" in text.get_text() for text in figure.axes[1].texts)
    (key,) = figure.legends
    assert [text.get_text() for text in key.texts] == list(figures.OUTCOME_STYLES)
    assert key.get_title().get_text() == "at IoU 0.50"
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a · gold", "m"]


def test_over_gold_in_one_panel_and_gold_alone(drawn):
    figure = drawn("a", model="m", over=True)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a · m"]
    assert len(boxes(figure.axes[0])) == 4
    figure = drawn("a")
    assert len(figure.axes) == 1
    assert not figure.legends
    assert len(boxes(figure.axes[0])) == 2


def test_the_threshold_decides_what_is_found(drawn):
    """IoU of the two boxes of litter: 18 · 20 / (2 · 400 - 18 · 20) is 0.818."""
    assert len(boxes(drawn("a", model="m", iou=0.81).axes[1])) == 4
    missed = drawn("a", model="m", iou=0.82).axes[1]
    assert sum(box[1:] == figures.OUTCOME_STYLES["gold, missed"] for box in boxes(missed)) == 2


def test_an_answer_that_is_not_scored_says_so(drawn):
    figure = drawn("b", "c", model="m")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:4] == ["b · gold", "m: invalid, cut off", "c · gold", "m: missing"]
    assert boxes(figure.axes[3]) == []


def test_a_contact_sheet_has_a_panel_for_each(drawn):
    figure = drawn("a", "b", "c")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b (clean)", "c"]
    assert len(drawn("a", "b", "c", model="m").axes) == 8  # four columns, of which the last two of the second row are blank


def test_the_canvas_has_the_size_of_the_image_with_and_without_a_picture(drawn):
    with_picture, without = drawn("a", "c").axes
    for axes in (with_picture, without):
        assert (axes.get_xlim(), axes.get_ylim()) == ((0, 100), (80, 0))
        assert axes.get_aspect() == 1
    (image,) = with_picture.images
    assert image.get_array().shape == (80, 100, 3)
    assert not without.images


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_kinds_of_file(folder, kind, start):
    benchmark = evalkit.read_benchmark(folder / "benchmark.yml")
    first, second = (render(benchmark, ["a"], model="m", kind=kind) for _ in range(2))
    assert first.startswith(start)
    assert first == second
    assert not plt.get_fignums()


def test_the_command_writes_a_picture(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "new" / "x.png"
    asked = ["render", "--benchmark", str(folder / "benchmark.yml"), "--image-id", "a", "--image-id", "c", "--model", "m"]
    done = CliRunner().invoke(main, [*asked, "--output", str(out)])
    assert (done.exit_code, done.stdout) == (0, f"written: {out}\n")
    picture = np.asarray(Image.open(io.BytesIO(out.read_bytes())).convert("RGB"))
    assert (picture == (255, 0, 0)).all(axis=2).mean() > 0.2  # two of four panels show the red picture
    assert CliRunner().invoke(main, [*asked, "--output", str(out), "--quiet", "--over", "--iou", "0.9"]).output == ""


REFUSED = {
    "an unknown image": (["--image-id", "A"], 2, "image-id: gold has no image 'A' ('A' differs only by case from 'a')"),
    "no image": ([], 2, "Missing option '--image-id'"),
    "an unknown model": (["--image-id", "a", "--model", "n"], 2, "there is no model 'n'"),
    "another kind": (["--image-id", "a", "--output", "x.gif"], 2, "output: must end in .png, .svg, .pdf, not in 'gif'"),
    "no ending": (["--image-id", "a", "--output", "x"], 2, "output: must end in"),
    "a threshold": (["--image-id", "a", "--model", "m", "--iou", "0"], 2, "iou must be above 0 and at most 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_the_file_that_was_there(folder, tmp_path_factory, monkeypatch, case):
    options, status, words = REFUSED[case]
    out = tmp_path_factory.mktemp("out")
    monkeypatch.chdir(out)
    for name in ("x.png", "x.gif", "x"):
        (out / name).write_text("before")
    done = CliRunner().invoke(main, ["render", "--benchmark", str(folder / "benchmark.yml"), "--output", "x.png", *options])
    assert done.exit_code == status
    assert words in done.stderr
    assert {path.read_text() for path in out.iterdir()} == {"before"}


def test_a_picture_is_not_written_among_the_data(folder):
    asked = ["render", "--benchmark", str(folder / "benchmark.yml"), "--image-id", "a"]
    done = CliRunner().invoke(main, [*asked, "--output", str(folder / "x.png")])
    assert done.exit_code == 2
    assert "--output" in done.stderr
    assert not (folder / "x.png").exists()


def test_a_broken_picture_is_told_and_no_figure_stays_open(folder):
    (folder / "pictures" / "a.png").write_text("no picture")
    benchmark = evalkit.read_benchmark(folder / "benchmark.yml")
    with pytest.raises(DataError, match=r"a.png: cannot read it"):
        render(benchmark, ["a"])
    assert not plt.get_fignums()


def test_names_in_any_script_are_drawn_without_a_warning(folder):
    text = (folder / "gold.jsonl").read_text().replace('"a"', '"$道路$ " ').replace("kerb", "道路 $x$")
    (folder / "gold.jsonl").write_text(text)
    (folder / "classes.csv").write_text("class_id,class_name\n0,litter\n1,道路 $x$\n")
    (folder / "m.jsonl").write_text("")
    files = {"classes": "classes.csv", "gold": "gold.jsonl"}
    benchmark = evalkit.read_benchmark(write_yml(folder, **files))
    assert render(benchmark, ["$道路$ "]).startswith(b"\x89PNG")


def test_from_python(folder):
    benchmark = evalkit.read_benchmark(folder / "benchmark.yml")
    with pytest.raises(EvalkitError, match="model: there is no 'n'; there is m"):
        render(benchmark, ["a"], model="n")
    with pytest.raises(EvalkitError, match="image-id: name at least one image"):
        render(benchmark, [])
    assert tuple(rendering.KINDS) == ("png", "svg", "pdf")

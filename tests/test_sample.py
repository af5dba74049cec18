"""The built-in sample: the same everywhere, exact boxes, six characters, and no harm to anybody's files."""

import hashlib
import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from PIL import Image
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from small import headline

import evalkit
from evalkit import sample
from evalkit.responses import FAILED, REPAIRS, read_boxes, reader
from evalkit.sample import KINDS, MODELS, SEED, Scene, in_words, picture, predict, scene, write_sample
from evalkit.tables import EvalkitError

TEXTS = [
    "benchmark.yml",
    "classes.csv",
    "gold.jsonl",
    "semantic.csv",
    "slices.csv",
    "first_pass.jsonl",
    *(f"predictions/{model.name}.jsonl" for model in MODELS),
]
CLASSES = {kind.name for kind in KINDS}


@pytest.fixture(scope="module")
def toytown(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("sample") / "toytown", images=160).parent


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image)


def extent(image, kind):
    """Bounding box [x_min, y_min, x_max, y_max], half-open, of all pixels in the colours of a class."""
    colours = [tuple(bytes.fromhex(colour[1:])) for colour in kind.colours]
    y, x = np.nonzero(np.any([np.all(image == colour, axis=-1) for colour in colours], axis=0))
    return [x.min(), y.min(), x.max() + 1, y.max() + 1] if x.size else None


# --- the same everywhere


def test_same_seed_writes_the_same_bytes(tmp_path):
    first, second = (write_sample(tmp_path / name, images=8).parent for name in ("a", "b"))
    assert contents(first) == contents(second)
    assert set(contents(first)) >= {(first / name).relative_to(first) for name in TEXTS}


def test_another_seed_writes_another_sample(tmp_path):
    first, second = (contents(write_sample(tmp_path / str(seed), images=8, seed=seed).parent) for seed in (1, 2))
    same = {path.as_posix() for path in first if first[path] == second.get(path) and path.suffix != ".png"}
    assert same == {"classes.csv", "semantic.csv"}


def test_image_k_does_not_depend_on_the_number_of_images(tmp_path):
    short, long = (contents(write_sample(tmp_path / str(images), images=images).parent) for images in (9, 14))
    for path, content in short.items():
        if path.name == "inventory.json":
            continue  # the hashes of longer files
        # more pictures may give a question for one more of the point benchmarks
        more = set(content.splitlines()) <= set(long[path].splitlines()) if path.name == "benchmark.yml" else False
        assert more or long[path].startswith(content), path
    boxes = [[path for path in files if path.parts[0] != "points"] for files in (short, long)]
    assert len(boxes[1]) == len(boxes[0]) + 5


def test_frozen_regression_values(tmp_path):
    """Frozen values, not derived ones: they hold still what every machine has to write. Change them only on purpose."""
    folder = write_sample(tmp_path / "tiny", images=12, seed=7).parent
    text = hashlib.sha256(b"".join((folder / name).read_bytes() for name in TEXTS))
    drawn = hashlib.sha256(b"".join(pixels(path).tobytes() for path in sorted((folder / "images").iterdir())))
    assert text.hexdigest() == "ff2237f61acfc09b4decded628cab141783c7f01cffa14c530fec3270102f39d"
    assert drawn.hexdigest() == "82b424c68de2aa23584d4f788b895f7e008223423933aa919f2342fc7370bb83"


def test_text_has_plain_line_ends_and_says_what_it_is(toytown):
    for name in TEXTS:
        content = (toytown / name).read_bytes()
        assert content.endswith(b"\n"), name
        assert b"\r" not in content, name
    assert "these are not published results" in (toytown / "benchmark.yml").read_text(encoding="utf-8")


# --- gold


def test_gold_lists_every_picture_with_its_size(toytown):
    gold = lines(toytown, "gold.jsonl")
    assert [row["image_id"] for row in gold] == [f"toy-{number:05d}" for number in range(1, 161)]
    for row in gold:
        assert pixels(toytown / "images" / row["file_name"]).shape == (row["height"], row["width"], 3)


def test_gold_boxes_are_whole_pixels_inside_the_image():
    for number in range(1, 2001):
        shown = scene(SEED, number)
        assert len(shown.boxes) <= 5
        for _, box in shown.boxes:
            assert all(isinstance(edge, int) for edge in box)
            assert 0 <= box[0] < box[2] <= shown.width
            assert 0 <= box[1] < box[3] <= shown.height


def test_gold_has_negatives_skewed_classes_and_crowds():
    scenes = [scene(SEED, number) for number in range(1, 1201)]
    frequency = Counter(kind.name for shown in scenes for kind, _ in shown.boxes)
    assert 0.15 < sum(not shown.boxes for shown in scenes) / 1200 < 0.25
    assert set(frequency) == CLASSES
    assert max(frequency.values()) > 20 * min(frequency.values())
    assert len({kind.domain for kind in KINDS}) == 4
    crowds = [shown for shown in scenes if len({kind.name for kind, _ in shown.boxes}) == 1 and len(shown.boxes) >= 3]
    overlaps = [overlap(a, b) for shown in crowds for (_, a), (_, b) in zip(shown.boxes, shown.boxes[1:], strict=False)]
    assert sum(value > 0.3 for value in overlaps) > 100


def test_boxes_of_isolated_objects_equal_the_extent_of_their_pixels(toytown):
    kinds = {kind.name: kind for kind in KINDS}
    alone = [row for row in lines(toytown, "gold.jsonl") if len(row["boxes"]) == 1]
    assert len(alone) > 20
    for row in alone:
        box = row["boxes"][0]
        assert extent(pixels(toytown / "images" / row["file_name"]), kinds[box["class"]]) == box["box"], row


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_class_fills_its_box_at_every_size(kind):
    for width in range(kind.width[0], kind.width[1] + 1):
        for aspect in (kind.aspect - 10, kind.aspect, kind.aspect + 10):
            box = (20, 30, 20 + width, 30 + width * aspect // 100)
            assert extent(picture(Scene("one", 160, 200, [(kind, box)]), 1, 1), kind) == list(box)


def test_the_street_uses_no_colour_of_a_class_and_classes_share_none():
    colours = [colour for kind in KINDS for colour in kind.colours]
    assert len(set(colours)) == 3 * len(KINDS)
    for number in range(1, 25):
        street = picture(Scene("empty", 400, 300, []), SEED, number)
        shown = {f"#{number:06x}" for number in np.unique(street @ np.array([1 << 16, 1 << 8, 1]))}
        assert shown.isdisjoint(colours)


# --- predictions


def overlap(a, b):
    """Intersection over union, written out independently of the library."""
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(wide, 0) * max(high, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def maximum(close):
    return int((maximum_bipartite_matching(csr_array(close)) >= 0).sum()) if close.any() else 0


def greedy(values, threshold):
    taken, pairs = set(), 0
    for column in values.T:
        free = [(value, row) for row, value in enumerate(column) if value >= threshold and row not in taken]
        if free:
            taken.add(max(free)[1])
            pairs += 1
    return pairs


@pytest.fixture(scope="module")
def tallies():
    """By model, over 600 images: the number of gold, predicted, matched and greedily matched boxes."""
    totals = defaultdict(Counter)
    for number in range(1, 601):
        shown = scene(SEED, number)
        for model in MODELS:
            row = predict(model, shown, SEED, number)
            if row is None or "boxes" not in row:
                continue
            total = totals[model.name]
            named = Counter({kind.name for kind, _ in shown.boxes}) & Counter({box["class"] for box in row["boxes"]})
            total += Counter(classes=len({kind.name for kind, _ in shown.boxes}), named=len(named))
            total += Counter(gold=len(shown.boxes), predicted=len(row["boxes"]))
            for kind in {kind.name for kind, _ in shown.boxes} & {box["class"] for box in row["boxes"]}:
                gold = [box for other, box in shown.boxes if other.name == kind]
                boxes = [box["box"] for box in row["boxes"] if box["class"] == kind]
                values = np.array([[overlap(one, other) for other in boxes] for one in gold])
                total += Counter({threshold: maximum(values >= threshold) for threshold in (0.3, 0.5)})
                total += Counter(greedy=greedy(values, 0.5))
    return totals


def test_predicted_boxes_are_finite_rounded_and_never_inverted(toytown):
    flat = count = 0
    for model in MODELS:
        rows = lines(toytown, f"predictions/{model.name}.jsonl")
        for box in (box for row in rows for box in row.get("boxes", [])):
            x_min, y_min, x_max, y_max = box["box"]
            assert x_min <= x_max
            assert y_min <= y_max
            assert box["box"] == [round(edge, model.digits) for edge in box["box"]]
            assert ("score" in box) == (model.name in ("cautious", "eager"))
            flat, count = flat + (x_min == x_max or y_min == y_max), count + 1
    assert flat < 0.01 * count


def answers(name):
    """Over 1,200 images, what a model sees and what is read of its words."""
    model, found = next(model for model in MODELS if model.name == name), []
    for number in range(1, 1201):
        shown = scene(SEED, number)
        seen = predict(model, shown, SEED, number)
        row = in_words(model, seen, shown, SEED, number)
        assert row.keys() in ({"image_id", "response"}, {"image_id", "error"})
        read = (
            read_boxes(row["response"], reader(model.text), width=shown.width, height=shown.height)
            if "response" in row
            else FAILED
        )
        found.append((seen["boxes"], read, shown))
    return found


def test_talker_and_swapper_answer_in_their_own_words(toytown):
    assert [model.name for model in MODELS if model.text] == ["talker", "swapper"]
    benchmark = evalkit.read_benchmark(toytown / "benchmark.yml")
    assert set(benchmark.readers) == set(benchmark.relative) == {"talker", "swapper"}


def test_talker_slips_in_many_ways_and_all_are_told():
    read = [one for _, one, _ in answers("talker")]
    reasons = Counter(one.reason for one in read if one.state == "invalid")
    assert 0.07 < reasons.total() / 1200 < 0.13
    assert set(reasons) == {
        *("failed", "blank", "unclosed_think", "no_block", "empty_in_prose", "several_blocks", "objects_without_list"),
        *("truncated", "not_json", "bad_item", "other_key", "bad_label", "null_box", "bad_box", "placeholder", "out_of_scale"),
    }
    repairs = Counter(repair for one in read for repair in one.repairs)
    assert set(repairs) == set(REPAIRS)
    assert 0.05 < repairs.total() / 1200 < 0.15


@pytest.mark.parametrize("name", ["talker", "swapper"])
def test_what_is_read_of_words_is_what_the_model_saw(name):
    """To half of a thousandth of the side, in which the words speak; swapper's axes are exchanged in that frame."""
    for seen, read, shown in answers(name):
        if read.state != "valid":
            assert name == "talker"
            continue
        assert list(read.labels) == [one["class"] for one in seen]
        for one, box in zip(seen, read.boxes, strict=True):
            x, y = shown.width, shown.height
            back = [box[1] * x / y, box[0] * y / x, box[3] * x / y, box[2] * y / x] if name == "swapper" else box
            assert np.abs(np.array(back) - one["box"]).max() <= 0.5 / 1000 * max(x, y) + 1e-9


def test_dropout_alone_has_images_without_a_row(toytown):
    rows = {model.name: len(lines(toytown, f"predictions/{model.name}.jsonl")) for model in MODELS}
    assert 0.03 * 160 < 160 - rows.pop("dropout") < 0.14 * 160
    assert set(rows.values()) == {160}


def test_loose_alone_names_things_outside_the_class_list(toytown):
    for model in MODELS:
        rows = lines(toytown, f"predictions/{model.name}.jsonl")
        outside = {box["class"] for row in rows for box in row.get("boxes", [])} - CLASSES
        assert bool(outside) == (model.name == "loose")
        assert outside <= set(sample.OUTSIDE)


def test_eager_sees_things_on_negatives_more_often_than_cautious(toytown):
    negative = {row["image_id"] for row in lines(toytown, "gold.jsonl") if not row["boxes"]}
    false = {
        name: sum(bool(row["boxes"]) for row in lines(toytown, f"predictions/{name}.jsonl") if row["image_id"] in negative)
        for name in ("eager", "cautious")
    }
    assert false["eager"] > 0.25 * len(negative)
    assert false["cautious"] < 0.1 * len(negative)


def test_some_models_draw_boxes_partly_outside_the_image(toytown):
    sizes = {row["image_id"]: (row["width"], row["height"]) for row in lines(toytown, "gold.jsonl")}
    for model in MODELS:
        outside = 0
        for row in lines(toytown, f"predictions/{model.name}.jsonl"):
            width, height = sizes[row["image_id"]]
            for x_min, y_min, x_max, y_max in (box["box"] for box in row.get("boxes", [])):
                outside += x_min < 0 or y_min < 0 or x_max > width or y_max > height
        assert (outside == 0) == model.clip, model.name


def test_cautious_is_the_most_precise_and_eager_finds_the_most(tallies):
    precision = {name: total[0.5] / total["predicted"] for name, total in tallies.items()}
    recall = {name: total[0.5] / total["gold"] for name, total in tallies.items()}
    assert max(precision, key=precision.get) == "cautious"
    assert max(recall, key=recall.get) == "eager"


def test_swapper_knows_the_classes_but_not_the_places_until_its_axes_are_swapped(toytown):
    benchmark = evalkit.read_benchmark(toytown / "benchmark.yml", models=["swapper", "talker"])
    scores = evalkit.scores(benchmark, evalkit.count(benchmark))
    assert headline(scores, model="swapper", task="classification")["recall"] > 0.75
    assert headline(scores, model="swapper")["recall"] < 0.1
    found = evalkit.axis_swap(benchmark).set_index("model")
    assert found.loc["swapper", "tp_swapped"] / len(benchmark.gold) > 0.7
    assert found.loc["swapper", "better"] > 0.6 * 160
    assert found.loc["swapper", "worse"] == 0
    assert found.loc["talker", "better"] < 0.02 * 160


def test_loose_depends_on_the_threshold_and_cautious_does_not(tallies):
    assert tallies["loose"][0.5] < 0.8 * tallies["loose"][0.3]
    assert tallies["cautious"][0.5] > 0.98 * tallies["cautious"][0.3]


def test_greedy_matching_would_lose_pairs(tallies):
    assert sum(total["greedy"] for total in tallies.values()) < sum(total[0.5] for total in tallies.values()) - 5


# --- other people's files


@pytest.mark.parametrize("images", [0, -3])
def test_images_below_one_are_refused(tmp_path, images):
    with pytest.raises(EvalkitError, match=f"images: must be at least 1, got {images}"):
        write_sample(tmp_path / "toytown", images=images)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["thesis.txt", "benchmark.yml", "images/toy-00001.png", "predictions/mine.jsonl"])
def test_a_foreign_folder_is_refused_and_left_untouched(tmp_path, name):
    (tmp_path / "mine" / name).parent.mkdir(parents=True)
    (tmp_path / "mine" / name).write_text("name: mine\n", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(EvalkitError, match="must be a new or empty folder or an earlier sample"):
        write_sample(tmp_path / "mine", images=2)
    assert contents(tmp_path) == before


def test_a_sample_that_holds_a_file_of_the_user_is_refused(tmp_path):
    folder = write_sample(tmp_path / "toytown", images=2).parent
    (folder / "predictions" / "mine.jsonl").write_text("{}\n", encoding="utf-8")
    before = contents(tmp_path)
    with pytest.raises(EvalkitError, match=r"which holds predictions/mine\.jsonl"):
        write_sample(folder, images=3)
    assert contents(tmp_path) == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(EvalkitError, match="must be a folder"):
        write_sample(tmp_path / "file", images=1)
    with pytest.raises(EvalkitError, match="cannot write the sample"):
        write_sample(tmp_path / "file" / "toytown", images=1)
    assert contents(tmp_path).popitem()[1] == b"mine"


def test_an_empty_folder_and_an_earlier_sample_are_replaced(tmp_path):
    (tmp_path / "toytown").mkdir()
    for images in (5, 3):
        path = write_sample(tmp_path / "toytown", images=images)
        assert path == tmp_path / "toytown" / "benchmark.yml"
        assert len(list((path.parent / "images").iterdir())) == images
    assert list(tmp_path.iterdir()) == [tmp_path / "toytown"]


def test_an_interrupted_write_leaves_nothing_behind(tmp_path):
    def interrupted(numbers):
        yield from numbers[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_sample(tmp_path / "toytown", images=9, progress=interrupted)
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_sample_survives_a_failed_replacement(tmp_path, monkeypatch):
    folder = write_sample(tmp_path / "toytown", images=2).parent
    before, rename = contents(tmp_path), sample.Path.rename

    def fails(path, target):
        if path.name == "fresh":
            raise OSError("no room")
        return rename(path, target)

    monkeypatch.setattr(sample.Path, "rename", fails)
    with pytest.raises(EvalkitError, match="no room"):
        write_sample(folder, images=3)
    assert contents(tmp_path) == before


def test_progress_wraps_the_loop_over_the_images(tmp_path):
    seen = []
    write_sample(tmp_path / "toytown", images=4, progress=lambda numbers: seen.extend(numbers) or numbers)
    assert seen == [1, 2, 3, 4]

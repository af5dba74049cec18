"""Slow and obvious references in plain Python, and small benchmarks to compare them on.

Nothing here uses evalkit, numpy or pandas. Overlaps are fractions, matchings are found by trying, and every score is a loop
over images that follows its definition.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

TOLERANCE = Fraction(1, 10**9)
SCOPES = ("valid", "common", "all")
OUTCOMES = ("tp", "fp", "fn")
RATIOS = ("precision", "recall", "f1", "f2")


@dataclass
class Plain:
    """A benchmark in plain Python.

    ``classes`` maps a name to its domain ("" for none), ``gold`` an image to its boxes ``(class, [x_min, y_min, x_max,
    y_max])``. ``answers`` maps a model to what it says for an image: a list of boxes, or "invalid"; an image that it lacks is
    missing.
    """

    classes: dict = field(default_factory=lambda: {"litter": "street", "pothole": "road"})
    gold: dict = field(default_factory=dict)
    answers: dict = field(default_factory=dict)


def write_plain(plain: Plain, folder: Path) -> Path:
    """Write a benchmark as JSON lines and return the path of its ``benchmark.yml``."""
    folder.mkdir(parents=True, exist_ok=True)

    def lines(name, rows):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")

    def boxes(said):
        return [{"class": name, "box": list(map(float, box))} for name, box in said]

    table = [
        "class_id,class_name,domain",
        *(f"{at},{name},{domain}" for at, (name, domain) in enumerate(plain.classes.items())),
    ]
    (folder / "classes.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    lines("gold.jsonl", [{"image_id": image, "boxes": boxes(said)} for image, said in plain.gold.items()])
    for at, answers in enumerate(plain.answers.values()):
        rows = [
            {"image_id": image, "status": "invalid"} if said == "invalid" else {"image_id": image, "boxes": boxes(said)}
            for image, said in answers.items()
        ]
        lines(f"answers{at}.jsonl", rows or [{"image_id": next(iter(plain.gold)), "boxes": None}])
    models = {model: f"answers{at}.jsonl" for at, model in enumerate(plain.answers)}
    said = {"name": "Plain", "classes": "classes.csv", "gold": "gold.jsonl", "predictions": models}
    (folder / "benchmark.yml").write_text(json.dumps(said), encoding="utf-8")
    return folder / "benchmark.yml"


# -- overlap ----------------------------------------------------------------------------------------------------------


def exact_iou(a, b) -> Fraction:
    """Intersection over union of two boxes, without any rounding; 0 where nothing is shared."""
    a, b = ([Fraction(value) for value in box] for box in (a, b))
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return Fraction(0)
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def qualifies(a, b, threshold) -> bool:
    """Whether the overlap is at least the threshold, taken as the decimal number that is written down."""
    return exact_iou(a, b) >= Fraction(str(threshold)) - TOLERANCE


# -- matching ---------------------------------------------------------------------------------------------------------


def matching_by_paths(edges) -> dict:
    """A maximum matching of a bipartite graph, left node to right node, by augmenting paths from each left node in turn."""
    neighbours = defaultdict(list)
    for left, right in edges:
        neighbours[left].append(right)
    partner = {}

    def augment(left, seen):
        for right in neighbours[left]:
            if right not in seen:
                seen.add(right)
                if right not in partner or augment(partner[right], seen):
                    partner[right] = left
                    return True
        return False

    for left in list(neighbours):
        augment(left, set())
    return {left: right for right, left in partner.items()}


def prove_maximum(edges, matching: dict) -> None:
    """Prove that a matching is of maximum cardinality, or fail.

    It must be one-to-one and made of edges. König's construction then gives a set of nodes; if that covers every edge and has
    no more nodes than the matching has pairs, no larger matching can exist: each pair needs a node of the cover to itself.
    """
    edges = set(edges)
    assert set(matching.items()) <= edges, "a pair is no edge"
    assert len(set(matching.values())) == len(matching), "a right node stands in two pairs"
    lefts = {left for left, _ in edges}
    partner = {right: left for left, right in matching.items()}
    neighbours = defaultdict(set)
    for left, right in edges:
        neighbours[left].add(right)
    reached_left, reached_right = lefts - matching.keys(), set()
    queue = list(reached_left)
    while queue:
        left = queue.pop()
        for right in neighbours[left] - reached_right:
            reached_right.add(right)
            owner = partner.get(right)
            if owner is not None and owner not in reached_left:
                reached_left.add(owner)
                queue.append(owner)
    cover_left, cover_right = lefts - reached_left, reached_right
    assert all(left in cover_left or right in cover_right for left, right in edges), "the cover misses an edge"
    assert len(cover_left) + len(cover_right) == len(matching), "a larger matching exists"


def best_by_search(weights: dict) -> tuple:
    """Size and weight of the best matching, by trying every one: most pairs first, then the largest sum of weights."""
    lefts = sorted({left for left, _ in weights})

    def best(at, used):
        if at == len(lefts):
            return 0, Fraction(0)
        found = best(at + 1, used)
        for (left, right), weight in weights.items():
            if left == lefts[at] and right not in used:
                size, total = best(at + 1, used | {right})
                found = max(found, (size + 1, total + weight))
        return found

    return best(0, frozenset())


# -- counts -----------------------------------------------------------------------------------------------------------


def said_by(plain: Plain, model: str, image: str) -> list:
    """The boxes that count for an image: none if the response is invalid or missing."""
    said = plain.answers[model].get(image, [])
    return [] if said == "invalid" else said


def is_valid(plain: Plain, model: str, image: str) -> bool:
    return isinstance(plain.answers[model].get(image), list)


def image_counts(plain: Plain, model: str, image: str, threshold=None) -> dict:
    """``{class: (tp, fp, fn)}`` of one image: of the class sets, or of the boxes if there is a threshold."""
    gold, said = plain.gold[image], said_by(plain, model, image)
    found = {}
    for name in {name for name, _ in [*gold, *said]}:
        golds = [box for label, box in gold if label == name]
        boxes = [box for label, box in said if label == name]
        if threshold is None:
            golds, boxes, tp = golds[:1], boxes[:1], int(bool(golds and boxes))
        else:
            edges = [(g, p) for g, a in enumerate(golds) for p, b in enumerate(boxes) if qualifies(a, b, threshold)]
            tp = len(matching_by_paths(edges))
        found[name] = (tp, len(boxes) - tp, len(golds) - tp)
    return found


def images_of(plain: Plain, model: str, scope: str) -> list:
    """The images of a scope: a model's valid ones, those valid for every model, or (the view) all."""
    if scope == "valid":
        return [image for image in plain.gold if is_valid(plain, model, image)]
    if scope == "common":
        return [image for image in plain.gold if all(is_valid(plain, other, image) for other in plain.answers)]
    return list(plain.gold)


# -- scores -----------------------------------------------------------------------------------------------------------


def ratio(numerator, denominator, undefined=0.0):
    return numerator / denominator if denominator else undefined


def ratios(tp, fp, fn, undefined=0.0) -> dict:
    return {
        "precision": ratio(tp, tp + fp, undefined),
        "recall": ratio(tp, tp + fn, undefined),
        "f1": ratio(2 * tp, 2 * tp + fp + fn, undefined),
        "f2": ratio(5 * tp, 5 * tp + fp + 4 * fn, undefined),
    }


def plain_scores(plain: Plain, thresholds=(0.3, 0.4, 0.5)) -> dict:
    """Every row of the scores: ``(model, scope, task, threshold, level, average, label)`` to its numbers.

    Only for scopes that hold an image. Macro rows have no counts.
    """
    rows = {}
    for model in plain.answers:
        for scope in SCOPES:
            images = images_of(plain, model, scope)
            if not images:
                continue
            for threshold in (None, *thresholds):
                task = "classification" if threshold is None else "localisation"
                totals = {name: [0, 0, 0] for name in plain.classes}
                for image in images:
                    for name, counts in image_counts(plain, model, image, threshold).items():
                        totals.setdefault(name, [0, 0, 0])
                        totals[name] = [a + b for a, b in zip(totals[name], counts, strict=True)]
                for (level, average, label), numbers in _rows_of(plain, totals).items():
                    key = (model, scope, task, threshold, level, average, label)
                    rows[key] = {**numbers, "n_images": len(images)}
    return rows


def _rows_of(plain: Plain, totals: dict) -> dict:
    """The rows of one block from the sums of each class."""

    def pooled(names):
        tp, fp, fn = (sum(totals[name][at] for name in names) for at in range(3))
        return {"tp": tp, "fp": fp, "fn": fn, "n_gold": tp + fn, **ratios(tp, fp, fn)}

    rows = {("overall", "micro", "overall"): pooled(totals)}
    for domain in {domain for domain in plain.classes.values() if domain}:
        rows["domain", "micro", domain] = pooled([name for name in plain.classes if plain.classes[name] == domain])
    for name in plain.classes:
        rows["class", "", name] = pooled([name])
    rows["outside", "micro", "outside"] = pooled([name for name in totals if name not in plain.classes])
    represented = [name for name in plain.classes if any(totals[name])]
    with_gold = [name for name in plain.classes if totals[name][0] + totals[name][2]]
    for average, names in (("macro", represented), ("macro_gold", with_gold)):
        means = {key: ratio(sum(ratios(*totals[name])[key] for name in names), len(names)) for key in RATIOS}
        rows["overall", average, "overall"] = {**means, "n_gold": rows["overall", "micro", "overall"]["n_gold"]}
    return rows


def plain_coverage(plain: Plain) -> dict:
    """``(model, scope)`` to the numbers of coverage; None where a ratio is undefined."""
    rows = {}
    for model in plain.answers:
        for scope in SCOPES:
            negative = [image for image in images_of(plain, model, scope) if not plain.gold[image]]
            boxes = [len(said_by(plain, model, image)) for image in negative]
            valid = sum(is_valid(plain, model, image) for image in plain.gold)
            invalid = sum(plain.answers[model].get(image) == "invalid" for image in plain.gold)
            shown = scope != "all"
            rows[model, scope] = {
                "images": len(plain.gold),
                "valid": valid,
                "invalid": invalid,
                "missing": len(plain.gold) - valid - invalid,
                "coverage": valid / len(plain.gold),
                "negative_images": len(negative),
                "negative_with_boxes": sum(number > 0 for number in boxes),
                "negative_fpr": ratio(sum(number > 0 for number in boxes), len(boxes), None) if shown else None,
                "fp_boxes_per_negative": ratio(sum(boxes), len(boxes), None) if shown else None,
            }
    return rows


# -- semantic relaxation ----------------------------------------------------------------------------------------------


def relaxed_image_counts(gold, said, classes, relation, cutoff, threshold=None) -> dict:
    """``{class: (tp, fp, fn)}`` of one image under a relation ``{(gold class, predicted class): Fraction}``, by trying all.

    Of every one-to-one matching the best is kept: most pairs, most exact ones, largest sum of the relation, largest sum of
    IoU, then the gold and the predicted classes that come first in ``classes``.
    """
    if threshold is None:
        gold, said = ([(name, None) for name in dict.fromkeys(label for label, _ in side)] for side in (gold, said))

    def overlap(a, b):
        return Fraction(0) if threshold is None else exact_iou(a, b)

    def may(one, other):
        (a, box), (b, other_box) = one, other
        related = a == b or (b in classes and relation[a, b] >= cutoff)
        return related and (threshold is None or qualifies(box, other_box, threshold))

    def every(at, used):
        if at == len(gold):
            yield ()
            return
        yield from every(at + 1, used)
        for p in set(range(len(said))) - used:
            if may(gold[at], said[p]):
                yield from (((at, p), *rest) for rest in every(at + 1, used | {p}))

    def rank(pairs):
        named = [(gold[g][0], said[p][0]) for g, p in pairs]
        places = [sorted((-classes.index(pair[side]) for pair in named), reverse=True) for side in (0, 1)]
        return (
            len(pairs),
            sum(a == b for a, b in named),
            sum(relation[pair] for pair in named),
            sum(overlap(gold[g][1], said[p][1]) for g, p in pairs),
            *places,
        )

    best = max(every(0, frozenset()), key=rank)
    counts = {name: [0, 0, 0] for name, _ in [*gold, *said]}
    for g, (name, _) in enumerate(gold):
        counts[name][0 if g in dict(best) else 2] += 1
    for p, (name, _) in enumerate(said):
        counts[name][1] += p not in {right for _, right in best}
    return {name: tuple(values) for name, values in counts.items()}

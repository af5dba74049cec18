"""The slow reference of agreement: plain Python over ``{image: {annotator: [(class, box), …]}}``, by the definitions."""

from fractions import Fraction
from itertools import combinations

from references import best_by_search, exact_iou, qualifies

NAN = None


def pairs_of(ratings):
    """Every two annotators of every image, as two lists of boxes, and the number of annotators of the image."""
    return [(marks[a], marks[b], len(marks)) for marks in ratings.values() for a, b in combinations(sorted(marks), 2)]


def names(boxes):
    return frozenset(name for name, _ in boxes)


def ratio(numerator, denominator):
    return numerator / denominator if denominator else NAN


def class_parts(ratings, name):
    """``{statistic: (numerator, denominator, variation)}`` of one class, present or absent; None where no image has a pair."""
    units = [[name in names(boxes) for boxes in marks.values()] for marks in ratings.values()]
    several = [unit for unit in units if len(unit) > 1]
    if not several:
        return None
    shares = [Fraction(sum(a == b for a, b in combinations(unit, 2)), len(list(combinations(unit, 2)))) for unit in several]
    observed = sum(shares) / len(shares)
    share = sum(Fraction(sum(unit), len(unit)) for unit in units) / len(units)
    chance = share**2 + (1 - share) ** 2
    chance_ac1 = 2 * share * (1 - share)
    values = [(one, len(unit) - 1) for unit in several for one in unit]
    n, positive = len(values), sum(one for one, _ in values)
    apart = sum(Fraction(sum(a != b for a in unit for b in unit), len(unit) - 1) for unit in several) / n
    expected = Fraction(2 * positive * (n - positive), n * (n - 1))
    found = {
        "observed_agreement": (observed, 1, 1),
        "fleiss_kappa": (observed - chance, 1 - chance, 1 - chance),
        "gwet_ac1": (observed - chance_ac1, 1 - chance_ac1, chance_ac1),
        "krippendorff_alpha": (expected - apart, expected, expected),
    }
    people = {frozenset(marks) for marks in ratings.values()}
    if len(people) == 1 and len(next(iter(people))) == 2:
        rows = [tuple(name in names(boxes) for _, boxes in sorted(marks.items())) for marks in ratings.values()]
        first, second = (Fraction(sum(side), len(rows)) for side in zip(*rows, strict=True))
        by_chance = first * second + (1 - first) * (1 - second)
        agreed = Fraction(sum(a == b for a, b in rows), len(rows))
        found["cohen_kappa"] = (agreed - by_chance, 1 - by_chance, 1 - by_chance)
    return found


def marked_classes(ratings):
    return {name for marks in ratings.values() for boxes in marks.values() for name in names(boxes)}


def pooled_class_statistics(ratings, classes):
    """The coefficients of some classes together: sums of numerators over sums of denominators."""
    every = [class_parts(ratings, name) for name in classes]
    found = {}
    for statistic in ("observed_agreement", "fleiss_kappa", "gwet_ac1", "krippendorff_alpha", "cohen_kappa"):
        parts = [one[statistic] for one in every if one and statistic in one]
        sums = [sum(part) for part in zip(*parts, strict=True)] if parts else [0, 0, 0]
        found[statistic] = ratio(sums[0], sums[1]) if sums[2] > 0 else NAN
    both = sum(name in names(a) and name in names(b) for a, b, _ in pairs_of(ratings) for name in classes)
    one = sum((name in names(a)) != (name in names(b)) for a, b, _ in pairs_of(ratings) for name in classes)
    found["positive_agreement"] = ratio(Fraction(2 * both), 2 * both + one)
    return found


def set_statistics(ratings, classes):
    def kept(boxes):
        return names(boxes) & frozenset(classes)

    pairs = [(kept(a), kept(b), m) for a, b, m in pairs_of(ratings)]
    values = [kept(boxes) for marks in ratings.values() if len(marks) > 1 for boxes in marks.values()]
    n = len(values)
    if not pairs:
        return dict.fromkeys(["exact_match", "mean_jaccard", "masi_alpha"], NAN)
    observed = sum(2 * masi_distance(a, b) / (m - 1) for a, b, m in pairs) / n
    expected = sum(masi_distance(a, b) for a in values for b in values) / (n * (n - 1))
    return {
        "exact_match": Fraction(sum(a == b for a, b, _ in pairs), len(pairs)),
        "mean_jaccard": sum(jaccard(a, b) for a, b, _ in pairs) / len(pairs),
        "masi_alpha": 1 - observed / expected if expected else NAN,
    }


def jaccard(one, other):
    return Fraction(len(one & other), len(one | other)) if one | other else Fraction(1)


def masi_distance(one, other):
    if one == other:
        return Fraction(0)
    rank = Fraction(2, 3) if one <= other or other <= one else Fraction(1, 3) if one & other else 0
    return 1 - jaccard(one, other) * rank


def box_statistics(ratings, classes, threshold=0.5):
    """Of every pair of annotators: matched within the class by trying every matching, largest sum of IoU among the largest."""
    matched, overlap, boxes = 0, Fraction(0), 0
    for a, b, _ in pairs_of(ratings):
        for name in classes:
            left, right = ([box for label, box in side if label == name] for side in (a, b))
            weights = {
                (i, j): exact_iou(one, other)
                for i, one in enumerate(left)
                for j, other in enumerate(right)
                if qualifies(one, other, threshold)
            }
            size, total = best_by_search(weights)
            matched, overlap, boxes = matched + size, overlap + total, boxes + len(left) + len(right)
    return {"pairwise_f1": ratio(Fraction(2 * matched), boxes), "mean_iou": ratio(overlap, matched)}


def box_alpha(ratings, threshold=0.5):
    units = []
    for a, b, _ in pairs_of(ratings):
        weights = {
            (i, j): Fraction(one[0] == other[0])
            for i, one in enumerate(a)
            for j, other in enumerate(b)
            if qualifies(one[1], other[1], threshold)
        }
        size, equal = best_by_search(weights)
        # the classes of the unlike pairs do not matter to alpha: margins hold each box once, whatever its partner
        free = len(a) + len(b) - 2 * size
        units.append((int(equal), size - int(equal), free, [name for name, _ in [*a, *b]]))
    n = 2 * sum(equal + unlike + free for equal, unlike, free, _ in units)
    if not n:
        return NAN
    margins = {"no box": sum(free for *_, free, _ in units)}
    for *_, labels in units:
        for name in labels:
            margins[name] = margins.get(name, 0) + 1
    apart = Fraction(2 * sum(unlike + free for _, unlike, free, _ in units), n)
    expected = Fraction(n * n - sum(value**2 for value in margins.values()), n * (n - 1))
    return 1 - apart / expected if expected else NAN


def plain_agreement(ratings, domains, group=None):
    """``{(level, label, statistic): value}`` of one group; ``domains`` is ``{class: domain}``.

    ``group`` has the ratings from which ``ratings`` were drawn, if they were: what was marked there is pooled.
    """
    marked = marked_classes(group or ratings)
    levels = {("overall", "overall"): list(domains)}
    levels |= {("domain", one): [name for name in domains if domains[name] == one] for one in domains.values() if one}
    levels |= {("class", name): [name] for name in domains}
    found = {}
    for key, classes in levels.items():
        values = pooled_class_statistics(ratings, [name for name in classes if key[0] == "class" or name in marked])
        values |= box_statistics(ratings, classes)
        if key[0] != "class":
            values |= set_statistics(ratings, classes)
        if key[0] == "overall":
            values["box_alpha"] = box_alpha(ratings)
        found |= {(*key, statistic): value for statistic, value in values.items()}
    return found

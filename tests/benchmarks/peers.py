"""The three evaluators that evalkit is measured against, each doing the same work.

No cap on detections, one area range, any IoU thresholds. All three match greedily by score. True positives of a
class are its recall at the last detection times its gold boxes (one recall point is asked for, so that building
the precision curve costs them nothing); false positives and negatives follow from the sizes. Every function
takes and returns what the tool itself uses; `tally` gives an array (threshold, class, 3) of TP, FP and FN.
"""

import contextlib
import io
from importlib.util import find_spec

import numpy as np

MODULES = {"hotcoco": "hotcoco", "faster-coco-eval": "faster_coco_eval", "pycocotools": "pycocotools"}
UNCAPPED = 1_000  # far more than any image of the set has; faster-coco-eval takes memory for each


def missing():
    return [name for name, module in MODULES.items() if find_spec(module) is None]


def load_gold(name, path):
    with _quiet():
        return classes_of(name)[0](str(path))


def load_results(gold, path):
    with _quiet():
        return gold.loadRes(str(path))


def prepare(name, gold, results, thresholds):
    """An evaluator that is ready for `evaluate`."""
    evaluator = classes_of(name)[1](gold, results, "bbox")
    parameters = evaluator.params
    parameters.iouThrs = _list_or_array(name, thresholds)
    parameters.recThrs = _list_or_array(name, [0.0])
    parameters.maxDets = [UNCAPPED]
    parameters.areaRng = [[0, 1e10]]
    parameters.areaRngLbl = ["all"]
    return evaluator


def evaluate(evaluator):
    """The matching alone."""
    with _quiet():
        evaluator.evaluate()


def tally(name, evaluator, gold, results):
    with _quiet():
        evaluator.accumulate()
    recall = np.asarray(evaluator.eval["recall"])[:, :, 0, 0]
    n_gold, n_predicted = _boxes_a_class(name, gold), _boxes_a_class(name, results)
    tp = np.rint(np.where(recall < 0, 0, recall) * n_gold).astype(int)
    return np.stack([tp, n_predicted - tp, n_gold - tp], axis=2)


def end_to_end(name, folder, models, thresholds):
    """From files to one tally a model; the gold file is read once."""
    gold = load_gold(name, folder / "gold.json")
    tallies = []
    for model in models:
        results = load_results(gold, folder / f"{model}.json")
        evaluator = prepare(name, gold, results, thresholds)
        evaluate(evaluator)
        tallies.append(tally(name, evaluator, gold, results))
    return tallies


def classes_of(name):
    if name == "hotcoco":
        from hotcoco import COCO, COCOeval
    elif name == "faster-coco-eval":
        from faster_coco_eval import COCO
        from faster_coco_eval import COCOeval_faster as COCOeval
    else:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    return COCO, COCOeval


def _boxes_a_class(name, coco):
    if name == "hotcoco":
        rows = {row["id"]: row["ann_count"] for row in coco.stats()["per_category"]}
    else:
        rows = {category: len(coco.catToImgs.get(category, ())) for category in coco.getCatIds()}
    return np.array([rows.get(category, 0) for category in sorted(coco.getCatIds())])


def _list_or_array(name, values):
    return list(values) if name == "hotcoco" else np.array(values)


def _quiet():
    return contextlib.redirect_stdout(io.StringIO())

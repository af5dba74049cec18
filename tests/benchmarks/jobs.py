"""One measurement in a process of its own: `python jobs.py TOOL WORK FOLDER CALLS` prints it as one line of JSON.

Works of every tool: `matching-T` (one model, all loaded) and `files-M-T` (from JSON files, M models), at T = 1 or 3
thresholds. Of evalkit alone: `jsonl-M-T`, `whole`, `scale-FACTOR`, `dense`, `crowd`, `copies`, `answers-FORM`, `intervals`,
`rescoring`, `agreement`, `alpha`, `pairs`. Peak memory is the process's own high-water mark, beside the ones after the imports
and before the work.
"""

import gc
import json
import resource
import sys
import time
from pathlib import Path

import data
import numpy as np
import peers
import point_data

NAIVE_REPLICATES = 20
THRESHOLDS = {"1": [0.50], "3": [0.30, 0.40, 0.50]}


def measure(tool, work, folder, calls):
    """Seconds of each call, memory in bytes, and what came out: one (threshold, class, 3) list a model."""
    name, *arguments = work.split("-")
    _import(tool)
    memory = {"imported": peak_memory()}
    jobs = EVALKIT if tool == "evalkit" else PEERS
    run, finish = jobs[name](tool, Path(folder), *arguments)
    memory["loaded"] = peak_memory()
    seconds = []
    for _ in range(calls):
        gc.collect()
        start = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - start)
    memory["peak"] = peak_memory()
    return {"seconds": seconds, "memory": memory, **finish(result)}


def peak_memory():
    """The high-water mark in bytes. On Linux from /proc: `ru_maxrss` there starts at the parent's size."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _import(tool):
    if tool == "evalkit":
        import evalkit  # noqa: F401
    else:
        peers.classes_of(tool)


# -- the peers --------------------------------------------------------------------------------------------------------


def _peer_matching(tool, folder, thresholds):
    gold = peers.load_gold(tool, folder / "gold.json")
    results = peers.load_results(gold, folder / "m1.json")
    evaluator = peers.prepare(tool, gold, results, THRESHOLDS[thresholds])
    return lambda: peers.evaluate(evaluator), lambda _: _out([peers.tally(tool, evaluator, gold, results)])


def _peer_files(tool, folder, models, thresholds):
    names = data.model_names(int(models))
    return lambda: peers.end_to_end(tool, folder, names, THRESHOLDS[thresholds]), _out


PEERS = {"matching": _peer_matching, "files": _peer_files}


# -- evalkit ----------------------------------------------------------------------------------------------------------


def _matching(tool, folder, thresholds):
    gold = data.make_gold()
    return _columns(gold, data.make_predictions(gold), THRESHOLDS[thresholds])


def _scale(tool, folder, factor):
    gold = data.make_gold(factor=int(factor))
    return _columns(gold, data.make_predictions(gold, factor=int(factor)), THRESHOLDS["3"])


def _columns(gold, predicted, thresholds):
    return lambda: [match_columns(gold, predicted, thresholds)], _out


def match_columns(gold, predicted, thresholds):
    """The matching alone, from columns to TP, FP and FN a threshold and class; IoUs are computed once."""
    from evalkit.boxes import candidate_pairs, reaches
    from evalkit.matching import maximum_matching

    keys = [side["image"] * data.CLASSES + side["class"] for side in (gold, predicted)]
    left, right, overlap = candidate_pairs(keys[0], gold["box"], keys[1], predicted["box"], minimum_iou=min(thresholds))
    n_gold, n_predicted = (np.bincount(side["class"], minlength=data.CLASSES) for side in (gold, predicted))
    rows = []
    for threshold in thresholds:
        near = reaches(overlap, threshold)
        matched = maximum_matching(left[near], right[near], len(gold["image"]), len(predicted["image"])) >= 0
        tp = np.bincount(gold["class"][matched], minlength=data.CLASSES)
        rows.append(np.stack([tp, n_predicted - tp, n_gold - tp], axis=1))
    return np.stack(rows)


def _files(tool, folder, models, thresholds, suffix="coco"):
    path = folder / f"{suffix}-{models}.yml"
    return lambda: end_to_end(path, THRESHOLDS[thresholds]), _finish


def _jsonl(tool, folder, models, thresholds):
    return _files(tool, folder, models, thresholds, "jsonl")


def end_to_end(path, thresholds):
    """What a user runs: files to a checked benchmark, counts of class sets and boxes, table of scores."""
    from evalkit.counts import count
    from evalkit.formats import read_benchmark
    from evalkit.metrics import scores

    clock = [time.perf_counter()]
    benchmark = read_benchmark(path)
    clock.append(time.perf_counter())
    counts = count(benchmark, iou=thresholds)
    clock.append(time.perf_counter())
    table = scores(benchmark, counts)
    clock.append(time.perf_counter())
    return table, dict(zip(("read", "count", "scores"), np.diff(clock).tolist(), strict=True))


def _whole(tool, folder):
    """Six models as a check and a score of them go: the bytes read and hashed, loaded, checked in layers, scored."""
    from evalkit.checks import data_check
    from evalkit.counts import count
    from evalkit.formats import read_benchmark
    from evalkit.formats.options import read_options
    from evalkit.metrics import scores
    from evalkit.reproduction import input_hashes

    path = folder / "jsonl-6.yml"

    def run():
        clock = [time.perf_counter()]
        dict(input_hashes(read_options(path), folder))
        clock.append(time.perf_counter())
        benchmark = read_benchmark(path)
        clock.append(time.perf_counter())
        data_check(benchmark)
        clock.append(time.perf_counter())
        scores(benchmark, count(benchmark))
        clock.append(time.perf_counter())
        return dict(zip(("hash", "load", "check", "score"), np.diff(clock).tolist(), strict=True))

    return run, lambda stages: {"stages": stages}


def _dense(tool, folder):
    return _tables(*data.make_dense(), THRESHOLDS["3"])


def _crowd(tool, folder):
    gold, predicted, expected = data.make_crowd()
    return _tables(gold, predicted, list(expected))


def _copies(tool, folder):
    gold, predicted, expected = data.make_copies()
    return _tables(gold, predicted, list(expected))


def _tables(gold, predicted, thresholds):
    from evalkit.counts import count

    benchmark = data.as_benchmark(gold, predicted)
    return lambda: count(benchmark, iou=thresholds), _sum_counts


def _intervals(tool, folder):
    """The intervals of every score of one model: both tasks, three thresholds, micro, macro, per domain and per class."""
    from evalkit.counts import count
    from evalkit.formats import read_benchmark
    from evalkit.intervals import add_intervals, bootstrap
    from evalkit.metrics import scores

    benchmark = read_benchmark(folder / "coco-1.yml")
    counts = count(benchmark)
    table = scores(benchmark, counts)
    return lambda: add_intervals(table, bootstrap(benchmark, counts)), lambda table: {"rows": len(table)}


def _rescoring(tool, folder):
    """The naive way, 20 replicates of it: resample the images, match and score again."""
    from evalkit.counts import count
    from evalkit.formats import read_benchmark
    from evalkit.metrics import scores

    benchmark = read_benchmark(folder / "coco-1.yml")
    generator = np.random.default_rng(0)

    def run():
        for drawn in generator.integers(0, len(benchmark.images), size=(NAIVE_REPLICATES, len(benchmark.images))):
            again = data.resampled(benchmark, drawn)
            scores(again, count(again))

    return run, lambda _: {}


def _points(tool, folder):
    """Masks of 1024 x 1024 decoded one by one, and the answers of one model scored on them; each has its own time."""
    from evalkit.point_metrics import point_scores
    from evalkit.point_runs import answer_to, sample_row, sample_table, target_regions

    run = point_data.read(folder)
    answers, convention = run.answers["m"], run.readers["m"]

    def score():
        spent, rows = {"read": 0.0, "decode": 0.0, "score": 0.0}, []
        clock = time.process_time()  # of the processor: the parts are compared with one another

        def lap(name):
            nonlocal clock
            now = time.process_time()
            spent[name] += now - clock
            clock = now

        for sample in run.samples():
            lap("read")
            regions = target_regions(sample, run.benchmark)
            lap("decode")
            rows.append(sample_row(sample, regions, answer_to(sample, answers, convention), convention, False))
            lap("score")
        scores = point_scores(sample_table({"m": rows}, run.benchmark))
        lap("score")
        return scores, spent

    return score, lambda result: {"stages": result[1], "samples": int(result[0]["samples"].iloc[0])}


def _aggregate(tool, folder):
    """100,000 samples that are evidence already, to counts and scores."""
    from evalkit.point_benchmarks import point_benchmark
    from evalkit.point_metrics import point_scores
    from evalkit.points import counted

    evidence, benchmark = point_data.make_evidence(), point_benchmark("PointBench")
    return lambda: point_scores(counted(evidence, benchmark)), lambda scores: {"samples": int(scores["samples"].iloc[0])}


def _answers(tool, folder, form):
    """100,000 answers of a model, read one by one."""
    from evalkit.responses import read_boxes, reader

    texts, convention = data.make_answers(form), reader("qwen-boxes")

    def run():
        return sum(read_boxes(text, convention, width=640, height=480).state == "valid" for text in texts)

    return run, lambda valid: {"valid": valid, "size": sum(map(len, texts)) / len(texts)}


def _agreement(tool, folder):
    """Every statistic of three annotators, of the group and of each pair, with intervals."""
    from evalkit.agreement import agree, agree_by_pair, mark

    first = data.make_annotators(data.make_gold())

    def run():
        marks = mark(first)
        return agree(first, marks=marks), agree_by_pair(first, marks=marks)

    return run, lambda tables: {"rows": [len(table) for table in tables]}


def _alpha(tool, folder):
    """The naive way, 20 replicates of it: alpha of each class with `krippendorff` on the resampled ratings."""
    import warnings

    import krippendorff

    first = data.make_annotators(data.make_gold())
    ratings = np.zeros((data.CLASSES, len(first.annotators), len(first.images)))
    person, image = (first.boxes[name].cat.codes.to_numpy() for name in ("annotator", "image_id"))
    ratings[first.boxes["class"].cat.codes.to_numpy(), person, image] = 1
    generator = np.random.default_rng(0)

    def run():
        warnings.simplefilter("ignore")
        for drawn in generator.integers(0, len(first.images), size=(NAIVE_REPLICATES, len(first.images))):
            for table in ratings[:, :, drawn]:
                krippendorff.alpha(reliability_data=table, level_of_measurement="nominal", value_domain=[0, 1])

    return run, lambda _: {}


def _pairs(tool, folder):
    """Every pair of seven annotators on 1,448 images."""
    from evalkit.agreement import mark

    first = data.make_annotators(data.make_gold(), annotators=7, images=1448)
    return lambda: mark(first), lambda marks: {"pairs": len(marks.a)}


def _sum_counts(counts):
    boxes = counts[counts["task"] == "localisation"]
    return {"true_positives": {f"{iou:.2f}": int(tp) for iou, tp in boxes.groupby("iou")["tp"].sum().items()}}


def _finish(result):
    """From evalkit's table of scores to the form that the peers give; a class that a model never meets is all zeros."""
    table, stages = result
    table = table[(table["scope"] == "valid") & (table["task"] == "localisation") & (table["level"] == "class")]
    labels = {data.class_name(code): code for code in range(data.CLASSES)}
    tallies = []
    for _, of_model in table.groupby("model", sort=False, observed=True):
        thresholds = sorted(of_model["iou"].unique())
        tally = np.zeros((len(thresholds), data.CLASSES, 3), int)
        cells = [thresholds.index(iou) for iou in of_model["iou"]], [labels[label] for label in of_model["label"]]
        tally[cells] = of_model[["tp", "fp", "fn"]].to_numpy(int)
        tallies.append(tally)
    return {**_out(tallies), "stages": stages}


def _out(tallies):
    return {"tallies": [tally.tolist() for tally in tallies]}


EVALKIT = {
    "points": _points,
    "aggregate": _aggregate,
    "answers": _answers,
    "agreement": _agreement,
    "alpha": _alpha,
    "pairs": _pairs,
    "intervals": _intervals,
    "rescoring": _rescoring,
    "matching": _matching,
    "files": _files,
    "jsonl": _jsonl,
    "whole": _whole,
    "scale": _scale,
    "dense": _dense,
    "crowd": _crowd,
    "copies": _copies,
}


if __name__ == "__main__":
    tool, work, folder, calls = sys.argv[1:]
    print(json.dumps(measure(tool, work, folder, int(calls))))

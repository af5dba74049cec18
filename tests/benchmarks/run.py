"""`make bench`: time and memory of evalkit and of three other evaluators on the same work.

    python tests/benchmarks/run.py [matching] [endtoend] [whole] [scale] [crowd] [intervals] [points] [answers] [agreement]
        [book] [--rounds N] [--cores N] [--folder DIR]

Every measurement is a process of its own. The rounds go through the tools in turn, so that a busy machine is busy
for all of them. Each tool runs as it comes: hotcoco takes as many threads as there are cores, evalkit takes one.
`--cores 1` holds all of them to one core.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import data
import numpy as np
import peers
import point_data
from jobs import NAIVE_REPLICATES
from measuring import (
    compare,
    job,
    largest,
    limit_ratio,
    limit_true_positives,
    megabytes,
    print_comparison,
    print_stages,
    print_table,
    typical,
)

REPLICATES = 2000
ROOT = Path(__file__).resolve().parents[2]
MATCHING = {"matching-1": "one model, one threshold", "matching-3": "one model, three thresholds"}
FILES = {
    "files-1-1": "one model, one threshold",
    "files-1-3": "one model, three thresholds",
    "files-6-3": "six models, three thresholds",
}


def main():
    parser = argparse.ArgumentParser(description="time and memory of evalkit and its peers")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all if none is given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, help="hold every tool to so many cores")
    parser.add_argument("--folder", type=Path, help="where the files of the set are made, and kept")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if absent := peers.missing():
        print(f"not installed: {', '.join(absent)}; install them with: pip install -e '.[bench]'", file=sys.stderr)
        sys.exit(2)
    if options.cores and not hasattr(os, "sched_setaffinity"):
        parser.error("--cores is not possible on this system")
    if options.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.cores :])
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        print_setting()
        data.write(folder)
        goals = [goal for name in options.sections or SECTIONS for goal in SECTIONS[name](folder, options.rounds)]
    print("\nGoals")
    for met, text in goals:
        print(f"  {'met    ' if met else 'not met'}  {text}")


def print_setting():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    tools = ", ".join(f"{tool} {version(tool)}" for tool in [*peers.MODULES, "numpy", "scipy", "pandas"])
    print(f"Python {platform.python_version()}, {cores} core(s); {tools}")
    boxes = f"{data.GOLD:,} gold and {data.PREDICTED:,} predicted boxes a model"
    print(f"{data.IMAGES:,} images, {data.CLASSES} classes, {boxes}")


# -- sections: each prints its tables and returns its goals as pairs (met, text) --------------------------------------


def matching(folder, rounds):
    goals = []
    for work, title in MATCHING.items():
        runs = compare(work, folder, rounds)
        print_comparison(f"Matching alone, {title}", runs)
        limit_ratio(goals, runs, "hotcoco", 1.0, f"matching alone, {title}")
        limit_true_positives(goals, runs, f"matching alone, {title}")
    return goals


def endtoend(folder, rounds):
    goals = []
    for work, title in FILES.items():
        runs = compare(work, folder, rounds)
        print_comparison(f"End to end from JSON files, {title}", runs)
        print_stages(runs["evalkit"])
        if work != "files-1-3":
            limit_ratio(goals, runs, "hotcoco", 1.5 if work == "files-1-1" else 1.0, f"end to end, {title}")
        limit_ratio(goals, runs, "pycocotools", 1 / 20, f"end to end, {title}")
        limit_true_positives(goals, runs, f"end to end, {title}")
    for work, title in {"jsonl-1-1": "one model, one threshold", "jsonl-6-3": "six models, three thresholds"}.items():
        runs = compare(work, folder, rounds, ["evalkit"])
        print_comparison(f"evalkit from its own JSON lines, {title}", runs)
        print_stages(runs["evalkit"])
    return goals


def whole(folder, rounds):
    runs = [job("evalkit", "whole", folder, 3) for _ in range(min(rounds, 3))]
    rows = [["all", f"{typical(runs):.2f}", ""]]
    stages = {name: median(run["stages"][name] for run in runs) for name in runs[0]["stages"]}
    rows += [[name, f"{seconds:.2f}", f"{seconds / sum(stages.values()):.0%}"] for name, seconds in stages.items()]
    print_table("Six models from JSON lines: hashed, loaded, checked, scored", ["step", "s", "share"], rows)
    ratio = sum(stages.values()) / stages["hash"]
    return [(ratio <= 5, f"hash, load, check and score in {ratio:.1f} times the time to read the bytes and hash them (aim 5)")]


def scale(folder, rounds):
    rows, boxes, times = [], [], []
    for factor in (1, 10, 100):
        runs = [job("evalkit", f"scale-{factor}", folder, 3) for _ in range(min(rounds, 3))]
        boxes.append(factor * (data.GOLD + data.PREDICTED))
        times.append(typical(runs))
        peak = largest(runs, "peak")
        cells = f"{data.IMAGES * factor:,}", f"{boxes[-1]:,}", f"{times[-1]:.3f}", f"{times[-1] / boxes[-1] * 1e6:.3f}"
        rows.append([*cells, megabytes(peak), megabytes(largest(runs, "loaded"))])
    print_table(
        "Matching alone of columns, three thresholds",
        ["images", "boxes", "s", "µs a box", "peak MB", "before MB"],
        rows,
    )
    exponent = np.polyfit(np.log(boxes), np.log(times), 1)[0]
    return [
        (peak < 3e9, f"1.15 million images in columns: peak {megabytes(peak)} MB (under 3,000)"),
        (exponent < 1.15, f"linear in the number of boxes: time grows with their power {exponent:.2f} (under 1.15)"),
    ]


def crowd(folder, rounds):
    works = {
        "crowd": "one image, 5,000 gold and 5,000 predicted boxes, all overlapping",
        "copies": "50 gold boxes and 5,000 copies of one box",
        "dense": "20,000 images of 100 gold and 100 predicted boxes, 10 classes",
    }
    runs = {work: [job("evalkit", work, folder, 1) for _ in range(min(rounds, 3))] for work in works}
    rows = []
    for work, title in works.items():
        found = ", ".join(f"{tp:,} at {iou}" for iou, tp in runs[work][0]["true_positives"].items())
        peak = megabytes(largest(runs[work], "peak"))
        rows.append([title, f"{typical(runs[work]):.2f}", peak, megabytes(largest(runs[work], "loaded")), found])
    print_table("Crowds, counted from tables", ["work", "s", "peak MB", "before MB", "true positives"], rows)
    goals = []
    for work, make in {"crowd": data.make_crowd, "copies": data.make_copies}.items():
        expected = {f"{iou:.2f}": tp for iou, tp in make()[2].items()}
        goals.append((runs[work][0]["true_positives"] == expected, f"{works[work]}: the right numbers"))
    for work in ("crowd", "dense"):
        peak = largest(runs[work], "peak")
        goals.append((peak < 2e9, f"{works[work]}: peak {megabytes(peak)} MB (under 2,000)"))
    seconds = typical(runs["copies"])
    return [*goals, (seconds < 5, f"{works['copies']}: {seconds:.2f} s (under 5)")]


def intervals(folder, rounds):
    runs = {work: [job("evalkit", work, folder, 1) for _ in range(min(rounds, 3))] for work in ("intervals", "rescoring")}
    fast, naive = typical(runs["intervals"]), typical(runs["rescoring"]) * REPLICATES / NAIVE_REPLICATES
    rows = [
        ["2,000 replicates as weighted sums", f"{fast:.2f}", megabytes(largest(runs["intervals"], "peak"))],
        ["the same by matching and scoring again (20 measured)", f"{naive:.0f}", megabytes(largest(runs["rescoring"], "peak"))],
    ]
    print_table("Intervals of every score of one model, one process", ["work", "s", "peak MB"], rows)
    peak = largest(runs["intervals"], "peak")
    return [
        (fast < 3, f"intervals of one model: {fast:.2f} s (under 3)"),
        (peak < 1e9, f"intervals of one model: peak {megabytes(peak)} MB (under 1,000)"),
        (naive / fast >= 200, f"intervals of one model: {naive / fast:.0f} times faster than scoring again (at least 200)"),
    ]


def points(folder, rounds):
    point_data.write(folder)
    runs = [job("evalkit", "points", folder, 1) for _ in range(min(rounds, 2))]
    aggregated = [job("evalkit", "aggregate", folder, 5) for _ in range(min(rounds, 3))]
    decoding, scoring = (min(run["stages"][name] for run in runs) for name in ("decode", "score"))
    reading, peak = min(run["stages"]["read"] for run in runs), largest(runs, "peak")
    rows = [
        [f"reading {runs[0]['samples']:,} samples", f"{reading:.2f}", ""],
        ["decoding their masks of 1024 x 1024", f"{decoding:.2f}", megabytes(peak)],
        ["scoring one model", f"{scoring:.2f}", ""],
        [
            f"aggregating {aggregated[0]['samples']:,} samples",
            f"{typical(aggregated):.3f}",
            megabytes(largest(aggregated, "peak")),
        ],
    ]
    print_table("Points", ["work", "s", "peak MB"], rows)
    share, seconds = scoring / decoding, typical(aggregated)
    return [
        (peak < 1e9, f"points: 10,000 samples, peak {megabytes(peak)} MB (under 1,000)"),
        (share < 0.05, f"points: scoring takes {share:.1%} of the time of decoding (under 5 %)"),
        (seconds < 1, f"points: 100,000 samples aggregated in {seconds:.3f} s (under 1)"),
    ]


def answers(folder, rounds):
    works = {
        "plain": "a plain list",
        "fenced": "prose and a list in a fence",
        "trailing_comma": "the same with a comma too many",
        "python_literal": "the same in single quotes",
        "apostrophes": "the same in quotes of both kinds",
        "decimal_strings": "a list with numbers in quotation marks",
    }
    runs = {work: [job("evalkit", f"answers-{work}", folder, 2) for _ in range(min(rounds, 3))] for work in works}
    rows = [[title, f"{runs[work][0]['size']:.0f}", f"{typical(runs[work]):.2f}"] for work, title in works.items()]
    print_table("100,000 answers in a model's own words", ["answer", "characters", "s"], rows)
    slowest = max(map(typical, runs.values()))
    read = all(run["valid"] == 100_000 for of_work in runs.values() for run in of_work)
    return [(slowest < 10 and read, f"100,000 answers of 1 kB, the slowest kind: {slowest:.1f} s (under 10)")]


def agreement(folder, rounds):
    runs = {work: [job("evalkit", work, folder, 1) for _ in range(min(rounds, 3))] for work in ("agreement", "alpha", "pairs")}
    fast, naive = typical(runs["agreement"]), typical(runs["alpha"]) * REPLICATES / NAIVE_REPLICATES
    pairs = typical(runs["pairs"])
    rows = [
        ["every statistic, of the group and of each pair", f"{fast:.2f}", megabytes(largest(runs["agreement"], "peak"))],
        [
            "alpha of each class alone, with krippendorff (20 measured)",
            f"{naive:.0f}",
            megabytes(largest(runs["alpha"], "peak")),
        ],
        ["matching every pair: 7 annotators, 1,448 images", f"{pairs:.2f}", megabytes(largest(runs["pairs"], "peak"))],
    ]
    print_table("Agreement of three annotators, 2,000 replicates, one process", ["work", "s", "peak MB"], rows)
    peak = largest(runs["agreement"], "peak")
    return [
        (fast < 10, f"agreement: {fast:.2f} s (under 10)"),
        (peak < 1e9, f"agreement: peak {megabytes(peak)} MB (under 1,000)"),
        (True, f"agreement: {naive / fast:.0f} times faster than alpha alone with krippendorff"),
        (pairs < 3, f"pairs of 7 annotators on 1,448 images: {pairs:.2f} s (under 3)"),
    ]


def book(folder, rounds):
    if not (ROOT / ".venv").exists() or not (ROOT / "Makefile").exists():
        print("\n`make book` is not timed: there is no .venv yet; run it once before")
        return []
    start = time.perf_counter()
    done = subprocess.run(["make", "book"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"make book failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"\n`make book` on the sample, .venv there: {time.perf_counter() - start:.1f} s")
    return []


SECTIONS = {
    "matching": matching,
    "endtoend": endtoend,
    "whole": whole,
    "scale": scale,
    "crowd": crowd,
    "intervals": intervals,
    "points": points,
    "answers": answers,
    "agreement": agreement,
    "book": book,
}


if __name__ == "__main__":
    main()

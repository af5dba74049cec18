"""Large cases, each run in a process of its own: ``python scale_cases.py NAME FOLDER`` prints counts, time and memory as JSON.

With ``--pairs`` the table of matched pairs is made as well, as `evalkit score` does. The answers are known by construction.
Files are written first, by another process, so that only the scoring is measured.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from small import headline, write_classes, write_yml

import evalkit


def many_images(folder: Path, images: int) -> dict[str, int]:
    """100 gold and 100 predicted boxes an image in 10 classes; of each 10 of a class 7 are hit, and 3 predictions are false.

    The boxes of a class overlap one another (neighbours with IoU 3/5), so that there is something to match.
    """
    classes = [f"c{at}" for at in range(10)]
    gold = [{"class": name, "box": [5 * at, 0, 5 * at + 20, 20]} for name in classes for at in range(10)]
    shifted = [{"class": name, "box": [5 * at, 0, 5 * at + 20, 20]} for name in classes for at in range(7)]
    false = [{"class": name, "box": [500 + at, 0, 520 + at, 20]} for name in classes for at in range(3)]
    for name, boxes in (("gold", gold), ("model", shifted + false)):
        text = json.dumps(boxes)
        with (folder / f"{name}.jsonl").open("w") as file:
            file.writelines(f'{{"image_id": "image-{at:06d}", "boxes": {text}}}\n' for at in range(images))
    write_classes(folder / "classes.csv", classes)
    return {"tp": 70 * images, "fp": 30 * images, "fn": 30 * images}


def crowded_image(folder: Path, groups: list[tuple[int, int, int]]) -> dict[str, int]:
    """Boxes of one class on one image, all overlapping: groups of (side, gold, predicted) that match only among themselves.

    Within a group boxes are moved by less than 0.1 of the side, so that their IoU is above 0.5.
    """

    def boxes(side: int, number: int, axis: int) -> list[dict]:
        moves = [0.1 * side * at / number for at in range(number)]
        return [
            {"class": "a", "box": [move * (axis == 0), move * axis, side + move * (axis == 0), side + move * axis]}
            for move in moves
        ]

    for name, position in (("gold", 1), ("model", 2)):
        said = [box for group in groups for box in boxes(group[0], group[position], position - 1)]
        (folder / f"{name}.jsonl").write_text(json.dumps({"image_id": "i1", "boxes": said}) + "\n")
    write_classes(folder / "classes.csv", ["a"])
    tp = sum(min(gold, predicted) for _, gold, predicted in groups)
    return {
        "tp": tp,
        "fp": sum(predicted for _, _, predicted in groups) - tp,
        "fn": sum(gold for _, gold, _ in groups) - tp,
    }


CASES = {
    "many-images-small": lambda folder: many_images(folder, 500),
    "many-images": lambda folder: many_images(folder, 20_000),
    "crowded-image-all-match": lambda folder: crowded_image(folder, [(100, 5000, 5000)]),
    "crowded-image-two-crowds": lambda folder: crowded_image(folder, [(100, 2000, 3000), (200, 3000, 2000)]),
}


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9  # Linux counts in KiB


def main(name: str, folder: Path, *, write_only: bool, pairs: bool) -> dict:
    if write_only:
        expected = CASES[name](folder)
        write_yml(folder, classes="classes.csv", gold="gold.jsonl", predictions={"model": "model.jsonl"})
        return expected
    baseline = peak_gb()
    again = [sys.executable, __file__, name, str(folder), "--write-only"]
    expected = json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout)
    start = time.perf_counter()
    benchmark = evalkit.read_benchmark(folder / "benchmark.yml")
    found = evalkit.overlaps(benchmark)
    row = headline(evalkit.scores(benchmark, evalkit.count(benchmark, pairs=found)))
    matches = evalkit.match(benchmark, iou=[0.5], pairs=found) if pairs else None
    return {
        "counts": {one: int(row[one]) for one in ("tp", "fp", "fn")},
        "pairs": matches["outcome"].value_counts().to_dict() if pairs else None,
        "expected": expected,
        "seconds": round(time.perf_counter() - start, 2),
        "baseline_gb": round(baseline, 3),
        "peak_gb": round(peak_gb(), 3),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), write_only="--write-only" in sys.argv, pairs="--pairs" in sys.argv)))

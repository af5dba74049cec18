"""Point samples with masks of 1024 x 1024, answers of one model, and a table of evidence, all from a seed."""

import json

import numpy as np
import pandas as pd
from PIL import Image

SAMPLES, EVIDENCE, SIDE, MASKS = 10_000, 100_000, 1024, 200


def write(folder, *, seed=0):
    """Write samples and answers below ``folder/points``; the masks are so many files, of four modes, read again and again."""
    rng = np.random.default_rng(seed)
    target = folder / "points"
    target.mkdir(exist_ok=True)
    y, x = np.mgrid[:SIDE, :SIDE]
    centres = rng.integers(200, SIDE - 200, size=(MASKS, 2))
    for at, (left, top) in enumerate(centres):
        inside = (x - left) ** 2 + (y - top) ** 2 < rng.integers(60, 200) ** 2
        picture = Image.fromarray(inside.astype(np.uint8) * 255)
        picture.convert(["L", "1", "RGB", "P"][at % 4]).save(target / f"{at}.png")
    with (target / "samples.jsonl").open("w") as samples, (target / "m.jsonl").open("w") as answers:
        for at in range(SAMPLES):
            mask = f"{at % MASKS}.png"
            samples.write(json.dumps({"sample_id": at, "width": SIDE, "height": SIDE, "mask": mask}) + "\n")
            near = centres[at % MASKS] + rng.integers(-200, 200, size=(rng.integers(1, 5), 2))
            text = json.dumps([{"point_2d": point, "label": "it"} for point in (near * 1000 // SIDE).tolist()])
            answers.write(json.dumps({"sample_id": at, "response": text}) + "\n")


def read(folder):
    from evalkit.formats.options import point_options_from
    from evalkit.point_runs import read_point_runs

    said = {"samples": "points/samples.jsonl", "predictions": {"m": "points/m.jsonl"}}
    runs = read_point_runs({"Where2Place": point_options_from(said, source="benchmark")}, folder=folder)
    return runs["Where2Place"]


def make_evidence(*, seed=0):
    """A table of samples as they stand before they are counted: one model, PointBench with its five categories."""
    rng = np.random.default_rng(seed)
    g, p = rng.integers(1, 6, EVIDENCE), rng.integers(1, 8, EVIDENCE)
    h = rng.integers(0, p + 1)
    names = np.array(["affordable", "counting", "reasoning", "spatial", "steerable"])
    table = pd.DataFrame({"sample_id": np.arange(EVIDENCE).astype(str), "subset": rng.choice(names, EVIDENCE)})
    table = table.assign(model="m", benchmark="PointBench", state="points", reason="", scored=True, answer_correct=None)
    return table.assign(predicted_count=p, gt_count=g, matched_count=np.minimum(h, g), raw_hit_count=h)

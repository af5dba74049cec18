"""Running jobs in processes of their own, and the tables and goals that are made of them."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
import peers

JOBS = Path(__file__).resolve().parent / "jobs.py"
TOOLS = ["evalkit", *peers.MODULES]
CALLS = {"pycocotools": 1, "faster-coco-eval": 2}  # calls a process, where it is not 6; the first is kept apart
ROUNDS = {"pycocotools": 2, "faster-coco-eval": 3}  # rounds at most


def compare(work, folder, rounds, tools=TOOLS):
    """Runs of each tool, one process a tool and round, the tools in turn."""
    runs = {tool: [] for tool in tools}
    for turn in range(rounds):
        for tool in tools:
            if turn < ROUNDS.get(tool, rounds):
                runs[tool].append(job(tool, work, folder, CALLS.get(tool, 6)))
    return runs


def job(tool, work, folder, calls):
    command = [sys.executable, str(JOBS), tool, work, str(folder), str(calls)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tool} crashed on {work}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def typical(runs):
    """Median seconds of the calls after the first of each process, or of the first if there is no other."""
    return median(seconds for run in runs for seconds in (run["seconds"][1:] or run["seconds"]))


def largest(runs, moment):
    return max(run["memory"][moment] for run in runs)


def true_positive_gains(runs, tool):
    """TP of evalkit minus those of a peer: an array model x threshold x class. The boxes counted must be the same."""
    ours, theirs = (np.array(runs[name][0]["tallies"]) for name in ("evalkit", tool))
    for pair in ([0, 1], [0, 2]):
        if (ours[..., pair].sum(-1) != theirs[..., pair].sum(-1)).any():
            sys.exit(f"evalkit and {tool} did not count the same boxes")
    return (ours - theirs)[..., 0]


def limit_ratio(goals, runs, tool, limit, title):
    ratio = typical(runs["evalkit"]) / typical(runs[tool])
    if limit < 0.5:
        text = f"{title}: {1 / ratio:.1f} times faster than {tool} (at least {1 / limit:.0f})"
    else:
        text = f"{title}: {ratio:.2f} times the time of {tool} (at most {limit:.2f})"
    goals.append((ratio <= limit, text))


def limit_true_positives(goals, runs, title):
    least = min(true_positive_gains(runs, tool).min() for tool in peers.MODULES)
    goals.append((least >= 0, f"{title}: in no class fewer true positives than a peer (least difference {least:+d})"))


def print_comparison(title, runs):
    rows = []
    for tool, of_tool in runs.items():
        ratio = typical(runs["evalkit"]) / typical(of_tool)
        first = median(run["seconds"][0] for run in of_tool)
        gains = true_positive_gains(runs, tool)
        more = "" if tool == "evalkit" else f"{gains.sum():+d} in {np.count_nonzero(gains)} of {gains.size}"
        times = f"{typical(of_tool) * 1e3:,.1f}", f"{first * 1e3:,.1f}", f"{ratio:.3f}"
        rows.append([tool, *times, megabytes(largest(of_tool, "peak")), megabytes(largest(of_tool, "imported")), more])
    head = ["tool", "median ms", "first ms", "evalkit / tool", "peak MB", "imports MB", "TP of evalkit more"]
    print_table(title, head, rows)


def print_stages(runs):
    middle = {name: median(run["stages"][name] for run in runs) for name in runs[0]["stages"]}
    print("  of which " + ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in middle.items()))


def print_table(title, head, rows):
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if k == 0 else cell.rjust(width) for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells), flush=True)


def megabytes(size):
    return f"{size / 1e6:,.0f}"

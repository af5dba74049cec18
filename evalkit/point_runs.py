"""Point benchmarks from files to the table of samples: one row a model and sample, with evidence and counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from evalkit.formats.options import PointOptions, read_options
from evalkit.masks import MaskFault, Region, fill, read_mask
from evalkit.point_answers import FAILED, PointAnswer, check_point_run, read_points, read_yes_or_no
from evalkit.point_benchmarks import ALL, PointBenchmark, point_benchmark
from evalkit.point_files import Answers, Sample, read_answers, read_samples, sample_finding, unknown_answers
from evalkit.points import EVIDENCE, STATES, counted, hits, pixels
from evalkit.responses import Reader, reader
from evalkit.tables import DataError, EvalkitError, Finding, Note, categorical

MISSING = ("partial", "unparseable")  # what a sample without an answer is: left out and told, or a failure
MISSING_ANSWER = PointAnswer("missing")


@dataclass(frozen=True)
class PointRun:
    """One point benchmark in memory: where its samples are, and the answers of the models by their declared conventions."""

    benchmark: PointBenchmark
    paths: tuple[Path, ...]
    answers: dict[str, Answers]
    readers: dict[str, Reader]

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order of ``benchmark.yml``."""
        return list(self.answers)

    def samples(self) -> Iterator[Sample | Finding]:
        """The samples, read anew each time; see :func:`evalkit.point_files.read_samples`."""
        return read_samples(self.paths, self.benchmark)


def read_point_runs(
    source: str | Path | dict[str, PointOptions], *, models: Sequence[str] = (), folder: str | Path = "."
) -> dict[str, PointRun]:
    """The point benchmarks that ``benchmark.yml`` names, with their answers; none where it has no ``points``.

    Parameters
    ----------
    source : path of ``benchmark.yml``, or its ``points`` as options (then paths are relative to ``folder``)
    models : names of the models to read; all by default

    Raises
    ------
    DataError
        For answers that cannot be read.
    EvalkitError
        For a benchmark that the table lacks, and a model that no benchmark has.
    """
    if isinstance(source, dict):
        options, folder = source, Path(folder)
    else:
        options, folder = read_options(Path(source)).points, Path(source).parent
    known = {model for one in options.values() for model in one.predictions}
    if options and (absent := [model for model in models if model not in known]):
        raise EvalkitError(f"points: there is no model {absent[0]!r}; there are {', '.join(sorted(known)) or 'none'}")
    runs, findings = {}, []
    for name, one in options.items():
        answers, readers = {}, {}
        for model, file in one.predictions.items():
            if models and model not in models:
                continue
            readers[model] = reader(file.reader, kind="points")
            try:
                answers[model] = read_answers(folder / file.path)
            except DataError as error:
                findings += error.findings
        runs[name] = PointRun(point_benchmark(name), tuple(folder / path for path in one.samples), answers, readers)
    if findings:
        raise DataError(findings)
    return runs


def point_samples(
    run: PointRun, *, missing: str = "partial", progress: Callable[[Iterable], Iterable] = iter
) -> tuple[pd.DataFrame, list[tuple[str, Note]]]:
    """Evidence and counts of every sample and model, and what was noticed and accepted.

    Samples go by one at a time, so that only the masks of one are in memory.

    Parameters
    ----------
    missing : ``partial`` leaves samples without an answer unscored; ``unparseable`` scores them as the protocol scores an
        answer that cannot be read

    Returns
    -------
    samples : DataFrame with the columns ABOUT, EVIDENCE, STRICT and NON_STRICT, the samples of each model in the order of the
        file. Counts are 0 where a sample is not scored, and where it is one of yes or no; then ``answer_correct`` says whether
        it is right.
    notes : pairs of a source (a model, or the file of samples) and a note of code, count and examples

    Raises
    ------
    DataError
        For everything that is wrong with samples, masks and answers, and for a complete set in which other masks than the
        known ones have another size than their image.
    """
    if missing not in MISSING:
        raise EvalkitError(f"missing must be one of {', '.join(MISSING)}, not {missing!r}")
    benchmark = run.benchmark
    findings: list[Finding] = []
    rows: dict[str, list[tuple]] = {model: [] for model in run.models}
    read: dict[str, list[PointAnswer]] = {model: [] for model in run.models}
    noticed: dict[str, list[str]] = {}
    ids: list[str] = []
    every_sample = True  # else an answer may be to one that could not be read
    for sample in progress(run.samples()):
        if isinstance(sample, Finding):
            findings.append(sample)
            every_sample = False
            continue
        ids.append(sample.sample_id)
        try:
            regions = target_regions(sample, benchmark)
        except MaskFault as fault:
            findings.append(sample_finding(sample.file, sample.place, sample.sample_id, fault.rule, fault.text))
            continue
        for note in {*sample.notes, *(note for region in regions for note in region.notes)}:
            noticed.setdefault(note, []).append(sample.sample_id)
        for model in run.models:
            answer = answer_to(sample, run.answers[model], run.readers[model])
            if sample.yes is None and answer.state != "missing":
                read[model].append(answer)
            rows[model].append(sample_row(sample, regions, answer, run.readers[model], missing == "unparseable"))
    for answers in run.answers.values() if every_sample else ():
        findings += unknown_answers(answers, ids)
    findings += _resized_findings(benchmark, ids, noticed.get("mask_resized", []), run.paths)
    notes = [(benchmark.name, (code, len(those), ", ".join(those[:3]))) for code, those in noticed.items()]
    for model in run.models if not findings else ():
        try:
            warned = check_point_run(read[model], run.readers[model])
        except EvalkitError as error:
            findings.append(Finding(run.answers[model].file, "", "", "answers.none_valid", f"{benchmark.name}: {error}"))
            continue
        notes += [(model, ("convention_warning", 1, f"{benchmark.name}: {text}")) for text in warned]
    if findings:
        raise DataError(findings)
    return sample_table(rows, benchmark), notes


def every_point_sample(
    runs: dict[str, PointRun], *, missing: str = "partial", progress: Callable[[Iterable], Iterable] = iter
) -> tuple[pd.DataFrame, list[tuple[str, Note]]]:
    """:func:`point_samples` of several benchmarks in one table; everything that is wrong with any of them is told at once."""
    tables, notes, findings = [], [], []
    for run in runs.values():
        try:
            table, noticed = point_samples(run, missing=missing, progress=progress)
            tables.append(table)
            notes += noticed
        except DataError as error:
            findings += error.findings
    if findings:
        raise DataError(findings)
    models = dict.fromkeys(model for run in runs.values() for model in run.models)
    whole = pd.concat(tables, ignore_index=True)
    columns = {"model": models, "benchmark": runs}
    return whole.assign(**{name: pd.Categorical(whole[name], list(known)) for name, known in columns.items()}), notes


def target_regions(sample: Sample, benchmark: PointBenchmark) -> list[Region]:
    """The regions that points of a sample may hit; none for a yes/no sample and where no object is there.

    Raises MaskFault as :mod:`evalkit.masks` does.
    """
    if benchmark.target == "polygons":
        return [fill(sample.targets, size=sample.size)]
    resize = benchmark.resized is not None
    return [read_mask(source, size=sample.size, resize=resize) for source in sample.targets]


def answer_to(sample: Sample, answers: Answers, convention: Reader) -> PointAnswer:
    """What a model says to a sample, by its convention; yes or no where that is asked."""
    if sample.sample_id not in answers.texts:
        return MISSING_ANSWER
    text = answers.texts[sample.sample_id]
    if text is None:
        return FAILED
    return read_points(text, convention) if sample.yes is None else read_yes_or_no(text)


def sample_row(sample: Sample, regions: list[Region], answer: PointAnswer, convention: Reader, score_missing: bool) -> tuple:
    """One row of the table: id, subset, state, reason, whether it is scored, whether a yes or no is right, and P, G, M, H."""
    scored = answer.state != "missing" or score_missing
    head = sample.sample_id, sample.subset, answer.state, answer.reason, scored
    if sample.yes is not None:
        return *head, (answer.yes == sample.yes if scored else None), 0, 0, 0, 0
    if not answer.points:
        return *head, None, 0, sample.count, 0, 0
    found, _ = pixels(answer.points, scale=convention.scale, size=sample.size)
    hit = hits(found, [region.inside for region in regions], targets=sample.count, gold=sample.points)
    return *head, None, len(answer.points), sample.count, hit.matched, hit.raw


def sample_table(rows: dict[str, list[tuple]], benchmark: PointBenchmark) -> pd.DataFrame:
    """The table of samples with its counts, from the rows of each model."""
    names = ["sample_id", "subset", "state", "reason", "scored", "answer_correct", *EVIDENCE]
    table = pd.DataFrame(list(itertools.chain.from_iterable(rows.values())), columns=names)
    model = np.repeat(np.arange(len(rows)), [len(one) for one in rows.values()])
    table.insert(0, "model", categorical(model, list(rows)))
    table.insert(1, "benchmark", categorical(np.zeros(len(table), np.int64), [benchmark.name]))
    return counted(table, benchmark)


def _resized_findings(benchmark: PointBenchmark, ids: list[str], resized: list[str], paths: Sequence[Path]) -> list[Finding]:
    """On the complete set, the masks of another size than their image are the known ones."""
    if benchmark.resized is None or len(ids) != benchmark.sizes.get(ALL) or set(resized) == benchmark.resized:
        return []
    text = f"the masks of another size must be those of {_some(benchmark.resized)}, not of {_some(resized)}"
    return [Finding(", ".join(path.name for path in paths), "", "", "mask.resized", f"{benchmark.name}: {text}")]


def _some(ids: Iterable[str]) -> str:
    listed = sorted(ids, key=lambda one: (len(one), one))
    return (", ".join(listed[:5]) + (f" … ({len(listed)})" if len(listed) > 5 else "")) or "none"


def states_of(samples: pd.DataFrame) -> pd.DataFrame:
    """How many samples of each model and benchmark are in which state; they add up to the samples."""
    table = samples.groupby(["benchmark", "model", "state"], observed=False).size().unstack(fill_value=0)
    here = table[table.sum(axis=1) > 0].reset_index().rename_axis(columns=None)
    here.insert(2, "samples", here[STATES].sum(axis=1))
    return here

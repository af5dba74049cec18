"""The standing pages of the book agree with the code and with each other."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from test_metrics import NUMBERS

import evalkit
from evalkit.agreement import STATISTICS
from evalkit.counts import HEADLINE_IOU, IOU_THRESHOLDS, OUTCOMES
from evalkit.intervals import COMPARISON_COLUMNS, LEVEL, MOST_UNDEFINED, REPLICATES
from evalkit.metrics import COVERAGE_COLUMNS, POPULATIONS, SCORE_COLUMNS
from evalkit.point_metrics import MACROS, OVERALLS
from evalkit.point_metrics import RATIOS as POINT_RATIOS
from evalkit.point_runs import every_point_sample
from evalkit.sample import write_sample
from evalkit.semantic import GAIN_COLUMNS

PROJECT = Path(__file__).resolve().parents[1]
BOOK = PROJECT / "book"
NO_REFERENCE = {"cli", "__main__"}  # the command line has `--help`


def page(name):
    return (BOOK / f"{name}.md").read_text(encoding="utf-8")


def rows():
    """The rows of the table of metrics, by the names of their columns."""
    lines = [line for line in page("metrics").splitlines() if line.startswith("| {term}")]
    assert lines
    heads = ["metric", "symbol", "range", "function", "page", "source"]
    return [dict(zip(heads, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines]


def columns(row):
    """The columns in `evalkit`'s tables that a row of the table of metrics names."""
    return re.findall(r"(?<!\})`([a-z_0-9]+)`", row["metric"])


def listed_columns():
    """The columns of all rows, and the one that the words above the table of agreement name."""
    return [*(name for row in rows() for name in columns(row)), *re.findall(r"\{term\}`prevalence`, `(\w+)`", page("metrics"))]


# -- the table of metrics


def test_every_column_that_is_a_metric_has_a_row():
    """Columns of the tables that are written, less the keys, texts and sizes; and the averages of the scores."""
    keys = {*NUMBERS["scores"], *NUMBERS["coverage"]} - {*OUTCOMES}
    keys |= {"model_a", "model_b", "statistic", "value_a", "value_b", "replicates", "undefined"}
    written = {*SCORE_COLUMNS, *COVERAGE_COLUMNS, *COMPARISON_COLUMNS, *GAIN_COLUMNS} - keys
    written = {re.sub(r"^.*_(low|high)$", r"\1", name) for name in written}
    written = {re.sub(r"_(exact|semantic)$", "", name) for name in written}
    listed = listed_columns()
    assert len(set(listed)) == len(listed)
    assert set(listed) == written | {"iou", "micro", *POPULATIONS, "prevalence", *STATISTICS, *POINT_RATIOS, *MACROS, *OVERALLS}


def test_every_row_names_a_function_a_page_and_a_source():
    keys = re.findall(r"@\w+\{(\w+),", (BOOK / "references.bib").read_text(encoding="utf-8"))
    for row in rows():
        (target,) = re.findall(r"`~evalkit\.([\w.]+)`", row["function"])
        module, name = target.rsplit(".", 1)
        assert inspect.isfunction(getattr(importlib.import_module(f"evalkit.{module}"), name)), row
        (file,) = re.findall(r"\{doc\}`(.*?)`", row["page"])
        executed = file.startswith("executed/")
        assert (PROJECT / "notebooks" / f"{Path(file).name}.md" if executed else BOOK / f"{file}.md").is_file(), row
        cited = re.findall(r"\{cite:t\}`(.*?)`", row["source"])
        assert all(key in keys for group in cited for key in group.split(","))
        assert cited or "{ref}`" in row["source"], row


def test_ratios_are_one_of_the_functions_that_have_a_row():
    """Whatever `import evalkit` gives to compute a ratio from counts has a row."""
    public = {name: getattr(evalkit, name) for name in evalkit.__all__}
    functions = {name: one for name, one in public.items() if inspect.isfunction(one)}
    ratios = {name for name, one in functions.items() if "tp" in inspect.signature(one).parameters}
    named = {re.findall(r"([\w]+)`$", row["function"])[0] for row in rows()}
    assert ratios
    assert ratios <= named


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    path = write_sample(tmp_path_factory.mktemp("toytown"), images=40)
    benchmark = evalkit.read_benchmark(path)
    counts = evalkit.count(benchmark)
    drawn = evalkit.bootstrap(benchmark, counts, replicates=100)
    scores = evalkit.add_intervals(evalkit.scores(benchmark, counts), drawn)
    relaxed = evalkit.relaxed_counts(counts, evalkit.accepted_pairs(benchmark))
    both = pd.concat([counts, relaxed], ignore_index=True)
    agreement = evalkit.agree(evalkit.read_first_pass(path), replicates=None)
    return [
        evalkit.point_scores(every_point_sample(evalkit.read_point_runs(path))[0]),
        agreement.pivot(index=["group", "task", "level", "label"], columns="statistic", values="estimate"),
        scores,
        evalkit.coverage(benchmark),
        evalkit.compare(scores, drawn),
        evalkit.gains(evalkit.scores(benchmark, both)),
        evalkit.overlaps(benchmark).rename(columns={"overlap": "iou"}),
    ]


def test_the_ranges_hold(tables):
    checked = set()
    for row in rows():
        low, _, high = row["range"].replace("−", "-").partition(" to ")
        for name in columns(row):
            for table in tables:
                if name in table and not row["range"].startswith("as"):
                    values = table[name].dropna()
                    assert values.between(float(low.removesuffix(" or more")), float(high or "inf")).all(), name
                    checked.add(name)
    averages = {"micro", *POPULATIONS, "low", "high"}  # rows and ends of scores, which are checked above
    assert checked == {name for row in rows() for name in columns(row)} - averages


# -- glossary, bibliography, reference, contents


def test_the_glossary_is_sorted_and_has_each_term_once():
    terms = re.findall(r"^(\S.*)\n  \S", page("glossary").split(":::{glossary}\n")[1], flags=re.MULTILINE)
    folded = [term.lower().replace("-", " ") for term in terms]
    assert folded == sorted(folded)
    assert len(set(folded)) == len(folded)
    assert {re.findall(r"\{term\}`(.*?)`", row["metric"])[0] for row in rows()} <= set(terms)


def test_the_bibliography_has_no_loose_ends():
    """Each entry has a DOI of the right form, or an address, or is a book or older than such things; keys are unique."""
    text = (BOOK / "references.bib").read_text(encoding="utf-8")
    entries = re.findall(r"^@(\w+)\{(\w+),(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL)
    keys = [key for _, key, _ in entries]
    assert len(keys) == text.count("\n@") + 1 == len(set(keys))
    for kind, key, entry in entries:
        (year,) = re.findall(r"year\s*= \{(\d{4})\}", entry)
        assert key.endswith(year), key
        doi = re.findall(r"doi\s*= \{(.*?)\}", entry)
        assert all(re.fullmatch(r"10\.\d{4,5}/\S+", one) for one in doi), key
        assert doi or "url" in entry or kind == "book" or int(year) < 1950, key


def test_the_reference_has_every_module_and_every_public_name():
    text = page("api")
    modules = {module.name for module in pkgutil.iter_modules(evalkit.__path__)} - NO_REFERENCE
    assert set(re.findall(r"automodule:: evalkit\.(\w+)", text)) == modules
    assert set(re.findall(r"^   ~[\w.]*?(\w+)$", text, flags=re.MULTILINE)) == set(evalkit.__all__)


def test_the_contents_have_every_page():
    toc = yaml.safe_load((PROJECT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    pages = {file for file in listed if "executed" not in file}
    assert pages == {f"book/{path.stem}" for path in BOOK.glob("*.md")}


def test_the_citation_has_the_version():
    (version,) = re.findall(r"version = \{(.*?)\}", page("citing"))
    assert version == evalkit.__version__


# -- numbers in prose

NAMES = r"\bF[12]\b|\bAP50\b|\bAC1\b"  # of metrics
NOTHING_BUT_RULES = ("protocol", "messages")
RULES = {  # numbers that define a rule, or the ends of a scale, and no result of any run
    "glossary": ["0", "1"],
    "messages": ["0", "1", "2", "8", "16"],  # ends of a scale, exit statuses, UTF-8, bits of a mask
    "metrics": ["0", "1"],
    "reading": ["0", "1", "0.30", "0.40", "0.50"],
}
NO_PROSE = [
    r"\A---\n.*?\n---\n",
    r"^(`{3,})\{?(?:code-cell|raw|eval-rst|bibliography|include|glue:any|bibtex)\b.*?^\1$",
    r"\$\$.*?\$\$",
    r"\$[^$\n]*\$",
    r"\{[\w:]+\}`[^`]*`",
    r"`[^`]*`",
    r"\]\([^)]*\)",
    r"^\([a-z-]+\)=$",
]


@pytest.mark.parametrize(
    "path", sorted({*BOOK.glob("*.md")} - {BOOK / f"{name}.md" for name in NOTHING_BUT_RULES}), ids=lambda path: path.stem
)
def test_no_number_is_typed_into_prose(path):
    """Numbers come from cells and glue, but for those that define a rule."""
    text = path.read_text(encoding="utf-8")
    for pattern in NO_PROSE:
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    numbers = re.findall(r"\d[\d,./]*\d|\d", re.sub(NAMES, "", text))
    assert set(numbers) <= set(RULES.get(path.stem, [])), path


def test_the_numbers_of_the_rules_are_those_of_the_code():
    text = page("protocol")
    assert f"IoU {', '.join(f'{level:.2f}' for level in IOU_THRESHOLDS[:-1])} and {IOU_THRESHOLDS[-1]:.2f}" in text
    assert f"{HEADLINE_IOU:.2f} is the headline" in text
    assert f"{REPLICATES:,} times" in text
    assert f"at the level {LEVEL}" in text
    assert f"above {MOST_UNDEFINED * 100:.0f} % of them" in text

"""The page of messages has an entry for every rule that a finding can name, and for no other."""

import ast
import re

import matplotlib
from helpers import PROJECT

DOTTED = re.compile(r"[a-z][a-z_]*\.[a-z_]+")
FILES = re.compile(r".*\.(?:csv|html|jsonl?|parquet|pdf|png|yml)")
RULE_AT = {"Finding": 3, "one_finding": 1, "box_finding": 2}  # the place of the rule among the arguments


def rules_of(source: str) -> set[str]:
    """Every rule that a module can name: the texts that look like one, and those that stand where a rule does."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            other = FILES.fullmatch(node.value) or node.value in matplotlib.rcParams
            found |= {node.value} if DOTTED.fullmatch(node.value) and not other else set()
        elif isinstance(node, ast.Call):
            at = RULE_AT.get(getattr(node.func, "id", getattr(node.func, "attr", "")))
            if at is not None and len(node.args) > at and isinstance(node.args[at], ast.Constant):
                found.add(node.args[at].value)
    return found


def test_the_page_of_messages_lists_every_rule_and_no_other():
    page = (PROJECT / "book" / "messages.md").read_text(encoding="utf-8")
    listed = re.findall(r"^`([a-z_.]+)`\n: \S.*\n: \S", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    modules = (PROJECT / "evalkit").rglob("*.py")
    assert set(listed) == set().union(*(rules_of(module.read_text(encoding="utf-8")) for module in modules))


def test_the_search_finds_rules_in_either_way():
    source = "one_finding(path.name, 'line', text)\nrule, text = 'image.unknown', f'x'\n"
    source += "Finding(a, b, c, 'csv', d)\nopen('gold.json')\nstyle['font.size'] = 9\n"
    assert rules_of(source) == {"line", "image.unknown", "csv"}

"""What several test modules use: the shared real data, and a copy of the project to build in."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared"
RULES = {}  # the anchor of a rule in the protocol: the tests of it


def rule(anchor):
    """Register a test for the rule of the protocol that has this anchor."""

    def register(test):
        RULES.setdefault(f"rule-{anchor}", []).append(test)
        return test

    return register


def shared(name: str) -> Path:
    """A file or folder of the shared data; the test is skipped where it is absent, and fails there in CI."""
    path = SHARED / name
    if not path.exists():
        reason = f"needs ../shared/{name}"
        if os.environ.get("EVALKIT_REQUIRE_SHARED"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def copy_project(to: Path) -> Path:
    """Copy the project's own files, and none that were made from them."""
    listed = ["git", "-C", str(PROJECT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")):
        if (PROJECT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, to / name)
    return to

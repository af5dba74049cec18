"""The inventory of a benchmark's files: same, changed, missing and extra are told apart."""

import hashlib
import json
import os

import pytest
from click.testing import CliRunner
from small import write_classes, write_lines, write_yml

from evalkit import EvalkitError
from evalkit.cli import main
from evalkit.formats.writing import write_files
from evalkit.reproduction import INVENTORY, compare_inventory, inventory
from evalkit.sample import write_sample


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b").mkdir()
    write_lines(tmp_path / "b" / "gold.jsonl", {"a": []})
    write_lines(tmp_path / "b" / "m.jsonl", {"a": []})
    files = {"classes": write_classes(tmp_path / "b" / "classes.csv", ["litter"]), "predictions": {"m": "m.jsonl"}}
    write_yml(tmp_path / "b", gold="gold.jsonl", **files)
    return tmp_path / "b"


def check(folder, *options):
    return CliRunner().invoke(main, ["check", "--benchmark", str(folder / "benchmark.yml"), *options])


def spoil(folder):
    (folder / "gold.jsonl").write_text((folder / "gold.jsonl").read_text() + "\n")
    (folder / "classes.csv").rename(folder / "list.csv")
    (folder / "benchmark.yml").write_text((folder / "benchmark.yml").read_text().replace("classes.csv", "list.csv"))


def test_an_inventory_has_the_hash_of_every_file(folder):
    (folder / "pictures").mkdir()
    (folder / "pictures" / "é.png").write_bytes(b"1")
    (folder / ".hidden").write_text("not part of the data")
    (folder / ".git").mkdir()
    (folder / ".git" / "x").write_text("nor this")
    (folder / INVENTORY).write_text("nor itself")
    found = inventory(folder)
    assert list(found) == ["benchmark.yml", "classes.csv", "gold.jsonl", "m.jsonl", "pictures/é.png"]
    assert found["pictures/é.png"] == hashlib.sha256(b"1").hexdigest()


def test_missing_changed_and_extra_files_are_told_apart(folder):
    write_files(folder, {INVENTORY: inventory(folder)})
    assert set(compare_inventory(folder / INVENTORY, folder)["state"]) == {"same"}
    spoil(folder)
    table = compare_inventory(folder / INVENTORY, folder).set_index("path")
    assert table["state"].to_dict() == {
        "benchmark.yml": "changed",
        "classes.csv": "missing",
        "gold.jsonl": "changed",
        "list.csv": "extra",
        "m.jsonl": "same",
    }
    assert (table.loc["classes.csv", "found"], table.loc["list.csv", "expected"]) == ("", "")


def test_the_command_writes_and_verifies(folder):
    assert check(folder).exit_code == 0
    done = check(folder, "--inventory")
    assert done.exit_code == 2
    assert "inventory.json: there is no file" in done.stderr
    done = check(folder, "--write-inventory")
    assert done.exit_code == 0
    assert "Inventory: 4 files, all as inventory.json has them" in done.stdout
    assert json.loads((folder / INVENTORY).read_text()) == inventory(folder)
    assert check(folder, "--inventory", "--quiet").output == ""
    spoil(folder)
    for options in ((), ("--inventory",), ("--quiet",)):
        done = check(folder, *options)
        assert done.exit_code == 1
        assert done.stdout.endswith("changed: benchmark.yml\nmissing: classes.csv\nchanged: gold.jsonl\nextra: list.csv\n")
        assert done.stderr == "Error: the files are not those of inventory.json: 2 changed, 1 missing, 1 extra\n"
    assert check(folder, "--write-inventory").exit_code == 0
    assert check(folder).exit_code == 0


def test_a_benchmark_may_name_its_inventory(folder):
    said = json.loads((folder / "benchmark.yml").read_text()) | {"inventory": "about/hashes.json"}
    (folder / "benchmark.yml").write_text(json.dumps(said))
    assert check(folder).exit_code == 2  # what is named must be there
    assert check(folder, "--write-inventory").exit_code == 0
    assert (folder / "about" / "hashes.json").is_file()
    assert check(folder).exit_code == 0
    (folder / "m.jsonl").write_text((folder / "m.jsonl").read_text() + " ")
    assert check(folder).exit_code == 1


def test_bad_data_is_told_before_the_inventory(folder):
    check(folder, "--write-inventory")
    (folder / "m.jsonl").write_text("{")
    done = check(folder, "--write-inventory")
    assert done.exit_code == 2
    assert json.loads((folder / INVENTORY).read_text())["m.jsonl"] != hashlib.sha256(b"{").hexdigest()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", 'an inventory is {"path": "sha256", …}'),
        ('{"a": 1}', 'an inventory is {"path": "sha256", …}'),
        ('{"a": "12"}', "regex"),
        ("{", 'an inventory is {"path": "sha256", …}'),
        ("", "the file is empty"),
        (json.dumps({"../a": "0" * 64}), "'../a' is no path below the folder"),
        (json.dumps({"/a": "0" * 64}), "'/a' is no path below the folder"),
        (json.dumps({"x/../a": "0" * 64}), "'x/../a' is no path below the folder"),
    ],
)
def test_an_inventory_that_is_none(folder, text, words):
    (folder / INVENTORY).write_text(text)
    done = check(folder, "--inventory")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: inventory.json: ")
    assert words in done.stderr


def test_a_link_out_of_the_folder_is_not_hashed(folder, tmp_path):
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", folder / "link")
    with pytest.raises(EvalkitError, match="b, link: a link that leads out of the folder is not followed"):
        inventory(folder)


def test_an_inventory_needs_a_folder(folder):
    done = CliRunner().invoke(main, ["check", "--gold", str(folder / "gold.jsonl"), "--inventory"])
    assert done.exit_code == 2
    assert "an inventory is of the folder of a benchmark.yml" in done.stderr


def test_the_sample_writes_one(tmp_path):
    path = write_sample(tmp_path / "toytown", images=3)
    table = compare_inventory(path.parent / INVENTORY, path.parent)
    assert set(table["state"]) == {"same"}
    assert {"gold.jsonl", "images/toy-00001.png", "benchmark.yml"} <= set(table["path"])
    assert check(path.parent).exit_code == 0
    assert write_sample(tmp_path / "toytown", images=3) == path  # it knows its own file again

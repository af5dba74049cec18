"""What ``benchmark.yml`` may say, and what a reader is told about its file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import pandas as pd
import yaml

from evalkit.formats.decoding import within
from evalkit.responses import reader
from evalkit.tables import EvalkitError

PATHS = {"path", "names", "sizes", "assignments", "samples"}  # the options of a file that name files
RENAMED = {"columns", "where", "fill"}  # those that hold names and values of columns


class FileOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A file of annotations and how to read it. Only ``path`` is needed; the rest has a default by format."""

    path: str
    format: Literal["jsonl", "coco", "yolo", "csv", "parquet", "voc", "cvat", "openimages"] | None = None
    absent: Literal["missing", "empty"] | None = None
    bad_box: Literal["invalid", "error"] = "invalid"
    crowd: Literal["drop"] | None = None
    names: str | None = None
    sizes: str | None = None
    units: Literal["relative", "pixels"] | None = None
    columns: dict[str, str] | list[str] | None = None
    where: dict[str, str] | None = None
    reader: str | None = None
    assignments: str | None = None


class RelationOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The semantic relation: a matrix of classes, and the value from which on a class is accepted."""

    path: str
    cutoff: str


class PublishedOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A published table and how to read it.

    ``columns`` maps our names to the file's, ``fill`` gives a column that the file lacks one value. In JSON ``records`` is the
    dotted path to the rows, a list of objects, or an object of objects whose names become the column ``index``.
    ``interval_tolerance`` is the difference that the ends of intervals may have.
    """

    path: str
    columns: dict[str, str] = {}
    fill: dict[str, str] = {}
    records: str = ""
    index: str = ""
    interval_tolerance: str = ""


class PublishedTables(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The published tables that a benchmark's results are checked against."""

    scores: PublishedOptions | None = None
    agreement: PublishedOptions | None = None
    points: PublishedOptions | None = None


class PointFileOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A model's answers to a point benchmark, and the convention by which they are read."""

    path: str
    reader: str = "qwen-points"


class PointOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The samples of a point benchmark (files, or folders of Parquet files) and the models' answers."""

    samples: list[str]
    predictions: dict[str, PointFileOptions] = {}


class BenchmarkOptions(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The contents of ``benchmark.yml``."""

    gold: FileOptions | None = None
    name: str = ""
    note: str = ""
    classes: str | None = None
    images: str | None = None
    predictions: dict[str, FileOptions] = {}
    first_pass: FileOptions | None = None
    inventory: str | None = None
    semantic: RelationOptions | None = None
    slices: str | None = None
    published: PublishedTables = PublishedTables()
    points: dict[str, PointOptions] = {}


@dataclass(frozen=True)
class Context:
    """What a reader may need beside its file.

    ``names`` maps the ids of the class list to names, ``categories`` those of COCO gold, for a COCO file without categories of
    its own; ``images`` are gold's, once known.
    """

    folder: Path
    names: Mapping[str, str]
    categories: Mapping[str, str]
    images: pd.DataFrame | None = None

    @property
    def is_gold(self) -> bool:
        return self.images is None

    def path(self, text: str) -> Path:
        return self.folder / text

    def class_of(self, class_id: str | int) -> str:
        """The name of a class id; one that the class list lacks is a name of its own, outside the list."""
        return self.names.get(str(class_id), outside_id(class_id))


def outside_id(class_id: str | int) -> str:
    """What an id is called that the class list lacks."""
    return f"class id {class_id}"


class _TextLoader(yaml.BaseLoader):
    """YAML in which every scalar is text (``no`` and ``1.0`` too), a key stands once, and a tag is refused."""

    PLAIN = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if node.tag not in self.PLAIN:
            text = f"tags are not understood, and there is {node.tag!r}"
            raise yaml.constructor.ConstructorError(None, None, text, node.start_mark)
        return super().construct_object(node, deep)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be a name", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} stands there twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=True)


def read_options(path: Path) -> BenchmarkOptions:
    """Read ``benchmark.yml``. Every scalar is text, so a class or a model may be called ``no`` or ``1.0``.

    Raises EvalkitError for a file that is not there, broken YAML, a tag, a key twice, an unknown key, a wrong value, and a
    path that leaves the folder of the file: what others hand out must not reach for other files of the reader's machine.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        extra = "; `evalkit sample --out toytown` writes the sample" if "toytown" in path.parts else ""
        raise EvalkitError(f"{path}: there is no such file{extra}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EvalkitError(f"{path}: cannot read it: {error}") from None
    try:
        said = yaml.load(text, Loader=_TextLoader)
    except RecursionError:
        raise EvalkitError(f"{path.name}: this is not YAML as expected: it is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise EvalkitError(f"{path.name}{line}: this is not YAML as expected: {getattr(error, 'problem', error)}") from None
    if not isinstance(said, dict):
        raise EvalkitError(f"{path.name}: the file must hold keys such as `gold:` and `predictions:`")
    options = options_from(said, source=path.name)
    for key, text in named_paths(options):
        if within(path.parent, text) is None:
            raise EvalkitError(
                f"{path.name}, {key}: {text!r} is not in the benchmark's folder; what a benchmark reads stands below its "
                f"{path.name}, and links out of it are not followed"
            )
    return options


def named_paths(options: BenchmarkOptions) -> Iterator[tuple[str, str]]:
    """Every path that a benchmark names, with its key."""
    for key, value in msgspec.structs.asdict(options).items():
        if key not in ("name", "note"):
            yield from _paths(value, key)


def _paths(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _paths(one, f"{key}, {name}")
    elif isinstance(value, msgspec.Struct):
        for name, one in msgspec.structs.asdict(value).items():
            names_a_file = name in PATHS if isinstance(one, str) else name not in RENAMED
            if names_a_file and (name, one) != ("sizes", "gold"):
                yield from _paths(one, key if name == "path" else f"{key}, {name}")


def options_from(said: Mapping[str, Any], *, source: str) -> BenchmarkOptions:
    """Check the keys and values of a benchmark; a file may be a bare path or a mapping with ``path`` and options."""

    def as_file(value: Any, key: str) -> FileOptions:
        value = {"path": value} if isinstance(value, str) else value
        _known_keys(value, FileOptions, f"{source}, {key}")
        one = _convert(value, FileOptions, f"{source}, {key}")
        if not one.path.strip():
            raise EvalkitError(f"{source}, {key}: the path is empty")
        if one.reader is not None:
            try:
                reader(one.reader)
            except EvalkitError as error:
                raise EvalkitError(f"{source}, {key}: {error}") from None
        return one

    _known_keys(said, BenchmarkOptions, source)
    said = dict(said)
    said |= {key: as_file(said[key], key) for key in ("gold", "first_pass") if key in said}
    if "semantic" in said:
        _known_keys(said["semantic"], RelationOptions, f"{source}, semantic")
        said["semantic"] = _convert(said["semantic"], RelationOptions, f"{source}, semantic")
    if "published" in said:
        _known_keys(said["published"], PublishedTables, f"{source}, published")
        tables = said["published"]
        if isinstance(tables, dict):
            tables = {name: {"path": one} if isinstance(one, str) else one for name, one in tables.items()}
            for name, one in tables.items():
                _known_keys(one, PublishedOptions, f"{source}, published, {name}")
        said["published"] = _convert(tables, PublishedTables, f"{source}, published")
    if isinstance(said.get("predictions"), dict):
        if blank := [name for name in said["predictions"] if not name.strip()]:
            raise EvalkitError(f"{source}, predictions: a model needs a name, not {blank[0]!r}")
        said["predictions"] = {name: as_file(one, f"predictions, {name}") for name, one in said["predictions"].items()}
    if isinstance(said.get("points"), dict):
        said["points"] = {
            name: point_options_from(one, source=f"{source}, points, {name}") for name, one in said["points"].items()
        }
    return _convert(said, BenchmarkOptions, source)


def point_options_from(said: Any, *, source: str) -> PointOptions:
    """Check the keys and values of one point benchmark; answers are a bare path or a mapping with ``path`` and ``reader``."""
    _known_keys(said, PointOptions, source)
    if isinstance(said, dict):
        said = {**said, "samples": [said["samples"]] if isinstance(said.get("samples"), str) else said.get("samples")}
    if isinstance(said, dict) and isinstance(said.get("predictions"), dict):
        predictions = {}
        for name, one in said["predictions"].items():
            one = {"path": one} if isinstance(one, str) else one
            _known_keys(one, PointFileOptions, f"{source}, predictions, {name}")
            predictions[name] = _convert(one, PointFileOptions, f"{source}, predictions, {name}")
            if not name.strip() or not predictions[name].path.strip():
                raise EvalkitError(f"{source}, predictions: a model needs a name and a path, not {name!r}")
            try:
                reader(predictions[name].reader, kind="points")
            except EvalkitError as error:
                raise EvalkitError(f"{source}, predictions, {name}: {error}") from None
        said["predictions"] = predictions
    options = _convert(said, PointOptions, source)
    if not options.samples or any("\0" in one or not one.strip() for one in options.samples):
        raise EvalkitError(f"{source}: samples must be the path of a file or folder, or a list of them")
    return options


def _convert(said: Any, kind: type, where: str) -> Any:
    try:
        options = msgspec.convert(said, kind)
    except msgspec.ValidationError as error:
        raise EvalkitError(f"{where}: {error}") from None
    for name, text in msgspec.structs.asdict(options).items():
        if isinstance(text, str) and "\0" in text:
            raise EvalkitError(f"{where}: {name} {text!r} holds a NUL character")
    return options


def _known_keys(said: Any, kind: type[msgspec.Struct], where: str) -> None:
    known = kind.__struct_encode_fields__
    for key in said if isinstance(said, Mapping) else ():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else f"; known keys are {', '.join(known)}"
            raise EvalkitError(f"{where}: unknown key {key!r}{guess}")

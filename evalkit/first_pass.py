"""First-pass annotations: who saw which image and what each of them marked, before any adjudication; checked at the door."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from evalkit.tables import (
    BOX_COLUMNS,
    STATES,
    Annotations,
    Benchmark,
    DataError,
    EvalkitError,
    Finding,
    box_faults,
    box_finding,
    broken,
    categorical,
    class_findings,
    class_name,
    image_findings,
    rows_in_gold,
    text_findings,
)

POOLED = "pooled"
BLOCK_COLUMNS = ("block", "file_name")
JOINT = " + "  # between the names of annotators, in the name of a pair or of a derived group


@dataclass(frozen=True)
class FirstPass:
    """First-pass annotations in memory.

    Attributes
    ----------
    name, note, image_folder : as in :class:`evalkit.tables.Benchmark`
    classes : DataFrame ``class_id, class_name, domain``
    images : DataFrame ``image_id, width, height, file_name``
        Gold's images where there is gold, else those that somebody saw; with ``block`` where the file has such a column.
    seen : DataFrame ``image_id, annotator, group``
        One row for each image and annotator who saw it, with boxes or without; in the order of images and annotators.
    boxes : DataFrame ``seen, image_id, annotator, class, x_min, y_min, x_max, y_max``
        What was marked; ``seen`` is the row of that table. In its order.
    gold : DataFrame or None
        Gold boxes, as in a benchmark.
    """

    name: str
    note: str
    classes: pd.DataFrame
    images: pd.DataFrame
    seen: pd.DataFrame
    boxes: pd.DataFrame
    gold: pd.DataFrame | None = None
    image_folder: Path | None = None

    @property
    def annotators(self) -> list[str]:
        """Names of the annotators, sorted."""
        return list(self.seen["annotator"].cat.categories)

    @property
    def groups(self) -> list[str]:
        """Names of the groups, in the order of the file, or of their first image where they are derived."""
        return list(self.seen["group"].cat.categories)

    @property
    def domains(self) -> list[str]:
        """Names of the domains, in the order of the class list; empty if the classes have none."""
        return [name for name in self.classes["domain"].unique() if name]


def first_pass_tables(
    said: Annotations,
    annotator: Sequence[str],
    group: Sequence[str | None],
    block: Sequence[str | None],
    classes: pd.DataFrame,
    *,
    benchmark: Benchmark | None = None,
    name: str = "",
) -> FirstPass:
    """Check first-pass annotations, of which each row is an image that an annotator saw.

    Boxes follow the rules of predictions: one without area or outside its image is kept. Without ``benchmark`` the images are
    those that the file names.

    Raises
    ------
    DataError
        For an annotator twice on an image, an image that gold lacks, a class outside the list, an inverted or non-finite box,
        an image in two groups or of two sizes, and a blank name or one that cannot be told from that of several annotators.
    """
    who = [class_name(name) for name in annotator]
    if benchmark is None:
        row, images = _own_images(said)
        findings = []
    else:
        images = benchmark.images
        row, findings = rows_in_gold(said, images, None)
    findings += [
        *image_findings(replace(said, several_rows=True)),
        *text_findings(said),
        *class_findings(said, classes, "first_pass.class"),
        *_name_findings(said, who),
        *(
            Finding(said.file, said.place(row), said.image_id[row], "text", f"the {what} holds half a character")
            for what, column in (("annotator", annotator), ("group", group), ("block", block))
            for row, text in enumerate(column)
            if text and broken(text)
        ),
        *_twice(said, row, who),
        *_size_findings(said, row, images),
    ]
    for rule, wrong, text in box_faults(said.boxes, *np.full((2, len(said.boxes)), np.nan)):
        if rule in ("box.not_finite", "box.inverted"):
            findings += [box_finding(said, int(box), rule, text) for box in np.flatnonzero(wrong)]
    if not said.image_id:
        findings.append(Finding(said.file, "", "", "first_pass.empty", "nobody saw any image"))
    if findings:
        raise DataError(findings)

    names = sorted(set(who))
    person = pd.Index(names, dtype=str).get_indexer(who)
    order = np.lexsort([person, row])
    group_code, groups = _groups(said, row, person, names, [name and class_name(name) for name in group])
    seen = pd.DataFrame(
        {
            "image_id": pd.Categorical.from_codes(row[order], dtype=images["image_id"].dtype),
            "annotator": categorical(person[order], names),
            "group": categorical(group_code[row[order]], groups),
        }
    )
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    owner = place[said.box_image]
    by_owner = np.argsort(owner, kind="stable")
    owner = owner[by_owner]
    known = pd.Index(classes["class_name"])
    to_class = known.get_indexer([class_name(name) for name in said.class_names])
    label = to_class[said.class_code] if said.class_names else said.class_code
    boxes = pd.DataFrame(
        {
            "seen": owner,
            "image_id": seen["image_id"].array[owner],
            "annotator": seen["annotator"].array[owner],
            "class": categorical(label[by_owner], known),
            **dict(zip(BOX_COLUMNS, said.boxes[by_owner].T, strict=True)),
        }
    )
    if any(block):
        images = images.assign(block=_blocks(said, row, block, len(images)))
    return FirstPass(
        name=benchmark.name if benchmark else name or Path(said.file).stem,
        note=benchmark.note if benchmark else "",
        classes=classes,
        images=images,
        seen=seen,
        boxes=boxes,
        gold=benchmark.gold if benchmark else None,
        image_folder=benchmark.image_folder if benchmark else None,
    )


def as_models(first: FirstPass) -> Benchmark:
    """The benchmark whose models are the annotators: valid where one saw the image, else missing.

    Raises EvalkitError where there is no gold to compare with.
    """
    if first.gold is None:
        raise EvalkitError("annotators cannot be compared with gold: there is none")
    image, person = (first.seen[name].cat.codes.to_numpy(np.int64) for name in ("image_id", "annotator"))
    saw = np.zeros((len(first.annotators), len(first.images)), bool)
    saw[person, image] = True
    boxes = first.boxes.rename(columns={"annotator": "model"}).drop(columns="seen").assign(score=np.nan)
    boxes = boxes.sort_values("model", kind="stable", ignore_index=True)[["model", "image_id", "class", *BOX_COLUMNS, "score"]]
    return Benchmark(
        name=first.name,
        note=first.note,
        classes=first.classes,
        images=first.images,
        gold=first.gold,
        responses=_responses(first.images, first.annotators, saw),
        predictions=boxes,
        image_folder=first.image_folder,
    )


def with_pairs(single: Benchmark, pairs: Sequence[tuple[int, int]], names: Sequence[str]) -> Benchmark:
    """The annotators as models, and after them pairs of them: valid where both saw the image. Pairs have no boxes."""
    saw = np.concatenate([single.valid, *(single.valid[list(pair)].all(axis=0)[None] for pair in pairs)])
    boxes = single.predictions.assign(model=single.predictions["model"].cat.set_categories(names))
    return replace(single, responses=_responses(single.images, names, saw), predictions=boxes)


def _responses(images: pd.DataFrame, names: Sequence[str], saw: np.ndarray) -> pd.DataFrame:
    model, image = np.indices(saw.shape).reshape(2, -1)
    columns = {
        "model": categorical(model, names),
        "image_id": pd.Categorical.from_codes(image, dtype=images["image_id"].dtype),
        "state": categorical(np.where(saw.ravel(), 0, 2), STATES),
    }
    return pd.DataFrame(columns).assign(reason="", repairs="")


def blocks(first: FirstPass, rule: str) -> np.ndarray:
    """The block of each image by a rule: a column of the images (``block``, ``file_name``), or a regular expression with one
    group, which is searched in the image id and whose group is the block. An image that nobody saw needs none.

    >>> from types import SimpleNamespace
    >>> ids = pd.DataFrame({"image_id": ["v1_07", "v1_08", "v2_01"]})
    >>> blocks(SimpleNamespace(images=ids, seen=ids), r"^(.*)_").tolist()
    ['v1', 'v1', 'v2']

    Raises EvalkitError for a rule that is neither, and for an image that somebody saw and that gets no block.
    """
    ids = first.images["image_id"].astype(str)
    if rule in BLOCK_COLUMNS and rule in first.images:
        found = first.images[rule]
    else:
        try:
            pattern = re.compile(rule)
        except re.error as error:
            raise EvalkitError(f"block: {rule!r} is not a regular expression: {error}") from None
        if pattern.groups != 1:
            columns = ", ".join(name for name in BLOCK_COLUMNS if name in first.images)
            raise EvalkitError(
                f"block: {rule!r} is no column of the images ({columns}), nor a regular expression with one group"
            )
        found = ids.str.extract(pattern, expand=False)
    found = found.fillna("")
    lacking = ids[(found == "") & ids.isin(first.seen["image_id"].astype(str))]
    if len(lacking):
        raise EvalkitError(f"block: {rule!r} gives no block for image {lacking.iloc[0]!r}, and {len(lacking) - 1} more")
    return found.astype(str).to_numpy()


def _own_images(said: Annotations) -> tuple[np.ndarray, pd.DataFrame]:
    """The images that a file names, each once, and the image of each row."""
    ids = list(dict.fromkeys(said.image_id))
    row = pd.Index(ids, dtype=object).get_indexer(said.image_id)
    table = pd.DataFrame({"row": row})
    for name in ("width", "height", "file_name"):
        values = getattr(said, name)
        table[name] = np.nan if values is None else values
    images = table.groupby("row").first().reindex(range(len(ids)))
    images.insert(0, "image_id", categorical(np.arange(len(ids)), ids))
    return row, images.astype({"width": float, "height": float}).reset_index(drop=True)


def _size_findings(said: Annotations, row: np.ndarray, images: pd.DataFrame) -> Iterable[Finding]:
    for name in ("width", "height", "file_name"):
        if (values := getattr(said, name)) is None:
            continue
        values, known = np.array(values, object), np.where(row >= 0, images[name].to_numpy(object)[row], None)
        for at in np.flatnonzero(~pd.isna(values) & ~pd.isna(known) & (values != known)):
            text = f"{name} {values[at]!r} contradicts {known[at]!r}, which the image has elsewhere"
            yield Finding(said.file, said.place(int(at)), said.image_id[at], "image.size", text)


def _name_findings(said: Annotations, who: Sequence[str]) -> Iterable[Finding]:
    for row, name in enumerate(who):
        text = "" if name else "a first-pass row needs an annotator"
        if JOINT in name:
            text = f"an annotator's name must not hold {JOINT!r}: {name!r}"
        if name == POOLED:
            text = f"an annotator must not be called {POOLED!r}, which stands for all groups together"
        if text:
            yield Finding(said.file, said.place(row), said.image_id[row], "first_pass.annotator", text)


def _twice(said: Annotations, row: np.ndarray, who: Sequence[str]) -> Iterable[Finding]:
    pairs = pd.DataFrame({"row": row, "who": pd.Series(who, dtype=object)})
    for at in np.flatnonzero(pairs.duplicated() & (pairs["row"] >= 0)):
        first = int(np.flatnonzero((row == row[at]) & (pairs["who"] == who[at]))[0])
        text = f"annotator {who[at]!r} is on this image twice: first at {said.place(first)}"
        yield Finding(said.file, said.place(int(at)), said.image_id[at], "first_pass.twice", text)


def _groups(
    said: Annotations, row: np.ndarray, person: np.ndarray, names: Sequence[str], given: Sequence[str | None]
) -> tuple[np.ndarray, list[str]]:
    """The group of each image (-1 where nobody saw it) and the groups' names: as given, else the image's annotators."""
    n = row.max() + 1
    told = pd.Series(given, dtype=object).replace("", None)
    by_image = told.groupby(row)
    name_of, different = by_image.first().reindex(range(n)), by_image.nunique().reindex(range(n), fill_value=0)
    findings = []
    for at in np.flatnonzero(
        (different[row] > 1).to_numpy() & (told != name_of[row].to_numpy()).to_numpy() & told.notna().to_numpy()
    ):
        text = f"the image is in the groups {name_of[row[at]]!r} and {given[at]!r}; an image has one group"
        findings.append(Finding(said.file, said.place(int(at)), said.image_id[at], "first_pass.group", text))
    for at in np.flatnonzero(told == POOLED)[:1]:
        text = f"a group must not be called {POOLED!r}, which stands for all groups together"
        findings.append(Finding(said.file, said.place(int(at)), said.image_id[at], "first_pass.group", text))
    if findings:
        raise DataError(findings)
    which, members = distinct_sets(row, person, n, len(names))
    derived = pd.Series([JOINT.join(np.array(names, dtype=object)[one]) for one in members], dtype=object)
    seen_by_some = np.bincount(row, minlength=n) > 0
    name_of = name_of.where(name_of.notna(), derived[which].to_numpy()).where(seen_by_some, None)
    ungrouped = seen_by_some & (different == 0).to_numpy()
    if alike := set(told.dropna()) & set(derived[which[ungrouped]]):
        at = int(np.flatnonzero(told.isin(alike))[0])
        text = f"the group {given[at]!r} is also the name of the images without a group that these annotators saw"
        raise DataError([Finding(said.file, said.place(at), said.image_id[at], "first_pass.group", text)])
    in_order = list(dict.fromkeys(name_of[row]))
    return pd.Index(in_order, dtype=object).get_indexer(name_of), in_order


def _blocks(said: Annotations, row: np.ndarray, block: Sequence[str | None], n: int) -> pd.Series:
    """The block of each image; rows of one image must not name two."""
    told = pd.Series(block, dtype=object).replace("", None)
    by_image = told.groupby(row)
    name_of = by_image.first().reindex(range(n))
    wrong = np.flatnonzero(told.notna().to_numpy() & (told.to_numpy() != name_of[row].to_numpy()))
    if len(wrong):
        raise DataError(
            Finding(
                said.file,
                said.place(int(at)),
                said.image_id[at],
                "first_pass.block",
                f"the image is in two blocks: {block[at]!r}",
            )
            for at in wrong
        )
    return name_of.reset_index(drop=True)


def distinct_sets(row: np.ndarray, member: np.ndarray, n_rows: int, n_members: int) -> tuple[np.ndarray, np.ndarray]:
    """Which set of members each row has, and the different sets as booleans of shape (sets, members)."""
    held = np.zeros((n_rows, n_members), bool)
    held[row, member] = True
    packed, which = np.unique(np.packbits(held, axis=1), axis=0, return_inverse=True)
    return which.ravel(), np.unpackbits(packed, axis=1, count=n_members).astype(bool)

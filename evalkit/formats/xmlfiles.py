"""XML that others exported: a folder of Pascal VOC files, and one file of CVAT ("CVAT for images 1.1")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np
import pandas as pd

from evalkit.formats.decoding import box_array, factorise, files_in, one_finding, read_bytes
from evalkit.formats.options import Context, FileOptions
from evalkit.formats.sizes import rows_of_images, stem_of
from evalkit.tables import Annotations, DataError, Finding, Note, nfc

VOC_EDGES = ("xmin", "ymin", "xmax", "ymax")
CVAT_EDGES = ("xtl", "ytl", "xbr", "ybr")


@dataclass(slots=True)
class Node:
    """An element: its name, attributes, text, children, and the line on which it starts."""

    name: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Node] = field(default_factory=list)

    def all(self, name: str) -> list[Node]:
        return [child for child in self.children if child.name == name]

    def first(self, name: str) -> Node | None:
        return next(iter(self.all(name)), None)

    def said(self, name: str) -> str:
        """The text of a child, empty where there is none."""
        child = self.first(name)
        return "" if child is None else child.text.strip()


@dataclass(slots=True)
class Image:
    """What one image element says: numbers are still text."""

    stem: str
    file_name: str
    file: str
    line: int
    width: str
    height: str
    boxes: list[tuple[str, list[str], int]]  # class, edges, line


def parse(path: Path, *, name: str = "") -> Node:
    """The root element of an XML file; ``name`` is what messages call the file.

    A document type is refused before anything of it is read, and with it every entity: no text is expanded, nothing else is
    opened. Raises DataError for that, for a file that cannot be read and for what is no XML.
    """
    name = name or path.name
    top = Node("", {}, 0)
    open_nodes, texts = [top], [[]]
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = Node(tag, attributes, parser.CurrentLineNumber)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)
        texts.append([])

    def end(_: str) -> None:
        open_nodes.pop().text = "".join(texts.pop())

    def refuse(*_: object) -> None:
        text = "a document type (<!DOCTYPE …>) is not read, since it may define entities; remove it"
        raise one_finding(name, "xml.doctype", text, place=f"line {parser.CurrentLineNumber}")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(read_bytes(path), True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        line = f"line {parser.CurrentLineNumber}"
        raise one_finding(name, "xml.malformed", f"this is not XML: {error}", place=line) from None
    return top.children[0]


def read_voc(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read a folder of Pascal VOC files, one an image; its id is the file's relative path without extension.

    Edges are taken as they stand. Objects marked ``difficult`` are ordinary ones and counted in a note; parts of objects are
    not objects.

    Raises DataError for a file that is no such XML, an object without a name or a box, and an edge or size that is no number.
    """
    if not path.is_dir():
        raise one_finding(path.name, "file.absent", f"there is no folder {str(path)!r}")
    files = files_in(path, {".xml"})
    if not files:
        raise one_finding(path.name, "file.empty", "the folder holds no .xml file")
    images, findings, difficult = [], [], []
    for file in files:
        where = file.relative_to(path)
        name = f"{path.name}/{where.as_posix()}"
        try:
            root = parse(file, name=name)
            if root.name != "annotation":
                text = f"a Pascal VOC file holds <annotation>, not <{root.name}>"
                raise one_finding(name, "voc", text, place=f"line {root.line}")
        except DataError as error:
            findings += error.findings
            continue
        size = root.first("size") or Node("size", {}, root.line)
        picture = root.said("filename")
        image = Image(
            nfc(where.with_suffix("").as_posix()),
            (where.parent / picture).as_posix() if picture else "",
            name,
            root.line,
            size.said("width"),
            size.said("height"),
            [],
        )
        for one in root.all("object"):
            corners = one.first("bndbox")
            if corners is None:
                text = "an object needs <bndbox> with xmin, ymin, xmax and ymax"
                findings.append(Finding(name, f"line {one.line}", image.stem, "voc.box", text))
                continue
            image.boxes.append((one.said("name"), [corners.said(edge) for edge in VOC_EDGES], one.line))
            difficult += [image.stem] if one.said("difficult") == "1" else []
        images.append(image)
    notes = [("difficult", len(difficult), ", ".join(list(dict.fromkeys(difficult))[:3]))] if difficult else []
    return _annotations(path.name, images, findings, context, ending=".xml", notes=notes)


def read_cvat(path: Path, options: FileOptions, context: Context) -> Annotations:
    """Read boxes of a CVAT file of images; an image's id is its ``name`` without the ending of a picture.

    The labels of the task are the class list where there is no other.

    Raises DataError for tracks of a video, for shapes that are no upright box, and as :func:`read_voc`.
    """
    root = parse(path)
    if root.name != "annotations":
        text = f"a CVAT file holds <annotations>, not <{root.name}>"
        raise one_finding(path.name, "cvat", text, place=f"line {root.line}")
    images: list[Image] = []
    findings: list[Finding] = []
    for track in root.all("track"):
        text = 'tracks of a video are not read; export the task as "CVAT for images"'
        findings.append(Finding(path.name, f"line {track.line}", "", "cvat.track", text))
    for one in root.all("image"):
        name = nfc(one.attributes.get("name", ""))
        size = [one.attributes.get(side, "") for side in ("width", "height")]
        image = Image(stem_of(name), name, path.name, one.line, *size, [])
        for shape in one.children:
            if shape.name != "box" or _number(shape.attributes.get("rotation", "0")) != 0:
                what = "a rotated box" if shape.name == "box" else f"<{shape.name}>"
                text = f"{what} is no upright box, and nothing is made into one"
                findings.append(Finding(path.name, f"line {shape.line}", image.stem, "cvat.shape", text))
            else:
                edges = [shape.attributes.get(edge, "") for edge in CVAT_EDGES]
                image.boxes.append((shape.attributes.get("label", ""), edges, shape.line))
        images.append(image)
    said = _annotations(path.name, images, findings, context, ending="")
    labels = [label.said("name") for label in _labels(root)]
    if labels:
        numbers = [str(number) for number in range(len(labels))]
        said.categories = pd.DataFrame({"class_id": numbers, "class_name": labels, "domain": ""}, dtype=str)
    return said


def _labels(root: Node) -> Iterator[Node]:
    """The labels of the task, which stand in a task, a project or a job."""
    for about in root.all("meta"):
        for whole in about.children:
            for listed in whole.all("labels"):
                yield from listed.all("label")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _annotations(
    file: str,
    images: list[Image],
    findings: list[Finding],
    context: Context,
    *,
    ending: str,
    notes: list[Note] | None = None,
) -> Annotations:
    """What the images say, as columns; predictions are joined to gold's images by their paths."""
    lenient = not context.is_gold
    boxes = [(image, name, edges, line) for image in images for name, edges, line in image.boxes]
    for image, name, edges, line in boxes:
        if not name.strip():
            findings.append(Finding(image.file, f"line {line}", image.stem, "box.class", "a box needs a class"))
        if not lenient and np.isnan([_number(edge) for edge in edges]).any():
            text = f"a box needs four numbers, not {', '.join(map(repr, edges))}"
            findings.append(Finding(image.file, f"line {line}", image.stem, "number", text))
    for image in images:
        for side, text in (("width", image.width), ("height", image.height)):
            if text and np.isnan(_number(text)):
                said = f"{side} must be a number, not {text!r}"
                findings.append(Finding(image.file, f"line {image.line}", image.stem, "number", said))
    stems = [image.stem for image in images]
    ids = stems
    if not context.is_gold:
        rows, unknown = rows_of_images(file, stems, context.images, ending=ending)
        findings += unknown
        ids = [] if unknown else list(context.images["image_id"].iloc[rows])
    if findings:
        raise DataError(findings)
    codes, names = factorise([name for _, name, _, _ in boxes])
    places = [(image.file, line) for image, _, _, line in boxes]

    def place(where: str, line: int) -> str:
        return f"{where.partition('/')[2]}, line {line}".removeprefix(", ")

    return Annotations(
        file=file,
        image_id=ids,
        box_image=np.repeat(np.arange(len(images)), [len(image.boxes) for image in images]),
        class_code=codes,
        class_names=names,
        boxes=box_array([[_number(edge) for edge in edges] for _, _, edges, _ in boxes]),
        place=lambda row: place(images[row].file, images[row].line),
        box_place=lambda box: place(*places[box]),
        width=np.array([_number(image.width) for image in images]) if context.is_gold else None,
        height=np.array([_number(image.height) for image in images]) if context.is_gold else None,
        file_name=[image.file_name or None for image in images] if context.is_gold else None,
        notes=notes or [],
    )

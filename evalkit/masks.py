"""Target regions of any kind (files, arrays, polygons) to one form: a boolean array of shape (height, width).

A pixel is foreground when its value is not 0, whatever else the value says; of colours the largest channel counts, and alpha
does not.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

MODES = ("1", "L", "LA", "P", "I;16", "RGB", "RGBA")
COLOURS = {1: 1, 2: 1, 3: 3, 4: 3}  # of so many channels, those that are no alpha
FARTHEST = 2**24  # pixels, beyond any image; OpenCV fills row by row, also outside of it
NOTES = {
    "mask_values": "masks with more than two values: every value but 0 is foreground",
    "mask_resized": "masks of another size than their image, brought to it by nearest neighbour",
    "ring_crossed": "polygons whose outline crosses itself: filled by the even-odd rule",
}


class MaskFault(Exception):
    """A region that cannot be used: the rule that it breaks and what is wrong, for whoever knows the sample."""

    def __init__(self, rule: str, text: str):
        super().__init__(text)
        self.rule, self.text = rule, text


class Region(NamedTuple):
    """Where a point hits, as booleans of shape (height, width), and which of NOTES apply."""

    inside: np.ndarray
    notes: tuple[str, ...] = ()


def read_mask(source: bytes | Path | np.ndarray | Sequence, *, size: tuple[int, int], resize: bool = False) -> Region:
    """The foreground of a mask.

    Parameters
    ----------
    source : bytes or path of a picture, or an array or nested list of whole numbers or booleans, rows first
    size : width and height of the image that the mask belongs to
    resize : whether a mask of another size is brought to it by nearest neighbour; otherwise it is a fault

    Raises
    ------
    MaskFault
        For a file that is not there, broken, too large or of another mode than MODES; for a mask of another size; and for one
        without any foreground.
    """
    values = _decoded(source, size, resize) if isinstance(source, bytes | Path) else _array(source)
    if values.ndim == 3:
        values = np.maximum.reduce([values[..., channel] for channel in range(COLOURS[values.shape[2]])])
    if values.shape[::-1] != size and not resize:
        raise _other_size(values.shape[::-1], size)
    inside = values if values.dtype == bool else values != 0
    if not inside.any():
        raise MaskFault("mask.empty", "the mask has no foreground")
    notes = ("mask_values",) if values.dtype != bool and (inside & (values != values.max())).any() else ()
    if inside.shape[::-1] != size:
        resized = Image.fromarray(inside.view(np.uint8)).resize(size, Image.Resampling.NEAREST)
        inside, notes = np.asarray(resized).view(bool), (*notes, "mask_resized")
    return Region(inside, notes)


def fill(rings: Sequence[np.ndarray], *, size: tuple[int, int]) -> Region:
    """The region of polygons: vertices truncated to whole pixels, all rings filled in one call of OpenCV's ``fillPoly``.

    Overlaps follow the even-odd rule; the outline belongs to the region; what lies outside the image is cut off.

    Raises MaskFault for no ring, a vertex that is not finite or beyond any image, and an empty region.
    """
    import cv2  # of all commands only points need it

    if not rings:
        raise MaskFault("polygon.shape", "there is no polygon")
    if not all((np.abs(ring) < FARTHEST).all() for ring in rings):  # false for NaN as well
        raise MaskFault("polygon.vertex", f"a vertex must be two finite numbers of pixels, less than {FARTHEST:,} away")
    width, height = size
    canvas = np.zeros((height, width), np.uint8)
    cv2.fillPoly(canvas, [np.trunc(ring).astype(np.int32) for ring in rings], 1)
    if not canvas.any():
        raise MaskFault("mask.empty", "the polygons cover no pixel of the image")
    return Region(canvas.view(bool), ("ring_crossed",) if any(map(crosses_itself, rings)) else ())


def rings_of(said: Any) -> list[np.ndarray]:
    """Polygons as arrays of shape (n, 2), from one ring or a list of rings; a ring is pairs or a flat list x, y, x, y …

    A list of lists of two numbers each is one ring, for a ring needs three vertices.

    >>> [ring.tolist() for ring in rings_of([[0, 0, 4, 0, 4, 4]])]
    [[[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]]

    Raises MaskFault for anything else.
    """
    try:
        said = [said] if _depth(said) == 1 or (_depth(said) == 2 and all(len(one) == 2 for one in said)) else said
        arrays = [np.asarray(ring, float) for ring in said]
        rings = [ring.reshape(-1, 2) if ring.ndim == 1 else ring for ring in arrays]
    except (TypeError, ValueError, OverflowError):
        raise MaskFault("polygon.shape", "polygons must be rings of vertices [x, y]") from None
    if not all(ring.shape[1:] == (2,) and len(ring) >= 3 for ring in rings):
        raise MaskFault("polygon.shape", "a polygon needs at least three vertices [x, y]")
    return rings


def crosses_itself(ring: np.ndarray) -> bool:
    """Whether two edges of a ring cross in their interiors."""
    start, end = ring, np.roll(ring, -1, axis=0)

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.sign((b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0]))

    for at in range(len(ring) - 2):
        others = slice(at + 2, None)
        apart = side(start[at], end[at], start[others]) * side(start[at], end[at], end[others]) < 0
        if (apart & (side(start[others], end[others], start[at]) * side(start[others], end[others], end[at]) < 0)).any():
            return True
    return False


def _depth(said: Any) -> int:
    return 1 + _depth(said[0]) if isinstance(said, list | tuple | np.ndarray) and len(said) else 0


def _decoded(source: bytes | Path, size: tuple[int, int], resize: bool) -> np.ndarray:
    """The values of a picture; its size and mode are looked at before anything is unpacked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as picture:
                if picture.mode not in MODES:
                    raise MaskFault("mask.mode", f"the mode {picture.mode} of the mask is none of {', '.join(MODES)}")
                if picture.size != size and not resize:
                    raise _other_size(picture.size, size)
                return np.asarray(picture)
    except MaskFault:
        raise
    except FileNotFoundError as error:
        raise MaskFault("mask.absent", f"there is no mask {Path(error.filename).name!r}") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise MaskFault("mask.bomb", f"too many pixels for a mask: {error}") from None
    except Exception as error:  # Pillow's decoders raise all kinds of errors on broken files
        raise MaskFault("mask.broken", f"cannot read the mask: {error}") from None


def _array(said: np.ndarray | Sequence) -> np.ndarray:
    try:
        values = np.asarray(said)
    except ValueError:
        raise MaskFault("mask.shape", "the rows of the mask are not of one length") from None
    layered = values.ndim == 3 and values.shape[2] in COLOURS
    if values.dtype.kind not in "bui" or not values.size or not (values.ndim == 2 or layered):
        got = f"{values.dtype} of shape {values.shape}"
        raise MaskFault("mask.shape", f"a mask must be rows of whole numbers or booleans, not {got}")
    return values


def _other_size(found: tuple[int, ...], size: tuple[int, int]) -> MaskFault:
    return MaskFault("mask.size", "the mask size {} x {} is not that of the image, {} x {}".format(*found, *size))

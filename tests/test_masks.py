"""Masks of every kind and polygons: one foreground, and a fault for whatever is none."""

import contextlib
import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from helpers import rule
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from evalkit.masks import MODES, MaskFault, crosses_itself, fill, read_mask, rings_of

SHAPE = (8, 10)  # rows, columns
SIZE = SHAPE[::-1]
INSIDE = np.zeros(SHAPE, bool)
INSIDE[2:6, 3:8] = True


def png(picture, **options):
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", **options)
    return buffer.getvalue()


def pictures():
    """The same object as a mask of every mode."""
    white = Image.fromarray(INSIDE.astype(np.uint8) * 255)
    palette = Image.fromarray(INSIDE.astype(np.uint8)).copy()
    palette = Image.frombytes("P", SIZE, INSIDE.astype(np.uint8).tobytes())
    palette.putpalette([9, 9, 9, 0, 0, 0])  # index 0 is bright, index 1 is black
    opaque = Image.new("L", SIZE, 255)
    blue = np.zeros((*SHAPE, 3), np.uint8)
    blue[..., 2] = INSIDE
    return {
        "1": white.convert("1"),
        "L": white,
        "L, 0 and 1": Image.fromarray(INSIDE.astype(np.uint8)),
        "LA": Image.merge("LA", [white, opaque]),
        "LA, see-through": Image.merge("LA", [white, Image.new("L", SIZE, 0)]),
        "P": palette,
        "I;16": Image.fromarray(INSIDE.astype(np.uint16) * 65535),
        "I;16, low byte": Image.fromarray(INSIDE.astype(np.uint16) * 256),
        "RGB": Image.fromarray(blue),
        "RGBA": Image.merge("RGBA", [white, white, white, opaque]),
    }


def fault(call, *args, **options):
    with pytest.raises(MaskFault) as caught:
        call(*args, **options)
    return caught.value.rule, caught.value.text


@rule("points-masks")
@pytest.mark.parametrize("name", pictures())
def test_rule_points_masks_of_every_mode_have_one_foreground(name):
    picture = pictures()[name]
    assert picture.mode == name.partition(",")[0]
    assert Image.open(io.BytesIO(png(picture))).mode == picture.mode
    region = read_mask(png(picture), size=SIZE)
    assert region.inside.dtype == bool
    assert np.array_equal(region.inside, INSIDE)
    assert region.notes == ()


def test_every_mode_is_tested():
    assert {name.partition(",")[0] for name in pictures()} == set(MODES)


@rule("points-masks")
@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, "255", "list", "layer", "with alpha"])
def test_rule_points_masks_may_be_arrays(kind):
    made = {
        "255": INSIDE.astype(np.uint8) * 255,
        "list": INSIDE.tolist(),
        "layer": INSIDE[..., None],
        "with alpha": np.dstack([INSIDE, np.ones_like(INSIDE)]),
    }
    source = made[kind] if isinstance(kind, str) else INSIDE.astype(kind)
    assert np.array_equal(read_mask(source, size=SIZE).inside, INSIDE)


def test_pts_01_every_value_but_zero_is_foreground(case):
    zero, one = case.given["mask_png_values"]
    assert case.given["mask"].startswith("10x10, 1 inside x,y in 2..7")
    values = np.full((10, 10), zero, np.uint8)
    values[2:8, 2:8] = one
    x, y = case.given["point_px"]
    for factor in (1, 255):
        region = read_mask(png(Image.fromarray(values * factor)), size=(10, 10))
        assert region.inside[y, x] == case.expected["hit"]
        assert region.inside.sum() == 36
        assert region.notes == ()
    values[3, 3] = 2
    assert read_mask(png(Image.fromarray(values)), size=(10, 10)).notes == ("mask_values",)


def test_pts_03_modes_give_the_same_hits(case):
    assert case.expected["all_equal"]
    wanted = ["1", "L", "P", "RGBA", "I;16"]
    assert len(case.given["masks"]) == len(wanted)
    found = [read_mask(png(pictures()[mode]), size=SIZE).inside for mode in wanted]
    assert [(one[3, 4], one[0, 0]) for one in found] == [(case.given["point_inside"], not case.given["point_outside"])] * 5
    cmyk = io.BytesIO()
    Image.new("CMYK", SIZE).save(cmyk, "TIFF")
    assert fault(read_mask, cmyk.getvalue(), size=SIZE)[0] == "mask.mode"


def test_pts_04_a_mask_of_another_size_is_an_error(case):
    mask = Image.new("L", case.given["mask_wh"], 255)
    rule_, text = fault(read_mask, png(mask), size=tuple(case.given["image_wh"]))
    assert (rule_, text) == ("mask.size", "the mask size 500 x 250 is not that of the image, 1000 x 500")
    assert case.expected["error"] in text
    assert fault(read_mask, np.ones((250, 500), bool), size=(1000, 500))[0] == "mask.size"


def test_pts_16_rings_are_filled_in_their_order_by_the_even_odd_rule(case):
    ring = np.array(case.given["points"]) * 100
    region = fill(rings_of(ring.tolist()), size=(100, 100))
    x, y = (int(value * 100) for value in case.given["pred"])
    assert region.inside[y, x] == case.expected["hit"]
    hull = cv2.fillPoly(np.zeros((100, 100), np.uint8), [cv2.convexHull(ring.astype(np.int32))], 1)
    assert hull[y, x] == 1
    assert region.notes == ("ring_crossed",)


# -- faults


@rule("points-masks")
@pytest.mark.parametrize("data", [b"", b"no picture", png(pictures()["L"])[:60], png(pictures()["L"])[:40]])
def test_rule_points_masks_that_are_broken_are_faults(data):
    assert fault(read_mask, data, size=SIZE)[0] == "mask.broken"


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_byte_gives_a_mask_or_a_fault(place, value):
    data = bytearray(png(pictures()["P"]))
    data[place % len(data)] = value
    with contextlib.suppress(MaskFault):
        assert read_mask(bytes(data), size=SIZE).inside.shape == SHAPE


def bomb(width, height):
    """A PNG whose header promises a picture that its few bytes do not hold."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


@rule("points-masks")
@pytest.mark.parametrize("side", [10_000, 100_000])
def test_rule_points_masks_that_are_bombs_are_faults(side):
    found = fault(read_mask, bomb(side, side), size=(side, side))
    assert found[0] == "mask.bomb"
    assert "pixels" in found[1]


@rule("points-masks")
def test_rule_points_masks_without_foreground_are_faults():
    assert fault(read_mask, np.zeros(SHAPE, np.uint8), size=SIZE)[0] == "mask.empty"


@pytest.mark.parametrize("source", [[[0, 1], [1]], [], [[0.5, 1.0]], [["a"]], np.zeros((2, 2, 5), int), np.zeros(4, int)])
def test_arrays_that_are_no_masks_are_faults(source):
    assert fault(read_mask, source, size=(2, 2))[0] == "mask.shape"


def test_a_file_that_is_absent_is_a_fault(tmp_path):
    assert fault(read_mask, tmp_path / "no.png", size=SIZE) == ("mask.absent", "there is no mask 'no.png'")
    assert fault(read_mask, tmp_path, size=SIZE)[0] == "mask.broken"


# -- resizing and filling


@rule("points-resize")
@settings(deadline=None)
@given(st.tuples(*[st.integers(1, 30)] * 4), st.integers(0, 2**32))
def test_rule_points_resize_takes_the_value_under_the_centre_of_each_pixel(sizes, seed):
    old, new = sizes[:2], sizes[2:]
    values = np.random.default_rng(seed).random(old[::-1]) < 0.5
    values[0, 0] = True
    found = read_mask(values, size=new, resize=True).inside
    for (y, x), got in np.ndenumerate(found):
        centre = [((2 * at + 1) * was) / (2 * now) for at, was, now in zip((x, y), old, new, strict=True)]
        on_an_edge = any((2 * at + 1) * was % (2 * now) == 0 for at, was, now in zip((x, y), old, new, strict=True))
        assert on_an_edge or got == values[int(centre[1]), int(centre[0])]


@rule("points-resize")
def test_rule_points_resize_is_noted():
    region = read_mask(png(Image.fromarray(INSIDE)), size=(20, 16), resize=True)
    assert region.notes == ("mask_resized",)
    assert np.array_equal(region.inside, INSIDE.repeat(2, axis=0).repeat(2, axis=1))


@rule("points-polygons")
def test_rule_points_polygons_are_filled_with_truncated_vertices():
    """A square from (2.9, 3.9) to (5.9, 6.9) becomes 2..5 by 3..6, edges included."""
    region = fill(rings_of([[2.9, 3.9], [5.9, 3.9], [5.9, 6.9], [2.9, 6.9]]), size=(10, 10))
    expected = np.zeros((10, 10), bool)
    expected[3:7, 2:6] = True
    assert np.array_equal(region.inside, expected)
    assert region.notes == ()


@rule("points-polygons")
def test_rule_points_polygons_may_reach_out_of_the_image():
    region = fill(rings_of([[-5, -5], [4, -5], [4, 4], [-5, 4]]), size=(10, 8))
    expected = np.zeros((8, 10), bool)
    expected[:5, :5] = True
    assert np.array_equal(region.inside, expected)
    huge = fill(rings_of([[-1e6, -1e6], [1e6, -1e6], [1e6, 1e6]]), size=(10, 10)).inside
    assert np.array_equal(huge, np.triu(np.ones((10, 10), bool)))  # below the diagonal y = x lies nothing


@rule("points-polygons")
def test_rule_points_polygons_of_one_sample_are_filled_in_one_call():
    """A ring within a ring is a hole."""
    rings = rings_of([[[0, 0], [9, 0], [9, 9], [0, 9]], [[3, 3], [6, 3], [6, 6], [3, 6]]])
    inside = fill(rings, size=(10, 10)).inside
    assert (inside[1, 1], inside[4, 4], inside[9, 9]) == (True, False, True)


@pytest.mark.parametrize(
    "said",
    [
        [[0, 0], [4, 0], [4, 4]],
        [0, 0, 4, 0, 4, 4],
        [[0, 0, 4, 0, 4, 4]],
        [[[0, 0], [4, 0], [4, 4]]],
        np.array([[0, 0], [4, 0], [4, 4]]),
    ],
)
def test_rings_may_be_written_in_several_ways(said):
    assert [ring.tolist() for ring in rings_of(said)] == [[[0, 0], [4, 0], [4, 4]]]


@pytest.mark.parametrize(
    "said", [None, [], 7, "x", [[0, 0], [1, 1]], [0, 0, 4, 0, 4], [[[0, 0, 1], [1, 1, 1]]], {"x": 1}, [["a", "b"]] * 3]
)
def test_what_is_no_polygon_is_a_fault(said):
    assert fault(lambda: fill(rings_of(said), size=SIZE))[0] == "polygon.shape"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_vertices_are_finite(value):
    assert fault(fill, rings_of([[0, 0], [value, 0], [4, 4]]), size=SIZE)[0] == "polygon.vertex"


def test_a_polygon_beside_the_image_is_a_fault():
    assert fault(fill, rings_of([[20, 20], [24, 20], [24, 24]]), size=SIZE)[0] == "mask.empty"


def test_outlines_that_cross():
    assert not crosses_itself(np.array([[0, 0], [4, 0], [4, 4], [0, 4]], float))
    assert crosses_itself(np.array([[0, 0], [4, 4], [4, 0], [0, 4]], float))
    star = np.array([[np.cos(4 * np.pi * at / 5), np.sin(4 * np.pi * at / 5)] for at in range(5)])
    assert crosses_itself(star)

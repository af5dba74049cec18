"""A JSON list of objects that are all written alike and hold short numbers, as columns, without an object for each number.

A list of rounded boxes as a program writes it is of that kind, and this reads it in half the time. All entries are read at
once: the same text in each, a number in each, the same text in each, and so on to the end of the entries. Any other file is
for the readers of :mod:`evalkit.formats.decoding`, which also say what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np

SPACE = b" \t\r\n"
DIGITS = 15  # so many make an integer below 2^53, and its quotient by a power of ten is the nearest float
POWERS = 10 ** np.arange(17)
PART = 1 << 18  # characters that are searched at a time, which saves memory
WORD = np.dtype("<u8")  # eight characters as one number, the first of them lowest
ZEROS, SIGNS, OVER = (int.from_bytes(bytes([one] * 8)) for one in (ord("0"), 0x80, 0x80 - 10))


class _Irregular(Exception):
    """The text is not of the kind that is read here."""


def regular_columns(data: bytes, kinds: Mapping[str, type]) -> dict[str, np.ndarray] | None:
    """The entries of a JSON list by key: shape (n,) for a number, (n, k) for a list of k numbers; None for any other text.

    Every entry must have the keys of the first, in its order and with its white space, and every number at most 15 digits and
    no exponent. Such a number is read exactly: it is the quotient of two floats that are exact themselves (W. D. Clinger,
    "How to read floating point numbers accurately", 1990).

    Parameters
    ----------
    kinds : int (for int64) or float (for float64) by key; the numbers of other keys may be of any length and are left out
    """
    try:
        form = _form(data)
        longest = max(map(len, [*form.texts, form.between]))
        text = _Text(data + bytes(8 + longest))  # so that what is taken at the last character is there
        read = {int: text.integer, float: text.number, None: text.any_number}
        first = text.places("{")
        at, columns, texts = first, {}, iter(form.texts)
        for key, length in form.lengths.items():
            numbers = []
            for _ in range(length or 1):
                at = text.skip(next(texts), at)
                number, at = read[kinds.get(key)](at)
                numbers.append(number)
            if key in kinds:
                columns[key] = numbers[0] if length is None else np.column_stack(numbers)
        at = text.skip(next(texts), at)
        between = text.skip(form.between, at[:-1])
    except _Irregular:
        return None
    around = data[: first[0]].strip(SPACE), data[at[-1] :].strip(SPACE)
    return columns if around == (b"[", b"]") and (between == first[1:]).all() else None


class _Form(NamedTuple):
    """What all entries have in common: the length of the list at each key (None: a number), and the text around numbers."""

    lengths: dict[str, int | None]
    texts: list[bytes]
    between: bytes


def _form(data: bytes) -> _Form:
    """The form of the first entry."""
    start, stop = data.find(b"{"), data.find(b"}") + 1
    following = data.find(b"{", stop)
    entry, between = data[start:stop], data[stop:following] if following > 0 else b","
    try:
        found = msgspec.json.decode(entry, type=dict[str, int | float | list[int | float]])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _Irregular from None
    lengths = {key: len(value) if isinstance(value, list) else None for key, value in found.items()}
    texts = re.split(rb"-?[0-9][-+.0-9eE]*", entry)
    plain = all(re.fullmatch("[A-Za-z_]+", key) for key in found) and entry.count(b'"') == 2 * len(found)  # no key twice
    if not found or not plain or 0 in lengths.values() or between.strip(SPACE) != b",":
        raise _Irregular
    return _Form(lengths, texts, between)


class _Text:
    """Characters, and what stands at many places ``at`` among them; whoever reads there returns the places after it too."""

    def __init__(self, data: bytes):
        self.data = data
        self.byte = np.frombuffer(data, np.uint8)
        self.signed = b"-" in data

    def places(self, character: str) -> np.ndarray:
        parts = range(0, len(self.byte), PART)
        return np.concatenate([start + np.flatnonzero(self.byte[start : start + PART] == ord(character)) for start in parts])

    def skip(self, text: bytes, at: np.ndarray) -> np.ndarray:
        if self._taken(at, len(text)).tobytes() != text * len(at):
            raise _Irregular
        return at + len(text)

    def integer(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        minus, at = self._sign(at)
        digits, count = self._digits(at)
        self._refuse_unless(self._starts_well(at, count) & (count <= DIGITS))
        return np.negative(digits, out=digits, where=minus), at + count

    def number(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        minus, at = self._sign(at)
        digits, before, point, places, ended = self._short_number(at)
        if not ended.all():
            long = np.flatnonzero(~ended)
            digits[long], before[long], point[long], places[long] = self._long_number(at[long])
        self._refuse_unless(self._starts_well(at, before) & (before + places <= DIGITS) & (point <= (places > 0)))
        value = digits / POWERS.take(places)
        negative = minus & (point | (digits != 0))  # -0 is the integer 0, and -0.0 is not
        return np.negative(value, out=value, where=negative), at + before + point + places

    def any_number(self, at: np.ndarray) -> tuple[None, np.ndarray]:
        """A number of any length that nobody wants to know."""
        _, at = self._sign(at)
        end = self._past_digits(at)
        point = self.byte[end] == ord(".")
        last = self._past_digits(end + point)
        self._refuse_unless(self._starts_well(at, end - at) & (point <= (last > end + 1)))
        return None, last

    def _sign(self, at: np.ndarray) -> tuple[np.ndarray | bool, np.ndarray]:
        """Whether there is a minus, and the places after it."""
        minus = self.byte[at] == ord("-") if self.signed else False
        return minus, at + minus

    def _past_digits(self, at: np.ndarray) -> np.ndarray:
        at, rows = at.copy(), np.arange(len(at))
        while len(rows):
            count = _bytes_below(_lowest(self._word(at[rows])[1]))
            at[rows] += count
            rows = rows[count == 8]
        return at

    def _refuse_unless(self, right: np.ndarray) -> None:
        if not right.all():
            raise _Irregular

    def _starts_well(self, at: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Whether digits stand before the point, and no zero before other digits."""
        return (before == 1) | ((before > 1) & (self.byte.take(at) != ord("0")))

    def _short_number(self, at: np.ndarray) -> tuple[np.ndarray, ...]:
        """Digits without the point as a number, how many stand before it, whether it is there, how many stand after it.

        Last comes whether the number ends within a word; else the rest is void.
        """
        word, other = self._word(at)
        end = _lowest(other)
        before = _bytes_below(end)
        point = self.byte.take(at + before) == ord(".")
        end_of_all = _lowest(np.where(point, (other ^ end) >> 8, other))
        count = _bytes_below(end_of_all)
        low = (end >> 7) - 1  # the bytes before the point
        after = word >> 8
        after &= ~low
        word &= low
        word |= after
        digits = _joined(word, count)
        return digits, before, point, count - before, end_of_all != 0

    def _long_number(self, at: np.ndarray) -> tuple[np.ndarray, ...]:
        """The same for up to 16 digits on either side of the point."""
        digits, before = self._digits(at)
        point = self.byte[at + before] == ord(".")
        fraction, places = self._digits(at + before + point)
        return digits * POWERS[places] + fraction, before, point, places

    def _digits(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Digits as a number, and how many they are; of more than 16 the first 16."""
        number, count = self._eight_digits(at)
        full = np.flatnonzero(count == 8)
        if len(full):
            more, further = self._eight_digits(at[full] + 8)
            number[full] = number[full] * POWERS[further] + more
            count[full] += further
        return number, count

    def _eight_digits(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        word, other = self._word(at)
        count = _bytes_below(_lowest(other))
        return _joined(word, count), count

    def _word(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Eight characters with digits as 0 to 9, and the highest bit of each byte that is none.

        A byte of 128 and more carries over and may spoil bytes after it, but such a byte ends every number.
        """
        word = self._taken(at, 8).view(WORD)
        word ^= ZEROS
        other = word + OVER
        other |= word
        other &= SIGNS
        return word, other

    def _taken(self, at: np.ndarray, length: int) -> np.ndarray:
        return np.ndarray(len(self.data) - length + 1, f"S{length}", self.data, strides=(1,))[at]


def _lowest(bits: np.ndarray) -> np.ndarray:
    lowest = -bits
    lowest &= bits
    return lowest


def _bytes_below(bit: np.ndarray) -> np.ndarray:
    """How many bytes are below the one whose highest bit is given; 8 where no bit is."""
    return np.bitwise_count(bit - 1) >> 3


def _joined(word: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The number that the first digits of a word make: neighbours are joined to numbers of two digits, of four, of eight."""
    word = word << ((8 - count) << 3)  # zeros in front, and nothing behind
    odd = word >> 8
    word *= 10
    odd += word
    even = odd & 0xFF000000FF
    odd >>= 16
    odd &= 0xFF000000FF
    even *= 100 + (1_000_000 << 32)
    odd *= 1 + (10_000 << 32)
    even += odd
    even >>= 32
    return even.view("<i8")

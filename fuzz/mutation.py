"""Spoiling bytes: what disks, networks, editors and people do to files."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

# What parsers stumble over: limits of numbers, structure out of place, other encodings.
TOKENS = (
    *(b"", b"\0", b"\xff", b"\x80\x04", b"\r\n", b'"', b"'", b",", b";", b"{", b"}", b"[", b"]"),
    *(b"-1", b"0", b"1e999", b"NaN", b"nan", b"inf", b"None", b"null", b"true", b"99999999999"),
    *(b"18446744073709551616", b"0.5", b"left", b"right", b"same", b"\xef\xbb\xbf", b"=1+1"),
    *(b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff" * 8, b"PK\x03\x04", b"PAR1"),
)


def mutate(seed: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """A file after a few accidents."""
    content = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(_ACCIDENTS)(content, others, rng)
    return bytes(content[: 1 << 20])


Accident = Callable[[bytearray, Sequence[bytes], random.Random], None]


def _place(content: bytearray, rng: random.Random) -> int:
    return rng.randrange(len(content) + 1)


def _flip(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _set(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.randrange(256)


def _cut(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    del content[_place(content, rng) :]


def _drop(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    start = _place(content, rng)
    del content[start : start + rng.randrange(1, 64)]


def _insert(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    start = _place(content, rng)
    content[start:start] = rng.choice(TOKENS)


def _overwrite(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    start, token = _place(content, rng), rng.choice(TOKENS)
    content[start : start + len(token)] = token


def _repeat(content: bytearray, _: Sequence[bytes], rng: random.Random) -> None:
    start = _place(content, rng)
    part = bytes(content[start : start + rng.randrange(1, 64)])
    content[start:start] = part * rng.randrange(1, 20)


def _splice(content: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    other = rng.choice(others)
    start = rng.randrange(len(other) + 1)
    content[_place(content, rng) :] = other[start:]


_ACCIDENTS: tuple[Accident, ...] = (
    *(_flip, _set, _cut, _drop, _insert, _overwrite, _repeat, _splice),
)

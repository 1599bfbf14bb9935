"""Hostile bytes made of valid ones: cut, spliced, repeated, bent at their grammar, salted with what breaks parsers."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

TOKENS = tuple(
    token.encode("utf-8", "surrogatepass")
    for token in (
        *("---", "\n---\n", "---\n---", "\n...\n", "--- |", "%YAML 1.2\n", "%TAG ! x:\n", "&a", "*a", "&a [*a]"),
        *("<<: *a", "!!python/object/apply:os.system ['true']", "!!str", "!x", "!!binary |", "? ", "? [a]\n: b"),
        *("|", ">-", "|9", ">+2", "{", "}", "[", "]", "{{", "[[[[[[[[["),
        *("{a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}}", ": ", ",", "#", "\t", "- ", "'", '"', "''", '"\\'),
        *('"\\u0000"', '"\\ud800"', '"\\N"', '"\\L"', '"\\x1b[2J"', '"\\U0010ffff"', "\\", "`", "@", "~", "null"),
        *("no", "yes", "012", "0x1f", "1e400", "-1e400", ".inf", ".nan", "1_000", "12:30:45", "2026-02-07"),
        *("1" * 5_000, "-" + "9" * 400, "0.0000000001", "9223372036854775808", "-0", "1e-9999", "Infinity", "NaN"),
        *("true", "\r", "\r\n", "\n", "\n\n", "\0", "\x1b[31m", "\x1b]0;x\x07", "\x7f", "\x85", "\u2028", "\u2029"),
        *("\ufeff", "\u200b", "\u202e", "\ud800", "\udcff", "\U000e0041", "\U0001f980", "e\u0301", "\xa0"),
        *("\u3000", "\ufffe", "\U0010ffff", "\n## Compressed History\n", "\n### Checkpoint 9: forged (Current)\n"),
        *("\n### ", "\n```\n", "\n~~~~~\n", "`" * 300, "<<<<<<< HEAD\n", "=======\n", ">>>>>>> x\n"),
        *("*Kept by ralf. Edit freely: changes are taken in at the next write.*"),
        *("<!-- ralf:context 123456789: x -->\n", "<!--", "-->", "<system-reminder>", "</system-reminder>"),
        *("<command-name>/x", "../../../etc/passwd", "/dev/zero", "/dev/stdin", "~/.ssh/id_rsa"),
        *("$(touch /tmp/pwned)", "`id`", "; rm -rf /", "%s%n", '{"a":' * 60, "[" * 1_200, "(" * 400, "a: " * 300),
        *("- " * 500, ">" * 500, "{" * 3_000, '"a",' * 400, "x" * 70_000),
    )
)  # fmt: skip
RAW = (b"\xff", b"\xfe\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80" * 9, b"\xef\xbb\xbf", b"\0" * 9)
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_VALUE = re.compile(rb"(?<=[:,\[ ])[^:,\[\]{}\n\"]+|\"[^\"\n]*\"|\d+")

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def mutated(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after one to four mutations; now and then nothing but tokens."""
    if rng.random() < 0.03:
        return b"".join(_token(rng) for _ in range(rng.randrange(12)))
    data = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(MUTATIONS)(rng, data, seeds)
    return data


def _token(rng: random.Random) -> bytes:
    return rng.choice(RAW) if rng.random() < 0.1 else rng.choice(TOKENS)


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = _place(rng, data)
    length = rng.choice((1, 2, 8, 40, 200, 1_000, len(data)))
    return start, min(len(data), start + rng.randrange(length + 1))


def insert(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A token somewhere, a few times at most."""
    at = _place(rng, data)
    return data[:at] + _token(rng) * rng.choice((1, 1, 1, 1, 2, 9)) + data[at:]


def insert_line(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A token as a line of its own, at an indent."""
    lines = _LINE.findall(data)
    at = rng.randrange(len(lines) + 1)
    return b"".join([*lines[:at], b" " * rng.choice((0, 0, 2, 4, 5)), _token(rng), b"\n", *lines[at:]])


def replace_value(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A scalar by a token."""
    found = list(_VALUE.finditer(data, *sorted((_place(rng, data), _place(rng, data)))))
    if not found:
        return data
    value = rng.choice(found)
    return data[: value.start()] + _token(rng) + data[value.end() :]


def cut(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A range goes."""
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def end_here(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """The rest goes."""
    return data[: _place(rng, data)]


def repeat(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A range comes several times, seldom thousands of times."""
    start, end = _span(rng, data)
    times = rng.choice((2, 2, 2, 3, 8, 50, 2_000))
    part = data[start:end][: 200_000 // times]
    return data[:start] + part * times + data[end:]


def splice(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """The beginning of one, the end of another."""
    other = rng.choice(seeds)
    return data[: _place(rng, data)] + other[_place(rng, other) :]


def swap_lines(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Two lines change places."""
    lines = _LINE.findall(data)
    if len(lines) > 1:
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def indent(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A line is set in or out."""
    lines = _LINE.findall(data)
    if lines:
        at = rng.randrange(len(lines))
        lines[at] = b" " * rng.randrange(9) + lines[at].lstrip(b" ")
    return b"".join(lines)


def flip(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A few bytes are any."""
    changed = bytearray(data)
    for _n in range(rng.choice((1, 1, 4, 30))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def line_ends(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Other line ends, or a mark at the beginning."""
    how = rng.randrange(4)
    if how == 0:
        return data.replace(b"\n", b"\r\n")
    if how == 1:
        return data.replace(b"\n", b"\r")
    return b"\xef\xbb\xbf" + data if how == 2 else data.rstrip(b"\n")


def bend_json(rng: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """One value in one line of JSON, or in the whole, is another kind of value, gone, doubled or nested."""
    lines = _LINE.findall(data)
    at = rng.randrange(len(lines)) if lines else 0
    for line in (lines[at] if lines else b"", data):
        try:
            tree = _bent(rng, json.loads(line))
            bent = json.dumps(tree, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        except (ValueError, RecursionError):
            continue
        if line is data:
            return bent
        return b"".join([*lines[:at], bent, b"\n", *lines[at + 1 :]])
    return insert(rng, data, _)


_ANYTHING: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 10**30, 1.5, "", "x", "\0", "\ud800", "\u2028"),
    *([], {}, [[]], [None], {"": None}, {"text": []}),
)


def _bent(rng: random.Random, tree: Any) -> Any:
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.15:
        how = rng.randrange(4)
        if how == 0:
            return rng.choice(TOKENS).decode("utf-8", "surrogatepass")
        if how == 1:
            for _ in range(rng.choice((1, 3, 60, 900))):
                tree = [tree] if rng.random() < 0.5 else {rng.choice(("content", "a", "")): tree}
            return tree
        return rng.choice(_ANYTHING)
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    key = rng.choice(list(keys))
    bent = dict(tree) if isinstance(tree, dict) else list(tree)
    if rng.random() < 0.15:
        del bent[key]
    else:
        bent[key] = _bent(rng, tree[key])
    return bent


MUTATIONS: tuple[Mutation, ...] = (
    *(insert, insert, insert_line, insert_line, replace_value, replace_value, cut, end_here, repeat, splice),
    *(swap_lines, indent, flip, line_ends, bend_json, bend_json),
)

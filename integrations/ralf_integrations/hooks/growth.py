"""How many tokens a text has, and the records by which a transcript has grown: at the most, and without a tokenizer.

`instant` asks it where a hint's bound is passed, in an interpreter that has loaded next to nothing (no `os`, `re`,
`json`, `typing`). It knows no client's records, and takes all that a message says for what a look counts.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_NO_WORDS = frozenset(
    "type id uuid parentUuid sessionId timestamp cwd version model role call_id tool_use_id signature encrypted_content"
    " usage info rate_limits source".split()
)
_ALL: "frozenset[str]" = frozenset()
_COUNTED = frozenset(("agentId", "answers", "annotations"))  # what only a result's details say


def grown(data: bytes, parse: "Callable[[bytes], dict[str, Any]]") -> int:
    """The tokens of all that a look would count in the lines of a transcript; `parse` makes an object of a line, and
    raises for what is none.
    """
    found = 0
    for line in data.split(b"\n"):
        if line.strip() and (record := parse(line)).get("isSidechain") is not True:
            texts = [text.encode("utf-8", "surrogatepass") for text in _texts(record)]
            found += estimate(b"\n".join(texts)) + len(texts)
    return found


def _texts(record: "dict[str, Any]") -> "Iterator[str]":
    message, details = record.get("message"), record.get("toolUseResult")
    if not isinstance(message, dict):
        yield from _leaves(record, _NO_WORDS)
        return
    yield from _leaves([message, record.get("userFeedback")], _NO_WORDS)
    if isinstance(details, dict) and not _COUNTED.isdisjoint(details):
        yield from _leaves(details, _ALL)


def _leaves(value: object, without: "frozenset[str]") -> "Iterator[str]":
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in without:
                yield from _leaves(item, _ALL if key == "input" else without)
        if value.get("is_error") is True:  # what a person says to it is one more text
            yield from _leaves(value.get("content"), without)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, without)
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield str(value)


_LOWER, _UPPER, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
_SPACE = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_OF_BASE64 = b"+/=_-"
_TAILS = bytes(range(0x80, 0xC0))  # all but the first byte of a character that is not ASCII


def _classes() -> bytes:
    table = bytearray(b"p" * 128 + b"n" * 128)  # signs, and what is not ASCII
    for name, members in zip(b"aA0wq", (_LOWER, _UPPER, _DIGITS, _SPACE, _OF_BASE64), strict=True):
        for member in members:
            table[member] = name
    return bytes(table)


def _only(classes: bytes) -> bytes:
    """Each of these classes as it is, all else a space."""
    return bytes(one if one in classes else 32 for one in range(256))


_CLASSES = _classes()
_RUNS = tuple(map(_only, (b"a", b"A", b"0", b"W"))), bytes(112 if one in b"pq" else 32 for one in range(256))
_UNBROKEN = _only(b"aA0q")
_ANY_UNBROKEN = bytes(120 if one in b"aA0q" else 32 for one in range(256))
_LEAST_UNBROKEN = 48  # letters, digits and signs of Base64 in a row that may be no words


def estimate(text: bytes) -> int:
    """The tokens of a text in UTF-8, by an estimate that knows of what has no words, too, at some 35 MB/s: a token for
    each 12 small letters (and a capital before them), 4 capitals, 3 digits, character that is not ASCII, run of signs
    and run of white space; of what is unbroken for long (Base64 and the like), one for each 1.4 bytes.
    """
    classes = text.translate(_CLASSES, _TAILS)
    found = _pieces(classes)
    if b"x" * _LEAST_UNBROKEN in classes.translate(_ANY_UNBROKEN):
        for run in classes.translate(_UNBROKEN).split():
            if len(run) >= _LEAST_UNBROKEN:
                found += max(0, -(-len(run) * 5 // 7) - _pieces(run))
    return found


def _pieces(classes: bytes) -> int:
    """How many pieces there are; a run that makes several is cut with a mark of no class."""
    cut = classes.replace(b"a" * 12, b"a|").replace(b"AAAA", b"A|").replace(b"000", b"0|").replace(b"ww", b"W")
    found = cut.count(b"n") + cut.count(b"AAa") - cut.count(b"Aa")  # one capital goes with what follows it
    runs, signs = _RUNS
    return found + sum(len(cut.translate(one).split()) for one in runs) + len(cut.translate(signs).split())

"""Finds and removes the words of a forget: wording, files that hold it, records, and targets."""

from __future__ import annotations

import errno
import json
import os
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from ralf.document.tree import to_tree
from ralf.errors import DamagedRouteFile, NotFound, UsageError
from ralf.model import BODY, Decision, Tombstone
from ralf.project import Project
from ralf.route import filed, history
from ralf.route.cap import tombstone
from ralf.route.load import load_state
from ralf.route.routefile import parse
from ralf.storage import journal, journal_file
from ralf.storage.files import content_of
from ralf.storage.journal import Digest, Entry, Record, understood
from ralf.text.cleaning import MARK
from ralf.text.patterns import regex

# --------------------
# Finds the words of a text however they are laid out, and removes them. Pure.
#
# White space, case, Markdown, composition of letters (NFC, NFD, full width), JSON escapes, percent encoding and HTML
# entities do not count. So a sentence is also found in a quote, in an address and in a data file. In a copy that was
# cut (`…`) the rest is found. `NOT_REACHED` lists the forms that are not found.


NOT_REACHED = ("base64", "hexadecimal", "double encoding", "other spellings", "words with others between them")
"""Forms of the words that are not found, and not purged: docs/guarantees.md."""

LEAST = 12
"""Characters that count which a piece of a text must have to be known for one."""

_CUT = "…"

_AROUND = 12  # characters, of which an escape before a word seldom has more

_PASSED_OVER = regex(r"""[\s*_`~>#|+\-"'\\]+""")

_ESCAPE = (
    r"(?<!\\)(?:((?:\\+u[0-9a-fA-F]{4})+)|\\+[nrt])"  # from its first backslash on, for there may be many
    r"|(%(?:[0-7][0-9a-fA-F]|[c-dC-D][0-9a-fA-F]%[89abAB][0-9a-fA-F]|[eE][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){2}"
    r"|[fF][0-7](?:%[89abAB][0-9a-fA-F]){3}))"  # one character of UTF-8
    r"|(&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)

_MAY_ESCAPE = regex(r"[\\%&]")

_ESCAPED = regex(_ESCAPE)

_TOKEN, _CHARACTER = regex(rf"(?s){_ESCAPE}|."), regex("(?s).")


class Wording:
    """The words of one or more texts."""

    def __init__(self, texts: Iterable[str], *, within_words: bool = False) -> None:
        """within_words: whether they count also where they are a part of other words, as a secret may be."""
        self._within_words = within_words
        keys = set()
        for text in texts:
            pieces = text.replace(MARK, _CUT).split(_CUT)
            for piece in pieces:
                for essence in (_essence(piece), _essence(_unescaped(piece))):
                    if len(essence) >= (LEAST if len(pieces) > 1 else 1):
                        keys.add(essence)
        self._keys = sorted(keys, key=lambda key: (-len(key), key))

    def __bool__(self) -> bool:
        return bool(self._keys)

    def stands_in(self, text: str) -> bool:
        """Whether the words, or what is left of them in a cut copy, stand in a text."""
        return bool(self.spans(text))

    def without(self, text: str) -> str:
        """The text with `MARK` in the words' place; the text itself where they do not stand in it."""
        spans = self.spans(text)
        made, done = "", 0
        for start, end in spans:
            made += text[done:start] + MARK
            done = end
        return made + text[done:] if spans else text

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the words stand in a text, in order."""
        spans = []
        for escapes in (False, True) if _MAY_ESCAPE.search(text) else (False,):
            if self._is_in(_essence(_unescaped(text) if escapes else text)):  # most texts need no closer look
                essence, places = _read(text, escapes=escapes)
                for start, end, begins, ends in self._found(essence):
                    first, last = places[start][0], places[end - 1][1]
                    if self._within_words or _is_apart(text, first, last, begins=begins, ends=ends):
                        spans.append((first, last))
        return _merged(spans)

    def taken_out(self, tree: Any) -> Any:
        """A plain tree without the words, keys included; the same object where they do not stand in it."""
        if isinstance(tree, str):
            return self.without(tree)
        if isinstance(tree, dict):
            made = {self.without(key): self.taken_out(inner) for key, inner in tree.items()}
            same = all(a is b for a, b in zip(made, tree, strict=False)) and len(made) == len(tree)
            return tree if same and all(made[key] is tree[key] for key in tree) else made
        if isinstance(tree, list):
            items = [self.taken_out(inner) for inner in tree]
            return tree if all(one is other for one, other in zip(items, tree, strict=True)) else items
        return tree

    def _is_in(self, essence: str) -> bool:
        return any(key in essence for key in self._keys) or (_CUT in essence and any(self._cut(essence)))

    def _found(self, essence: str) -> Iterator[tuple[int, int, bool, bool]]:
        """Where the words stand, and whether their first and their last one are among them."""
        for key in self._keys:
            place = essence.find(key)
            while place >= 0:
                yield place, place + len(key), True, True
                place = essence.find(key, place + 1)
        yield from self._cut(essence)

    def _cut(self, essence: str) -> Iterator[tuple[int, int, bool, bool]]:
        """Where the beginning of a text stands before the sign of a cut, or its end behind one."""
        start = 0
        for piece in essence.split(_CUT):
            end = start + len(piece)
            for key in self._keys if len(piece) >= LEAST else ():
                head = _head(piece, key) if end < len(essence) else 0
                tail = _tail(piece, key) if start else 0
                if head:
                    yield end - head, end, True, False
                if tail:
                    yield start, start + tail, False, True
            start = end + len(_CUT)


def _head(piece: str, key: str) -> int:
    """How many of a key's first characters, `LEAST` or more but not all, end a piece: 0 for none.

    Only where the first `LEAST` of them stand can they begin; to try each length takes the square of the key's.
    """
    place = piece.find(key[:LEAST], max(0, len(piece) - len(key) + 1))
    while place >= 0 and not key.startswith(piece[place:]):
        place = piece.find(key[:LEAST], place + 1)
    return len(piece) - place if place >= 0 and len(key) > LEAST else 0


def _tail(piece: str, key: str) -> int:
    """How many of a key's last characters begin a piece: as `_head`."""
    place = piece.rfind(key[-LEAST:], 0, len(key) - 1)
    while place >= 0 and not key.endswith(piece[: place + LEAST]):
        place = piece.rfind(key[-LEAST:], 0, place + LEAST - 1)
    return place + LEAST if place >= 0 and len(key) > LEAST else 0


def is_telling(text: str, words: int = 3) -> bool:
    """Whether a text is long enough to be looked for everywhere: a word or two stand in too many places."""
    return len(text.split()) >= words and weight(text) >= LEAST


def weight(text: str) -> int:
    """How many characters of a text count."""
    return len(_essence(text))


def _essence(text: str) -> str:
    folded = text.casefold()
    if not folded.isascii():  # the sign of a cut stays one
        folded = _CUT.join(unicodedata.normalize("NFKD", part) for part in folded.split(_CUT))
    return _PASSED_OVER.sub("", folded)


def _read(text: str, *, escapes: bool) -> tuple[str, list[tuple[int, int]]]:
    """The characters of a text that count, and the span in it of each.

    escapes  whether `\\n`, `%20` and `&eacute;` are read as what they stand for."""
    essence: list[str] = []
    places: list[tuple[int, int]] = []
    known: dict[str, str] = {}  # a text has few different characters
    for match in (_TOKEN if escapes else _CHARACTER).finditer(text):
        if (counts := known.get(match[0])) is None:
            counts = known[match[0]] = _essence(_unescaped(match[0]) if escapes else match[0])
        essence += counts
        places += [match.span()] * len(counts)
    return "".join(essence), places


def _is_apart(text: str, first: int, last: int, *, begins: bool, ends: bool) -> bool:
    """Whether words do not go on beyond a span of a text, at its beginning and at its end."""
    before, after = _unescaped(text[max(0, first - _AROUND) : first])[-1:], text[last : last + 1]
    inside = begins and before.isalnum() and text[first].isalnum()
    return not inside and not (ends and after.isalnum() and text[last - 1].isalnum())


def _unescaped(text: str) -> str:
    """The text with escapes as what they stand for: `\\n` and `\\u00e9` however many times they were escaped, `%20`,
    `&eacute;`.
    """
    return _ESCAPED.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    if escape[1]:
        return str(json.loads('"' + re.sub(r"\\+", r"\\", escape[1]) + '"'))
    if escape[2]:
        return bytes.fromhex(escape[2].replace("%", "")).decode("utf-8", "replace")
    return unescape(escape[3]) if escape[3] else "\n"


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    made: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if made and start <= made[-1][1]:
            made[-1] = made[-1][0], max(made[-1][1], end)
        else:
            made.append((start, end))
    return made


# --------------------
# Finds the words in files, compressed ones too.


_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EINVAL)


def remains(folder: Path, wording: Wording) -> list[Path]:
    """The files below `folder` in which the words stand, sorted; links are not followed."""
    found = []
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not Path(top, name).is_symlink()]
        found += [path for name in files if holds(path := Path(top, name), wording)]
    return sorted(found)


def holds(path: Path, wording: Wording) -> bool:
    """Whether the words stand in a file; one that is gone, or none, holds nothing. One that cannot be read, or is too
    large for that, may: nobody can say that they are gone.
    """
    try:
        content = content_of(path)
    except OSError as error:
        return error.errno not in _NO_FILE
    if not any(_stands_in(part, wording) for part in (content, *unpacked(content))):
        return False
    return path.suffix != ".md" or _is_in_route_file(path, content, wording)


def _is_in_route_file(path: Path, content: bytes, wording: Wording) -> bool:
    """Whether the words stand in a value of a route file; in two that follow each other they only seem to."""
    try:
        tree = to_tree(filed.with_own_lines(parse(content, path)))
        return wording.taken_out(tree) is not tree
    except DamagedRouteFile:
        return True


def unpacked(content: bytes) -> Iterator[bytes]:
    """What was compressed in a file's bytes, nothing for a plain one: of a damaged one, what can be had."""
    if content[:2] == b"\x1f\x8b":
        yield journal_file.unpacked(content)
    elif content[:1] == b"\x78":
        yield journal_file.unpacked(content, zlib.MAX_WBITS)


def _stands_in(content: bytes, wording: Wording) -> bool:
    if not wording.stands_in(content.decode("utf-8", "replace")):
        return False
    try:
        trees = [json.loads(line) for line in content.splitlines()]
    except ValueError:
        return True  # they may stand over several lines
    return any(wording.taken_out(tree) is not tree for tree in trees)  # else at the border of two values


# --------------------
# Purges records: removes words, replaces digests of blobs, keeps the names of histories. Pure.


_OF_A_DECISION = ("decision", "rationale", "alternatives")


@dataclass(frozen=True, slots=True)
class Item:
    """What is to be forgotten in the records of its route, however short its words are.

    label      DEC-003 or cp-002; "" where a text is forgotten wherever it stands
    revisions  of the records that are the checkpoint's own
    """

    label: str = ""
    revisions: frozenset[int] = frozenset()

    @property
    def number(self) -> int | None:
        """The number of a checkpoint's section."""
        digits = self.label.removeprefix("cp-")
        return int(digits) if digits.isdecimal() and digits != self.label else None

    def without(self, payload: Mapping[str, Any], revision: int) -> dict[str, Any]:
        """A payload without the item's own words."""
        made: dict[str, Any] = dict(payload)
        if not self.label:
            return made
        if revision in self.revisions or self.label in (payload.get("refines"), *payload.get("checkpoints", ())):
            made |= {key: MARK for key in ("title", "text") if payload.get(key)}
            made |= {key: [] for key in ("key_events", "entries", "taken_back") if payload.get(key)}
        if "changes" in payload:
            made["changes"] = [self._change(change) for change in payload["changes"]]
        return {key: self._inner(inner) for key, inner in made.items()}

    def _inner(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self._inner(inner) for inner in tree]
        if not isinstance(tree, dict):
            return tree
        tree = {key: self._inner(inner) for key, inner in tree.items()}
        if self._is_decision(tree):
            gone = {key: [] if isinstance(tree[key], list) else MARK for key in _OF_A_DECISION if tree.get(key)}
            return {**tree, **gone, "status": "dropped"}
        if "also" in tree and self.is_changed_by(tree):
            return {**tree, "also": [MARK]}
        if self.number is not None and tree.get("number") == self.number and "text" in tree:
            return {**tree, "title": MARK, "text": MARK}
        return tree

    def _is_decision(self, tree: Mapping[str, Any]) -> bool:
        return str(tree.get("id", "")).casefold() == self.label.casefold() and any(
            key in tree for key in _OF_A_DECISION
        )

    def _change(self, change: Mapping[str, Any]) -> dict[str, Any]:
        """A change by hand, of a field of the item."""
        if self.is_changed_by(change) and change.get("value"):
            return {**change, "value": [] if isinstance(change["value"], list) else MARK}
        return dict(change)

    def is_changed_by(self, change: Mapping[str, Any]) -> bool:
        """Whether a change by hand is one of a field of the item."""
        at = [str(key) for key in change.get("at", ())]
        decided = at[:2] == ["decisions", self.label] and at[2:3] and at[2] in _OF_A_DECISION
        written = at[:2] == [BODY, "sections"] and at[2:3] == [str(self.number)] and at[-1] in ("title", "text")
        return bool(decided or written)


@dataclass(slots=True)
class Purge:
    """Purges the records of one stream, oldest first: what `Replace.replace` is told to do. `changed` counts them."""

    stream: str
    wording: Wording
    item: Item = field(default_factory=Item)
    digests: Mapping[Digest, Digest] = field(default_factory=dict)
    changed: int = 0

    def __call__(self, entry: Entry) -> bytes:
        """The bytes that are to stand in a record's place: its own, where nothing of it is to be forgotten."""
        if not self.stream.startswith(journal.stream_of("")):
            return self._other(entry)
        record = journal.parsed(self.stream, entry)
        line = json.loads(entry.record)
        with journal.understood(self.stream.removeprefix(journal.stream_of("")), record):
            is_known = record.version <= journal.VERSION
            own = self.item.without(line["payload"], record.revision) if is_known else line["payload"]
            payload = self._purged(own)
        made = line | {"payload": payload, "render": ""}  # the file of that shows the words, and is none of ours now
        made |= {"purged": True} if payload != line["payload"] else {}
        made |= {"save": self._settled(line["save"])} if line.get("save") else {}
        if made == line:
            return entry.record
        self.changed += payload != line["payload"] or made.get("save") != line.get("save")
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def _other(self, entry: Entry) -> bytes:
        """A record of a stream that is no route's."""
        tree = json.loads(entry.record)
        made = self.purged(tree)
        if made == tree:
            return entry.record
        self.changed += 1
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def purged(self, tree: Mapping[str, Any], revision: int = 0) -> Any:
        """A payload, or a whole context as a tree, without what is to be forgotten."""
        return self._purged(self.item.without(tree, revision))

    def _purged(self, tree: Mapping[str, Any]) -> Any:
        return self._settled(self.wording.taken_out(tree))

    def _settled(self, tree: Any) -> Any:
        """A tree in which blobs go by the digests that they have now, and no decision without words is in force."""
        if isinstance(tree, str):
            return self.digests.get(tree, tree)
        if isinstance(tree, list):
            return [self._settled(inner) for inner in tree]
        if not isinstance(tree, dict):
            return tree
        tree = {key: self._settled(inner) for key, inner in tree.items()}
        return {**tree, "status": "dropped"} if tree.get("decision") == MARK else tree


def purged_evidence(content: bytes, wording: Wording) -> bytes:
    """A blob without the words: each of its lines is JSON, or else text."""
    return b"".join(_line(line, wording.taken_out) for line in content.splitlines(keepends=True))


def _line(line: bytes, taken_out: Callable[[Any], Any]) -> bytes:
    try:
        tree = json.loads(line)
    except ValueError:
        text = line.decode("utf-8", "surrogateescape")
        return str(taken_out(text)).encode("utf-8", "surrogateescape")
    made = taken_out(tree)
    if made is tree:
        return line
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


# --------------------
# The target: the words of a decision, of a checkpoint's section, or a text that a person names.


LEAST_TEXT = 4
"""Characters that count, which a text has that is forgotten wherever it stands."""

_LABEL = regex(r"^[-> ]*(?:\*\*[^*\n]{1,40}:\*\* *)?")


class Target(NamedTuple):
    """The target of a forget.

    item      its place in its route's records
    wording   its words, wherever they stand
    stones    what keeps it from being extracted again
    evidence  blobs that go with it
    """

    item: Item
    wording: Wording
    stones: tuple[Tombstone, ...] = ()
    evidence: frozenset[Digest] = frozenset()


def of_text(route: str, text: str) -> Target:
    """A text, whatever it is part of; UsageError where it is so short that it stands everywhere."""
    if weight(text) < LEAST_TEXT:
        what = f"a text to be forgotten has at least {LEAST_TEXT} letters or digits: it goes wherever it stands"
        raise UsageError(route, what, "name more of it")
    return Target(Item(), Wording([text], within_words=True))


def of_item(project: Project, route: str, label: str) -> Target:
    """The words of a decision or a checkpoint's section, in all versions of it that there have been.

    NotFound where the route has none of this label. DamagedJournal.
    """
    records = list(history.records(project, route))
    records = [each for each in records if not each[1].foreign] or records  # a label is one of ours, where any are
    state = load_state(project, route)
    present = to_tree(state.context) if state is not None else {}
    with understood(route):
        trees = [tree for payload in (*(record.payload for _, record in records), present) for tree in _dicts(payload)]
        found = _section(label, records, trees) if label.startswith("cp-") else _decision(label, trees)
    if found is None:
        raise NotFound(route, f"has no {label}", f"ralf context show {route}")
    return found


def _decision(label: str, trees: Iterable[Mapping[str, Any]]) -> Target | None:
    known = False
    said: dict[str, Decision] = {}
    others: set[str] = set()
    signed: dict[str, Any] = {}
    for tree in trees:
        if str(tree.get("id", "")).casefold() == label.casefold():
            known = known or "decision" in tree or "said" in tree
            text = str(tree.get("decision", ""))
            if text and text != MARK:
                said.setdefault(text, Decision(str(tree["id"]), str(tree.get("kind", "decision")), decision=text))
                if tree.get("clone"):
                    signed = {key: str(tree.get(key, "")) for key in ("timestamp", "clone")}
            others |= {str(tree.get("rationale", "")), *map(str, tree.get("alternatives", ()))}
        at = [str(key) for key in tree.get("at", ())]
        if at == ["decisions", label, "decision"]:
            for text in filter(None, _values(tree)):
                said.setdefault(text, Decision(label, decision=text))
        elif at[:2] == ["decisions", label] and len(at) > 2:
            others |= set(_values(tree))
    if not known:
        return None
    words = [*said, *filter(is_telling, others - {MARK})]
    newest = [replace(item, **signed) for item in list(said.values())[-1:]]
    return Target(Item(label), Wording(words), tuple(map(tombstone, newest)))


def _section(label: str, records: Iterable[tuple[str, Record]], trees: Iterable[Mapping[str, Any]]) -> Target | None:
    item = Item(label)
    revisions, digests = set(), set()
    texts: list[str] = []
    for name, record in records:
        payload = record.payload
        if name == label:
            revisions.add(record.revision)
            digests.add(str(payload.get("evidence", "")))
            said = [tree for tree in payload.get("entries", ()) if isinstance(tree, Mapping)]
            texts += [str(tree.get(key, "")) for tree in said for key in ("text", "about", "output")]
        if name == label or label in (payload.get("refines"), *payload.get("checkpoints", ())):
            texts += [str(payload.get("title", "")), str(payload.get("text", ""))]
        texts += [text for tree in _dicts(payload) if item.is_changed_by(tree) for text in _values(tree)]
    sections = [
        tree for tree in trees if item.number is not None and tree.get("number") == item.number and "text" in tree
    ]
    if not revisions and not sections:
        return None
    texts += [str(tree.get(key, "")) for tree in sections for key in ("title", "text")]
    texts = [text for text in texts if text != MARK]
    lines = [line for text in texts for line in text.split("\n") if is_telling(line) and not line.startswith("**")]
    return Target(
        Item(label, frozenset(revisions)),
        Wording([*lines, *(_LABEL.sub("", line) for line in lines)]),  # without `- **Asked:** `, too
        (),
        frozenset(digests),
    )


def _dicts(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping in a tree."""
    if isinstance(tree, Mapping):
        yield tree
        for inner in tree.values():
            yield from _dicts(inner)
    elif isinstance(tree, (list, tuple)):
        for inner in tree:
            yield from _dicts(inner)


def _values(change: Mapping[str, Any]) -> list[str]:
    """What a change by hand puts in a place, or what else was said of it (`conflicts`)."""
    value = change.get("value", change.get("also", ()))
    values = value if isinstance(value, (list, tuple)) else [value]
    return [inner for inner in values if isinstance(inner, str)]

"""What a route file lists below its history, as Markdown lines and back: facts, where decisions were said, and the
decisions for which the front matter has no room.

Every line begins with `- `, `> `, `**` or two spaces. A value that would be read as something else stands in double
quotes; an item for which its form has no place stands in braces, with all its fields. So what is read is what was
written. Lines that are none of these are whoever's added them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from json import JSONDecodeError, JSONDecoder
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ralf.format import places
from ralf.format.codec import BadTree, ById, flow, from_tree, is_exact, quoted, remember, to_tree
from ralf.model import (
    CommandFact,
    CommitFact,
    Decision,
    ErrorFact,
    Facts,
    PathFact,
    RequestFact,
    Source,
    TestFact,
)
from ralf.text.patterns import regex

T = TypeVar("T")

MOST = 5_000
"""Items of one kind that are read, as of a list in the front matter."""

_JSON = JSONDecoder()

_WIDTH = 110  # characters of a line of names, or of paths

_UNCLEAR = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_UNCLEAR_LINES = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")

_FORBIDDEN = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_DID = regex(r"[a-z]+(?:-[a-z]+)*\Z")

_COUNT = regex(r"(?:0|[1-9][0-9]{0,15})\Z")


class Listed(NamedTuple):
    """What stands below the history.

    facts      of the route
    sources    where decisions were said
    decisions  the oldest ones, for which the front matter has no room
    words      long texts of the active work, by their fields' names
    """

    facts: Facts = Facts()
    sources: places.Told = MappingProxyType({})
    decisions: tuple[Decision, ...] = ()
    words: Mapping[str, Any] = MappingProxyType({})


WORDS = {
    "last_request": "Asked last",
    "last_statement": "The agent said last",
    "last_output": "Seen last, and not answered",
}
"""Of each long text of the active work its heading: as a quotation it reads better than in the front matter. Earlier
versions had the last request there, too.
"""


# ---- words ----


def _is_plain(text: str) -> bool:
    """Whether a text can stand as it is, on one line and behind any mark."""
    return bool(text) and text == text.strip() and text[0] not in '"{' and not _UNCLEAR.search(text)


def _word(text: str) -> str:
    return text if _is_plain(text) else quoted(text)


def _listed_word(text: str) -> str:
    """A text among others, between commas."""
    return text if _is_plain(text) and "," not in text else quoted(text)


def _unquoted(text: str) -> str | None:
    """What was written by `_word`; None for what was not."""
    if not text.startswith('"'):
        return text if _is_plain(text) else None
    words = _words(text)
    return words[0] if words and len(words) == 1 else None


def _words(text: str) -> list[str] | None:
    """The words of a line, between commas; None for what is no such line."""
    found, place = [], 0
    while place < len(text):
        if text[place] == '"':
            try:
                word, place = _JSON.raw_decode(text, place)
            except JSONDecodeError:
                return None
            if _FORBIDDEN.search(word):
                return None
        else:
            end = text.find(",", place)
            word, place = text[place : end if end >= 0 else None].strip(), end if end >= 0 else len(text)
            if not _is_plain(word):
                return None
        found.append(word)
        if text[place : place + 1] not in ("", ","):
            return None
        place += 1
        while text[place : place + 1] == " ":
            place += 1
    return found


def _wrapped(head: str, words: Sequence[str]) -> Iterator[str]:
    """Words between commas, as many on a line as fit, each line behind the same head."""
    line = ""
    for word in map(_listed_word, words):
        if line and len(line) + 2 + len(word) > _WIDTH:
            yield line
            line = ""
        line = f"{line}, {word}" if line else f"{head}{word}"
    if line:
        yield line


def _braced(item: Any) -> str:
    """An item with all its fields."""
    return f"- {flow(to_tree(item))}"


def _from_braces(cls: type[T], text: str) -> T | None:
    from ralf.format import guarded_yaml  # a write reads none

    try:
        return from_tree(cls, guarded_yaml.load(f"item: {text}\n")["item"])
    except (guarded_yaml.BadYaml, BadTree):
        return None


# ---- one kind of item ----


class _Item(NamedTuple):
    """Some lines that belong together: what the first one says behind its mark, and the others, without indent."""

    head: str
    more: list[str]


def _items(lines: Sequence[str]) -> Iterator[_Item | str]:
    """The items of a part; a line that belongs to none by itself. An empty line within an item is one of its text."""
    current: _Item | None = None
    blank = 0
    for line in lines:
        if line.startswith("- "):
            if current:
                yield current
            current, blank = _Item(line[2:], []), 0
        elif not line.strip():
            blank += 1
        elif line.startswith("  ") and current is not None:
            current.more.extend([""] * blank)
            current.more.append(line[2:])
            blank = 0
        else:
            if current:
                yield current
            current, blank = None, 0
            yield line
    if current:
        yield current


def _fields(item: _Item, names: Sequence[str]) -> tuple[str, dict[str, list[str]]] | None:
    """The text of an item and its named lines; None where it is none of these."""
    head = _unquoted(item.head)
    found: dict[str, list[str]] = {}
    for line in item.more:
        name, colon, rest = line.partition(": ")
        value = _unquoted(rest) if colon and name in names else None
        if value is None:
            return None
        found.setdefault(name, []).append(value)
    return None if head is None else (head, found)


def _paths(facts: Sequence[PathFact]) -> Iterator[str]:
    run: list[str] = []
    did: tuple[str, ...] = ()
    for fact in facts:
        plain = fact.did and not fact.last and not fact.extra and all(map(_DID.match, fact.did))
        if run and (not plain or fact.did != did):
            yield from _wrapped(f"- {', '.join(did)}: ", run)
            run = []
        if plain:
            did = fact.did
            run.append(fact.path)
        else:
            yield _braced(fact)
    if run:
        yield from _wrapped(f"- {', '.join(did)}: ", run)


def _read_paths(item: _Item) -> Sequence[PathFact] | None:
    head, colon, rest = item.head.partition(": ")
    did = tuple(head.split(", "))
    paths = _words(rest)
    if item.more or not colon or not paths or not all(map(_DID.match, did)):
        return None
    return [PathFact(path, did) for path in paths]


def _command(fact: CommandFact) -> list[str]:
    failures = fact.runs if fact.status == "failed" else 0
    told = [
        fact.status,
        f"exit {fact.exit}" if fact.exit is not None else "",
        f"{fact.runs} runs" if fact.runs != 1 else "",
        f"{fact.failures} failed" if fact.failures != failures else "",
        f"{fact.omitted} characters omitted" if fact.omitted else "",
    ]
    numbers = (fact.runs, fact.failures, fact.omitted, fact.exit or 0)
    lines = fact.command.split("\n")
    multiple = len(lines) > 1 and all(lines[n].strip() for n in (0, -1)) and not _UNCLEAR_LINES.search(fact.command)
    multiple = multiple and _is_plain(lines[0]) and all(line.strip() or not line for line in lines)
    if fact.last or fact.extra or not _DID.match(fact.status) or min(numbers) < 0:
        return [_braced(fact)]
    head = f"- {', '.join(filter(None, told))}: "
    return [head + lines[0], *_indented(lines[1:])] if multiple else [head + _word(fact.command)]


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _read_command(item: _Item) -> Sequence[CommandFact] | None:
    head, colon, command = item.head.partition(": ")
    status, *told = head.split(", ")
    numbers: dict[str, int] = {}
    for one in told:
        for name, before, behind in _NUMBERS:
            digits = one.removeprefix(before).removesuffix(behind)
            if one == f"{before}{digits}{behind}" and _COUNT.match(digits) and name not in numbers:
                numbers[name] = int(digits)
                break
        else:
            return None
    first = _unquoted(command) if colon and _DID.match(status) else None
    if first is None:
        return None
    failures = numbers.get("runs", 1) if status == "failed" else 0
    text = "\n".join([first, *(_FORBIDDEN.sub("", line) for line in item.more)])
    return [CommandFact(text, status, **{"failures": failures, **numbers})]  # type: ignore[arg-type]


_NUMBERS = (
    ("exit", "exit ", ""),
    ("runs", "", " runs"),
    ("failures", "", " failed"),
    ("omitted", "", " characters omitted"),
)


def _error(fact: ErrorFact) -> list[str]:
    if fact.last or fact.extra:
        return [_braced(fact)]
    more = [f"  {name}: {_word(text)}" for name, text in (("from", fact.command), ("fixed by", fact.fixed_by)) if text]
    return [f"- {_word(fact.error)}", *more]


def _read_error(item: _Item) -> Sequence[ErrorFact] | None:
    found = _fields(item, ("from", "fixed by"))
    if found is None or any(len(texts) > 1 for texts in found[1].values()):
        return None
    command, fixed_by = (found[1].get(name, [""])[0] for name in ("from", "fixed by"))
    return [ErrorFact(found[0], command, fixed_by)]


def _test(fact: TestFact) -> list[str]:
    if fact.last or fact.extra:
        return [_braced(fact)]
    return [f"- {_word(fact.result)}", *([f"  from: {_word(fact.command)}"] if fact.command else [])]


def _read_test(item: _Item) -> Sequence[TestFact] | None:
    found = _fields(item, ("from",))
    if found is None or len(found[1].get("from", [""])) > 1:
        return None
    return [TestFact(found[1].get("from", [""])[0], found[0])]


def _commit(fact: CommitFact) -> list[str]:
    if fact.last or fact.extra or not places.is_label(fact.commit):
        return [_braced(fact)]
    return [f"- {fact.commit} {_word(fact.message)}" if fact.message else f"- {fact.commit}"]


def _read_commit(item: _Item) -> Sequence[CommitFact] | None:
    commit, _, rest = item.head.partition(" ")
    message = _unquoted(rest) if rest else ""
    return None if item.more or message is None or not places.is_label(commit) else [CommitFact(commit, message)]


def _request(fact: RequestFact) -> list[str]:
    text = fact.request
    if fact.last or fact.extra or min(fact.omitted, fact.line) < 0 or not text or _UNCLEAR_LINES.search(text):
        return [_braced(fact)]
    told = [
        fact.kind if not fact.kind or fact.kind in _REQUESTS else None,
        f"line {fact.line}" if fact.line else "",
        f"{fact.omitted} characters omitted" if fact.omitted else "",
        _origin(fact.origin),
    ]
    if None in told:
        return [_braced(fact)]
    head = f"- {', '.join(filter(None, told))}:"
    return ["", head, *_quote(text)] if any(told) else ["", *_quote(text)]


_REQUESTS = frozenset("queued answer plan refused command program".split())  # how one came that was not just typed


def _quote(text: str) -> list[str]:
    return [f"> {line}" if line else ">" for line in text.split("\n")]


def _said(text: str) -> list[str]:
    return [f"- {quoted(text)}"] if _UNCLEAR_LINES.search(text) else _quote(text)


def _read_said(lines: Sequence[str], loose: list[str]) -> str:
    """The text of a quotation; what else stands there is loose."""
    block = [line for line in lines if line.startswith(">")]
    rest = [line for line in lines if line.strip() and not line.startswith(">")]
    if not block and rest and rest[0].startswith('- "') and (text := _unquoted(rest[0][2:])) is not None:
        loose += rest[1:]
        return text
    loose += rest
    return _quotation(block)


def _quotation(block: Iterable[str]) -> str:
    """The text of the lines of a quotation, without characters that no file of ours holds."""
    return _FORBIDDEN.sub("", "\n".join(line[1:].removeprefix(" ") for line in block))


def _origin(origin: str) -> str | None:
    return f"from {origin}" if _DID.match(origin) else "" if not origin else None


def _read_requests(lines: Sequence[str]) -> Iterator[RequestFact | str]:
    """Requests as quotations: each a block, behind a line that says what is known of it."""
    head, block, told = "", list[str](), dict[str, Any]()
    for line in [*lines, ""]:
        if line.startswith(">"):
            block.append(line)
            continue
        if block:
            yield RequestFact(_quotation(block), **told)
            head, told, block = "", {}, []
        if head:  # of no quotation
            yield head
            head, told = "", {}
        if line.startswith("- {"):
            yield _from_braces(RequestFact, line[2:]) or line
        elif (found := _told_of_request(line)) is not None:
            head, told = line, found
        elif line.strip():
            yield line


def _told_of_request(line: str) -> dict[str, Any] | None:
    if not (line.startswith("- ") and line.endswith(":")):
        return None
    told: dict[str, Any] = {}
    for one in line[2:-1].split(", "):
        digits = one.removesuffix(" characters omitted")
        if digits != one and _COUNT.match(digits):
            told["omitted"] = int(digits)
        elif one.startswith("line ") and _COUNT.match(one[5:]):
            told["line"] = int(one[5:])
        elif one in _REQUESTS:
            told["kind"] = one
        elif one.startswith("from ") and _DID.match(one[5:]):
            told["origin"] = one[5:]
        else:
            return None
    return told


_WORDED = {"id", "decision", "rationale", "alternatives"}
"""The fields of a decision that stand in words of people."""


def decision_lines(decision: Decision) -> list[str]:
    """A decision in the words of people, and in braces what else is known of it."""
    if not places.is_label(decision.id) or set(decision.extra) & _WORDED:
        return [_braced(decision)]
    rest = {key: inner for key, inner in to_tree(decision).items() if key not in _WORDED}
    more = [f"  because: {_word(decision.rationale)}"] if decision.rationale else []
    more += [f"  rejected: {_word(option)}" for option in decision.alternatives]
    more += [f"  noted: {_word(flow(rest)[1:-1])}"] if rest else []
    return [f"- {decision.id}: {_word(decision.decision)}", *more]


def _read_decision(item: _Item) -> Sequence[Decision] | None:
    label, _, text = item.head.partition(": ")
    found = _fields(_Item(text, item.more), ("because", "rejected", "noted"))
    if found is None or not places.is_label(label):
        return None
    words = found[1]
    if len(words.get("because", ())) > 1 or len(words.get("noted", ())) > 1:
        return None
    noted = _from_braces(Decision, f"{{{words['noted'][0]}}}") if "noted" in words else Decision()
    if noted is None:
        return None
    options, because = tuple(words.get("rejected", ())), words.get("because", [""])[0]
    return [replace(noted, id=label, decision=found[0], rationale=because, alternatives=options)]


# ---- all of it ----


def _joined(lines_of: Callable[[Any], list[str]]) -> ById[str]:
    return ById(lambda item: "\n".join(lines_of(item)))


_PARTS: tuple[tuple[str, str, ById[str] | None], ...] = (
    ("requests", "Requests", _joined(_request)),
    ("paths", "Files", None),
    ("commands", "Commands", _joined(_command)),
    ("errors", "Errors", _joined(_error)),
    ("tests", "Tests", _joined(_test)),
    ("commits", "Commits", _joined(_commit)),
    ("names", "Names", None),
)
"""Of each kind of fact its key, its heading, and what makes its lines, each once."""

_DECISIONS, _SOURCES, _OTHER = "Older decisions", "Where decisions were said", "Other facts"


def _decision_text(decision: Decision) -> str:
    lines = decision_lines(decision)
    if is_exact(to_tree(decision)):
        remember(_known, (lines[0][2:], *(line[2:] for line in lines[1:])), decision)
    return "\n".join(lines)


_decision_texts = ById(_decision_text)

_known: dict[tuple[str, ...], Decision] = {}
"""Decisions by their lines: a person's save makes each of many writers read all of them again."""


def _known_decision(item: _Item) -> Sequence[Decision] | None:
    """What the lines of a decision say: the object that was written as these lines, or made of them, before."""
    lines = (item.head, *item.more)
    if lines in _known:
        return [_known[lines]]
    made = _read_decision(item)
    return made and [remember(_known, lines, *made)]


_READERS: dict[str, tuple[type, Callable[[_Item], Sequence[Any] | None]]] = {
    "Files": (PathFact, _read_paths),
    "Commands": (CommandFact, _read_command),
    "Errors": (ErrorFact, _read_error),
    "Tests": (TestFact, _read_test),
    "Commits": (CommitFact, _read_commit),
    _DECISIONS: (Decision, _known_decision),
}


def lines(listed: Listed) -> list[str]:
    """What is listed, as pieces that a line break joins."""
    found: list[str] = []

    def part(heading: str, pieces: Sequence[str]) -> None:
        if pieces:
            found.extend(["", f"**{heading}**", *pieces])

    if listed.decisions:
        found += ["", f"## {_DECISIONS}", *_decision_texts.of(listed.decisions)]
    older = len(found)
    for key, heading in WORDS.items():
        if said := listed.words.get(key, ""):
            part(heading, _said(said))
    for key, heading, made in _PARTS:
        items = getattr(listed.facts, key)
        if made is not None:
            part(heading, made.of(items))
        else:
            part(heading, [*(_paths(items) if key == "paths" else _wrapped("- ", items))])
    part(_OTHER, [f"- {flow(dict(listed.facts.extra))}"] if listed.facts.extra else [])
    part(_SOURCES, [*places.lines(listed.sources)])
    return [*found[:older], "", "## Facts", *found[older:]][1:] if len(found) > older else found[1:]


class TooMuch(ValueError):
    """More items of a kind than are read."""


_TOO_MUCH = f"a list of more than {MOST:,} items"


def _few(items: Iterable[T]) -> Iterator[T]:
    """The items, as long as there are not too many: reading one in braces takes its time. TooMuch."""
    for number, item in enumerate(items, start=1):
        if number > MOST:
            raise TooMuch(_TOO_MUCH)
        yield item


def read(text_lines: Sequence[str]) -> tuple[Listed, list[str]]:
    """What lines list, and those that say nothing that `lines` writes. TooMuch."""
    parts: dict[str, list[str]] = {}
    loose: list[str] = []
    current = loose
    names = (*(name for _, name, _ in _PARTS), *WORDS.values(), _SOURCES, _OTHER)
    headings = {f"**{name}**": name for name in names}
    headings |= {f"## {_DECISIONS}": _DECISIONS, "## Facts": ""}
    for line in text_lines:
        name = headings.get(line.rstrip())
        if name is not None:
            current = parts.setdefault(name, []) if name else loose
        else:  # some editors write other bullets than we do
            current.append(f"- {line[2:]}" if line.startswith(("* ", "+ ")) and current is not loose else line)
    found: dict[str, list[Any]] = {}
    for name, (cls, reader) in _READERS.items():
        found[name] = _read_part(parts.get(name, ()), cls, reader, loose)
    requests = [*_few(_read_requests(parts.get("Requests", ())))]
    loose += [one for one in requests if isinstance(one, str)]
    found["Requests"] = [one for one in requests if not isinstance(one, str)]
    known, told, extra = list[str](), dict[str, list[Source]](), dict[str, Any]()
    for item in _few(_items(parts.get("Names", ()))):
        words = _words(item.head) if isinstance(item, _Item) and not item.more else None
        known += words or ()
        loose += _as_lines(item) if words is None else ()
    for item in _few(_items(parts.get(_SOURCES, ()))):
        said = places.read(item.head) if isinstance(item, _Item) and not item.more else None
        loose += _as_lines(item) if said is None else ()
        for label, place in said or ():
            told.setdefault(label, []).append(place)
    for item in _few(_items(parts.get(_OTHER, ()))):
        whole = _from_braces(Facts, item.head) if isinstance(item, _Item) and not item.more else None
        loose += _as_lines(item) if whole is None or whole.extra == {} else ()
        extra.update(whole.extra if whole is not None else ())
    found["Names"] = known
    for items in (*found.values(), *told.values()):
        if len(items) > MOST:
            raise TooMuch(_TOO_MUCH)
    kinds: Any = {key: tuple(found[heading]) for key, heading, _ in _PARTS}
    last = {key: _read_said(parts.get(heading, ()), loose) for key, heading in WORDS.items()}
    facts = Facts(**kinds, extra=extra)
    last = {key: text for key, text in last.items() if text}
    sources = {label: tuple(said) for label, said in told.items()}
    listed = Listed(facts, sources, tuple(found[_DECISIONS]), last)
    return listed, [one for one in loose if one.strip()]


def _read_part(
    part: Sequence[str], cls: type, reader: Callable[[_Item], Sequence[Any] | None], loose: list[str]
) -> list[Any]:
    found: list[Any] = []
    for item in _few(_items(part)):
        made: Sequence[Any] | None = None
        if isinstance(item, _Item):
            if item.head.startswith("{") and not item.more:
                whole = _from_braces(cls, item.head)
                made = None if whole is None else [whole]
            else:
                made = reader(item)
        if made is None:
            loose += _as_lines(item)
        else:
            found += made
    return found


def _as_lines(item: _Item | str) -> list[str]:
    return [item] if isinstance(item, str) else [f"- {item.head}", *_indented(item.more)]

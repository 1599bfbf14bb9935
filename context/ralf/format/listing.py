"""What a route file lists below its history: decisions for which the front matter has no room, facts, and where
decisions were said. Every line begins with `- `, `> `, `**` or two spaces, so that none of it is structure of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ralf.format import places
from ralf.format.codec import ById, flow
from ralf.model import CommandFact, CommitFact, Decision, ErrorFact, Facts, PathFact, RequestFact, TestFact
from ralf.text.cleaning import one_line, prose
from ralf.text.patterns import regex

_WIDTH = 110  # characters of a line of names, or of paths


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


OLDER = "## Older decisions"

_FACTS = "## Facts"

_WORDS = {"last_statement": "The agent said last", "last_output": "Seen last, and not answered"}


def lines(listed: Listed) -> list[str]:
    """What is listed, as pieces that a line break joins."""
    found: list[str] = []
    if listed.decisions:
        found += ["", OLDER, *decision_lines.of(listed.decisions)]
    facts = [*_parts(listed)]
    return [*found, *(["", _FACTS, *facts] if facts else ())][1:]


def _parts(listed: Listed) -> Iterator[str]:
    """The facts, part by part below their headings."""
    facts = listed.facts
    texts = ((heading, _quote(text)) for key, heading in _WORDS.items() if (text := listed.words.get(key)))
    parts: Iterable[tuple[str, Sequence[str]]] = (
        *texts,
        ("Requests", _requests.of(facts.requests)),
        ("Files", [*_paths(facts.paths)]),
        ("Commands", _commands.of(facts.commands)),
        ("Errors", _errors.of(facts.errors)),
        ("Tests", _tests.of(facts.tests)),
        ("Commits", _commits.of(facts.commits)),
        ("Names", [*_wrapped("- ", facts.names)]),
        ("Other facts", [f"- {flow(dict(facts.extra))}"] if facts.extra else []),
        ("Where decisions were said", [*places.lines(listed.sources)]),
    )
    for heading, pieces in parts:
        if pieces:
            yield from ("", f"**{heading}**", *pieces)


def read(lines: Sequence[str]) -> tuple[tuple[Decision, ...], list[str]]:
    """The decisions among such lines, with all that people edit of them: label, words, reason, options that were
    rejected; and the other lines.
    """
    found, others = list[str](), list[str]()
    is_older = goes_on = False
    for line in lines:
        if line.startswith("## "):
            is_older = line.rstrip() == OLDER
        if is_older and (bullet := _BULLET.match(line)):
            found.append(bullet[1])
        elif goes_on and line.strip():
            found[-1] += f" {line.strip()}"
        else:
            others.append(line)
        goes_on = is_older and bool(found) and bool(line.strip()) and not line.startswith("## ")
    return tuple(map(_read_decision, found)), others


def _read_decision(text: str) -> Decision:
    label, status, by, words = _LABELLED.match(text).groups(default="")  # type: ignore[union-attr]  # it matches any
    words, reason, options = parts_of(words)
    made = Decision(label, decision=words, rationale=reason, alternatives=options, superseded_by=by)
    return replace(made, status=status) if status else made


def parts_of(bullet: str) -> tuple[str, str, tuple[str, ...]]:
    """The words of a bullet, the reason behind "Because:", and the options behind "Rejected:" or "Not:"."""
    text, rejected = (*_REJECTED.split(bullet, maxsplit=1), "")[:2]
    text, reason = (*_BECAUSE.split(text, maxsplit=1), "")[:2]
    text = text.strip().removesuffix(".") if reason or rejected else text.strip()
    reason = reason.strip().removesuffix(".") if rejected else reason.strip()
    return text, reason, tuple(filter(None, map(str.strip, rejected.split("; "))))


_BULLET = regex(r" {0,3}[-*+•] +(.*)$")

_LABELLED = regex(r"(?:([A-Za-z0-9][\w.-]*)(?: \[([a-z]+)(?: by ([\w.-]+))?\])?(?: \([^()]*\))?: )?(.*)$")

_BECAUSE, _REJECTED = regex(r" (?:Because|Came of it): "), regex(r" (?:Rejected|Not): ")

# ---- one kind of item each ----

_LINE_BREAK = regex(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

_OWN = frozenset(("", "user", "agent", "human-edit"))


def name(text: str) -> str:
    """A path or label as it is, but for a line break, which would begin a line of its own."""
    return _LINE_BREAK.sub(r"\\n", text)


def tag(origin: str) -> str:
    """What is said of an item, on its own line, that neither this user nor their agent has said; "" for theirs."""
    return "" if origin in _OWN else f" ({name(one_line(origin))})"


def _decision(item: Decision) -> str:
    by = f" by {item.superseded_by}" if item.superseded_by else ""
    label = name(item.id if item.status == "active" else f"{item.id} [{item.status}{by}]")
    label += f" ({name(str(item.extra.get('by', '')))}, another clone)" if item.origin == "clone" else tag(item.origin)
    parts = [f"{label}: {prose(item.decision)}"]
    why = "Came of it" if item.status == "done" else "Because"
    parts += [f"{why}: {prose(item.rationale)}"] if item.rationale else []
    parts += [f"Rejected: {'; '.join(map(one_line, item.alternatives))}"] if item.alternatives else []
    ended = [part if part.endswith((".", "!", "?", "…", ":")) else f"{part}." for part in parts[:-1]]
    return f"- {' '.join([*ended, parts[-1]])}"


decision_lines = ById(_decision)
"""Of each decision a line with its reasons; made once: each write asks it of all decisions, several times."""


def _wrapped(head: str, words: Iterable[str]) -> Iterator[str]:
    """Words between commas, as many on a line as fit, each line behind the same head."""
    line = ""
    for word in map(one_line, words):
        if line and len(line) + 2 + len(word) > _WIDTH:
            yield line
            line = ""
        line = f"{line}, {word}" if line else f"{head}{word}"
    if line:
        yield line


def _paths(facts: Sequence[PathFact]) -> Iterator[str]:
    """Files, those together to which the same was done."""
    run: list[str] = []
    did: tuple[str, ...] = ()
    for fact in facts:
        if run and fact.did != did:
            yield from _wrapped(f"- {one_line(', '.join(did))}: ", run)
            run = []
        did = fact.did
        run.append(fact.path)
    yield from _wrapped(f"- {one_line(', '.join(did))}: ", run)


def _command(fact: CommandFact) -> str:
    failures = fact.runs if fact.status == "failed" else 0
    known = [
        fact.status,
        f"exit {fact.exit}" if fact.exit is not None else "",
        f"{fact.runs} runs" if fact.runs != 1 else "",
        f"{fact.failures} failed" if fact.failures != failures else "",
        f"{fact.omitted} characters omitted" if fact.omitted else "",
    ]
    first, *more = fact.command.split("\n")
    return "\n".join(
        [f"- {one_line(', '.join(filter(None, known)))}: {one_line(first)}", *(f"  {name(line)}" for line in more)]
    )


def _error(fact: ErrorFact) -> str:
    more = [f"  {key}: {one_line(text)}" for key, text in (("from", fact.command), ("fixed by", fact.fixed_by)) if text]
    return "\n".join([f"- {one_line(fact.error)}", *more])


def _test(fact: TestFact) -> str:
    return f"- {one_line(fact.result)}" + (f"\n  from: {one_line(fact.command)}" if fact.command else "")


def _commit(fact: CommitFact) -> str:
    return f"- {one_line(f'{fact.commit} {fact.message}')}"


def _request(fact: RequestFact) -> str:
    known = [
        fact.kind,
        f"line {fact.line}" if fact.line else "",
        f"{fact.omitted} characters omitted" if fact.omitted else "",
        f"from {fact.origin}" if fact.origin else "",
    ]
    head = [f"- {one_line(', '.join(filter(None, known)))}:"] if any(known) else []
    return "\n".join(["", *head, *_quote(fact.request)])


def _quote(text: str) -> list[str]:
    return [f"> {name(line)}".rstrip() for line in text.split("\n")]


_requests, _commands, _errors = ById(_request), ById(_command), ById(_error)

_tests, _commits = ById(_test), ById(_commit)

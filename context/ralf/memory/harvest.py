"""Takes into a memory what rules find in a route (errors with what fixed them, commands that pass, a person's rules),
and offers what a hand-over calls lasting.

Facts of a checkpoint say what failed and what fixed it; they count as far as the checkpoint's evidence has the calls.
So the text of a tool becomes an error, in quotes, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from ralf.errors import NotFound, RalfError
from ralf.facts.checks import says_failed
from ralf.facts.commands import is_shell
from ralf.format.codec import BadTree, from_tree
from ralf.memory import records, writing
from ralf.memory.fold import identity
from ralf.memory.model import DEFAULT_AGENT, LONGEST_QUOTE, Item, check_agent
from ralf.memory.purposes import comparable, purpose_of, standing_commands
from ralf.memory.ranking import repeats
from ralf.memory.records import Delta
from ralf.memory.repairs import beginning, is_defect, repairs
from ralf.memory.writing import new_item
from ralf.model import Decision, ErrorFact, Facts, Kept
from ralf.project import Project
from ralf.route import history, offsets
from ralf.route.load import load_state
from ralf.text.cleaning import one_line, trimmed
from ralf.text.frozen import dataclass
from ralf.text.matcher import words
from ralf.transcripts.events import EvidenceLine, read_evidence

_ROUTES = 50  # that are looked at for a rule which stands in a route, the last written first

_OFFERS = 200  # preferences, those of the highest worth, that a rule is held against

_FEWEST = 3  # routes in which a person gave a rule that counts without being accepted

_LONGEST_RULE = 300  # characters; a longer one is about the task

_KEY_WORDS = 4

_EARLIER = 4  # checkpoints of the session before one in which an error that it fixed is looked for


@dataclass(frozen=True, slots=True)
class Harvest:
    """What a harvest brought in.

    deltas    that were recorded: one for each trap, command and rule of each checkpoint
    offered   labels of the items that wait for the user's word
    accepted  labels of those that count from now on, because they were given in three routes
    """

    deltas: int = 0
    offered: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


def take_in(project: Project, route: str, *, agent: str = DEFAULT_AGENT, session: str = "") -> Harvest:
    """Take what a route's checkpoints hold into the memory of an agent: for the end of a task or a session.

    session  whose checkpoints alone are looked at, "" for all

    Each checkpoint counts once, however often this is called and whoever else does it; so does each rule. A process
    that is killed leaves whole records. What came with the repository, was reverted, or has no evidence left is passed
    over. Errors: `writing.record`; DamagedJournal.
    """
    check_agent(agent)
    count = 0
    found = dict(_checkpoints(project, route, session))
    for name in writing.unrecorded(project, agent, found):
        deltas = list(_deltas(project, route, found[name]))
        if deltas:
            writing.record(project, agent, deltas, id=name)
            count += len(deltas)
    count += _take_in_rules(project, route, agent)
    count += _take_in_offers(project, route, agent)
    offers = _offers(project, agent)
    accepted = [item for item in offers if len(item.routes) >= _FEWEST]
    for item in accepted:
        given = records.Accepted(item.id, f"a person, in {len(item.routes)} routes", "mechanical")
        with suppress(NotFound):  # somebody drops it at this moment
            writing.record(project, agent, [given], id=f"accept-{_hashed(identity(item))}")
    labels = tuple(item.id for item in accepted)
    waiting = writing.candidates(project, agent, (), kinds=("preference", "fact"), limit=_OFFERS).items
    return Harvest(count, tuple(one.id for one in waiting if one.status == "offered" and one.id not in labels), labels)


def _hashed(value: object) -> str:
    """A short name of a value. Records have names that no label is part of: another machine may have given that."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _offers(project: Project, agent: str) -> list[Item]:
    """The preferences that this module has offered."""
    items = writing.candidates(project, agent, (), kinds=("preference",), limit=_OFFERS).items
    return [item for item in items if item.status == "offered" and item.origin == "mechanical"]


# ---- traps and commands ----


@dataclass(frozen=True, slots=True)
class _Found:
    """A checkpoint that may hold something, and the evidence of those before it in its session, oldest first."""

    label: str
    payload: Mapping[str, Any]
    earlier: tuple[tuple[str, str], ...] = ()


def _checkpoints(project: Project, route: str, session: str) -> Iterator[tuple[str, _Found]]:
    """By the name of the record that they become, the checkpoints of a route that may hold something."""
    undone = history.undone(project, route)
    earlier: dict[str, list[tuple[str, str]]] = {}
    for label, record in history.checkpoints(project, route):
        payload = record.payload
        if label in undone or record.foreign or payload.get("origin") == "import":
            continue
        source = payload.get("source")
        name = str(source.get("session", "")) if isinstance(source, Mapping) else ""
        if session and name != session:
            continue
        before = earlier.setdefault(name, [])
        facts = payload.get("facts")
        if isinstance(facts, Mapping) and (facts.get("errors") or facts.get("commands")):
            yield (
                f"harvest-{_hashed(source or [route, payload.get('evidence'), payload.get('period')])}",
                _Found(label, payload, tuple(before[-_EARLIER:])),
            )
        before.append((label, str(payload.get("evidence", ""))))


def _deltas(project: Project, route: str, found: _Found) -> Iterator[Delta]:
    """The traps and commands of a checkpoint."""
    facts = Facts()
    with suppress(BadTree):
        facts = from_tree(Facts, found.payload["facts"])
    passed = _passed(facts)
    has_failed = bool(facts.errors) or any(fact.failures for fact in facts.commands)
    if not (has_failed or passed):
        return
    own = _lines(project, found.label, str(found.payload.get("evidence", "")))
    before = [line for one in found.earlier for line in _lines(project, *one)] if has_failed else []
    segment = _Segment(route, before, own)
    seen = str((found.payload.get("period") or ["", ""])[-1])
    made = segment.traps(facts) if has_failed else []
    unfixed = [error for error in facts.errors if not error.fixed_by and purpose_of(error.command)]
    for trap in filter(None, [*made, *(segment.replaced(error, passed) for error in unfixed)]):
        yield records.Added(replace(trap, last_seen=seen))
    for command, times in passed.items():
        place = segment.place_of(command)
        if place:
            yield new_item(
                "command",
                command=command,
                purpose=purpose_of(command),
                successes=times,
                uses=1,
                origin="mechanical",
                routes=(route,),
                evidence=(place,),
                last_seen=seen,
            )


def _lines(project: Project, label: str, digest: str) -> list[tuple[str, EvidenceLine]]:
    """The calls and results in the evidence of a checkpoint; none where it was pruned or is damaged."""
    found: list[tuple[str, EvidenceLine]] = []
    with suppress(RalfError):
        found += [(label, line) for line in read_evidence(project.store, digest) if line.kind in ("call", "result")]
    return found


def _passed(facts: Facts) -> dict[str, int]:
    """The commands that test, lint or build the project, each with how often it passed."""
    failed = {comparable(test.command) for test in facts.tests if says_failed(test.result)}
    found: dict[str, int] = {}
    for fact in facts.commands:
        times = fact.runs - fact.failures
        plain = comparable(fact.command)
        if fact.omitted or times <= 0 or (plain in failed and plain != fact.command.strip()):
            continue  # where a pipe swallowed the exit status, the output alone tells
        for command in standing_commands(fact.command):
            found[command] = found.get(command, 0) + times
    return found


class _Segment:
    """The evidence of one checkpoint, and of those before it, in which what its facts say is looked up."""

    def __init__(
        self, route: str, before: Sequence[tuple[str, EvidenceLine]], own: Sequence[tuple[str, EvidenceLine]]
    ) -> None:
        self._route = route
        self._labels = [label for label, _ in (*before, *own)]
        self._lines = [line for _, line in (*before, *own)]
        self._own = len(before)

    def traps(self, facts: Facts) -> Iterator[Item]:
        """The traps of errors that are over since: see `repairs`."""
        for one in repairs(self._lines, self._own, facts.errors, [fact.path for fact in facts.paths]):
            yield self._trap(one.command, one.error, one.resolution, one.failed, one.fix)

    def replaced(self, error: ErrorFact, passed: Iterable[str]) -> Item | None:
        """The trap of a command whose work another program has done since: `npm test` failed, `pnpm test` passed."""
        failed = self._failure_of(error)
        if failed is None or is_defect(error.error):
            return None
        known = list(passed)
        if comparable(error.command) in known:
            return None
        purpose = purpose_of(error.command)
        for number in range(failed[0] + 1, len(self._lines)):
            line = self._lines[number]
            command = next((one for one in known if runs(line, one)), "")
            if not command or purpose_of(command) != purpose:
                continue
            if command.split()[0] != comparable(error.command).split()[0]:
                return self._trap(comparable(error.command), error.error, command, failed, number)
        return None

    def place_of(self, command: str) -> str:
        """The lines of a command's first call, as evidence; "" where it is none of the agent's."""
        call = self._call_of(command, self._own - 1)
        return self._reference(call, call) if call >= 0 else ""

    def _trap(self, command: str, error: str, resolution: str, failed: tuple[int, int], fix: int) -> Item:
        return Item(
            "",
            "trap",
            command=command,
            error=trimmed(one_line(error), LONGEST_QUOTE),
            resolution=one_line(resolution),
            uses=1,
            origin="mechanical",
            routes=(self._route,),
            evidence=(self._reference(*failed), self._reference(fix, fix)),
        )

    def _reference(self, first: int, last: int) -> str:
        return f"{self._route} {self._labels[first]} lines {self._lines[first].line}-{self._lines[last].last}"

    def _failure_of(self, error: ErrorFact) -> tuple[int, int] | None:
        """The places of the last call of a command whose output has the error, and of that output."""
        begins = beginning(error.error)
        outputs = [n for n, line in enumerate(self._lines) if line.kind == "result" and begins in line.text]
        if not begins or not outputs:
            return None
        for place in reversed(range(outputs[-1])):
            if runs(self._lines[place], error.command):
                output = next(n for n in outputs if n > place)
                return place, output if self._labels[output] == self._labels[place] else place
        return None

    def _call_of(self, command: str, after: int) -> int:
        """The place of the first call behind another one that runs a command, -1 for none."""
        return next((n for n in range(after + 1, len(self._lines)) if runs(self._lines[n], command)), -1)


def runs(call: EvidenceLine, command: str) -> bool:
    """Whether a line of evidence is a call of a shell that runs a command, alone or between others; the command may be
    kept without its end.
    """
    if call.kind != "call" or not is_shell(call.tool):
        return False
    kept = command.split("\n")[0].strip()
    begin = comparable(kept.removesuffix("…").rstrip())
    if not begin:
        return False
    lines = (comparable(line) for line in islice(call.text.splitlines(), 50))
    if kept.endswith("…"):
        return any(line.startswith(begin) for line in lines)
    return any(line == begin or begin in (part.strip() for part in line.split("&&")) for line in lines)


# ---- rules of a person ----


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a person said in a route, and who tells it from the same words elsewhere."""

    route: str
    decision: Decision

    @property
    def name(self) -> str:
        """The name of its record in a memory."""
        return f"rule-{_hashed([self.route, *self.said_at])}"

    @property
    def said_at(self) -> tuple[str, int, str]:
        """The place where it was said: two routes may hold one place of a session."""
        source = self.decision.source
        return (source.session, source.first_line, source.sha256) if source is not None else ("", 0, "")

    def item(self, key: str) -> Item:
        """The preference that it speaks for."""
        return Item(
            *("", "preference"),
            key=key,
            value=one_line(self.decision.decision),
            source="a person said so in more than one route",
            uses=1,
            origin="mechanical",
            status="offered",
            routes=(self.route,),
            evidence=(f"{self.route} {self.decision.id}",),
            last_seen=self.decision.timestamp,
        )


def _take_in_rules(project: Project, route: str, agent: str) -> int:
    """Offer what a person said in this route and in another one; how many places of it are new."""
    own = _rules(project, route)
    fresh = set(writing.unrecorded(project, agent, [rule.name for rule in own]))
    own = [rule for rule in own if rule.name in fresh]
    if not own:
        return 0
    others = [
        rule
        for name in offsets.recent(project, _ROUTES)
        if name != route
        for rule in _rules(project, name, lenient=True)
    ]
    known = writing.candidates(project, agent, (), kinds=("preference",), limit=_OFFERS).items
    count = 0
    for rule in own:
        plain = _plain(rule.decision)
        places, routes = {rule.said_at}, {route}
        given = [rule]
        for other in others:
            if other.said_at not in places and other.route not in routes and repeats(plain, _plain(other.decision)):
                places.add(other.said_at)
                routes.add(other.route)
                given.append(other)
        if len(given) < 2:
            continue
        same = next((item for item in known if repeats(plain, Item("", "preference", value=item.value))), None)
        key = same.key if same is not None else _key_of(given[-1].decision.decision)
        fresh = set(writing.unrecorded(project, agent, [one.name for one in given]))
        for one in reversed(given):
            if one.name in fresh:
                made = one.item(key)
                delta: Delta = records.Added(made)
                if same is not None and same.status == "active":
                    delta = records.Used(same.id, 1, 0, made.routes, made.evidence, made.last_seen)
                with suppress(NotFound):  # somebody drops it at this moment
                    writing.record(project, agent, [delta], id=one.name)
                    count += 1
    return count


def _take_in_offers(project: Project, route: str, agent: str) -> int:
    """Offer what hand-overs of a route call lasting, each once, also where it was turned down; how many are new."""
    state = load_state(project, route)
    if state is None or state.context.wholly_foreign:
        return 0
    named = {f"lasting-{_hashed(one_line(one.text).casefold())}": one for one in state.context.handover.offers}
    fresh = writing.unrecorded(project, agent, named)
    for name in reversed(fresh):
        with suppress(NotFound):  # a person has dropped an item that says so
            writing.record(project, agent, [_offer(route, named[name])], id=name)
    return len(fresh)


def _offer(route: str, one: Kept) -> records.Added:
    """What is offered: the person's words with the sentence as their title, else the sentence of who wrote it."""
    place = f"{one.session}:{one.line}-{one.line}" if one.session and one.line else route
    given = {"status": "offered", "uses": 1, "routes": (route,), "evidence": (place,), "last_seen": one.at}
    if one.by == "person":
        title, origin = trimmed(one_line(one.text), _LONGEST_RULE), "person" if one.author == "person" else "model"
        source = "a person said so"
        return new_item("preference", key=title, value=one.words, source=source, origin=origin, **given)
    by = "agent" if one.author == "agent" else "model"
    source = f"the {by} in a hand-over{f' ({one.model})' if one.model else ''}"
    return new_item("fact", text=one_line(one.text), source=source, origin=by, **given)


def _rules(project: Project, route: str, *, lenient: bool = False) -> list[_Rule]:
    """What a person said in a route that may hold for others; with `lenient`, none where it cannot be read."""
    try:
        state = load_state(project, route)
    except RalfError:
        if lenient:
            return []
        raise
    if state is None or state.context.wholly_foreign:
        return []
    return [
        _Rule(route, decision)
        for decision in state.context.decisions
        if decision.origin == "user" and decision.kind in ("rule", "decision") and decision.status == "active"
        if decision.id and decision.source is not None and len(decision.decision) <= _LONGEST_RULE
    ]


def _plain(decision: Decision) -> Item:
    return Item("", "preference", value=one_line(decision.decision))


def _key_of(text: str) -> str:
    """A short name of a rule: its first words that mean something."""
    found = [word.text for word in words(text) if word.weight == 1.0]
    return " ".join(found[:_KEY_WORDS]) or trimmed(one_line(text), 40)

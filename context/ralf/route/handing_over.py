"""Records what somebody hands over to whoever goes on: one record, whoever wrote it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ralf import environment, project as projects, routing
from ralf.brief.handover import since
from ralf.document.tree import to_tree
from ralf.errors import BlobNotFound, DamagedBlob, RalfError, UsageError
from ralf.model import HandOver, Kept, RouteContext
from ralf.model.entries import Entry, SessionEntries, Step
from ralf.model.handover import Ended
from ralf.model.kept import decision_of
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.route import cap, history
from ralf.route.entries import sessions_of
from ralf.route.offsets import ingest_offset
from ralf.route.write import RouteWriter, open_route, utc_now
from ralf.talk import handover_text
from ralf.talk.answer import FORM, Answer, BadAnswer, Ending, answer_of, carry
from ralf.talk.names import Quotes, Shown, marked, texts_of
from ralf.talk.turns import joined
from ralf.text import cleaning
from ralf.text.patterns import regex
from ralf.transcripts.events import Event, EvidenceLine, read_evidence
from ralf.transcripts.reader import log_of_session, open_transcript

AUTHORS = {"agent": "agent", "user": "person"}
"""Who hands over by a command or the library, as they are called there, and as an author."""

_AGAIN = timedelta(minutes=10)  # within which a hand-over with wrong names is sent again


@dataclass(frozen=True, slots=True)
class HandedOver:
    """What came of a hand-over.

    handover  what it says of the moment; `added`: its new entries, with their ids, and what it offers to the memory
    ended     ids of the entries that it ended
    buried    decisions that a person had dropped: only a person may decide them again
    warnings  what the writer should know of; `damage`: what is wrong with the route file, which then stays as it is
    """

    route: str
    handover: HandOver
    added: tuple[Kept, ...] = ()
    ended: tuple[str, ...] = ()
    buried: int = 0
    warnings: tuple[str, ...] = ()
    damage: str = ""

    def __str__(self) -> str:
        """What was taken of it, in one line."""
        text = handover_text.reply(self.route, self.handover, self.added)
        text += f"; ended: {', '.join(self.ended)}" if self.ended else ""
        return f"{text}; dropped by a person before, not recorded: {self.buried}" if self.buried else text


def hand_over(
    route: str,
    text: str = "",
    *,
    author: str = "agent",
    root: str | os.PathLike[str] | None = None,
    **fields: Any,
) -> HandedOver:
    """Record what is handed over to whoever goes on with a route; durable when this returns.

    text    Markdown, shown as it is written; parts under headings such as "## Now", "## Next", "## Open", "## Decided",
            "## Avoid" and "## Facts" are read, a bullet of a kept part is an entry of its own, with "why:" and "not:"
            on lines of their own; a bullet "OPEN-001: why" below "## Ended" ends that entry
    fields  instead of a text: now, why, next, open, done, facts, decisions, avoid, lasting, ended; see
            `ralf.talk.answer.FORM`
    author  who wrote it: agent, or user for a person

    Names in it that stand nowhere in the record are marked. Raises UsageError (a refused name, nothing said, a field of
    another form), Busy, OSError.
    """
    if author not in AUTHORS:
        raise UsageError(route, f"the author of a hand-over is one of {', '.join(AUTHORS)}", 'author="user"')
    command = f"ralf handover {cleaning.slug(route)}"
    project = projects.find(root)
    now, session = utc_now(), environment.session() or ""
    redactor = redactor_for(project)
    by: Any = AUTHORS[author]
    if fields:
        made, entries, endings = _of_fields(route, redactor.tree(fields), command)
        made = replace(made, author=by, at=now, session=session)
        entries = tuple(replace(entry, author=by, at=now, session=session) for entry in entries)
    else:
        made, entries = handover_text.parse(redactor.text(text), author=by, at=now, session=session)
        made, endings = _without_ended(made)
    if not made and not entries and not endings:
        raise UsageError(route, "a hand-over needs words", f"{command} <<'EOF'")
    route = routing.check_new(project, route)
    with open_route(project, route) as writer:
        sessions = sessions_of(project, route)
        talk = joined(sessions).entries
        if texts := _texts(project, route, session, sessions):
            made, entries = marked(made, entries, Shown(texts))
        entries = tuple(_offered(entry, is_checked=bool(texts)) for entry in entries)
        again = _is_again(writer.context, made, talk)
        done = record(project, writer, made, entries, endings, quotes=Quotes(talk), again=again)
    return replace(done, warnings=tuple(writer.warnings), damage=writer.damage)


def _of_fields(route: str, fields: Mapping[str, Any], command: str) -> Answer:
    """A hand-over in the fields that a model is asked for."""
    if odd := [key for key in fields if key not in FORM]:
        what = f"the hand-over has no field {odd[0]!r}; known: {', '.join(FORM)}"
        raise UsageError(route, what, f"{command} --help")
    try:
        return answer_of({key: _plain(value, FORM.get(key)) for key, value in fields.items()})
    except BadAnswer as error:
        raise UsageError(route, f"the hand-over: {error}", f"{command} --help") from None


_ENDED = regex(r"[-*+] +((?:OPEN|DONE|FACT|DEC)-[\w-]*\w)[:.,]? *(.*)")


def _without_ended(made: HandOver) -> tuple[HandOver, tuple[Ending, ...]]:
    """A hand-over without its part "Ended", and the entries that this ends, each with why."""
    parts = [part for part in made.parts if part.heading.lower() == "ended"]
    found = (_ENDED.match(item) for part in parts for item in part.items)
    endings = tuple(Ending(one[1], one[2]) for one in found if one)
    return (
        (replace(made, parts=tuple(part for part in made.parts if part not in parts)), endings)
        if endings
        else (made, ())
    )


def _plain(value: Any, form: Any) -> Any:
    """A field as a model would give it: a single text does for several, and for a decision or what to avoid."""
    if not isinstance(form, list):
        return value
    items = [value] if isinstance(value, str | Mapping) else [*value]
    head = next(iter(form[0])) if isinstance(form[0], dict) else ""
    return [{head: one} if head and isinstance(one, str) else one for one in items]


def _texts(project: Project, route: str, session: str, sessions: Sequence[SessionEntries]) -> list[str]:
    """All that the record has of a route, and what no checkpoint covers of the session that writes; [] where its log is
    not to be found: then nobody can tell which names there are. Hand-overs themselves prove no name.
    """
    entries = [entry for one in sessions for entry in one.entries]
    texts = [
        *texts_of(one for one in entries if not (isinstance(one, Step) and _OWN.search(f"{one.tool} {one.object}")))
    ]
    seen: list[Event | EvidenceLine] = []
    for _, record in deque(history.checkpoints(project, route), _MOST_SEEN):
        with suppress(BlobNotFound, DamagedBlob):
            seen += read_evidence(project.store, str(record.payload.get("evidence", "")))
    if session:
        log = log_of_session(session)
        if log is None:
            return []
        try:
            source = open_transcript(log)
            events = [*source.events(ingest_offset(project, route, source.session).position)]
        except (RalfError, OSError):
            return []
        ended = {event.call_id for event in events if event.kind == "result"}
        seen += (event for event in events if event.kind != "call" or event.call_id in ended)
    is_own = (one.kind == "call" and _OWN.search(f"{one.tool} {one.text}") for one in seen)
    return texts + [cleaning.outside(one.text) for one, own in zip(seen, is_own, strict=True) if not own]


_OWN = regex(r"\bhand_?over\s")

_MOST_SEEN = 32
"""Newest checkpoints whose evidence is looked into."""


def _offered(entry: Kept, *, is_checked: bool) -> Kept:
    """An entry; what a person calls lasting is their words, what an agent does is proved by the record, else marked."""
    if entry.kind != "lasting":
        return entry
    if entry.author == "person":
        return replace(entry, by="person", words=entry.text)
    return entry if is_checked else replace(entry, marks=(entry.text,))


def _is_again(context: RouteContext, made: HandOver, talk: Sequence[Entry]) -> bool:
    """Whether the same author hands over once more, right after the last time, and nothing was done since."""
    last = context.handover.last
    if last is None or (last.author, last.session) != (made.author, made.session) or not since(last, talk).is_fresh:
        return False
    try:
        return datetime.fromisoformat(made.at) - datetime.fromisoformat(last.at) <= _AGAIN
    except (ValueError, TypeError):
        return False


def record(
    project: Project,
    writer: RouteWriter,
    made: HandOver,
    entries: Sequence[Kept],
    endings: Sequence[Ending] = (),
    *,
    quotes: Quotes | None = None,
    again: bool = False,
    call: Mapping[str, Any] | None = None,
) -> HandedOver:
    """Append a hand-over to a route.

    call  what a model was asked for it: see `ralf.refining.refine`
    """
    context = writer.context
    before, stones = context.carried, cap.of(context) if made.author != "person" else ()
    new = [one for one in entries if not (one.kind in _DECIDED and cap.cover(stones, decision_of(one)))]
    labels = [item.id for item in context.decisions] + [f"DEC-{context.context_checkpoint.decision_count:03d}"]
    taken, tag = [*labels, *before.numbers], project.git.clone
    after = carry(before, made, new, endings, quotes=quotes, taken=taken, tag=tag, again=again)
    old = {entry.id: entry for entry in before.kept}
    added = [entry for entry in after.kept if entry.id not in old]
    offers = after.offers[: len(after.offers) - len(before.offers)]
    over = [entry for entry in after.kept if entry.ended is not None and entry != old.get(entry.id)]
    labels += [entry.id for entry in added]
    difference = {
        "moment": to_tree(after.last) if after.last is not None and after.last is not before.last else None,
        "kept": [to_tree(entry) for entry in added if entry.kind not in _DECIDED],
        "decisions": [{**to_tree(decision_of(entry)), "id": entry.id} for entry in added if entry.kind in _DECIDED],
        "ended": [{"id": one.id, **to_tree(one.ended)} for one in over if one.ended and one.kind not in _DECIDED],
        "amended": [_amended(one.id, one.ended, labels) for one in over if one.ended and one.kind in _DECIDED],
        "offers": [to_tree(entry) for entry in offers],
    }
    payload = {key: value for key, value in difference.items() if value}
    writer.append("handover", {**payload, **(call or {}), "author": made.author, "timestamp": made.at})
    ended = {ending.id for ending in endings} & {entry.id for entry in over}
    return HandedOver(context.route, made, (*added, *offers), tuple(sorted(ended)), len(entries) - len(new))


_DECIDED = ("decision", "avoid")


def _amended(label: str, ended: Ended, labels: Sequence[str]) -> dict[str, Any]:
    """What a record says of a decision that is over; where another one took its place, by which."""
    by = {"superseded_by": ended.why} if ended.why in labels else {}
    return {"id": label, "ended": to_tree(ended), **by}


def record_failure(writer: RouteWriter, call: Mapping[str, Any]) -> None:
    """Append why a model that was asked handed nothing over."""
    writer.append("handover", {**call, "author": "model"})

"""Records what a segment's events came to: the entries of the talk and the log, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast, get_args

from ralf.facts.steps import Steps, answered
from ralf.model.entries import Entry, Item, Mark, MarkKind, Message, MessageForm, Said, Step
from ralf.text.cleaning import one_line, trimmed
from ralf.transcripts.events import Event

_LONGEST_OUTPUT = 2_000  # characters of what a person's own command printed


class Recording:
    """The entries of one session, event by event.

    base     the project's folder; `session`: the client's id
    items    the to-do list by then; `branch`: what is checked out
    checks   programs that the project calls checks, besides the known ones
    """

    def __init__(
        self,
        base: str,
        session: str = "",
        *,
        items: Sequence[Item] = (),
        branch: str = "",
        checks: frozenset[str] = frozenset(),
    ) -> None:
        self.branch = branch
        self.entries: list[Entry] = []
        self._steps = Steps(base, items=items, checks=checks)
        self._session = session

    def take(self, event: Event) -> None:
        """Record one event."""
        if event.branch and not event.agent:
            self.stands_on(event.branch, event)
        at, line, text = event.timestamp, event.start.line + 1, event.text.strip()
        if event.kind == "user" or event.form == "ran":
            self.entries.append(self._message(event))
        elif event.kind == "assistant":
            if text and not event.agent:
                self.entries.append(Said(at, line, text))
        elif event.form == "printed":
            self._printed(event.text)
        elif event.form == "rewound":
            self.entries.append(Mark("rewound", at, line, str(event.input.get("to") or event.input.get("turns") or "")))
        elif event.kind == "mark":
            if event.form in get_args(MarkKind):
                kind = cast(MarkKind, event.form)
                self.entries.append(Mark(kind, at, line, trimmed(event.text, _LONGEST_OUTPUT)))
        elif event.kind == "other" and event.cut and not event.agent:
            self.entries.append(Mark("unread", at, line))
        elif event.kind in ("call", "result", "other"):
            self.entries.extend(self._steps.take(event))

    def stands_on(self, branch: str, event: Event) -> None:
        """Record the branch that is checked out from an event on."""
        if branch != self.branch:
            self.branch = branch
            self.entries.append(Mark("branch", event.timestamp, event.start.line + 1, one_line(branch)[:255]))

    def all(self) -> list[Entry]:
        """The entries, with the calls that have no result yet where they were made."""
        found = list(self.entries)
        last = next((place for place in range(len(found) - 1, -1, -1) if isinstance(found[place], Step)), 0)
        found[:last] = [answered(entry) if isinstance(entry, Step) else entry for entry in found[:last]]
        for step in self._steps.pending:
            later = (n for n, entry in enumerate(found) if not isinstance(entry, Step) and entry.line > step.line)
            found.insert(next(later, len(found)), step)
        return found

    def _message(self, event: Event) -> Message:
        line = event.start.line + 1
        return Message(
            id=event.id or f"{self._session}:{line}",
            at=event.timestamp,
            session=self._session,
            line=line,
            form=cast(MessageForm, event.form) if event.form in get_args(MessageForm) else "",
            text=event.text.strip(),
            parent=event.parent,
            about=str(event.input.get("about") or ""),
            options=tuple(map(str, event.input.get("options") or ())),
            call=event.call_id,
        )

    def _printed(self, text: str) -> None:
        """Add what the person's last command printed."""
        for number, entry in reversed([*enumerate(self.entries)]):
            if isinstance(entry, Message) and entry.form == "ran":
                output = trimmed(f"{entry.output}\n{text}".strip(), _LONGEST_OUTPUT)
                self.entries[number] = replace(entry, output=output)
                break


def record(events: Iterable[Event], base: str, session: str = "") -> list[Entry]:
    """The entries of a whole session; `base`: the project's folder."""
    recording = Recording(base, session)
    for event in events:
        recording.take(event)
    return recording.all()

"""Records what a segment's events came to: the entries of the talk and the log, in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ralf.facts.steps import Steps, answered
from ralf.model.entries import Entry, Item, Mark, MarkKind, Message, MessageForm, Said, Step
from ralf.text.cleaning import one_line, trimmed
from ralf.transcripts.events import Event

_LONGEST_OUTPUT = 2_000  # characters of what a person's own command printed

_MARKS: dict[str, MarkKind] = {
    "ended": "ended",
    "interrupted": "interrupted",
    "stopped": "stopped",
    "handed": "handed",
    "sent": "sent",
    "unsent": "unsent",
    "noticed": "noticed",
    "titled": "titled",
    "requested": "requested",
}

_FORMS: dict[str, MessageForm] = {
    "": "",
    "queued": "queued",
    "answer": "answer",
    "plan": "plan",
    "refused": "refused",
    "command": "command",
    "program": "program",
}


class Recording:
    """The entries of one session, event by event; `session`: the client's id of it. The rest is as for `Steps`."""

    def __init__(
        self,
        base: str,
        session: str = "",
        *,
        items: Sequence[Item] = (),
        branch: str = "",
        checks: frozenset[str] = frozenset(),
    ) -> None:
        self.steps = Steps(base, items=items, checks=checks)
        self.branch = branch
        self.entries: list[Entry] = []
        self._session = session

    def take(self, event: Event) -> None:
        """Record one event."""
        if event.branch and not event.agent:
            self.stands_on(event.branch, event)
        if event.kind == "user":
            self.entries.append(self._message(event))
        elif event.kind == "assistant":
            if event.text.strip() and not event.agent:
                self.entries.append(Said(event.timestamp, event.start.line + 1, event.text.strip()))
        elif event.kind == "mark":
            self._mark(event)
        elif event.kind in ("call", "result", "other"):
            self.entries.extend(self.steps.take(event))

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
        for step in self.steps.pending:
            later = (
                place for place, entry in enumerate(found) if not isinstance(entry, Step) and entry.line > step.line
            )
            found.insert(next(later, len(found)), step)
        return found

    def _message(self, event: Event) -> Message:
        line = event.start.line + 1
        return Message(
            id=event.id or f"{self._session}:{line}",
            at=event.timestamp,
            session=self._session,
            line=line,
            form=_FORMS.get(event.form, ""),
            text=event.text.strip(),
            parent=event.parent,
            about=str(event.input.get("about") or ""),
            options=tuple(map(str, event.input.get("options") or ())),
            call=event.call_id,
        )

    def _mark(self, event: Event) -> None:
        line = event.start.line + 1
        if event.form == "ran":
            message = Message(
                f"{self._session}:{line}", event.timestamp, self._session, line, "ran", event.text.strip()
            )
            self.entries.append(message)
        elif event.form == "printed":
            self._printed(event.text)
        elif event.form == "rewound":
            value = str(event.input.get("to") or event.input.get("turns") or "")
            self.entries.append(Mark("rewound", event.timestamp, line, value))
        elif event.form in _MARKS:
            self.entries.append(Mark(_MARKS[event.form], event.timestamp, line, trimmed(event.text, _LONGEST_OUTPUT)))

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

"""A run folder of the RALF loop as a transcript: what the run wrote down, part by part, and how it ended.

Each section of a document in which somebody wrote something is a note, and so is each decision, and each list that its
metadata tells. A folder of skeletons gives no note. How the run ended is its `attempt`, also where it wrote nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ralf.document.guarded_yaml import BadYaml
from ralf.errors import DamagedTranscript, RalfError, TranscriptNotFound
from ralf.model import Attempt
from ralf.text.cleaning import clean, one_line, outside, trimmed
from ralf.text.sentences import promised
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes, note, session_of
from ralf_integrations.blackbox5.runs import markdown, parts as documents, records, registry
from ralf_integrations.blackbox5.runs.decisions import (
    WrittenDecision,
    decision_tree,
    decisions_in,
    lines_within,
    statement_of,
)
from ralf_integrations.blackbox5.runs.folder import RunFolder, is_brought, is_run, task_id, time_of
from ralf_integrations.blackbox5.runs.parts import field_of
from ralf_integrations.blackbox5.runs.records import outcome_of
from ralf_integrations.blackbox5.runs.registry import Registry

FORMAT = "run folder"
REGISTRY = "decision_registry.yaml"
_OUTPUT_KEPT = 12_000  # characters of what a client printed; its end says what came of the run
_SAID = 240  # characters of the line that says what came of it
_MOST_LISTED = 12  # next steps, blockers, findings


def reader(path: Path, root: Path, *, origin: str = "", logged: bool = False) -> Notes:
    """The transcript of a run folder.

    root    the project's: the session is called by the folder's path in it
    logged  the log of a client's session has told what the run's agent said: what it printed is left out
    origin  "import" where the run is not of this project's life; "": so where git has brought it, else "agent"

    Raises TranscriptNotFound; DamagedTranscript for a folder that is no run's; RalfError for one that cannot be read.
    """
    if not path.exists():
        raise TranscriptNotFound(path, "no such run folder", "ralf checkpoint --help")
    if not is_run(path):
        what = "is a directory, but no run's: no THOUGHTS.md, RESULTS.md, metadata.yaml or the like is in it"
        raise DamagedTranscript(path, what, "name a run folder, such as runs/executor/run-0018, or a session log")
    folder = RunFolder(path)
    try:
        origin = origin or ("import" if is_brought(folder) else "agent")
        return _Reading(folder, session_of(path, root), root, logged=logged).notes(origin)
    except OSError as error:
        raise RalfError(path, f"cannot be read: {error.strerror or error}", "make it readable") from error


class _Reading:
    """One reading of a run's folder."""

    def __init__(self, folder: RunFolder, session: str, root: Path, *, logged: bool) -> None:
        self.folder = folder
        self.session = session
        self.place = session if (root / session).exists() else str(folder.path)  # where its documents lie
        self.recorded = recorded = records.read(folder)
        self.texts = {name: text for name in folder.documents if (text := self._text(name)) is not None}
        made = {name: documents.parts_of(name, text) for name, text in self.texts.items()}
        self.parts = [part for parts in made.values() for part in parts]
        self.written = [name for name, parts in made.items() if any(part.is_written for part in parts)]
        self.registered = self._registry()
        printed = [outside(clean(text)).strip() for text in filter(None, map(self._text, folder.outputs))]
        output = printed[-1][-_OUTPUT_KEPT:] if printed else ""
        self.output = "" if logged else output
        results = [part.text for part in self.parts if part.document.upper() in documents.RESULTS]
        promises = filter(None, map(promised, (*reversed(printed), *results)))
        stated = (self._field(name, "status") for name in ("RESULTS.md", "SUMMARY.md", "THOUGHTS.md"))
        self.outcome = next(promises, "") or recorded.outcome or next(filter(None, map(outcome_of, stated)), "")
        """The promise that was made last counts most, then what the loop noted, then what the documents say."""
        told = time_of(self._first("started", "date", "timestamp"))
        self.started = recorded.started or told or folder.started
        noted = (documents.first_words(prose) or prose for prose in recorded.notes[:1])
        texts = (documents.summary_of(self.parts), recorded.summary, *noted, documents.last_words(output))
        self.said = next((_in_short(text) for text in texts if text.strip()), "")

    def notes(self, origin: str) -> Notes:
        found = [*self._of_documents(), *self._of_registry(), *self._of_records()]
        found += self._said_in(self.output, self.folder.outputs[-1]) if self.output else ()
        empty = len(self.texts) - len(self.written)
        made = Notes(
            self.folder.path,
            self.session,
            [*found, self._state()] if found else [],
            format=FORMAT,
            origin=origin,
            skipped={"empty document": empty} if empty else {},
            attempt=Attempt(self.session, None, self.outcome, self.recorded.ended or self.started, self.said),
        )
        made.agent_type = self.recorded.agent or self.folder.agent
        made.problems = {f"{self.place}/{name}": what for name, what in self.recorded.problems.items()}
        return made

    def _text(self, name: str) -> str | None:
        try:
            return self.folder.text(name)
        except OSError as error:
            self.recorded.problems[name] = (error.strerror or str(error)).lower()
            return None

    def _field(self, document: str, *names: str) -> str:
        return field_of(self.parts, document, *names)

    def _first(self, *names: str) -> str:
        """A field of the first document that has it."""
        return next(filter(None, (self._field(one, *names) for one in self.folder.documents)), "")

    def _registry(self) -> Registry | None:
        text = self._text(REGISTRY) if REGISTRY in self.folder.files else None
        try:
            found = registry.read(text) if text is not None else None
        except BadYaml as error:
            self.recorded.problems[REGISTRY] = error.what
            return None
        for first, last, what in found.broken if found is not None else ():
            self.recorded.problems[REGISTRY] = f"line {first}: {what}"
            self.recorded.unread.append((REGISTRY, first, "\n".join((text or "").split("\n")[first - 1 : last])))
        return found

    # ---- notes ----

    def _state(self) -> Event:
        """Where the run leaves the work; its words are those that its files record."""
        recorded, (named, title) = self.recorded, documents.task_of(self.parts)
        listed = task_id(self.registered.task) if self.registered is not None else ""
        task = self.folder.task or recorded.task or named or listed
        title = recorded.title or title
        told = {
            "run": self.session,
            "task": f"{task} {title}".strip(),
            "agent": recorded.agent or self.folder.agent,
            "status": recorded.status,
            "ended as": self.outcome,
            "started": self.started,
            "ended": recorded.ended,
        }
        lines = [
            *(f"- {name}: {value}" for name, value in told.items() if value),
            *(f"- {one}" for one in recorded.rest),
        ]
        thoughts = [part.text for part in self.parts if part.document.upper() == "THOUGHTS.MD" and part.is_written]
        phase = recorded.phase or self._first("phase", "current phase")
        asked = {"current_task": task, "task_title": title, "current_phase": phase}
        work = {
            "next_steps": self._listed("next_steps", documents.NEXT),
            "blockers": self._listed("blockers", documents.BLOCKERS),
            "findings": [*map(_in_short, recorded.told.get("discoveries", [])[:_MOST_LISTED])],
            "outcome": self.outcome,
            "last_statement": self.said or _in_short(documents.last_words("".join(thoughts[-1:]))),
            "work_status": "completed" if self.outcome == "COMPLETE" else self.outcome.lower() or "in_progress",
            **{name: value for name, value in asked.items() if value},
        }
        own = (f"{self.session}/", f"/{self.folder.name}/")
        changed = dict.fromkeys((*recorded.paths, *documents.files_of(self.parts)))
        others = ((path, did) for path, did in changed if not any(place in f"/{path}" for place in own))
        facts = {
            "paths": [{"path": path, "did": [did]} for path, did in others if path not in self.folder.files],
            "commits": [{"commit": commit, "message": message} for commit, message in recorded.commits],
        }
        return self._note(
            "# The run\n\n" + "\n".join(lines),
            when=recorded.ended,
            title=": ".join(filter(None, (self.folder.name, title or self.said or self.outcome))),
            work=work,
            facts={key: value for key, value in facts.items() if value},
        )

    def _listed(self, what: str, heading: str) -> list[str]:
        told = self.recorded.told.get(what) or documents.items_of(self.parts, heading)
        return [*map(_in_short, told[:_MOST_LISTED])]

    def _of_documents(self) -> Iterator[Event]:
        texts = {name: self.texts[name] for name in self.written}
        found = {name: decisions_in(text) for name, text in texts.items() if "DECISION" in name.upper()}
        if not any(found.values()) and not (self.registered and self.registered.decisions):  # others may tell them then
            found = {name: decisions_in(text, mixed=True) for name, text in texts.items()}
        for name, text in texts.items():
            made, lines = found.get(name, []), text.split("\n")
            events = [self._decision(name, "\n".join(lines[one.first_line - 1 : one.last_line]), one) for one in made]
            taken = lines_within(made)
            left = (part.without(taken) for part in self.parts if part.document == name)
            events += [self._note(part.text, name, part.first) for part in left if part.is_written]
            yield from sorted(events, key=lambda event: int(event.input.get("line", 0)))

    def _decision(self, name: str, words: str, written: WrittenDecision) -> Event:
        return self._note(words, name, written.first_line, decision=decision_tree(written, self.session))

    def _of_registry(self) -> Iterator[Event]:
        if self.registered is not None:
            for written, words in zip(self.registered.decisions, self.registered.words, strict=True):
                yield self._decision(REGISTRY, words, written)
            for first, _, words in self.registered.undecided:
                yield from self._said_in(words, REGISTRY, first, aside=True)

    def _of_records(self) -> Iterator[Event]:
        recorded = self.recorded
        for text in (recorded.summary, *recorded.notes):
            yield from self._said_in(text, recorded.file)
        for what, entries in recorded.told.items():
            lines = "\n".join(f"- {entry}" for entry in dict.fromkeys(entries))
            if _is_said(lines):
                yield self._note(f"## {what.replace('_', ' ').capitalize()}\n\n{lines}", recorded.file)
        for name, line, words in recorded.unread:
            yield from self._said_in(words, name, line, aside=True)
        for tree in recorded.decisions:
            if (written := registry.decision_of(tree, (1, 1))) and _is_said(statement_of(written)):
                yield self._decision(recorded.file, registry.words_of(tree), written)

    def _said_in(self, text: str, name: str, line: int = 1, **fields: Any) -> Iterator[Event]:
        if _is_said(text):
            yield self._note(text, name, line, **fields)

    def _note(self, text: str, name: str = "", line: int = 1, *, when: str = "", **fields: Any) -> Event:
        place = {"path": f"{self.place}/{name}", "line": line} if name else {"path": self.place}
        return note(text, timestamp=when or self.started, **place, **fields)


def _is_said(text: str) -> bool:
    return markdown.says_something(markdown.lines_of(text))


def _in_short(text: str) -> str:
    return trimmed(one_line(text), _SAID)

"""A run folder of the RALF loop as a transcript: what the run wrote down, part by part, and how it ended.

Each section of a document in which somebody wrote something is a note, and so is each decision, and each list that its
metadata tells. A folder of skeletons gives no note. How the run ended is its `attempt`, also where it wrote nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ralf.briefing.fence import outside
from ralf.errors import DamagedTranscript, RalfError, TranscriptNotFound
from ralf.model import Attempt
from ralf.runs import brought, decisionsmd, documents, handwritten, markdown, metadata, outcomes, registry, skeleton
from ralf.runs.documents import Part
from ralf.runs.folder import RunFolder, is_run, task_id
from ralf.runs.metadata import Recorded
from ralf.runs.written import WrittenDecision, decision_tree, time_of
from ralf.text import clean, one_line
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes, note, session_of
from ralf.trim import trimmed
from ralf.yamltext import BadYaml

FORMAT = "run folder"
REGISTRY = "decision_registry.yaml"

_OUTPUT_KEPT = 12_000  # characters of what a client printed; its end says what came of the run
_SAID = 240  # characters of the line that says what came of it
_MOST_LISTED = 12  # next steps, blockers, findings
_HEADINGS = {
    "actions": "Actions taken",
    "discoveries": "Discoveries",
    "learnings": "Learnings",
    "assumptions": "Assumptions",
    "questions": "Questions",
    "next_steps": "Next steps",
    "blockers": "Blockers",
    "created tasks": "Tasks created",
    "finished tasks": "Tasks completed",
    "progress": "Progress",
}


def reader(path: Path, root: Path, *, origin: str = "", logged: bool = False) -> Notes:
    """The transcript of a run folder.

    root    the project's: the session is called by the folder's path in it
    logged  the log of a client's session has told what the run's agent said: what it printed is left out
    origin  "import" where the run is not of this project's life; "": so where git has brought it, else "agent"

    Raises TranscriptNotFound; DamagedTranscript for a folder that is no run's; RalfError for one that cannot be read.
    """
    if not path.exists():
        raise TranscriptNotFound(path, "no such run folder", "ralf context checkpoint --help")
    if not is_run(path):
        hint = "name a run folder, such as runs/executor/run-0018, or a session log"
        raise DamagedTranscript(
            path, "is a directory, but no run's: no THOUGHTS.md, RESULTS.md, metadata.yaml or the like is in it", hint
        )
    folder = RunFolder(path)
    try:
        origin = origin or ("import" if brought.is_brought(folder) else "agent")
        return _Reading(folder, session_of(path, root), root, logged=logged).notes(origin)
    except OSError as error:
        raise RalfError(path, f"cannot be read: {error.strerror or error}", "make it readable") from error


class _Reading:
    """One reading of a run's folder."""

    def __init__(self, folder: RunFolder, session: str, root: Path, *, logged: bool = False) -> None:
        self.folder = folder
        self.logged = logged
        self.session = session
        self.place = session if (root / session).exists() else str(folder.path)  # where its documents lie
        self.recorded = metadata.read(folder)
        self.parts: list[Part] = []
        self.texts: dict[str, str] = {}  # of the documents in which something was written
        self.skipped: Counter[str] = Counter()
        self.problems = dict(self.recorded.problems)
        self.registered = registry.Registry({}, ())
        self.output = ""
        self.promise = ""

    def notes(self, origin: str) -> Notes:
        for name in self.folder.documents:
            if (text := self._text(name)) is not None:
                parts = documents.parts_of(name, text)
                self.parts += parts
                if any(part.is_written for part in parts):
                    self.texts[name] = text
                else:
                    self.skipped["empty document"] += 1
        self._read_registry()
        self._read_outputs()
        found = [*self._of_documents(), *self._of_registry(), *self._of_metadata(), *self._of_output()]
        if found:
            found.append(self._state())
        made = Notes(
            self.folder.path,
            self.session,
            found,
            format=FORMAT,
            origin=origin,
            skipped=self.skipped,
            attempt=self._attempt(),
        )
        made.problems = {f"{self.place}/{name}": what for name, what in self.problems.items()}
        return made

    def _text(self, name: str) -> str | None:
        try:
            return self.folder.text(name)
        except OSError as error:
            self.problems[name] = (error.strerror or str(error)).lower()
            return None

    # ---- how it ended ----

    def _attempt(self) -> Attempt:
        """What came of the run, in a few words."""
        return Attempt(
            run=self.session,
            outcome=self._outcome(),
            timestamp=self.recorded.ended or self._started,
            said=self._said,
        )

    def _outcome(self) -> str:
        """The promise that was made last counts most, then what the loop noted, then what the documents say."""
        told = (documents.field_of(self.parts, name, "status") for name in ("RESULTS.md", "SUMMARY.md", "THOUGHTS.md"))
        return self.promise or self.recorded.outcome or next(filter(None, map(outcomes.outcome_of, told)), "")

    @cached_property
    def _started(self) -> str:
        """When the run began; asked for each note, and looked for in all documents."""
        told = (documents.field_of(self.parts, name, "started", "date", "timestamp") for name in self.folder.documents)
        return self.recorded.started or next(filter(None, map(time_of, told)), "") or self.folder.started

    def _task(self) -> str:
        told = self.recorded.task or documents.task_of(self.parts)[0]
        return self.folder.task or told or task_id(self.registered.task)

    @cached_property
    def _said(self) -> str:
        """One line that says what came of it, in the run's own words."""
        texts = (
            documents.summary_of(self.parts),
            self.recorded.summary,
            *map(documents.first_words, self.recorded.notes[:1]),
            documents.last_words(self.output),
            *(entry for entry in self.recorded.told.get("blockers", [])[:1]),
        )
        return next((trimmed(one_line(text), _SAID) for text in texts if text.strip()), "")

    # ---- notes ----

    def _state(self) -> Event:
        """Where the run leaves the work; its words are those that its files record."""
        task, title = self._task(), self.recorded.title or documents.task_of(self.parts)[1]
        outcome = self._outcome()
        told = {
            "run": self.session,
            "task": f"{task} {title}".strip(),
            "agent": self.recorded.agent or self.folder.agent,
            "status": self.recorded.status,
            "ended as": outcome,
            "started": self._started,
            "ended": self.recorded.ended,
        }
        lines = [f"- {name}: {value}" for name, value in told.items() if value]
        lines += [f"- {line}" for line in self.recorded.rest]
        work: dict[str, Any] = {
            "next_steps": self._listed("next_steps", documents.NEXT),
            "blockers": self._listed("blockers", documents.BLOCKERS),
            "findings": [trimmed(text, _SAID) for text in self.recorded.told.get("discoveries", [])[:_MOST_LISTED]],
            "outcome": outcome,
            "last_statement": self._said or trimmed(one_line(documents.last_thought(self.parts)), _SAID),
            "work_status": {"COMPLETE": "completed"}.get(outcome, outcome.lower() or "in_progress"),
        }
        work |= {"current_task": task} if task else {}
        work |= {"task_title": title} if title else {}
        own = f"{self.session}/"
        paths = [*self.recorded.paths, *documents.files_of(self.parts)]
        facts = {
            "paths": [
                {"path": path, "did": [did]}
                for path, did in dict.fromkeys(paths)
                if not path.startswith(own) and f"{self.folder.name}/" not in path and path not in self.folder.files
            ],
            "commits": [{"commit": commit, "message": message} for commit, message in self.recorded.commits],
        }
        return self._note(
            "# The run\n\n" + "\n".join(lines),
            when=self.recorded.ended,
            title=": ".join(filter(None, (self.folder.name, title or self._said or outcome))),
            work=work,
            facts={key: value for key, value in facts.items() if value},
        )

    def _listed(self, what: str, heading: documents.Heading) -> list[str]:
        told = self.recorded.told.get(what) or documents.items_of(self.parts, heading)
        return [trimmed(one_line(text), _SAID) for text in told[:_MOST_LISTED]]

    def _of_documents(self) -> Iterator[Event]:
        texts = self.texts
        found = {name: decisionsmd.decisions_in(text) for name, text in texts.items() if "DECISION" in name.upper()}
        if not any(found.values()) and not self.registered.decisions:  # then other documents may tell them
            found = {name: decisionsmd.decisions_in(text, mixed=True) for name, text in texts.items()}
        for name, text in texts.items():
            made = found.get(name, [])
            taken = {number for one in made for number in range(one.first_line, one.last_line + 1)}
            lines = text.split("\n")
            events = [self._decision(name, lines, one) for one in made]
            for part in (part for part in self.parts if part.document == name):
                left = part.without(taken)
                if left.is_written:
                    events.append(self._note(left.text, name, left.first))
            yield from sorted(events, key=lambda event: int(event.input.get("line", 0)))

    def _decision(self, name: str, lines: Sequence[str], written: WrittenDecision) -> Event:
        words = "\n".join(lines[written.first_line - 1 : written.last_line])
        return self._told(name, words, written)

    def _told(self, name: str, words: str, written: WrittenDecision) -> Event:
        tree = decision_tree(written, self.session)
        return self._note(words, name, written.first_line, decision=tree)

    def _of_registry(self) -> Iterator[Event]:
        for written, words in zip(self.registered.decisions, self.registered.words, strict=True):
            yield self._told(REGISTRY, words, written)
        for first, _, words in self.registered.undecided:
            if skeleton.says_something(markdown.lines_of(words)):
                yield self._note(words, REGISTRY, first, aside=True)

    def _read_registry(self) -> None:
        if REGISTRY in self.folder.files and (text := self._text(REGISTRY)) is not None:
            try:
                self.registered = registry.read(text)
                broken = self.registered.broken
                if broken:
                    first, _, what = broken[-1]
                    self.problems[REGISTRY] = f"line {first}: {what}"
                self.recorded.unread += [(REGISTRY, *words) for words in handwritten.words_at(text, broken)]
            except BadYaml as error:
                self.problems[REGISTRY] = error.what

    def _of_metadata(self) -> Iterator[Event]:
        recorded: Recorded = self.recorded
        for text in (recorded.summary, *recorded.notes):
            if skeleton.says_something(markdown.lines_of(text)):
                yield self._note(text, recorded.file)
        for what, entries in recorded.told.items():
            lines = [f"- {entry}" for entry in dict.fromkeys(entries)]
            if skeleton.says_something(markdown.lines_of("\n".join(lines))):
                yield self._note(f"## {_HEADINGS[what]}\n\n" + "\n".join(lines), recorded.file)
        for name, line, words in recorded.unread:
            if skeleton.says_something(markdown.lines_of(words)):
                yield self._note(words, name, line, aside=True)
        for tree in recorded.decisions:
            kept = {key: value for key, value in tree.items() if key not in ("id", "title")}
            label = one_line(str(tree.get("id") or ""))
            title = one_line(str(tree.get("title") or ""))
            decided = one_line(str(tree.get("decision") or "")) or title
            if decided and skeleton.says_something(markdown.lines_of(decided)):
                fields = {"decision": decided, **({"label": f"{self.session}#{label}"} if label else {})}
                lines = [f"## {f'{label}: ' if label else ''}{title or 'Decision'}", ""]
                lines += [f"**{key.capitalize()}:** {one_line(str(value))}" for key, value in kept.items() if value]
                yield self._note("\n".join(lines), recorded.file, decision={**kept, **fields})

    def _read_outputs(self) -> None:
        """The end of what the client printed, without what ralf itself, or the loop, had handed it; and the promise in
        it.
        """
        given = [text.strip() for name in self.folder.given if self.folder.outputs and (text := self._text(name))]
        for name in self.folder.outputs:
            if (text := self._text(name)) is None:
                continue
            said = outside(clean(text))
            for prompt in filter(None, given):
                said = said.replace(clean(prompt), "")
            said = said.strip()
            self.promise = outcomes.promised(said) or self.promise
            self.output = said[-_OUTPUT_KEPT:]
        for part in self.parts:
            if part.document.upper() in ("RESULTS.MD", "SUMMARY.MD") and (tag := outcomes.promised(part.text)):
                self.promise = self.promise or tag

    def _of_output(self) -> Iterator[Event]:
        if not self.logged and skeleton.says_something(markdown.lines_of(self.output)):
            yield self._note(self.output, self.folder.outputs[-1])

    def _note(self, text: str, name: str = "", line: int = 1, *, when: str = "", **fields: Any) -> Event:
        place = {"path": f"{self.place}/{name}", "line": line} if name else {"path": self.place}
        return note(text, timestamp=when or self._started, **place, **fields)

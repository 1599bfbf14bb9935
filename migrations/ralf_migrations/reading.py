"""What every importer has in common: the text of a file within limits, notes of it, the route that it goes to."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from ralf.document.guarded_yaml import BadYaml
from ralf.model import Attempt
from ralf.project import Project
from ralf.storage.files import content_of, open_regular
from ralf.text import cleaning
from ralf.text.cleaning import clean
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes, note, session_of
from ralf.transcripts.reader import Transcript
from ralf_integrations.blackbox5.runs import handwritten, parts as documents, records, registry, runfolder
from ralf_integrations.blackbox5.runs.decisions import WrittenDecision, decision_tree
from ralf_integrations.blackbox5.runs.folder import AGENTS, RunFolder, task_id

MAX_BYTES = 16 << 20
"""Bytes of one file that are read; a larger one is listed as one that cannot be read."""

FIELD = regex(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[A-Za-z][\w ]{0,39}?)\s*(?::\*\*|\*\*\s*:)\s*(?P<value>.*)$")
"""A field in bold, also as a bullet: `**Task:** TASK-7`, `- **Status**: done`."""


Outcome = Literal["imported", "nothing", "left", "unreadable"]
"""Imported; nothing was written in it; left out; not to be read, or not all of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file, or a folder, comes to. What of it goes into no field of a route is kept in its words, and found by
    search.

    parts    what goes into a route, as one transcript
    why      of a file that was not imported, or not all of it
    left     what of it was not taken, each with why
    path     in the project where it lies in it; `source`: what knows it
    written  checkpoints that were written, None in a dry run
    """

    outcome: Outcome
    parts: Sequence[tuple[str, Transcript]] = ()
    why: str = ""
    left: Sequence[str] = ()
    path: str = ""
    source: str = ""
    routes: tuple[str, ...] = ()
    decisions: int = 0
    written: int | None = None


class Unreadable(Exception):
    """A file whose content cannot be told: no access, no text, no YAML or JSON; the message says which."""


# ---- files ----


@dataclass(frozen=True)
class Source:
    """A file that is to be taken over, as it stands.

    name    its path in the project, or the whole of it outside: how reports and decisions name it
    sha256  of its bytes
    """

    project: Project
    path: Path
    name: str
    sha256: str
    text: str
    lines: list[str] = field(repr=False)

    def excerpt(self, first: int, last: int) -> str:
        """Some of its lines, counted from 1, both included."""
        return "\n".join(self.lines[first - 1 : last])

    def session(self, part: str = "") -> str:
        """Its name as a session, or that of a part of it."""
        session = session_of(self.path, self.project.root)
        return f"{session}#{part}" if part else session

    def note(self, text: str, line: int = 1, **fields: object) -> Event:
        """A note of words that stand in it at a line."""
        return note(text, path=self.name, line=line, **fields)  # type: ignore[arg-type]

    def decision(
        self, one: WrittenDecision, session: str, *, when: str = "", text: str = "", more: Any = None, **fields: object
    ) -> Event:
        """A decision in its own words, or in `text`, and as a decision, with `more` fields; `when` where it does not
        say that itself.
        """
        tree: Mapping[str, Any] = {**decision_tree(one, session), **(more or {})}
        words = text or self.excerpt(one.first_line, one.last_line).strip("\n")
        stamp = tree.get("timestamp", "") or when
        return self.note(words, one.first_line, timestamp=stamp, **fields, decision=tree, file_sha256=self.sha256)

    def rest(self, within: Container[int], **fields: object) -> list[Event]:
        """What stands on other lines than these, part by part, where somebody wrote anything."""
        left = (part.without(within) for part in documents.parts_of(self.path.name, self.text))
        return [self.note(part.text, part.first, **fields) for part in left if part.is_written]

    def notes(self, events: Iterable[Event], what: str, *, part: str = "", attempt: Attempt | None = None) -> Notes:
        """Notes as a transcript of what somebody brought; `attempt`: the run that this part is of."""
        return Notes(self.path, self.session(part), events, format=what, origin="import", attempt=attempt)


def opened(project: Project, path: Path) -> Source:
    """A file with its text; Unreadable for anything else."""
    text, content = text_at(path, MAX_BYTES)
    return Source(project, path, name_of(project, path), hashlib.sha256(content).hexdigest(), text, text.split("\n"))


def text_at(path: Path, most: int) -> tuple[str, bytes]:
    """The text of a file, without control characters, and its bytes; Unreadable for one that is none, or is larger."""
    try:
        content = content_of(path, most=most)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"line {line}: not UTF-8 text") from None
    if "\0" in text:
        raise Unreadable("no text: it holds a NUL byte")
    return handwritten.without_control(text.replace("\r\n", "\n").replace("\r", "\n")), content


def beginning(path: Path, most: int = 4_096) -> str:
    """The first bytes of a file as text, "" for what is no regular file, or cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return file.read(most).decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return ""


def name_of(project: Project, path: Path) -> str:
    """A path as reports name it: from the project on, whole where it lies outside."""
    whole = path.absolute()
    for base in (project.root.absolute(), project.root.resolve()):
        if whole.is_relative_to(base):
            return clean(whole.relative_to(base).as_posix())
    return clean(whole.as_posix())


# ---- routes ----

_TASK_ID = regex(r"\b(?:TASK|RALF|BUG|FEAT|PLAN|CORE|DOCS|IMP)-[A-Za-z0-9][\w-]*")


def route_of(task: str, agent: str = "") -> str:
    """The route of a task, else of an agent, else the fallback."""
    return cleaning.slug(task or "-".join(agent.lower().split()) or "default")


def task_of_run(folder: Path) -> str:
    """The task of a run: by its folder's name, else by its records, else by its documents, at their tops, else by its
    registry of decisions, else by a folder above it. The folder need not be there any more.
    """
    run = RunFolder(folder)
    if run.task:
        return run.task
    with suppress(OSError, BadYaml):
        if task := records.read(run).task or documents.task_in_documents(run):
            return task
        if runfolder.REGISTRY in run.files and (task := task_id(registry.read(run.text(runfolder.REGISTRY)).task)):
            return task
    return next((part for part in reversed(folder.parts) if _TASK_ID.fullmatch(part) and task_in(part)), "")


def task_in(text: str) -> str:
    """The first id of a task that a text names, "" for none."""
    found = _TASK_ID.search(text)
    return found[0].rstrip("-") if found and any(map(str.isdigit, found[0])) else ""


def agent_of_run(folder: Path) -> str:
    """The agent that a run's path names, "" for none: one that is known, else `agents/NAME/…`."""
    heads = [part.lower().partition("__")[0] for part in reversed(folder.parts)]
    own = (name for part, name in pairwise(folder.parts) if part == "agents" and not name.startswith("run"))
    return next((head for head in heads if head in AGENTS), "") or next(own, "")

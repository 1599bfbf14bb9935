"""Run folders: their names and files."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from ralf.storage import git_files
from ralf.storage.files import content_of
from ralf.text import cleaning

MAX_DOCUMENT = 1 << 20
"""Bytes of one document that are read; a longer one is named, and left alone."""

RECORDS = ("metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "status.txt", "tracking.json")
"""The files in which the loop, the executor or a hook records what a run is."""

_MOST_FILES = 200
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)[_-](\d\d)(\d\d)(\d\d)")
NAME = re.compile(
    rf"run-(?:(?P<stamp>{_STAMP.pattern})(?:-(?P<task>[A-Za-z][\w.-]*))?|(?P<epoch>\d{{10}})|(?P<number>\d{{1,6}})|.+)\Z"
)
_TASK = re.compile(r"[A-Z][A-Z0-9]{1,15}(?:-[A-Za-z0-9_.]+)*-[A-Za-z0-9_.]+\Z")
_ID = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?Z|[+-]\d\d:?\d\d)?)?")
AGENTS = (
    *("planner", "executor", "architect", "scout", "analyst"),
    *("verifier", "validator", "auditor", "fixer", "research"),
)
_ORDER = ("THOUGHTS.md", "ASSUMPTIONS.md", "DECISIONS.md", "", "LEARNINGS.md", "RESULTS.md", "SUMMARY.md")
"""Of a run's documents, "" for any other one; what came of it last."""

GIVEN = re.compile(r"(?i)(?:.*prompt|AGENT_CONTEXT|TASK-CONTEXT|ACTIVE-CONTEXT|README|task)\.md\Z")
"""Matches the Markdown that a run was given: its prompt, its task."""

_OUTPUT = re.compile(r"(?i).*(?:output|claude|session|agent)[\w.-]*\.(?:log|txt)\Z")


@dataclass(frozen=True)
class RunFolder:
    """A run's folder. Links in it are not followed, and nothing in it is ever written."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's own name, by which the run goes: `run-0018`, which other agents may have, too."""
        return self.path.name

    @cached_property
    def agent(self) -> str:
        """The agent in whose folder it lies, "" where the path does not tell."""
        parts = [part.lower() for part in self.path.absolute().parts[-4:-1]]
        return next((part for part in reversed(parts) if part in AGENTS), "")

    @cached_property
    def task(self) -> str:
        """The task that the folder's name tells, "" for none."""
        found = NAME.match(self.name)
        if found is None:
            return task_id(self.name) if _TASK.match(self.name) else ""
        return task_id(found["task"] or "")

    @cached_property
    def started(self) -> str:
        """When the run began, by the folder's name: of the machine's own time, which has no zone here; "" for none."""
        found = NAME.match(self.name)
        with suppress(ValueError, OverflowError):
            if found and found["epoch"]:
                return f"{datetime.fromtimestamp(int(found['epoch']), UTC):%Y-%m-%dT%H:%M:%SZ}"
            if found and (stamp := _STAMP.match(found["stamp"] or "")):
                return datetime(*map(int, stamp.groups())).isoformat()  # type: ignore[arg-type]
        return ""

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The names of its regular files, sorted, at most 200. OSError where it is gone."""
        with os.scandir(self.path) as entries:
            found = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        return tuple(found[:_MOST_FILES])

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """The Markdown that the run wrote, what came of it last."""

        order = [name.upper() for name in _ORDER]
        written = (one for one in self.files if one.lower().endswith(".md") and not GIVEN.match(one))
        return tuple(sorted(written, key=lambda name: order.index(name.upper() if name.upper() in order else "")))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """What the run's client printed, where the loop kept it."""
        return tuple(name for name in self.files if _OUTPUT.match(name))

    def text(self, name: str) -> str:
        """A file's text. OSError where it cannot be read, is none, is a link, or has more than `MAX_DOCUMENT` bytes."""
        content = content_of(self.path / name, most=MAX_DOCUMENT)
        if b"\0" in content:
            raise OSError(errno.EILSEQ, "no text: it holds a NUL byte")
        text = content.decode("utf-8-sig", "replace")
        return re.sub("[\x85\u2028\u2029]", " ", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_run(path: Path) -> bool:
    """Whether a folder is a run's: by its name, or by what lies in it."""
    return path.is_dir() and bool(
        NAME.match(path.name) or any((path / name).is_file() for name in (*filter(None, _ORDER), *RECORDS))
    )


def task_id(text: str) -> str:
    """The id of a task that a text begins with, as a route may be called; "" for what is none."""
    word = _ID.match(text.strip().strip("[](){}'\"`*"))
    found = word[0] if word is not None else ""
    if not any(map(str.isdigit, found)) and "-" not in found:
        return ""
    return found if cleaning.is_valid(found) else cleaning.slug(found)


def time_of(text: str) -> str:
    """The first ISO 8601 time or date in a text, as written; "" where it has none."""
    found = _TIME.search(text)
    return found[0].replace(" Z", "Z") if found else ""


def is_brought(folder: RunFolder) -> bool:
    """Whether the bytes of any document of a run are those that git has for it: then a clone or a pull may have brought
    them. What the run, or a person, has changed since is their own.
    """
    contents = dict[Path, bytes]()
    for name in folder.files:
        try:
            contents[folder.path / name] = content_of(folder.path / name, most=MAX_DOCUMENT)
        except OSError:  # too long to be read: tracked is enough
            if git_files.tracks(folder.path, Path(name)):
                return True
    return any(git_files.brought(contents, anywhere=False))

"""Run folders: what makes a folder one, what its name tells, and which of its files are the run's own words."""

from __future__ import annotations

import codecs
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from ralf import names
from ralf.files.opening import content_of

MAX_DOCUMENT = 1 << 20
"""Bytes of one document that are read; a longer one is named, and left alone."""

_MOST_FILES = 200
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)[_-](\d\d)(\d\d)(\d\d)")
_NAME = re.compile(
    rf"run-(?:(?P<stamp>{_STAMP.pattern})(?:-(?P<task>[A-Za-z][\w.-]*))?|(?P<epoch>\d{{10}})|(?P<number>\d{{1,6}})|.+)\Z"
)
_TASK = re.compile(r"[A-Z][A-Z0-9]{1,15}(?:-[A-Za-z0-9_.]+)*-[A-Za-z0-9_.]+\Z")
_ID = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
_AGENTS = ("planner", "executor", "architect", "scout", "analyst", "verifier", "validator", "research")
_FIRST = ("THOUGHTS.md", "ASSUMPTIONS.md", "DECISIONS.md")
_LAST = ("LEARNINGS.md", "RESULTS.md", "SUMMARY.md")
_MARKS = (*_FIRST, *_LAST, "metadata.yaml", ".ralf-metadata", "RUN.yaml", "context.yaml", "status.txt", "tracking.json")
_GIVEN = re.compile(r"(?i)(?:.*prompt|AGENT_CONTEXT|TASK-CONTEXT|ACTIVE-CONTEXT|README|task)\.md\Z")
"""Documents that the run was given, not those that it wrote."""

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
        return next((part for part in reversed(parts) if part in _AGENTS), "")

    @cached_property
    def task(self) -> str:
        """The task that the folder's name tells, "" for none."""
        found = _NAME.match(self.name)
        task = (found["task"] or "") if found is not None else self.name
        if found is None and not _TASK.match(task):
            return ""
        return task_id(task)

    @cached_property
    def started(self) -> str:
        """When the run began, by the folder's name: of the machine's own time, which has no zone here; "" for none."""
        found = _NAME.match(self.name)
        if found is None:
            return ""
        try:
            if found["epoch"]:
                return f"{datetime.fromtimestamp(int(found['epoch']), UTC):%Y-%m-%dT%H:%M:%SZ}"
            if stamp := _STAMP.match(found["stamp"] or ""):
                return datetime(*map(int, stamp.groups())).isoformat()  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            pass
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
        known = [name for name in self.files if name.lower().endswith(".md") and name not in self.given]
        by_name = {name.upper(): name for name in known}
        first = [by_name[name.upper()] for name in _FIRST if name.upper() in by_name]
        last = [by_name[name.upper()] for name in _LAST if name.upper() in by_name]
        return (*first, *(name for name in known if name not in first and name not in last), *last)

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The Markdown that the run was given: its prompt, its task."""
        return tuple(name for name in self.files if _GIVEN.match(name))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """What the run's client printed, where the loop kept it."""
        return tuple(name for name in self.files if _OUTPUT.match(name))

    def text(self, name: str) -> str:
        """A file's text. OSError where it cannot be read, is none, is a link, or has more than `MAX_DOCUMENT` bytes."""
        content = content_of(self.path / name, most=MAX_DOCUMENT)
        is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if not is_wide and b"\0" in content:
            raise OSError(errno.EILSEQ, "no text: it holds a NUL byte")
        text = (
            content.decode("utf-16" if is_wide else "utf-8", "replace")
            .removeprefix("\ufeff")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
        )
        return text.replace("\x85", " ").replace("\u2028", " ").replace("\u2029", " ")  # no line ends but for some


def is_run(path: Path) -> bool:
    """Whether a folder is a run's: by its name, or by what lies in it."""
    if not path.is_dir():
        return False
    return bool(_NAME.match(path.name)) or any((path / name).is_file() for name in _MARKS)


def task_id(text: str) -> str:
    """The id of a task that a text begins with, as a route may be called; "" for what is none."""
    word = _ID.match(text.strip().strip("[](){}'\"`*"))
    found = word[0] if word is not None else ""
    if not any(map(str.isdigit, found)) and "-" not in found:
        return ""
    return found if names.is_valid(found) else names.slug(found)


def siblings(folder: RunFolder) -> Iterator[RunFolder]:
    """The other run folders beside one, the newest first, by their names."""
    try:
        with os.scandir(folder.path.parent) as entries:
            found = [
                entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name != folder.name
            ]
    except OSError:
        return
    for name in sorted((name for name in found if _NAME.match(name)), key=_age, reverse=True):
        yield RunFolder(folder.path.parent / name)


def _age(name: str) -> tuple[str, str]:
    run = RunFolder(Path(name))
    return run.started, name

"""What a source's file comes to: the notes for each route, and the account of its fields."""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ralf.files.opening import content_of, not_through_a_link
from ralf.model import Attempt
from ralf.project import Project
from ralf.runs import handwritten
from ralf.runs.markdown import Line
from ralf.runs.written import plain
from ralf.text import clean
from ralf.transcripts import Transcript
from ralf.transcripts.events import Event
from ralf.transcripts.notes import Notes, session_of
from ralf_migrations.report import Field, Outcome

MAX_BYTES = 16 << 20
"""Bytes of one file that are read; a larger one is listed as one that cannot be read."""


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
    size: int
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Its lines."""
        return self.text.split("\n")

    def excerpt(self, first: int, last: int) -> str:
        """Some of its lines, counted from 1, both included."""
        return "\n".join(self.lines[first - 1 : last])

    def session(self, part: str = "") -> str:
        """Its name as a session, or that of a part of it."""
        session = session_of(self.path, self.project.root)
        return f"{session}#{part}" if part else session


@dataclass(frozen=True, slots=True)
class Part:
    """What goes into one route, as one transcript."""

    route: str
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file comes to.

    outcome  imported where there are parts, or why there are none
    rule     why its routes are those
    sha256, size  of a folder's files together; a file's are its own
    """

    outcome: Outcome
    shape: str
    parts: tuple[Part, ...] = ()
    rule: str = ""
    fields: tuple[Field, ...] = ()
    decisions: int = 0
    notes: int = 0
    why: str = ""
    sha256: str = ""
    size: int = 0


class Unreadable(Exception):
    """A file whose content cannot be told: no access, no text, no YAML or JSON; the message says which."""


def opened(project: Project, path: Path) -> Source:
    """A file with its text; Unreadable for anything else."""
    try:
        content = content_of(path, most=MAX_BYTES)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"no UTF-8 text: byte {0 if is_wide else error.start:,}") from None
    if "\0" in text:
        raise Unreadable("no text: it holds a NUL byte")
    text = handwritten.without_control(text.replace("\r\n", "\n").replace("\r", "\n"))
    return Source(project, path, name_of(project, path), hashlib.sha256(content).hexdigest(), len(content), text)


def beginning(path: Path, most: int = 4_096) -> str:
    """The first bytes of a file as text, "" for what is no regular file, or cannot be read."""
    try:
        with open(path, "rb", opener=not_through_a_link) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            text = file.read(most).decode("utf-8-sig", "replace")
            return text.replace("\r\n", "\n").replace("\r", "\n")
    except OSError:
        return ""


def name_of(project: Project, path: Path) -> str:
    """A path as reports name it: from the project on, whole where it lies outside."""
    whole = path.absolute()
    for base in (project.root.absolute(), project.root.resolve()):
        if whole == base or base in whole.parents:
            return clean(whole.relative_to(base).as_posix())
    return clean(whole.as_posix())


def notes(
    source: Source, events: Iterable[Event], *, part: str = "", what: str, attempt: Attempt | None = None
) -> Notes:
    """Notes of a source as a transcript of what somebody brought.

    part     which part of it, where it has several
    attempt  the run that this part is of, if it is one
    """
    return Notes(source.path, source.session(part), events, format=what, origin="import", attempt=attempt)


def leaves(tree: object, at: str = "") -> list[str]:
    """The names of all values of a tree, `[]` for the items of a list, each as often as it is there; an empty list or
    mapping is a value.
    """
    if isinstance(tree, Mapping) and tree:
        return [name for key, value in tree.items() for name in leaves(value, f"{at}.{key}" if at else str(key))]
    if isinstance(tree, list) and any(isinstance(item, (Mapping, list)) for item in tree):
        return [name for item in tree for name in leaves(item, f"{at}[]")]
    return [at] if at else []


def accounted(tree: Mapping[str, Any], fates: Mapping[str, tuple[str, str]], default: tuple[str, str]) -> list[Field]:
    """An account of all values of a tree.

    fates    by the beginning of a name (`work_queue`), fate and where; the longest that fits counts
    default  of the others
    """
    counted: dict[str, int] = {}
    for name in leaves(tree):
        counted[name] = counted.get(name, 0) + 1
    made = []
    for name, count in counted.items():
        keys = sorted((key for key in fates if _begins(name, key)), key=len)
        fate, where = fates[keys[-1]] if keys else default
        made.append(Field(name, fate, where, count))  # type: ignore[arg-type]
    return made


def _begins(name: str, key: str) -> bool:
    return name == key or name.startswith((f"{key}.", f"{key}["))


def in_words(value: object, *, mark: str = "") -> str:
    """A value in words, on one line; `mark` stands behind the names of what a mapping holds."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}{mark} {in_words(inner, mark=mark)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(in_words(item, mark=mark) for item in value)
    return "" if value is None else plain(str(value))


def text_of(lines: Sequence[Line]) -> str:
    """Lines as they stand, without the blank ones and rules around them."""
    kept = list(lines)
    while kept and (not kept[-1].text.strip() or kept[-1].rule):
        kept.pop()
    while kept and (not kept[0].text.strip() or kept[0].rule):
        kept.pop(0)
    return "\n".join(line.text for line in kept)

"""Writes the logs of opencode's sessions: what its plugin sends, redacted before it touches the disk.

The plugin starts one such process, sends it a line of JSON for each record, and never waits for it: rules take long to
load, and a client's turn must not. It ends with its input, so what was sent before the client was killed is written.
Where it fails, it writes nothing that is not redacted and ends with status 1; opencode's database still has the
session, and the plugin sends all of it again. A record that a log has is not written twice.

    {"cwd": DIRECTORY}                      the first line
    {"session": ID, "record": {…}}          append a record; the first one of a session is of the type `session`
    {"sync": NUMBER}                        print the number once everything before is in the logs
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ralf import environment, project as projects
from ralf.errors import UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.redact.redactor import Redactor
from ralf.storage import files
from ralf.storage.files import open_single_link
from ralf.text.patterns import regex
from ralf.transcripts import opencode
from ralf.transcripts.events import START, Event, Kind, arguments, leaves, words
from ralf.transcripts.lines import parsed
from ralf.transcripts.reader import OPENCODE_LOGS
from ralf_integrations.hooks import error_log

MOST = 256 << 20
"""Bytes that a log has at most."""

LONGEST = 1 << 20
"""Characters of a text that are kept: of a longer one its ends."""

_MOST_KNOWN = 1_000  # secrets that are looked for again
_SESSION = regex(r"[A-Za-z0-9_-]{1,64}")
_TEXTS = ("text", "output", "error")
_PLAIN = ("type", "role", "id", "tool", "status", "client", "session")  # words of the client
_FOLDERS = ("directory", "cwd")  # of any name: nothing in it is cleaned away
_FIGURES = ("time", "window", "tokens", "exit", "summary", "synthetic", "created")
_KINDS: Mapping[str, Kind] = {"reasoning": "thinking", "call": "call", "result": "result", "message": "other"}

Key = tuple[str, str, bool]


def run(lines: Iterable[bytes], say: Callable[[str], object]) -> int:
    """Write what the plugin sends, to the end of its input; returns the exit status.

    say  writes a text to standard output
    """
    project: Project | None = None
    try:
        logs: dict[str, SessionLog] = {}
        for line in lines:
            tree = parsed(line)
            if tree is None:
                continue  # cut by the end of the client, or nested too deep
            if project is None:
                project = projects.find(here=Path(str(tree.get("cwd"))))
                if not project.owner.has_opted_in:
                    return 1
            elif isinstance(tree.get("sync"), int):
                say(f"{tree['sync']}\n")
            elif isinstance(tree.get("record"), dict):
                _append(project, logs, words(tree.get("session")), tree["record"])
    except Exception as error:  # noqa: BLE001  # nothing that is not redacted is written
        if project is not None:
            error_log.add(project, "session log", error)
        return 1
    return 0


def _append(project: Project, logs: dict[str, SessionLog], session: str, record: Mapping[str, Any]) -> None:
    home = environment.opencode_folder()
    if home is None or not _SESSION.fullmatch(session):
        return
    if session not in logs:
        folder = home / OPENCODE_LOGS
        files.make(folder)
        logs[session] = SessionLog(folder / f"{session}.jsonl", redactor_for(project))
    try:
        logs[session].append(record)
    except LogFull as error:
        error_log.add(project, "session log", error)
    except RecursionError:
        error_log.add(project, "session log", UsageError(session, "a record is nested too deep: left out of its log"))


class LogFull(UsageError):
    """A log has reached its size: what follows is not logged."""


class SessionLog:
    """The log of a session, to which several processes may append: one for each window of the client."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._known: dict[str, str] = {}  # random secrets, and their markers
        self._written: set[Key] = set()
        self._header: Mapping[str, Any] = {}
        self._file = (0, 0)  # its device and number
        self._end = 0

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record without its secrets, if the log does not have it. LogFull; OSError where it cannot be
        written.
        """
        if record.get("type") == "session":
            self._header = {**record, "log": opencode.VERSION}
            record = self._header
        key = _key(record)
        if key in self._written and not self._has_moved():
            return
        known = set(self._known)
        data = _line(self._redacted(record))
        with open(self._path, "a+b", opener=open_single_link) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            torn = self._catch_up(file)
            if key in self._written:
                return
            if not self._end and key[0] != "session":  # it was deleted meanwhile
                data = _line(self._redacted(self._header)) + data
            if self._end + len(data) > MOST:
                what = f"has {MOST >> 20} MB, the most for the log of a session: what follows is not read"
                raise LogFull(self._path, what, "start a new session")
            file.write(b"\n" * torn + data)
            file.flush()
            self._end = file.tell()
            self._written.add(key)
        self._mask(self._known.keys() - known)
        for secret in list(self._known)[:-_MOST_KNOWN]:
            del self._known[secret]

    def _has_moved(self) -> bool:
        """Whether the log is another file than the one that was written last."""
        with suppress(OSError):
            found = self._path.stat()
            return (found.st_dev, found.st_ino) != self._file or found.st_size < self._end
        return True

    def _catch_up(self, file: BinaryIO) -> bool:
        """Learn what others have appended; returns whether the last line was torn."""
        found = os.fstat(file.fileno())
        if (found.st_dev, found.st_ino) != self._file or found.st_size < self._end:
            self._file, self._end = (found.st_dev, found.st_ino), 0
            self._written.clear()
        file.seek(self._end)
        for line in file:
            if not line.endswith(b"\n"):
                break
            record = parsed(line) or {}
            if not self._end and record.get("log") != opencode.VERSION:  # of a version that did not redact
                file.truncate(0)
                return False
            self._written.add(_key(record))
            self._end += len(line)
        return self._end < found.st_size

    def _redacted(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record without its secrets, and without what ralf does not know."""
        made: dict[str, Any] = {name: words(record[name]) for name in _PLAIN if isinstance(record.get(name), str)}
        made |= {name: record[name] for name in _FOLDERS if isinstance(record.get(name), str)}
        made |= {name: _figures(record[name]) for name in _FIGURES if name in record}
        if "log" in record:
            made["log"] = opencode.VERSION
        kind = _KINDS.get(made.get("type", ""), "user" if record.get("role") == "user" else "assistant")
        for name in _TEXTS:
            if isinstance(record.get(name), str):
                made[name] = _ends(self._event(Event(kind, words(record[name]), START, START)).text)
        if isinstance(record.get("input"), dict):
            given = arguments(record["input"])
            event = Event("call", leaves(given), START, START, tool=made.get("tool", ""), input=given)
            made["input"] = _ends(dict(self._event(event).input))
        return made

    def _event(self, event: Event) -> Event:
        after = [Event(event.kind, "\n", START, START)]  # a record is whole: its end may be judged
        (found,), _ = self._redactor.events([event], following=after, known=self._known)
        return found

    def _mask(self, secrets: Iterable[str]) -> None:
        """Mask in the log what is known for a secret only now."""
        for secret in secrets:
            with suppress(FileNotFoundError):
                opencode.mask(self._path, partial(_places, json.dumps(secret, ensure_ascii=False)[1:-1]))


def _key(record: Mapping[str, Any]) -> Key:
    """What tells a record again: a message is logged when it begins and when it is complete."""
    return words(record.get("type")), words(record.get("id")), "tokens" in record


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _places(secret: str, text: str) -> Iterable[tuple[int, int]]:
    place = text.find(secret)
    while place >= 0:
        yield place, place + len(secret)
        place = text.find(secret, place + len(secret))


def _ends(tree: Any) -> Any:
    """A tree with the ends alone of every string that is too long."""
    if isinstance(tree, str):
        half = LONGEST // 2
        return tree if len(tree) <= LONGEST else f"{tree[:half]}\n…\n{tree[-half:]}"
    if isinstance(tree, dict):
        return {_ends(key): _ends(item) for key, item in tree.items()}
    return [_ends(item) for item in tree] if isinstance(tree, list) else tree


def _figures(tree: Any) -> Any:
    """Numbers and truth values, in objects as deep as the client's own; None for anything else."""
    if isinstance(tree, dict):
        return {name: _figures(item) for name, item in tree.items() if not isinstance(item, str | list)}
    return tree if isinstance(tree, int | float | bool) else None


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]

"""Writes the logs of opencode's sessions: what its plugin sends, redacted before it touches the disk.

The plugin starts one such process, sends it a line of JSON for each record, and never waits for it: rules take long to
load, and a client's turn must not. It ends with its input, so what was sent before the client was killed is written.
Where it fails, it writes nothing that is not redacted and ends with status 1; opencode's database still has the
session, and the plugin sends all of it again. A record that a log has is not written twice.

    {"cwd": DIRECTORY}                      the first line
    {"session": ID, "record": {…}}          append a record; the first one of a session is of the type `session`
    {"session": ID, "deleted": true}        delete the log, and write no more to it
    {"sync": NUMBER}                        print the number once everything before is in the logs
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ralf import environment, project as projects
from ralf.errors import TranscriptNotFound, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.redact.marks import Span, markers, merged
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

_MOST_KNOWN = 1_000  # secrets that are looked for again
_SESSION = regex(r"[A-Za-z0-9_-]{1,64}")
_TEXTS = ("text", "output", "error")
_PLAIN = (  # words of the client
    *("type", "role", "id", "call", "message", "tool", "status", "finish", "failure", "client", "session"),
)
_FOLDERS = ("directory", "cwd")  # of any name: nothing in it is cleaned away
_FIGURES = ("time", "window", "tokens", "exit", "summary", "synthetic", "ignored", "created")
_KINDS: Mapping[str, Kind] = {"reasoning": "thinking", "call": "call", "result": "result", "message": "other"}

Key = tuple[str, str, bool]


def run(lines: Iterable[bytes], say: Callable[[str], object]) -> int:
    """Write what the plugin sends, to the end of its input; returns the exit status.

    say  writes a text to standard output
    """
    project: Project | None = None
    logs: dict[str, SessionLog] = {}
    try:
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
            elif (log := _log(project, logs, words(tree.get("session")))) is None:
                continue
            elif isinstance(tree.get("record"), dict):
                try:
                    log.append(tree["record"])
                except LogFull as error:
                    error_log.add(project, "session log", error)
                except RecursionError:
                    what = UsageError(log.path, "a record is nested too deep: left out of its log")
                    error_log.add(project, "session log", what)
            elif tree.get("deleted") is True:
                log.delete()
    except Exception as error:  # noqa: BLE001  # nothing that is not redacted is written
        if project is not None:
            error_log.add(project, "session log", error)
        return 1
    return 0


def _log(project: Project, logs: dict[str, SessionLog], session: str) -> SessionLog | None:
    """The log of a session; None where it can have none."""
    home = environment.opencode_folder()
    if home is None or not _SESSION.fullmatch(session):
        return None
    if session not in logs:
        files.make(home / OPENCODE_LOGS)
        path = home / OPENCODE_LOGS / f"{session}.jsonl"
        logs[session] = SessionLog(path, redactor_for(project), directory=str(project.root))
    return logs[session]


class LogFull(UsageError):
    """A log has reached its size: what follows is not logged."""


class SessionLog:
    """The log of a session, to which several processes may append: one for each window of the client."""

    def __init__(self, path: Path, redactor: Redactor, *, directory: str = "") -> None:
        self.path = path
        self._redactor = redactor
        self._known: dict[str, str] = {}  # random secrets, and their markers
        self._markers: dict[str, str] = {}  # that the log has, by their tags: other processes knew other secrets
        self._header: Mapping[str, Any] = {
            "type": "session",
            "client": "opencode",
            "log": opencode.VERSION,
            "session": path.stem,
            "directory": directory,
        }
        self._is_deleted = False
        # what was read of the log, as far as it is still the same file
        self._file = (0, 0)  # its device and number
        self._end = 0
        self._written: set[Key] = set()
        self._has_header = False

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record without its secrets, if the log does not have it. LogFull; OSError where it cannot be
        written.
        """
        if record.get("type") == "session":
            self._header = record = {**record, "log": opencode.VERSION}
        if self._is_deleted:
            return
        known, key = set(self._known), _key(record)
        try:
            with open(self.path, "a+b", opener=open_single_link) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                torn = self._catch_up(file)
                if key not in self._written:
                    self._write(file, key, self._redacted(record), torn=torn)
        finally:
            self._mask([secret for secret in self._known if secret not in known])
        for secret in list(self._known)[:-_MOST_KNOWN]:
            del self._known[secret]

    def delete(self) -> None:
        """Delete the log. What is appended later is left out."""
        self._is_deleted = True
        with suppress(FileNotFoundError), open(self.path, "r+b", opener=open_single_link) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process may be writing a record
            self.path.unlink(missing_ok=True)

    def _write(self, file: BinaryIO, key: Key, record: Mapping[str, Any], *, torn: bool) -> None:
        data = _line(record)
        if not self._has_header and key[0] != "session":  # it was deleted meanwhile
            data = _line(self._redacted(self._header)) + data
        end = file.seek(0, os.SEEK_END)
        if end + len(data) > MOST:
            what = f"has {MOST >> 20} MB, the most for the log of a session: what follows is not read"
            raise LogFull(self.path, what, "start a new session")
        file.write(b"\n" * torn + data)
        file.flush()

    def _catch_up(self, file: BinaryIO) -> bool:
        """Learn what was appended, by us and by others; returns whether the last line was torn."""
        found = os.fstat(file.fileno())
        if (found.st_dev, found.st_ino) != self._file or found.st_size < self._end:
            self._file, self._end = (found.st_dev, found.st_ino), 0
            self._has_header = False
            self._written.clear()
        file.seek(self._end)
        for line in file:
            if not line.endswith(b"\n"):
                break
            self._end += len(line)
            record = parsed(line)
            if record is None:
                continue  # torn
            self._has_header = self._has_header or record.get("type") == "session"
            self._written.add(_key(record))
            self._markers |= markers(line.decode("utf-8", "replace"))
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
                made[name] = self._event(Event(kind, words(record[name]), START, START)).text
        if isinstance(record.get("input"), dict):
            made["input"] = self._given(record["input"], made.get("tool", ""))
        if isinstance(record.get("answers"), list):
            made |= self._given({"answers": record["answers"]}, made.get("tool", ""))
        return made

    def _given(self, value: Mapping[str, Any], tool: str) -> Any:
        given = arguments(value)
        event = Event("call", leaves(given), START, START, tool=tool, input=given)
        return dict(self._event(event).input)

    def _event(self, event: Event) -> Event:
        self._known |= self._redactor.recognized(event.text, self._markers)
        after = [Event(event.kind, "\n", START, START)]  # a record is whole: its end may be judged
        (found,), _ = self._redactor.events([event], following=after, known=self._known)
        return found

    def _mask(self, secrets: Iterable[str]) -> None:
        """Mask in the log what is known for a secret only now."""
        escaped = [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets]
        with suppress(FileNotFoundError, TranscriptNotFound):
            data = files.content_of(self.path, most=MOST) if escaped else b""
            if there := [secret for secret in escaped if secret.encode("utf-8", "replace") in data]:
                opencode.mask(self.path, lambda text: _places(there, text))


def _key(record: Mapping[str, Any]) -> Key:
    """What tells a record again: a message is logged when it begins and when it is complete."""
    return words(record.get("type")), words(record.get("id")), "tokens" in record


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _places(secrets: Iterable[str], text: str) -> Iterable[tuple[int, int]]:
    """Where secrets stand in a text, in order, none over another."""
    found = (Span(place.start(), place.end(), "") for one in secrets for place in re.finditer(re.escape(one), text))
    return [(span.start, span.end) for span in merged(found)]


def _figures(tree: Any) -> Any:
    """Numbers and truth values, in objects as deep as the client's own; None for anything else."""
    if isinstance(tree, dict):
        return {name: _figures(item) for name, item in tree.items() if not isinstance(item, str | list)}
    return tree if isinstance(tree, int | float | bool) else None

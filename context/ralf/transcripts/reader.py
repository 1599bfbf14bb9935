"""Transcripts: found where clients keep them, and opened by their format as one stream of events."""

from __future__ import annotations

import json
import math
import os
import posixpath
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ralf import environment, extensions
from ralf.errors import DamagedTranscript, RalfError
from ralf.project import Project
from ralf.storage import git_files
from ralf.storage.files import open_regular
from ralf.text.patterns import regex
from ralf.transcripts.events import START, Event, Position

if TYPE_CHECKING:
    from ralf.model import Attempt
    from ralf.transcripts.lines import Fingerprint, Head


_FIRST_EVENTS = 500  # events among which a session's first request is looked for


class Transcript(Protocol):
    """A session log of one format, or documents that were written down.

    path     the file; of documents, the folder in which they lie
    format   "claude-code", "codex", "gemini", "opencode", "chat", "text"; of documents, what they are: "run folder"
    session  the session's id; the file's name without its suffix where the format has none. Of documents, their path
             (`notes.session_of`)
    cwd      the first working directory that the head of the file names, or ""
    branch   the first git branch that the head of the file names, or ""
    origin   who made the decisions that stand in fields of its notes: "agent" or "import"; "" where there are none
    attempt  the run of a loop that the documents are of, and how it ended; None where they are of none
    skipped  records that were not used, by reason or type, in the last reading: "sidechain", "malformed", "oversized"
    rewritten  it is not only appended to: each reading gives all of it, and new is what has not been taken before
             (`notes.new`). Nobody asks its places, nor `mark`
    """

    path: Path
    format: str
    session: str
    cwd: str
    branch: str
    origin: str
    rewritten: bool
    attempt: Attempt | None
    skipped: Counter[str]
    malformed: list[int]
    """Numbers, from 1, of the first lines that could not be read."""

    @property
    def end(self) -> Position:
        """The place after the last complete record that was consumed by the last reading."""
        ...

    def size(self) -> int:
        """Bytes of it now. OSError where it is gone."""
        ...

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of what lies before a place; None where it is shorter than that. OSError where it is gone."""
        ...

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events that begin after a place: the start, an event's `start` or `end`, or `end` of an earlier reading.

        Reads at most 64 KiB before it, to know what is going on there. An unfinished last record waits for the next
        reading. Raises TranscriptChanged where the file has become shorter than that, and what `open_transcript` raises
        where it is gone or no longer a file.
        """
        ...


class TranscriptReader(Protocol):
    """Reads what a client leaves that is of no format of ours: an entry point of the group `ralf.transcripts`.

    path    a folder, or a file that is no log of a client that we know
    head    the first bytes of the file; None for a folder
    root    the project's directory: documents in it are called by their path there (`notes.session_of`)
    logged  the log of a client's session has told what was said in it: that is left out

    Returns the transcript, of documents a `notes.Notes`; None where it is not of its format. It may raise a
    DamagedTranscript that says what the format would need: the others are asked all the same, and it is raised where
    nobody reads the folder.
    """

    def __call__(self, path: Path, head: Head | None, *, root: Path, logged: bool) -> Transcript | None:
        """See the class."""
        ...


def readers() -> Iterator[Callable[[Path, Head], Transcript | None]]:
    """What reads a format, asked in this order; each answers None where the file is not of its format.

    A new format is one module and one entry here, before `notes`, which refuses what is no session; or a
    `TranscriptReader` of another distribution, which is asked about what is refused.
    """
    from ralf.transcripts import claude_code  # each when it is asked: a hook has time for its own client's alone

    yield claude_code.reader
    from ralf.transcripts import codex

    yield codex.reader
    from ralf.transcripts import gemini

    yield gemini.reader
    from ralf.transcripts import opencode

    yield opencode.reader
    from ralf.transcripts import chat

    yield chat.reader
    from ralf.transcripts import notes

    yield notes.reader


def open_transcript(path: Path, *, root: Path | None = None, as_text: bool = False, logged: bool = False) -> Transcript:
    """The transcript in a file, whose format is told by its content (at most 256 KiB are read), or in a run's folder.

    root     the project's directory: a run is called by its folder's path in it
    logged   of a folder: a client's log has told what was said in its run
    as_text  read the file as a document, whatever it holds: its paragraphs are notes of the origin "import", and none
             of it was said by anybody

    Raises TranscriptNotFound; DamagedTranscript (a folder, a pipe, a binary file, a text that is no session, JSON of no
    known client, JSON lines of which none can be read); UsageError (a path that cannot be one); RalfError (not
    readable).
    """
    from ralf.transcripts.lines import Head

    head: Head | None = None
    try:
        head = Head.read(path)
        if as_text:
            from ralf.transcripts import notes

            return notes.document(path, head)
        return next(found for reader in readers() if (found := reader(path, head)) is not None)
    except DamagedTranscript as error:
        if as_text or (head is None and not path.is_dir()):
            raise
        return _of_an_extension(path, head, root or path.parent, error, logged=logged)


def _of_an_extension(
    path: Path, head: Head | None, root: Path, error: DamagedTranscript, *, logged: bool
) -> Transcript:
    """What an extension reads; where none does, what the first of them says that it needs is raised, else `error`."""
    refused: list[DamagedTranscript] = []

    def read(reader: TranscriptReader) -> Transcript | None:
        try:
            return reader(path, head, root=root, logged=logged)
        except DamagedTranscript as refusal:
            refused.append(refusal)
            return None

    found = next(filter(None, extensions.ask(extensions.TRANSCRIPTS, read)), None)
    if found is None:
        raise next(iter(refused), error)
    return found


def requests(transcript: Transcript) -> Iterator[str]:
    """What a person asked for among a session's first events, in order. Raises what `events` does."""
    return (event.text for event in islice(transcript.events(), _FIRST_EVENTS) if event.kind == "user")


# ---- what counts towards a checkpoint: the one place that says so ----


def counted(event: Event) -> str:
    """Returns the text of an event that counts: all but the client's own summary of a window that it compacted."""
    return "" if event.kind == "compaction" else event.text


def estimate_since(source: Transcript, after: Position = START, *, most: float = math.inf) -> int:
    """Estimates the o200k_base tokens of a transcript behind a place. Raises as reading does.

    most  bytes that are read; what lies beyond them is taken to hold as many tokens a byte. All by default
    """
    from ralf.text import tokens  # a hook has an estimate of its own

    found = 0
    for event in source.events(after):
        found += tokens.estimate(counted(event))
        read = event.end.byte - after.byte
        if read > most:
            return round(found * (source.size() - after.byte) / read)
    return found


# ---- the logs that the user's own clients have written ----

# A log that no command line named is read only from these folders, and only where the client keeps logs there: beside
# them lie outputs of tools, word for word. A payload, a cache or an agent may name any file.
#
#     Claude Code   $CLAUDE_CONFIG_DIR/projects, else ~/.claude/projects
#     Codex         $CODEX_HOME/sessions, else ~/.codex/sessions
#     Gemini CLI    $GEMINI_CLI_HOME/.gemini/tmp, else ~/.gemini/tmp
#     opencode      $XDG_DATA_HOME/opencode/ralf, else ~/.local/share/opencode/ralf

_LOGS = (
    regex(r"\A[^/]+/(?:[^/]+/subagents/(?:[^/]+/)*)?[^/]+\.jsonl\Z"),
    regex(r"\A(?:[^/]+/)*rollout-[^/]+\.jsonl\Z"),
    regex(r"\A[^/]+/chats/session-[^/]+\.jsonl?\Z"),
    regex(r"\A[^/]+\.jsonl\Z"),
)
"""Where in its folder a client keeps logs, in the order of `_session_folders`."""


def is_own_log(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a log in a session folder of the user's clients, by its real path, and is a regular
    file of this user there, or nothing yet. A file that git tracks came with a repository, wherever it lies. Never
    an error.
    """
    try:
        real = os.path.realpath(path)
        places = zip(_session_folders(), _LOGS, strict=True)
        folder, log = next(((each, log) for each, log in places if each and real.startswith(f"{each}/")), ("", None))
        if log is None or not log.match(real[len(folder) + 1 :]):
            return False
        found = Path(real).stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    is_users = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    return is_users and not git_files.tracks(Path(folder), Path(real))  # a repository can contain the session folder


def _session_folders() -> tuple[str, ...]:
    claude, codex = environment.claude_folder(), environment.codex_folder()
    gemini, opencode = environment.gemini_folder(), environment.opencode_folder()
    places = (
        *(claude and claude / "projects", codex and codex / "sessions"),
        *(gemini and gemini / "tmp", opencode and opencode / OPENCODE_LOGS),
    )
    return tuple(_real(os.fspath(place.absolute())) if place else "" for place in places)


@lru_cache(maxsize=16)
def _real(place: str) -> str:
    return os.path.realpath(place)


# ---- the transcripts of a project or of a session ----


_ID = regex(r"[A-Za-z0-9_-]{1,64}")

_OF_AN_ID = 8  # characters of a session's id in the name of Gemini CLI's log

OPENCODE_LOGS = "ralf"
"""The folder in which ralf's plugin keeps the logs of opencode's sessions, in the client's folder of data."""

_FIRST = 4 << 10  # bytes in which Codex's newer versions say where a session works

_HEAD = 64 << 10  # bytes in which older ones do

_CWD = regex(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")|<cwd>([^<>\\\n"]{1,4096})</cwd>')

_OTHERS = regex(rb'"source"\s*:\s*\{\s*"(?:subagent|internal)"|"thread_source"\s*:\s*"(?!user")')

LOOKED_AT = 200
"""Codex keeps the sessions of all projects in one place: how many beginnings are read to find a project's newest."""


def newest_logs(project: Project, *, most: int = LOOKED_AT) -> list[Path]:
    """This project's transcripts of all clients, newest first; [] where none is kept, or nobody may look.

    Of Codex and opencode those that are among the `most` newest sessions of all projects.
    """
    found = [*logs_of_claude_code(project), *logs_of_codex(project, most=most)]
    found += [*logs_of_gemini(project), *logs_of_opencode(project, most=most)]
    return [path for _, path in sorted(found, reverse=True)]


def log_of_session(session: str, *, most: int = LOOKED_AT) -> Path | None:
    """The transcript of a session, wherever it works; None where no client keeps it. Of Codex as in `newest_logs`."""
    if not _ID.fullmatch(session):
        return None
    claude, codex = environment.claude_folder(), environment.codex_folder()
    folders = _named(claude / "projects") if claude is not None else []
    kept = (path for folder in folders if (path := folder / f"{session}.jsonl").is_file())
    found = next(filter(is_own_log, kept), None) or _log_by_name(session)
    if found is not None or codex is None:
        return found
    rollouts = (path for path in islice(_rollouts(codex / "sessions"), most) if path.stem.endswith(f"-{session}"))
    return next(filter(is_own_log, rollouts), None)


def logs_of_gemini(project: Project) -> Iterator[tuple[float, Path]]:
    """Gemini CLI's transcripts of a project, and when each was last written, in no particular order."""
    home, roots = environment.gemini_folder(), _roots(project)
    for folder in _named(home / "tmp") if home is not None else ():
        if logs := [path for path in _named(folder / "chats") if path.suffix in (".jsonl", ".json")]:
            from ralf.transcripts import gemini  # few have any

            if gemini.project_of(logs[0]) in roots:
                yield from _own(logs)


def logs_of_opencode(project: Project, *, most: int = LOOKED_AT) -> Iterator[tuple[float, Path]]:
    """The logs of opencode's sessions in a project or a folder of it, and when each was last written.

    `most` beginnings are read, of those that were written last.
    """
    home, roots = environment.opencode_folder(), _roots(project)
    found = list(_own(path for path in _named(home / OPENCODE_LOGS) if path.suffix == ".jsonl")) if home else []
    for when, path in sorted(found, reverse=True)[:most]:
        with suppress(OSError, ValueError, RecursionError, AttributeError), open_regular(path) as file:
            directory = json.loads(file.readline(_FIRST)).get("directory")
            if isinstance(directory, str) and _is_within(posixpath.normpath(directory), roots):
                yield when, path


def _own(paths: Iterable[Path]) -> Iterator[tuple[float, Path]]:
    """The paths that are logs of this user, and when each was last written."""
    for path in paths:
        with suppress(OSError):  # the client has removed it meanwhile
            if is_own_log(path):
                yield path.stat().st_mtime, path


def _roots(project: Project) -> set[str]:
    return {os.fspath(project.root), os.path.realpath(project.root)}


def _is_within(folder: str, roots: Iterable[str]) -> bool:
    return any(folder == root or folder.startswith(root.rstrip("/") + "/") for root in roots)


def log_of_opencode(session: str) -> Path | None:
    """The log of a session of opencode; None where ralf keeps none."""
    home = environment.opencode_folder()
    if home is None or not _ID.fullmatch(session):
        return None
    path = home / OPENCODE_LOGS / f"{session}.jsonl"
    return path if path.is_file() and is_own_log(path) else None


def _log_by_name(session: str) -> Path | None:
    """The transcript of a session of Gemini CLI, whose name holds the beginning of its id, or of opencode."""
    gemini, found = environment.gemini_folder(), list(filter(None, [log_of_opencode(session)]))
    for folder in _named(gemini / "tmp") if gemini is not None else ():
        found += [path for path in _named(folder / "chats") if path.stem.endswith(f"-{session[:_OF_AN_ID]}")]
    for path in found:
        with suppress(RalfError, OSError):
            if path.is_file() and is_own_log(path) and open_transcript(path).session == session:
                return path
    return None


def logs_of_claude_code(project: Project) -> Iterator[tuple[float, Path]]:
    """Claude Code's transcripts of a project, and when each was last written, in no particular order."""
    home = environment.claude_folder()
    if home is None:
        return
    folder = home / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root))
    with suppress(OSError):
        yield from _own(folder.glob("*.jsonl"))


def logs_of_codex(project: Project, *, most: int = LOOKED_AT) -> Iterator[tuple[float, Path]]:
    """Codex's transcripts of a project, and when each was last written: those that began last come first.

    A session is the project's where its working directory is the project's or lies in it. Sessions of the client's own
    agents are left out. `most` beginnings are read.
    """
    home = environment.codex_folder()
    if home is None:
        return
    roots = _roots(project)
    for path in islice(_rollouts(home / "sessions"), most):
        with suppress(OSError):
            if _is_within(posixpath.normpath(_working_directory(path)), roots) and is_own_log(path):
                yield path.stat().st_mtime, path


def _rollouts(folder: Path) -> Iterator[Path]:
    """All rollouts, those of the newest day first; a day's folder is `YYYY/MM/DD`, its files have their time's name."""
    for year in _named(folder):
        for month in _named(year):
            for day in _named(month):
                for path in _named(day):
                    if path.name.startswith("rollout-") and path.suffix == ".jsonl":
                        yield path


def _named(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), reverse=True)
    except OSError:
        return []


def _working_directory(path: Path) -> str:
    """Where the session of a rollout works; "" where it does not say, or is none of the user's own."""
    with open_regular(path, follow=True, buffering=0) as file:
        data = file.read(_FIRST)
        found = _CWD.search(data) or _CWD.search(data := data + file.read(_HEAD))
    if found is None or _OTHERS.search(data[:_FIRST]):
        return ""
    with suppress(ValueError):
        return str(json.loads(found[1])) if found[1] else found[2].decode()
    return ""

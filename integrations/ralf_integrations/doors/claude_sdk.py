"""Sessions of the Claude Agent SDK in a project's store: its `SessionStore`, and checkpoints of what is stored.

    options = ClaudeAgentOptions(session_store=RalfSessionStore())

The contract is that of claude-agent-sdk 0.2; `claude_agent_sdk.testing` holds this store to it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ralf import project as projects
from ralf.document.record import Record
from ralf.document.rows import Rows
from ralf.document.state import State
from ralf.errors import TranscriptChanged, TranscriptNotFound, UsageError
from ralf.project import Project
from ralf.storage import durable, files
from ralf.text import cleaning
from ralf_integrations.doors.entries import (
    Body,
    EntryStream,
    Made,
    Worker,
    delete,
    encoded,
    milliseconds,
    name_of,
    stamp,
)

if TYPE_CHECKING:
    from ralf.checkpointing.flow import CheckpointReport
    from ralf.checkpointing.section import Summarizer

T = TypeVar("T")

_SESSIONS = "sessions/"
_MAIN = "main"
_BATCH = "batch/"  # begins the keys of rows
_LEFT = 3_600  # seconds after which an export that a killed process left is removed


class _Session(EntryStream):
    """The stream of a session, or of one of its sub-agents: it knows the batches that it has."""

    def fold(self, rows: Rows, record: Record) -> None:
        """See `EntryStream.fold`."""
        if "batch" in record.body:
            rows.put(_BATCH + record.body["batch"], 1)


class RalfSessionStore:
    """A `SessionStore` of the Claude Agent SDK in a project's store.

    root         the project directory; see `ralf.project.find`
    project_key  one key for all sessions, in place of the SDK's, which is made from the folder in which the client
                 works: with it a session can be resumed in another folder. None: the SDK's

    An entry with a `uuid` is stored once, however often, by whichever process and in whichever batches it arrives, and
    one without is stored each time. Entries are opaque: given back equal, not redacted, not indexed. Every method is
    safe to call from several threads, event loops and processes.

    Errors: UsageError, Busy, DamagedJournal, DamagedBlob, OSError.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None, *, project_key: str | None = None) -> None:
        self._project = projects.find(root)
        self._project_key = project_key
        self._writer = Worker("ralf-sessions")  # writes in the order of the calls

    # ---- the SDK's protocol ----

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Append a batch of transcript entries in one record, durable when this returns."""
        if entries:
            await self._written(lambda: self._append(key, list(entries)))

    async def load(self, key: Mapping[str, Any]) -> list[Any] | None:
        """The entries of a session or of one of its sub-agents, oldest first; None if there are none."""
        return await _in_thread(lambda: list(self._entries(self._stream(key))) or None)

    async def list_sessions(self, project_key: str) -> list[Any]:
        """This user's sessions of a project key, each `{session_id, mtime}`; mtime in milliseconds since 1970."""
        found = await self.list_session_summaries(project_key)
        return [{name: one[name] for name in ("session_id", "mtime")} for one in found]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """The sessions of a project key, each as the SDK's `fold_session_summary` has made it."""
        above = f"{_SESSIONS}{name_of(self._key(project_key))}/"
        return await _in_thread(lambda: [_summary(fields) for fields in self._newest(above)])

    async def delete(self, key: Mapping[str, Any]) -> None:
        """Delete a session with its sub-agents, or one sub-agent; nothing of their entries is left on the disk."""
        await self._written(lambda: self._delete(key))

    async def list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """The subpaths of a session: one for each sub-agent."""
        return await _in_thread(lambda: [subpath for subpath, _ in self._subs(key)])

    # ---- beyond it ----

    def checkpoint(
        self,
        route: str,
        session_id: str,
        *,
        project_key: str | None = None,
        summarizer: Summarizer | str | None = None,
        reason: str = "manual",
        keep: Sequence[str] = (),
        restart: bool = False,
    ) -> CheckpointReport:
        """Checkpoint what is new in a stored session into a route, as `ralf.checkpoint` does with a client's log.

        project_key  whose session; None: the only one of this id
        restart      take it from its beginning: its stored entries have changed since

        Redacted like every checkpoint. Blocks: from a coroutine, call it by `asyncio.to_thread`. Raises
        TranscriptNotFound (no such session), and what `ralf.checkpoint` raises.
        """
        from ralf.checkpointing.flow import checkpoint

        self._project.once(Project.prepare)
        above = self._project.cache / "exports"
        self._project.make_room(above / "-", prepare=True)
        _remove_left(above)
        with tempfile.TemporaryDirectory(dir=above) as folder:
            path = self.export(session_id, folder, project_key=project_key)
            try:
                return checkpoint(
                    route,
                    path,
                    root=self._project.root,
                    summarizer=summarizer,
                    reason=reason,
                    keep=keep,
                    restart=restart,
                )
            except TranscriptChanged as error:  # a text was forgotten, or the client's own log was checkpointed before
                hint = f"store.checkpoint({route!r}, {session_id!r}, restart=True)"
                raise TranscriptChanged(session_id, error.what, hint) from None

    def export(self, session_id: str, folder: str | os.PathLike[str], *, project_key: str | None = None) -> Path:
        """Write a session as Claude Code does: `SESSION.jsonl` and `SESSION/subagents/…` in a folder; returns the log.

        project_key  whose session; None: the only one of this id

        Files are 0600 and replaced whole. A later export begins with the bytes of an earlier one, so a place in the
        file keeps its meaning. They are not redacted. Blocks. Raises TranscriptNotFound, UsageError (several sessions
        have this id, a subpath that leads elsewhere).
        """
        key = {"project_key": self._key_of(session_id, project_key), "session_id": session_id}
        top = Path(folder)
        log = top / f"{session_id if cleaning.is_valid(session_id) else name_of(session_id)}.jsonl"
        subs = {top.joinpath(log.stem, *_parts(subpath)): stream for subpath, stream in self._subs(key)}
        _write(log, self._entries(self._stream(key)))
        for path, stream in subs.items():  # after it: a sub-agent whose end it tells is there to its end
            _write(path, (entry for entry in self._entries(stream) if entry.get("type") != "agent_metadata"))
        return log

    # ---- one session ----

    def _append(self, key: Mapping[str, Any], entries: list[Any]) -> None:
        stream, subpath = self._stream(key), key.get("subpath") or ""
        digest = hashlib.sha256(encoded(entries)).hexdigest()[:40] if any(map(_id, entries)) else ""

        def made(state: State) -> Made | None:
            is_retry = digest and state.rows.one(_BATCH + digest) is not None
            new = [entry for entry in entries if not _id(entry)] if is_retry else entries
            if not new:
                return None
            before = stream.record(state.token) if state.token is not None else None
            fields = {"project": self._key(key["project_key"]), "session": key["session_id"], "at": stamp(before)}
            fields |= {"subpath": subpath} if subpath else {"summary": _folded(key, before, new)}
            return fields | ({"batch": digest} if digest and not is_retry else {}), new

        stream.append(made)

    def _entries(self, stream: EntryStream) -> Iterator[Any]:
        """The entries of a stream, each uuid once: other batches may have brought it before."""
        seen = set()
        for body in stream.records():
            for entry in stream.entries(body):
                id_ = _id(entry)
                if id_ not in seen:
                    yield entry
                if id_:
                    seen.add(id_)

    def _delete(self, key: Mapping[str, Any]) -> None:
        subs = [] if key.get("subpath") else [stream for _, stream in self._subs(key)]
        delete(self._project, [*subs, self._stream(key)])

    # ---- names ----

    def _key(self, given: str) -> str:
        return given if self._project_key is None else self._project_key

    def _stream(self, key: Mapping[str, Any]) -> EntryStream:
        subpath, above = key.get("subpath"), f"{_SESSIONS}{name_of(self._key(key['project_key']))}/"
        return _Session(self._project, f"{above}{name_of(key['session_id'])}/{name_of(subpath) if subpath else _MAIN}")

    def _subs(self, key: Mapping[str, Any]) -> Iterator[tuple[str, EntryStream]]:
        """The sub-agents of a session: subpath and stream."""
        above = self._stream({**key, "subpath": ""}).name.removesuffix(_MAIN)
        for name in sorted(self._project.store.streams(above)):
            stream = _Session(self._project, name)
            fields = stream.newest()
            if fields is not None and fields.get("subpath"):
                yield fields["subpath"], stream

    def _newest(self, above: str, below: str = f"/{_MAIN}") -> Iterator[Body]:
        """The newest record of each session of this user's whose stream's name begins and ends so."""
        for name in self._project.store.streams(above):
            with suppress(UsageError):  # not this user's: to load it says so
                fields = _Session(self._project, name).newest() if name.endswith(below) else None
                if fields is not None:
                    yield fields

    def _key_of(self, session_id: str, project_key: str | None) -> str:
        """The project key of a stored session."""
        wanted = self._key(project_key) if project_key is not None else self._project_key
        found = [str(fields["project"]) for fields in self._newest(_SESSIONS, f"/{name_of(session_id)}/{_MAIN}")]
        chosen = [each for each in found if wanted in (None, each)]
        if not chosen:
            raise TranscriptNotFound(session_id, "no such session is stored in this project")
        if len(chosen) > 1:
            what = f"{len(chosen)} projects have a session of this id: {', '.join(sorted(chosen))}"
            raise UsageError(session_id, what, "name one of them as project_key")
        return chosen[0]

    async def _written(self, work: Callable[[], T]) -> T:
        future = self._writer.submit(work)  # here, before anything is awaited: calls keep their order
        return await _in_thread(future.result)


def _folded(key: Mapping[str, Any], before: Mapping[str, Any] | None, entries: list[Any]) -> Any:
    """The session's summary with some more entries."""
    with _needing_sdk():
        from claude_agent_sdk import fold_session_summary  # whoever appends has loaded it
    known: Any = None if before is None else _summary(before)
    return fold_session_summary(known, key, entries)["data"]  # type: ignore[arg-type,unused-ignore]


def _summary(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The summary of a session as the SDK has it, of the fields of its newest record."""
    return {"session_id": fields["session"], "mtime": milliseconds(fields["at"]), "data": fields["summary"]}


async def _in_thread(work: Callable[[], T]) -> T:
    """What `work` returns, called in a thread of its own, under asyncio or trio. It is never abandoned half done."""
    with _needing_sdk():
        from anyio import to_thread  # of the SDK, whose event loop this runs in
    return await to_thread.run_sync(work)


@contextmanager
def _needing_sdk() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        what = "needs claude-agent-sdk, which is not installed"
        raise UsageError("RalfSessionStore", what, "pip install 'ralf-context[frameworks]'") from error


def _id(entry: Mapping[str, Any]) -> str:
    """The idempotency key of an entry, "" for none."""
    found = entry.get("uuid")
    return found if isinstance(found, str) else ""


def _parts(subpath: str) -> list[str]:
    """The path of a sub-agent's log below its session's folder. UsageError for one that may lead elsewhere."""
    parts = f"{subpath}.jsonl".split("/")
    if not all(map(cleaning.is_valid, parts)):
        raise UsageError(ascii(subpath), "refused as a path for a sub-agent's log", "store.load gives its entries")
    return parts


def _write(path: Path, entries: Iterable[Any]) -> None:
    """Write entries as JSON lines, as Claude Code does."""
    files.make(path.parent)
    durable.replace_durably(path, (encoded(entry) + b"\n" for entry in entries))


def _remove_left(folder: Path) -> None:
    """Remove the exports of processes that were killed."""
    for path in folder.iterdir():
        with suppress(OSError):
            if abs(time.time() - path.stat().st_mtime) > _LEFT:
                shutil.rmtree(path)

"""One JetStream stream as a log with many subjects: appends by compare-and-swap, reads that notice what they miss, and
chunks for what is too large for one message.

Requests are repeated until the call's time is over, and each append that got no answer is looked for where it would
have landed, so that it is never made twice.

Chunks lie on a subject that is new for each attempt to put something, and a header of another message names them. So
who dies before that message is written leaves chunks that nobody names, and `sweep` erases them. The client's object
store is none of that: what it removes it does not overwrite, and a forget has to.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import uuid4

from nats.aio.client import Client
from nats.js.api import RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NotFoundError

from ralf.errors import Damaged, UsageError
from ralf_integrations.stores.encryption import OTHER_KEY
from ralf_integrations.stores.nats_link import Link, extend

T = TypeVar("T")

ID = "Ralf-Id"
"""The header with the id of a message, percent-encoded."""

CHUNKS = "Ralf-Chunks"
"""The header that names chunks: their subject's last part, the sequence of the first and last one, and their sha256."""

_OWNER = "Ralf-Owner"  # of a chunk: the subject of the message that is to name it

_KEY = "ralf-key"  # of the stream's metadata: the id of the key with which its messages are encrypted

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"

_WRONG_SEQUENCE = (10071, 10164)
_NOT_ENOUGH_SERVERS = (10005, 10074)
_UNAVAILABLE = 503

_FIRST_ATTEMPT, _ATTEMPT = 0.25, 2.0  # seconds until a request is repeated: a server without a leader answers nothing
_BATCH_ATTEMPT = 8.0  # the same for half a megabyte: over a slow line one that is given up is in the way of the next
_PAUSE = 0.02  # seconds before it is
_NO_MORE = ("204", "404")  # the end of what a replica has, nothing at all

_BATCH, _BATCH_BYTES = 256, 1 << 19  # messages and bytes of one answer
_PROGRESS = 16.0  # seconds more that each of them gives a call
_SLOWEST = 250_000  # bytes a second: what is longer has more time

_ERASED_AT_ONCE = 32  # messages: each is a write of its own, and more would only wait
_ERASING = 600.0  # seconds for what erases many messages
_ABANDONED = 3600  # seconds after which chunks that nobody names count as left behind


class Message(NamedTuple):
    """A message as it lies in the log: its subject and sequence, its headers, its bytes, when it came in seconds since
    1970. One that is not there has the sequence 0.
    """

    subject: str = ""
    seq: int = 0
    headers: Mapping[str, str] = MappingProxyType({})
    data: bytes = b""
    time: float = 0.0


class Moved(Exception):
    """Somebody else has appended to the subject, or emptied it: nothing was appended."""


class Gone(Exception):
    """A message that was there when reading began is there no more."""


class Log:
    """The stream of a project on NATS servers, for calls (`nats_link.call`).

    name      of the JetStream stream
    root      of its subjects: all begin with it and a dot
    replicas  servers that keep each message
    key       the id of the key with which messages are encrypted
    ends      whether it keeps the newest message of each subject alone, which may end by itself
    kept      what its users know of its subjects
    """

    def __init__(self, link: Link, name: str, root: str, replicas: int, key: str, *, ends: bool = False) -> None:
        self.link = link
        self.name = name
        self.root = root
        self.kept: dict[str, Any] = {}
        self._replicas = replicas
        self._key = key
        self._ends = ends
        self._is_known = False

    # ---- reading ----

    def last(self, subject: str) -> Message:
        """The newest message of a subject, which may have wildcards, as the leader has it."""
        return self._got(subject=subject)

    def following(self, subject: str, seq: int) -> Message:
        """The first message of a subject after a sequence, as the leader has it."""
        return self._got(seq=seq + 1, subject=subject, next=True)

    def at(self, subject: str, seq: int) -> Message:
        """The message of a subject that has a sequence, as the leader has it."""
        found = self.following(subject, seq - 1)
        return found if found.seq == seq else Message()

    def span(self, subject: str, first: int, last: int) -> list[Message]:
        """All messages of a subject from one sequence to another, which the leader has named.

        Any replica may answer; one that lags is asked again. Gone when the last one is there no more.
        """
        found: list[Message] = []
        while last and (not found or found[-1].seq < last):
            batch = [each for each in self._batch(subject, found[-1].seq + 1 if found else first) if each.seq <= last]
            found += batch
            if batch:
                extend(_PROGRESS)
            elif not self.at(subject, last).seq:
                raise Gone
            else:
                time.sleep(_PAUSE)
        return found

    def _batch(self, subject: str, first: int) -> list[Message]:
        """The messages of a subject from a sequence on, up to some hundreds or half a megabyte, as one replica has."""
        asked = json.dumps({"seq": first, "next_by_subj": subject, "batch": _BATCH, "max_bytes": _BATCH_BYTES}).encode()

        async def attempt(client: Client) -> list[Message] | None:
            inbox, found = client.new_inbox(), list[Message]()
            subscription = await client.subscribe(inbox)
            try:
                await client.publish(f"$JS.API.DIRECT.GET.{self.name}", asked, reply=inbox)
                while len(found) < _BATCH:
                    answer = await subscription.next_msg(timeout=_BATCH_ATTEMPT)
                    status = (answer.headers or {}).get("Status", "")
                    if status in _NO_MORE:
                        break
                    if status:
                        return None
                    headers = dict(answer.headers or {})
                    seq, when = int(headers["Nats-Sequence"]), _seconds(headers["Nats-Time-Stamp"])
                    message = Message(headers["Nats-Subject"], seq, headers, answer.data, when)
                    if message.seq < (found[-1].seq + 1 if found else first):
                        raise ValueError("a message out of order")  # which would be asked for again and again
                    found.append(message)
            finally:
                await subscription.unsubscribe()
            return found

        return self._repeated(attempt, _ATTEMPT, _BATCH_ATTEMPT)

    def subjects(self, pattern: str) -> list[str]:
        """The subjects that match a pattern and have messages."""
        found: list[str] = []

        async def attempt(client: Client) -> dict[str, Any]:  # the client's own layer asks for the first page only
            asked = json.dumps({"subjects_filter": pattern, "offset": len(found)}).encode()
            info = json.loads((await client.request(f"$JS.API.STREAM.INFO.{self.name}", asked, timeout=_ATTEMPT)).data)
            if "error" in info:
                APIError.from_error(info["error"])
            return dict(info)

        while True:
            try:
                info = self._repeated(attempt)
            except NotFoundError:
                return []
            page = list(info["state"].get("subjects") or ())
            found += page
            if not page or len(found) >= int(info.get("total", 0)):
                return found

    # ---- writing ----

    def append(self, subject: str, data: bytes, headers: Mapping[str, str], *, id: str, expected: int) -> int:  # noqa: A002
        """Append a message whose subject's newest one has the sequence `expected`, 0 for none; return its own sequence.

        Moved where that is no longer so, unless the message that follows has this id: then ours has landed, at an
        attempt whose answer was lost. A subject must have an id once.
        """
        sent = {**headers, ID: quote(id, safe=""), _EXPECTED: str(expected)}
        limit = _FIRST_ATTEMPT
        while True:
            while not self.is_there():
                self._make()
            is_refused = False
            try:
                acknowledged = self.link.run(
                    lambda client: client.jetstream().publish(subject, data, headers=sent), limit
                )
                if acknowledged is not None:
                    return int(acknowledged.seq)
                self._is_known = False  # it may have landed, and may land yet; or a server has lost everything
            except APIError as error:
                is_refused = error.err_code in _WRONG_SEQUENCE
                if not is_refused and not _passes(error):
                    raise
            found = self.following(subject, expected)
            if found.headers.get(ID) == sent[ID]:
                return found.seq
            if found.seq or (is_refused and self.last(subject).seq != expected):  # emptied since
                raise Moved
            limit = min(2 * limit, _ATTEMPT)  # another append, which may be our own last attempt, is on its way
            time.sleep(_PAUSE)

    def put(self, subject: str, content: bytes, headers: Mapping[str, str], *, id: str, expected: int) -> int:  # noqa: A002
        """Append a message of any size; `content` has its bytes. Moved: see `append`."""
        if len(content) <= self.link.largest:
            return self.append(subject, content, headers, id=id, expected=expected)
        named = self.put_chunks(subject, content)
        try:
            return self.append(subject, b"", {**headers, CHUNKS: named}, id=id, expected=expected)
        except Moved:
            self.erase_chunks(named)
            raise

    def delete(self, *seqs: int) -> None:
        """Remove messages, and overwrite their bytes. Nothing happens when they are not there."""

        async def attempt(client: Client) -> bool | None:
            layer = client.jetstream()
            asked = [layer.delete_msg(self.name, seq) for seq in seqs]
            failed = [each for each in await asyncio.gather(*asked, return_exceptions=True) if each is not True]
            is_over = all(isinstance(each, APIError) and each.code != _UNAVAILABLE for each in failed)
            return True if is_over else None

        self._repeated(attempt)

    def erase(self, subject: str, last: int, *, wipe: bool = True) -> None:
        """Erase the messages of a subject up to and with a sequence, oldest first, and the chunks that they name.

        wipe  whether to overwrite the bytes, one message after the other: a hundred take seconds
        """
        extend(_ERASING)
        while 0 < (first := self.following(subject, 0)).seq <= last:
            found = [message for message in self._batch(subject, first.seq) if message.seq <= last] or [first]
            for message in found:
                if CHUNKS in message.headers:
                    self.erase_chunks(message.headers[CHUNKS])
            if not wipe:
                self._purge(subject, found[-1].seq + 1)
                continue
            for start in range(0, len(found), _ERASED_AT_ONCE):
                self.delete(*(message.seq for message in found[start : start + _ERASED_AT_ONCE]))

    def _purge(self, subject: str, seq: int) -> None:
        """Remove the messages of a subject before a sequence in one request; their bytes are not overwritten."""
        self._repeated(lambda client: client.jetstream().purge_stream(self.name, seq, subject))

    # ---- chunks ----

    def put_chunks(self, owner: str, content: bytes) -> str:
        """Keep bytes for a message of the subject `owner`; return the header that names them."""
        extend(_PROGRESS + len(content) / _SLOWEST)
        name, size = uuid4().hex, self.link.largest
        first = last = 0
        for number, start in enumerate(range(0, max(len(content), 1), size)):
            part, expected = content[start : start + size], last
            last = self.append(self._chunks(name), part, {_OWNER: owner}, id=str(number), expected=expected)
            first = first or last
        return f"{name} {first} {last} {hashlib.sha256(content).hexdigest()}"

    def content(self, message: Message) -> bytes:
        """The bytes of a message, or those of the chunks that it names. Damaged, Gone."""
        if CHUNKS not in message.headers:
            return message.data
        name, first, last = _named(message.headers[CHUNKS])
        return b"".join(each.data for each in self.span(self._chunks(name), first, last))

    def erase_chunks(self, named: str) -> None:
        """Erase the chunks that a header names."""
        name, _, last = _named(named)
        self.erase(self._chunks(name), last)

    def sweep(self) -> int:
        """Erase chunks that no message names and that are an hour old; return how many subjects had such."""
        erased = 0
        now = self.last(f"{self.root}.>").time  # the servers': the clock here may be another
        for subject in self.subjects(f"{self.root}.c.>"):
            owner, last = self.following(subject, 0).headers.get(_OWNER, ""), self.last(subject)
            with suppress(Gone):  # its owner has changed meanwhile: another time
                named = [each.headers.get(CHUNKS, "") for each in self.span(owner, 1, self.last(owner).seq)]
                is_named = any(each and subject.endswith(f".{each.partition(' ')[0]}") for each in named)
                if last.time <= now - _ABANDONED and not is_named:
                    self.erase(subject, last.seq)
                    erased += 1
        return erased

    def _chunks(self, name: str) -> str:
        return f"{self.root}.c.{name}"

    # ---- the stream itself ----

    def is_there(self) -> bool:
        """Whether there is such a stream. UsageError where it would not keep what is put into it, or is of another
        key.
        """
        try:
            if not self._is_known:
                self._check(self._repeated(lambda client: client.jetstream().stream_info(self.name)).config)
                self._is_known = True
        except NotFoundError:
            return False
        return True

    def _make(self) -> None:
        config = StreamConfig(
            name=self.name,
            subjects=[f"{self.root}.>"],
            storage=StorageType.FILE,
            retention=RetentionPolicy.LIMITS,
            num_replicas=self._replicas,
            max_msgs_per_subject=1 if self._ends else -1,
            allow_msg_ttl=self._ends,
            allow_direct=True,
            metadata={_KEY: self._key},
        )
        try:
            self._repeated(lambda client: client.jetstream().add_stream(config))
        except APIError as error:
            if error.err_code not in _NOT_ENOUGH_SERVERS:
                raise
            what = f"there are not {self._replicas} servers to keep each record on"
            hint = "start them, or accept what fewer promise: nats_replicas: 1"
            raise UsageError(self.link.address, what, hint) from None

    def _check(self, config: StreamConfig) -> None:
        edit = f"nats stream edit {self.name}"
        limits = ["max_age", "max_msgs", "max_bytes", *([] if self._ends else ["max_msgs_per_subject"])]
        limited = [name for name in limits if (getattr(config, name) or 0) > 0]
        replicas, key = int(config.num_replicas or 1), (config.metadata or {}).get(_KEY, "")
        rules = (
            (not limited, f"would lose records: {', '.join(limited)}", edit),
            (config.storage == StorageType.FILE, "would lose records: it is not kept in files", edit),
            (config.retention == RetentionPolicy.LIMITS, "would lose records: they end when they are read", edit),
            (key, "is not encrypted", "choose another name: nats_project in config.local.yaml"),
            (key == self._key, f"was encrypted with another key (ours is {self._key})", OTHER_KEY),
            (replicas >= self._replicas, f"is kept on {replicas} server, not {self._replicas}", f"{edit} --replicas=3"),
            (config.allow_direct, "does not allow direct reads", f"{edit} --allow-direct"),
            (
                config.allow_msg_ttl or not self._ends,
                "does not let messages end by themselves, so no lease ever would",
                f"{edit} --allow-msg-ttl",
            ),
        )
        for holds, what, hint in rules:
            if not holds:
                raise UsageError(self.name, what, hint)

    # ---- subjects ----

    def subject(self, kind: str, name: str) -> str:
        """The subject of what has a path as its name: a dot separates its parts, so one within a part is escaped."""
        return f"{self.root}.{kind}.{name.replace('.', '%2E').replace('/', '.')}"

    def name_of(self, kind: str, subject: str) -> str:
        """The path that a subject is of."""
        return subject.removeprefix(f"{self.root}.{kind}.").replace(".", "/").replace("%2E", ".")

    # ---- requests ----

    def _got(self, **asked: Any) -> Message:
        try:
            found = self._repeated(lambda client: client.jetstream().get_msg(self.name, **asked))
        except NotFoundError:
            return Message()
        when = found.time.timestamp() if found.time is not None else 0.0
        return Message(str(found.subject), int(found.seq or 0), found.headers or {}, found.data or b"", when)

    def _repeated(
        self,
        attempt: Callable[[Client], Awaitable[T | None]],
        limit: float = _FIRST_ATTEMPT,
        longest: float = _ATTEMPT,
    ) -> T:
        """What an attempt returns that is not None; the first one has `limit` seconds, the last ones `longest`. The end
        of the call ends the attempts.
        """
        while True:
            try:
                found = self.link.run(attempt, limit)
                if found is not None:
                    return found
            except APIError as error:
                if not _passes(error):
                    raise
            limit = min(2 * limit, longest)
            time.sleep(_PAUSE)


def _passes(error: APIError) -> bool:
    """Whether a server may do a moment later what it refuses: it tells no code where it has no leader."""
    return (error.code or _UNAVAILABLE) >= 500 and error.err_code not in _NOT_ENOUGH_SERVERS


def _named(header: str) -> tuple[str, int, int]:
    """Name, first and last sequence of chunks. Damaged."""
    found = re.fullmatch(r"([0-9a-f]+) ([0-9]+) ([0-9]+) [0-9a-f]+", header, re.ASCII)
    if found is None:
        raise Damaged("chunks", "names no chunks")
    return found[1], int(found[2]), int(found[3])


def _seconds(text: str) -> float:
    """Seconds since 1970 of a time with up to nine decimals of a second, which Python reads up to six of."""
    whole, _, decimals = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{decimals or 0}")

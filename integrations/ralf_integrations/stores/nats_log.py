"""One JetStream stream as a log with many subjects: appends by compare-and-swap, reads that notice what they miss.

The client's own JetStream layer is left aside: requests are repeated here until the caller's time is over, and each
append that got no answer is looked for where it would have landed, so that it is never made twice.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from ralf.errors import RalfError, UsageError
from ralf_integrations.stores.encryption import OTHER_KEY
from ralf_integrations.stores.nats_link import Link

T = TypeVar("T")

ID = "Ralf-Id"
"""The header with the id of a message, percent-encoded."""

_KEY = "ralf-key"  # of the stream's metadata: the id of the key with which its messages are encrypted

_EXPECTED = "Nats-Expected-Last-Subject-Sequence"

_WRONG_SEQUENCE = (10071, 10164)
_NO_STREAM, _NO_MESSAGE = 10059, 10037
_NOT_ENOUGH_SERVERS = (10005, 10074)

_FIRST_ATTEMPT, _ATTEMPT = 0.25, 2.0  # seconds until a request is repeated: a server without a leader answers nothing
_LONG_ATTEMPT = 8.0  # the same for half a megabyte
_PAUSE = 0.02  # seconds before it is
_NO_MORE = ("204", "404", "408")  # the end of what a replica has, nothing at all, nothing more for now

_ERASED_AT_ONCE = 32  # messages: each is a write of its own, and more would only wait

_CONSUMER_LIVES = 30 * 10**9  # nanoseconds, unless it is asked

_BATCH, _BATCH_BYTES = 256, 1 << 19  # messages and bytes of one answer


class Message(NamedTuple):
    """A message as it lies in the log: its subject and sequence, its headers, its bytes, when it came in seconds since
    1970.
    """

    subject: str
    seq: int
    headers: Mapping[str, str]
    data: bytes
    time: float


class Moved(Exception):
    """Somebody else has appended to the subject, or emptied it: nothing was appended."""


class Gone(Exception):
    """A message that was there when reading began is there no more."""


class _ApiError(RalfError):
    """What the JetStream API refuses: `passes` says whether it may do the same a moment later."""

    def __init__(self, name: str, answer: Mapping[str, Any]) -> None:
        super().__init__(name, f"the server refuses: {answer.get('description', '')}")
        self.code = int(answer.get("err_code", 0))
        self.passes = int(answer.get("code", 0)) >= 500


class Log:
    """The stream of a project on NATS servers.

    name      of the JetStream stream
    root      of its subjects: all begin with it and a dot
    replicas  servers that keep each message
    key       the id of the key with which messages are encrypted
    """

    def __init__(self, link: Link, name: str, root: str, replicas: int, key: str) -> None:
        self.link = link
        self.name = name
        self.root = root
        self._replicas = replicas
        self._key = key
        self._is_known = False
        self._patience = _FIRST_ATTEMPT

    # ---- reading ----

    async def last(self, subject: str) -> Message | None:
        """The newest message of a subject, which may have wildcards, as the leader has it."""
        return await self._got({"last_by_subj": subject})

    async def following(self, subject: str, seq: int) -> Message | None:
        """The first message of a subject after a sequence, as the leader has it."""
        return await self._got({"seq": seq + 1, "next_by_subj": subject})

    async def at(self, seq: int) -> Message | None:
        """The message of a sequence, as the leader has it."""
        return await self._got({"seq": seq})

    async def span(self, subject: str, first: int, last: int, *, whole: bool = True) -> list[Message]:
        """All messages of a subject from one sequence to another, which the leader has named; without `whole` the first
        ones, two at least where there are two.

        Any replica may answer; one that lags is asked again. Gone when the last one is there no more.
        """
        found: list[Message] = []
        while not found or found[-1].seq < last:
            if not whole and len(found) > 1:
                break
            batch = await self.batch(subject, found[-1].seq + 1 if found else first)
            batch = [message for message in batch if message.seq <= last]
            found += batch
            if not batch:
                if await self.at(last) is None:
                    raise Gone
                await asyncio.sleep(_PAUSE)
        return found

    async def batch(self, subject: str, first: int) -> list[Message]:
        """The messages of a subject from a sequence on, up to some hundreds or half a megabyte, as one replica has."""
        asked = json.dumps({"seq": first, "next_by_subj": subject, "batch": _BATCH, "max_bytes": _BATCH_BYTES}).encode()

        async def attempt(limit: float) -> list[Message] | None:
            begun, self._patience = time.monotonic(), _FIRST_ATTEMPT  # where no answer comes
            found = await self._several(f"DIRECT.GET.{self.name}", asked, limit)
            self._patience = min(max(_FIRST_ATTEMPT, 2 * (time.monotonic() - begun)), _LONG_ATTEMPT / 2)
            return found

        # Over a slow line an attempt that is given up is in the way of the next one.
        return await self._repeated(attempt, self._patience, _LONG_ATTEMPT)

    async def headers(self, subject: str, first: int, last: int) -> list[Message]:
        """The messages of `span` without their bytes, for a caller that needs many. Errors: `span`."""
        found: list[Message] = []
        while True:
            consumer = await self._consumer(subject, found[-1].seq + 1 if found else first)
            while batch := await self._next(consumer):
                found += [message for message in batch if message.seq <= last]
                if batch[-1].seq >= last:
                    return found
            if await self.at(last) is None:  # else its replica lags, or its server has died
                raise Gone

    async def _consumer(self, subject: str, first: int) -> str:
        config = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(first, 1),
            "filter_subject": subject,
            "ack_policy": "none",
            "headers_only": True,
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": _CONSUMER_LIVES,
        }
        return str((await self._asked("CONSUMER.CREATE", {"stream_name": self.name, "config": config}))["name"])

    async def _next(self, consumer: str) -> list[Message] | None:
        asked = json.dumps({"batch": _BATCH, "no_wait": True}).encode()
        try:
            return await self._several(f"CONSUMER.MSG.NEXT.{self.name}.{consumer}", asked, _ATTEMPT)
        except TimeoutError:
            return None

    async def subjects(self, pattern: str) -> list[str]:
        """The subjects that match a pattern and have messages."""
        found: list[str] = []
        while True:
            try:
                info = await self._asked("STREAM.INFO", {"subjects_filter": pattern, "offset": len(found)})
            except _ApiError as error:
                if error.code == _NO_STREAM:
                    return []
                raise
            page = list(info["state"].get("subjects") or ())
            found += page
            if not page or len(found) >= int(info.get("total", 0)):
                return found

    # ---- writing ----

    async def append(self, subject: str, data: bytes, headers: Mapping[str, str], *, id: str, expected: int) -> int:  # noqa: A002
        """Append a message whose subject's newest one has the sequence `expected`, 0 for none; return its own sequence.

        Moved where that is no longer so, unless the message that follows has this id: then ours has landed, at an
        attempt whose answer was lost. A subject must have an id once.
        """
        sent = {**headers, ID: quote(id, safe=""), _EXPECTED: str(expected)}

        async def attempt(limit: float) -> int | None:
            await self._made()
            client = await self.link.client()
            refused = False
            try:
                answer = json.loads((await client.request(subject, data, timeout=limit, headers=sent)).data)
                if "error" not in answer:
                    return int(answer["seq"])
                error = _ApiError(self.name, answer["error"])
                refused = error.code in _WRONG_SEQUENCE
                if not refused and not error.passes:
                    raise error
            except TimeoutError:
                pass  # it may have landed, and may land yet
            except NoRespondersError:
                self._is_known = False  # no leader, or no stream: servers that have lost everything are filled again
            found = await self.following(subject, expected)
            if found is not None and found.headers.get(ID) == sent[ID]:
                return found.seq
            if found is not None:
                raise Moved
            if refused:
                newest = await self.last(subject)
                if (newest.seq if newest is not None else 0) != expected:
                    raise Moved  # emptied since
            return None  # another append, which may be our own last attempt, is on its way

        return await self._repeated(attempt)

    async def erase(self, seq: int) -> None:
        """Remove a message, and overwrite its bytes. Nothing happens when it is not there."""
        asked = json.dumps({"seq": seq}).encode()

        async def attempt(limit: float) -> bool | None:
            client = await self.link.client()
            with suppress(TimeoutError, NoRespondersError):
                answer = await client.request(f"$JS.API.STREAM.MSG.DELETE.{self.name}", asked, timeout=limit)
                if "error" not in json.loads(answer.data):
                    return True
            return True if await self.at(seq) is None else None  # what an attempt before has removed is an error

        await self._repeated(attempt)

    async def purge(self, subject: str, seq: int) -> None:
        """Remove the messages of a subject before a sequence in one request; their bytes are not overwritten."""
        await self._asked("STREAM.PURGE", {"filter": subject, "seq": seq})

    async def erase_until(self, subject: str, seq: int, before: Callable[[Message], Awaitable[None]]) -> None:
        """Erase the messages of a subject up to and with a sequence, oldest first; `before` is told each."""
        while (first := await self.following(subject, 0)) is not None and first.seq <= seq:
            found = [message for message in await self.batch(subject, first.seq) if message.seq <= seq] or [first]
            for message in found:
                await before(message)
            for start in range(0, len(found), _ERASED_AT_ONCE):
                await asyncio.gather(*(self.erase(message.seq) for message in found[start : start + _ERASED_AT_ONCE]))

    async def largest(self) -> int:
        """The bytes that a message may have beside its headers."""
        return min(900_000, (await self.link.client()).max_payload - (64 << 10))

    # ---- the stream itself ----

    async def _made(self) -> None:
        """Make the stream where it is not there. UsageError where it would not keep what is put into it."""
        while not self._is_known:
            try:
                self._check((await self._asked("STREAM.INFO", {}))["config"])
            except _ApiError as error:
                if error.code != _NO_STREAM:
                    raise
                await self._make()
            self._is_known = True

    async def _make(self) -> None:
        try:
            await self._asked("STREAM.CREATE", self._config())
        except _ApiError as error:
            if error.code in _NOT_ENOUGH_SERVERS:
                what = f"there are not {self._replicas} servers to keep each record on"
                hint = "start them, or accept what fewer promise: nats_replicas: 1"
                raise UsageError(self.link.address, what, hint) from None
            raise

    def _config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "subjects": [f"{self.root}.>"],
            "storage": "file",
            "retention": "limits",
            "num_replicas": self._replicas,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
            "allow_direct": True,
            "metadata": {_KEY: self._key},
        }

    def _check(self, config: Mapping[str, Any]) -> None:
        hint = f"nats stream edit {self.name}"
        limits = ("max_age", "max_msgs", "max_bytes", "max_msgs_per_subject")
        limited = [name for name in limits if int(config.get(name, 0)) > 0]
        if limited or config.get("storage") != "file" or config.get("retention") != "limits":
            raise UsageError(self.name, f"would lose records: {', '.join(limited) or 'it is not kept in files'}", hint)
        key = str((config.get("metadata") or {}).get(_KEY, ""))
        if key != self._key:
            what = f"was encrypted with another key ({key}, ours is {self._key})" if key else "is not encrypted"
            raise UsageError(
                self.name, what, OTHER_KEY if key else "choose another name: nats_project in config.local.yaml"
            )
        if int(config.get("num_replicas", 1)) < self._replicas:
            what = f"is kept on {config.get('num_replicas', 1)} server, not {self._replicas}"
            raise UsageError(self.name, what, f"{hint} --replicas={self._replicas}")
        if not config.get("allow_direct"):
            raise UsageError(self.name, "does not allow direct reads", f"{hint} --allow-direct")

    # ---- subjects ----

    def subject(self, kind: str, name: str) -> str:
        """The subject of what has a path as its name: a dot separates its parts, so one within a part is escaped."""
        return f"{self.root}.{kind}.{name.replace('.', '%2E').replace('/', '.')}"

    def name_of(self, kind: str, subject: str) -> str:
        """The path that a subject is of."""
        return subject.removeprefix(f"{self.root}.{kind}.").replace(".", "/").replace("%2E", ".")

    # ---- requests ----

    async def _got(self, asked: Mapping[str, Any]) -> Message | None:
        try:
            found = (await self._asked("STREAM.MSG.GET", asked))["message"]
        except _ApiError as error:
            if error.code in (_NO_MESSAGE, _NO_STREAM):
                return None
            raise
        lines = base64.b64decode(found.get("hdrs", "")).decode().split("\r\n")[1:]
        headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        data = base64.b64decode(found.get("data", ""))
        return Message(found["subject"], found["seq"], headers, data, _seconds(found["time"]))

    async def _asked(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer of the JetStream API; a request that passes the time of an attempt, or fails for now, is repeated:
        only what may be done twice is asked so.
        """
        content = json.dumps(body).encode()

        async def attempt(limit: float) -> dict[str, Any] | None:
            client = await self.link.client()
            answer = json.loads((await client.request(f"$JS.API.{verb}.{self.name}", content, timeout=limit)).data)
            if "error" not in answer:
                return dict(answer)
            error = _ApiError(self.name, answer["error"])
            if error.passes and error.code not in _NOT_ENOUGH_SERVERS:
                return None
            raise error

        return await self._repeated(attempt)

    async def _several(self, verb: str, asked: bytes, limit: float) -> list[Message] | None:
        """The messages that answer one request, None where nobody can answer now."""
        client = await self.link.client()
        subscription = await client.subscribe(inbox := client.new_inbox())
        found: list[Message] = []
        try:
            await client.publish(f"$JS.API.{verb}", asked, reply=inbox)
            while len(found) < _BATCH:
                answer = await subscription.next_msg(timeout=limit)
                status = (answer.headers or {}).get("Status", "")
                if status in _NO_MORE:
                    break
                if status:
                    return None
                found.append(_message_of(answer))
        finally:
            await subscription.unsubscribe()
        return found

    @staticmethod
    async def _repeated(
        attempt: Callable[[float], Awaitable[T | None]], limit: float = _FIRST_ATTEMPT, longest: float = _ATTEMPT
    ) -> T:
        """What an attempt returns that is not None, told how many seconds to wait for an answer: `limit` at first,
        `longest` at last. The caller's time limit ends the attempts (`Link.run`).
        """
        while True:
            try:
                found = await attempt(limit)
            except (TimeoutError, NoRespondersError):
                found = None
            if found is not None:
                return found
            limit = min(2 * limit, longest)
            await asyncio.sleep(_PAUSE)


def _message_of(answer: Msg) -> Message:
    headers = dict(answer.headers or {})
    if "Nats-Sequence" in headers:  # of a direct read; a consumer's answer says it in its reply subject
        seq, when = int(headers["Nats-Sequence"]), _seconds(headers["Nats-Time-Stamp"])
        return Message(headers["Nats-Subject"], seq, headers, answer.data, when)
    known = answer.metadata
    return Message(answer.subject, known.sequence.stream, headers, answer.data, known.timestamp.timestamp())


def _seconds(text: str) -> float:
    """Seconds since 1970 of a time with up to nine decimals of a second, which Python reads up to six of."""
    whole, _, decimals = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{decimals or 0}")

"""Streams of records on NATS: a subject each, whose messages are its records, in order.

A message that *restarts* a stream stands for all records before it: it has those of a replacement, or none after a
drop, and is appended by compare-and-swap like any other. So nobody appends between the records that were read and the
ones that replace them, and readers see either. Each later message names it. What came before it is erased afterwards;
until then nobody looks at it.

Each message has its number, which grows by one: a reader notices one that is missing.

A message's bytes are its records with their ids, encrypted for the stream and the headers that say what they are, so
that none can stand in the place of another. The header with the id has what stands for it.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from ralf.errors import Conflict, Damaged, DamagedJournal, UnknownToken
from ralf.storage.journal import Entry, Token
from ralf_integrations.stores import nats_chunks as chunks
from ralf_integrations.stores.encryption import Cipher
from ralf_integrations.stores.nats_log import ID, Gone, Log, Message, Moved

_NUMBER, _BASE, _RESTART = "Ralf-Number", "Ralf-Base", "Ralf-Restart"

_TOKEN = re.compile(r"([1-9][0-9]{0,18})\.([1-9][0-9]{0,18})", re.ASCII)

_NAME = 32  # hexadecimal digits of what stands for an id

_MANY = 50  # messages from which on only their headers are fetched for the ids in them

_SEVERAL_AT_ONCE = 0.01  # seconds until an append is tried again that another one was in the way of

_RESTORE = "restore the stream from a backup: docs/engines.md"


@dataclass
class Known:
    """What this process knows of a stream: its newest message, and the places of all ids up to there, by what stands
    for each on the server.
    """

    base: int = 0
    seq: int = 0
    number: int = 0
    newest_id: str = ""
    tokens: dict[str, Token] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def head(self) -> Token | None:
        """The place of the newest record."""
        return f"{self.seq}.{self.number}" if self.number else None

    def forget(self, base: int = 0) -> None:
        """Begin anew, after the restart of a stream."""
        self.base, self.seq, self.number, self.newest_id = base, 0, 0, ""
        self.tokens.clear()

    def add(self, base: int, seq: int, number: int, newest_id: str, tokens: Mapping[str, Token]) -> None:
        """Know one message more, and the places of its ids."""
        self.base, self.seq, self.number, self.newest_id = base, seq, number, newest_id
        self.tokens.update(tokens)


@dataclass
class View:
    """The records of a stream at one moment, or the first of them.

    head     the sequence of its newest message, 0 for none
    base     the sequence of the message that restarted it, 0 for none
    damage   what keeps the records after `entries` from being read
    is_whole whether no message follows
    """

    head: int
    base: int
    entries: list[Entry]
    damage: DamagedJournal | None = None
    is_whole: bool = True


class Records:
    """The streams of a log. Contract: `ralf.storage.journal.Store`, for checked names."""

    def __init__(self, log: Log, cipher: Cipher) -> None:
        self._log = log
        self._cipher = cipher

    # ---- appending ----

    async def append(self, stream: str, record: bytes, *, id: str, after: Token | None) -> Token:  # noqa: A002
        """Append a record; see `Store.append`. With what this process knows of the stream it takes one request."""
        known, name = self._known(stream), self._name(self.subject(stream), id)
        async with known.lock:
            if name in known.tokens or known.head != after:
                await self._catch_up(stream, known)
            while True:
                if name in known.tokens:
                    return known.tokens[name]
                if known.head != after:
                    raise Conflict(stream, known.head)
                number = known.number + 1
                headers = {_NUMBER: str(number), **({_BASE: str(known.base)} if known.base else {})}
                try:
                    seq = await self._publish(stream, _line(id, record), headers, name=name, expected=known.seq)
                except Moved:
                    await self._catch_up(stream, known)
                    if known.head == after:  # what was in the way has not landed yet
                        await asyncio.sleep(_SEVERAL_AT_ONCE)
                    continue
                token = f"{seq}.{number}"
                known.add(known.base, seq, number, name, {name: token})
                return token

    async def _publish(self, stream: str, lines: bytes, headers: Mapping[str, str], *, name: str, expected: int) -> int:
        subject = self.subject(stream)
        content = self._cipher.encrypt(lines, subject, name, *_meaning(headers))
        if len(content) <= await self._log.largest():
            return await self._log.append(subject, content, headers, id=name, expected=expected)
        named = {chunks.CHUNKS: await chunks.put(self._log, subject, content)}
        try:
            return await self._log.append(subject, b"", {**headers, **named}, id=name, expected=expected)
        except Moved:
            await chunks.erase(self._log, Message("", 0, named, b"", 0))
            raise

    def _known(self, stream: str) -> Known:
        found: Known = self._log.link.kept.setdefault((self._log.name, self._cipher.id, stream), Known())
        return found

    def _name(self, subject: str, id: str) -> str:  # noqa: A002
        """What stands for an id on the server."""
        return self._cipher.name(subject, id)[:_NAME]

    async def _catch_up(self, stream: str, known: Known) -> None:
        """Know the stream as the leader has it."""
        subject = self.subject(stream)
        while True:
            newest = await self._log.last(subject)
            if newest is None:
                known.forget()
                return
            base = _base(newest)
            if newest.seq == known.seq and newest.headers.get(ID) == known.newest_id:
                return
            if base != known.base or newest.seq <= known.seq:
                known.forget(base)
            try:
                is_long = _number(newest) - known.number > _MANY
                messages = self._log.headers if is_long else self._log.span
                for message in await messages(subject, max(known.seq + 1, base), newest.seq):
                    tokens = await self._tokens(message)
                    known.add(_base(message), message.seq, _number(message), message.headers[ID], tokens)
            except Gone:
                known.forget()
                continue
            except Damaged as error:
                raise DamagedJournal(stream, f"the record that replaced others {error.what}", _RESTORE) from None
            return

    async def _tokens(self, message: Message) -> Mapping[str, Token]:
        """The places of a message's ids. Damaged, Gone."""
        if _RESTART in message.headers:
            whole = await self._log.at(message.seq)
            if whole is None:
                raise Gone
            entries = await self._entries(whole)
            return {self._name(message.subject, entry.id): entry.token for entry in entries}
        return {message.headers[ID]: f"{message.seq}.{_number(message)}"}

    # ---- reading ----

    async def view(self, stream: str, after: Token | None = None) -> View:
        """The first records of a stream, after a place or of all: as many as one request answers with. Errors:
        UnknownToken.
        """
        subject = self.subject(stream)
        while True:
            newest = await self._log.last(subject)
            base = _base(newest) if newest is not None else 0
            seq, number = _place(stream, after) if after is not None else (0, 0)
            if after is not None and (newest is None or not max(base, 1) <= seq <= newest.seq):
                raise UnknownToken(stream, "no such place in this stream")
            if newest is None:
                return View(0, 0, [])
            try:
                messages = await self._log.span(subject, seq or max(base, 1), newest.seq, whole=False)
                entries, damage = await self._read(stream, messages, base, begins=after is None)
            except Gone:  # replaced, or dropped, meanwhile
                continue
            if damage is not None:
                again = await self._log.last(subject)
                if again is None or _base(again) != base:
                    continue
            if after is not None:
                if after not in [entry.token for entry in entries if entry.token.startswith(f"{seq}.")]:
                    raise UnknownToken(stream, "no such place in this stream")
                entries = [entry for entry in entries if _place(stream, entry.token) > (seq, number)]
            return View(newest.seq, base, entries, damage, is_whole=messages[-1].seq == newest.seq)

    async def _read(
        self, stream: str, messages: Sequence[Message], base: int, *, begins: bool
    ) -> tuple[list[Entry], DamagedJournal | None]:
        """The records of messages, up to the first that is missing or damaged.

        base    of the stream: a message with another one was replaced, whoever has put it there again
        begins  whether the first one begins the stream
        """
        entries: list[Entry] = []
        expected = 1 if begins else _number(messages[0])
        for message in messages:
            number = _number(message)
            if _base(message) != base:
                what = f"the record {number} belongs to what was replaced"
                return entries, DamagedJournal(stream, what, _RESTORE)
            if number != expected and message.seq != base:
                return entries, DamagedJournal(stream, f"the record {expected} is missing", _RESTORE)
            try:
                entries += await self._entries(message)
            except Damaged as error:
                return entries, DamagedJournal(stream, f"the record {number} {error.what}", _RESTORE)
            expected = number + 1
        return entries, None

    async def entry(self, stream: str, token: Token) -> Entry:
        """The record at a place; see `Lookup.entry`."""
        seq, _ = _place(stream, token)
        subject = self.subject(stream)
        newest = await self._log.last(subject)
        message = await self._log.at(seq) if newest is not None and _base(newest) <= seq <= newest.seq else None
        if message is not None and message.subject == subject:
            try:
                found = await self._entries(message)
            except Damaged as error:
                raise DamagedJournal(stream, f"the record at {token} {error.what}", _RESTORE) from None
            except Gone:  # replaced in between
                found = []
            for entry in found:
                if entry.token == token:
                    return entry
        raise UnknownToken(stream, "no such place in this stream")

    async def head(self, stream: str) -> Token | None:
        """The place of the newest record."""
        newest = await self._log.last(self.subject(stream))
        if newest is None:
            return None
        number = _number(newest)
        return f"{newest.seq}.{number}" if number else None

    async def streams(self, prefix: str) -> list[str]:
        """The names of the streams that begin with a prefix."""
        folder = prefix.rpartition("/")[0]
        pattern = f"{self.subject(folder)}.>" if folder else f"{self._log.root}.s.>"
        names = map(self.stream_of, await self._log.subjects(pattern))
        return [name for name in names if name.startswith(prefix)]

    async def _entries(self, message: Message) -> Sequence[Entry]:
        """The records of a message. Damaged, Gone."""
        number, content = _number(message), message.data
        if chunks.CHUNKS in message.headers:
            content = await chunks.get(self._log, message.headers[chunks.CHUNKS])
        lines = self._cipher.decrypt(content, message.subject, message.headers[ID], *_meaning(message.headers))
        return list(_unpacked(message.seq, lines, first=1 if _RESTART in message.headers else number))

    # ---- replacing ----

    async def restart(self, stream: str, head: int, entries: Sequence[tuple[str, bytes]]) -> None:
        """Have records stand for all up to the message with the sequence `head`. Moved where it is not the newest."""
        lines = b"".join(_line(id_, record) for id_, record in entries)
        headers = {_NUMBER: str(len(entries)), _RESTART: "1"}
        await self._publish(stream, lines, headers, name=f"restart-{uuid.uuid4()}", expected=head)

    async def drop(self, stream: str) -> None:
        """Have no record stand for all that there are."""
        while (newest := await self._log.last(self.subject(stream))) is not None and _number(newest):
            try:
                await self.restart(stream, newest.seq, [])
            except Moved:
                continue

    async def clear(self, stream: str, *, wipe: bool = True) -> bool:
        """Erase what came before the message that restarted a stream, and that message if it has no record. Whether
        there was anything to erase.

        wipe  whether to overwrite the bytes, one message after the other: a hundred take seconds. Else one request
              removes all of them
        """
        subject = self.subject(stream)
        newest, oldest = await self._log.last(subject), await self._log.following(subject, 0)
        if newest is None or oldest is None or not (base := _base(newest)):
            return False
        restart = await self._log.at(base)
        if wipe:
            await self._log.erase_until(subject, base - 1, lambda message: chunks.erase(self._log, message))
        elif oldest.seq < base:
            with suppress(Gone):  # replaced once more: whoever did that clears it
                for message in await self._log.headers(subject, oldest.seq, base):
                    if message.seq < base:
                        await chunks.erase(self._log, message)
                await self._log.purge(subject, base)
        if restart is not None and not _number(restart):  # last: it is what keeps the others from counting
            await self._log.erase(base)
            return True
        return oldest.seq < base

    async def sweep(self) -> int:
        """Complete replacements and drops that broke off; return how many."""
        streams = [self.stream_of(subject) for subject in await self._log.subjects(f"{self._log.root}.s.>")]
        return sum([await self.clear(stream) for stream in streams])

    # ---- names ----

    def subject(self, stream: str) -> str:
        """The subject of a stream."""
        return self._log.subject("s", stream)

    def stream_of(self, subject: str) -> str:
        """The stream of a subject."""
        return self._log.name_of("s", subject)


def _base(message: Message) -> int:
    """The sequence of the message that restarted the stream last, 0 for none."""
    return message.seq if _RESTART in message.headers else int(message.headers.get(_BASE, 0))


def _number(message: Message) -> int:
    """How many records the stream has had with this message."""
    number = message.headers.get(_NUMBER, "")
    if not number.isdecimal() or ID not in message.headers:
        what = f"the message {message.seq} was not written by ralf"
        raise DamagedJournal(message.subject, what, "look at it: nats stream get")
    return int(number)


def _place(stream: str, token: Token) -> tuple[int, int]:
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise UnknownToken(stream, "no such place in this stream")
    return int(found[1]), int(found[2])


def _meaning(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The headers that say what a message's records are."""
    return tuple(headers.get(name, "") for name in (_NUMBER, _BASE, _RESTART))


def _line(id: str, record: bytes) -> bytes:  # noqa: A002
    return b"%s %s\n" % (quote(id, safe="").encode(), record)


def _unpacked(seq: int, lines: bytes, first: int) -> Iterator[Entry]:
    for number, line in enumerate(lines.split(b"\n")[:-1], start=first):
        id_, _, record = line.partition(b" ")
        yield Entry(f"{seq}.{number}", unquote(id_.decode()), record)

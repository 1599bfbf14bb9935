"""What is too large for one message: chunks on a subject of their own, which a header of another message names.

The subject is new for each attempt to put something. So who dies before the header is written leaves chunks that nobody
names, and `sweep` erases them.
"""

from __future__ import annotations

import hashlib
import uuid

from ralf.errors import Damaged
from ralf_integrations.stores.nats_log import Gone, Log, Message

CHUNKS = "Ralf-Chunks"
"""The header that names chunks: their subject's last part, the sequence of the first and last one, and their sha256."""

_OWNER = "Ralf-Owner"  # the subject of the message that is to name them

_ABANDONED = 3600  # seconds after which chunks that nobody names count as left behind


async def put(log: Log, owner: str, content: bytes) -> str:
    """Keep bytes for a message of the subject `owner`; return the header that names them."""
    name = uuid.uuid4().hex
    subject, size = f"{log.root}.c.{name}", await log.largest()
    first = last = 0
    for number, start in enumerate(range(0, len(content), size) if content else [0]):
        last = await log.append(subject, content[start : start + size], {_OWNER: owner}, id=str(number), expected=last)
        first = first or last
    return f"{name} {first} {last} {hashlib.sha256(content).hexdigest()}"


async def get(log: Log, named: str) -> bytes:
    """The bytes that a header names. Damaged when they are not those that were put, Gone when there are none."""
    name, first, last, digest = named.split(" ")
    found = await log.span(f"{log.root}.c.{name}", int(first), int(last))
    content = b"".join(message.data for message in found)
    if hashlib.sha256(content).hexdigest() != digest:
        raise Damaged(name, "is not what was put")
    return content


async def erase(log: Log, message: Message) -> None:
    """Erase the chunks that a message names, if it names any."""
    if CHUNKS in message.headers:
        name, _, last, _ = message.headers[CHUNKS].split(" ")
        await _erase(log, f"{log.root}.c.{name}", int(last))


async def sweep(log: Log) -> int:
    """Erase chunks that no message names and that are an hour old; return how many subjects had such."""
    erased = 0
    newest = await log.last(f"{log.root}.>")  # the servers' time: the clock here may be another
    for subject in await log.subjects(f"{log.root}.c.>"):
        first, last = await log.following(subject, 0), await log.last(subject)
        if first is None or last is None or newest is None or last.time > newest.time - _ABANDONED:
            continue
        name = subject.rpartition(".")[2]
        if not await _is_named(log, name, first.headers.get(_OWNER, "")):
            await _erase(log, subject, last.seq)
            erased += 1
    return erased


async def _is_named(log: Log, name: str, owner: str) -> bool:
    newest = await log.last(owner) if owner else None
    if newest is None:
        return False
    try:
        messages = await log.span(owner, 1, newest.seq)
    except Gone:  # it has changed meanwhile: look another time
        return True
    return any(message.headers.get(CHUNKS, "").startswith(f"{name} ") for message in messages)


async def _erase(log: Log, subject: str, last: int) -> None:
    async def nothing(_: Message) -> None:
        pass

    await log.erase_until(subject, last, nothing)

"""Blobs on NATS: the newest message on a blob's subject names its chunks, or says that it is dropped.

The subject ends in what stands for the blob's digest, which the message has encrypted; so nobody who knows a content
can find out whether it is kept.
"""

from __future__ import annotations

from contextlib import suppress

from ralf.errors import BlobNotFound, Damaged, DamagedBlob
from ralf.storage.journal import Blob, Digest
from ralf_integrations.stores import nats_chunks as chunks
from ralf_integrations.stores.encryption import Cipher
from ralf_integrations.stores.nats_log import Gone, Log, Message, Moved

_SIZE, _DROPPED = "Ralf-Size", "Ralf-Dropped"


class Blobs:
    """The blobs of a log. Contract: `ralf.storage.journal.Store`, for checked digests."""

    def __init__(self, log: Log, cipher: Cipher) -> None:
        self._log = log
        self._cipher = cipher

    async def put(self, digest: Digest, content: bytes) -> None:
        """Keep a blob, or make one that is kept as young as a new one."""
        subject = self._subject(digest)
        while True:
            newest = await self._log.last(subject)
            kept = newest.headers.get(chunks.CHUNKS) if newest is not None else None
            named = kept or await chunks.put(self._log, subject, self._cipher.encrypt(content, subject, digest))
            headers = {chunks.CHUNKS: named, _SIZE: str(len(content))}
            before = newest.seq if newest is not None else 0
            told = self._cipher.encrypt(digest.encode(), subject)
            try:
                seq = await self._log.append(subject, told, headers, id=_id_after(before), expected=before)
            except Moved:
                if not kept:
                    await chunks.erase(self._log, Message("", 0, headers, b"", 0))
                continue
            if kept:
                await self._log.erase_until(subject, seq - 1, _keep)
            return

    async def content(self, digest: Digest) -> bytes:
        """A blob's bytes. BlobNotFound, DamagedBlob."""
        subject = self._subject(digest)
        while True:
            newest = await self._newest(digest)
            if newest is None:
                raise BlobNotFound(digest, "no such blob")
            try:
                return self._cipher.decrypt(await self._chunks(newest), subject, digest)
            except (Gone, Damaged):  # by a drop meanwhile, or for good
                again = await self._newest(digest)
                if again is not None and again.headers.get(chunks.CHUNKS) == newest.headers.get(chunks.CHUNKS):
                    raise DamagedBlob(digest, "is not what was put", "put it again, or restore it") from None

    async def size(self, digest: Digest) -> int:
        """How many bytes a blob has. BlobNotFound."""
        newest = await self._newest(digest)
        if newest is None:
            raise BlobNotFound(digest, "no such blob")
        return int(newest.headers.get(_SIZE, 0))

    async def _chunks(self, message: Message) -> bytes:
        """The bytes that a message names. Damaged, Gone."""
        if chunks.CHUNKS not in message.headers:
            raise Damaged(message.subject, "names no chunks")
        return await chunks.get(self._log, message.headers[chunks.CHUNKS])

    async def has(self, digest: Digest) -> bool:
        """Whether a blob is kept."""
        return await self._newest(digest) is not None

    async def all(self) -> list[Blob]:
        """Every blob that is kept; one whose digest cannot be read is left out. UsageError for another key."""
        pattern = f"{self._log.root}.b.*"
        while True:
            newest = await self._log.last(pattern)
            try:
                messages = await self._log.span(pattern, 1, newest.seq) if newest is not None else []
            except Gone:
                continue
            found = {message.subject: message for message in messages}
            blobs = list[Blob]()
            for subject, message in found.items():
                if _DROPPED not in message.headers:
                    with suppress(Damaged):
                        digest = self._cipher.decrypt(message.data, subject).decode()
                        blobs.append(Blob(digest, int(message.headers[_SIZE]), message.time))
            return blobs

    async def drop(self, digest: Digest) -> None:
        """Forget a blob."""
        await self._drop(self._subject(digest))

    async def _drop(self, subject: str) -> None:
        """Erase a blob. A message that says so comes first: nobody can make young again what is being erased."""
        while (newest := await self._log.last(subject)) is not None:
            seq = newest.seq
            if _DROPPED not in newest.headers:
                try:
                    seq = await self._log.append(subject, b"", {_DROPPED: "1"}, id=_id_after(seq), expected=seq)
                except Moved:
                    continue
            await self._log.erase_until(subject, seq - 1, lambda message: chunks.erase(self._log, message))
            await self._log.erase(seq)
            return

    async def sweep(self) -> int:
        """Complete drops that broke off; return how many."""
        dropped = 0
        for subject in await self._log.subjects(f"{self._log.root}.b.*"):
            newest = await self._log.last(subject)
            if newest is not None and _DROPPED in newest.headers:
                await self._drop(subject)
                dropped += 1
        return dropped

    async def _newest(self, digest: Digest) -> Message | None:
        newest = await self._log.last(self._subject(digest))
        return None if newest is None or _DROPPED in newest.headers else newest

    def _subject(self, digest: Digest) -> str:
        return f"{self._log.root}.b.{self._cipher.name('blob', digest)}"


def _id_after(seq: int) -> str:
    import uuid

    return f"{seq}-{uuid.uuid4().hex}"


async def _keep(_: Message) -> None:
    """The chunks are named by the newer message, too."""

"""Stores the output of tools that no longer fits its share of a window, and puts it back."""

from __future__ import annotations

from ralf.conversation.messages import Message
from ralf.conversation.results import restore
from ralf.errors import NotFound
from ralf.project import Project
from ralf.storage.journal import Digest, is_digest


class Outputs:
    """Where the outputs of a route's conversation are stored: `Results` of `ralf.conversation.results`.

    stored  the digests of their blobs
    """

    def __init__(self, project: Project, route: str) -> None:
        self.stored: list[Digest] = []
        self._project = project
        self._route = route

    def external(self, key: str, blob: bytes) -> str:
        """Store an output, durable when this returns; the line that refers to it."""
        self.stored.append(self._project.store.put_blob([blob]))
        end = ".json" if key.endswith(".json") else ""
        return f"[Result stored at {self._route}/result-{self.stored[-1]}{end}, {len(blob)} bytes]"

    def fetch(self, key: str) -> bytes:
        """The output that a line refers to. NotFound, Damaged, OSError."""
        digest = key.partition("/result-")[2][:64]
        if not is_digest(digest):
            raise NotFound(self._route, f"no output of this conversation: {key[:80]!a}")
        with self._project.store.open_blob(digest) as file:
            return file.read()

    def put_back(self, message: Message) -> Message:
        """A message with the outputs that are stored here. One that a run keeps, or that was forgotten, stays the line
        that refers to it.
        """
        try:
            return restore([message], self)[0]
        except NotFound:
            return message

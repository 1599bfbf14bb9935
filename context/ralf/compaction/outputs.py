"""Stores the output of tools that no longer fits its share of a window, and puts it back."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.allocation.shares import outgoing
from ralf.compaction import records
from ralf.compaction.segments import Segments
from ralf.conversation.messages import Message, results
from ralf.conversation.results import is_stored, restore, store_results
from ralf.errors import NotFound
from ralf.project import Project
from ralf.text.patterns import regex

_KEY = regex(r"\[Result stored at [^\s,\]/]+/result-(?P<digest>[0-9a-f]{64})(?:\.json)?, [0-9]+ bytes\]")


class Outputs:
    """Where the outputs of a route's conversation are stored: `Results` of `ralf.conversation.results`."""

    def __init__(self, project: Project, route: str) -> None:
        self._project = project
        self._route = route
        self.stored: list[str] = []

    def external(self, key: str, blob: bytes) -> str:
        """Store an output, durable when this returns; the line that refers to it."""
        digest = self._project.store.put_blob([blob])
        self.stored.append(digest)
        end = ".json" if key.endswith(".json") else ""
        return f"[Result stored at {self._route}/result-{digest}{end}, {len(blob)} bytes]"

    def fetch(self, key: str) -> bytes:
        """The output that a line refers to. NotFound, Damaged, OSError."""
        found = _KEY.fullmatch(key)
        if found is None:
            raise NotFound(self._route, f"no output of this conversation: {key[:80]!a}")
        with self._project.store.open_blob(found["digest"]) as file:
            return file.read()

    def record(self) -> None:
        """Record what was stored, so that a check and a forget find it."""
        if self.stored:
            records.append_note(self._project, self._route, "rolled", outputs=[{"digests": self.stored, "size": 0}])


def put_back(messages: Sequence[Message], outputs: Outputs) -> list[Message]:
    """The messages with the outputs that are stored here in their places. One that a run keeps, or that was forgotten,
    stays the line that refers to it.
    """
    found: list[Message] = []
    for message in messages:
        try:
            found += restore([message], outputs)
        except NotFound:
            found.append(message)
    return found


def rolled(
    messages: Sequence[Message], parts: Segments, costs: Sequence[int], share: int, outputs: Outputs
) -> list[Message] | None:
    """The messages with the oldest outputs of completed segments stored, so that the others fit into their share; None
    where they do. Those of the current task stay.
    """
    done = [index for indices in parts.completed for index in indices]
    found = [index for index in sorted(done) if results(messages[index]) and not is_stored(messages[index])]
    gone = found[: outgoing([costs[index] for index in found], share)]
    if not gone:
        return None
    made = list(messages)
    for index in gone:
        [made[index]] = store_results([messages[index]], outputs, over=_LINE)
    outputs.record()
    return made


_LINE = 160
"""Characters of an output that are left where they are: the line in its place is no shorter."""

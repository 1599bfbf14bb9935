"""The messages of a conversation as the transcript of a session, which no file holds: a checkpoint redacts them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ralf.conversation.messages import Message, as_chat
from ralf.transcripts.chat import events_of
from ralf.transcripts.events import START, Event, Position
from ralf.transcripts.lines import Fingerprint, Growing


class Conversation(Growing):
    """See ralf.transcripts.reader.Transcript for the fields; a place in it is the number of messages before.

    named  of how many messages, the first ones, the session's name is made
    root   the project's folder, in which the agent works
    """

    format = "chat"

    def __init__(self, messages: Sequence[Message], named: int, root: Path) -> None:
        self._messages = list(map(_plain, messages))
        super().__init__(Path(f"conversation-{self._sum(named)[:16]}"), cwd=os.fspath(root))

    def size(self) -> int:
        """How many messages there are."""
        return len(self._messages)

    def mark(self, end: Position) -> Fingerprint | None:
        """The fingerprint of the messages before a place; None where there are fewer."""
        return Fingerprint("", self._sum(end.byte)) if end.byte <= self.size() else None

    def events(self, after: Position = START) -> Iterator[Event]:
        """The events of the messages behind a place."""
        self._start(after)
        found = events_of({**message, "cwd": self.cwd} for message in self._messages)
        yield from (event for event in found if event.start.byte >= after.byte)
        self.end = Position(self.size(), self.size())

    def _sum(self, count: int) -> str:
        """The sha256 of the first messages."""
        return hashlib.sha256(json.dumps(self._messages[:count]).encode()).hexdigest()


def _plain(message: Message) -> Message:
    """A chat message of JSON values; of one that JSON cannot hold only that there was one."""
    try:
        found: Message = json.loads(json.dumps(dict(as_chat(message)), default=str))
    except (TypeError, ValueError, RecursionError):
        return {"role": str(message.get("role")), "content": "[a message that is no JSON]"}
    return found

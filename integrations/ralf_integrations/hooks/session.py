"""The session that a hook calls for: its project, its route, where it stands. Derived from files at each call."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from typing import Any

from ralf import config, environment, routing
from ralf.config import Config
from ralf.errors import Damaged, RalfError, TranscriptNotFound
from ralf.project import Project
from ralf.route import offsets
from ralf.route.offsets import IngestOffset
from ralf.routing import Choice
from ralf.text import tokens
from ralf.text.digests import sha256
from ralf.text.frozen import replace
from ralf.transcripts.reader import Transcript, open_transcript
from ralf_integrations.hooks import session_registry, usage
from ralf_integrations.hooks.messages import Answer, Payload

_MOST_HANDED = 32  # texts that are remembered
_START = 80  # characters of a text by which it is looked for


class Session:
    """One look at a session. Each part is read when it is first asked for; nothing is kept before `keep`."""

    def __init__(self, payload: Payload, project: Project) -> None:
        self.payload = payload
        self.project = project

    @cached_property
    def settings(self) -> Config:
        """The project's configuration. Damaged or UsageError for a bad one."""
        return config.of(self.project)

    @cached_property
    def choice(self) -> Choice:
        """The route of this session, and the rule that chose it."""
        return routing.choose(self.project, session=self.payload.session)

    @property
    def route(self) -> str:
        """The name of the route; one that differs only in case from one that exists is that one."""
        return routing.known(self.project, self.choice.route) or self.choice.route

    @property
    def is_route_chosen(self) -> bool:
        """Whether somebody has chosen the route: by the environment, for a loop's run, or for this session."""
        return self.choice.is_chosen

    @property
    def has_route(self) -> bool:
        """Whether the session has a route of its own, and not only the one of all that have none; it has that one once
        something of it was taken there.
        """
        return self.choice.rule != routing.DEFAULT or not routing.names_sessions(self.project) or self._is_taken

    @property
    def is_open(self) -> bool:
        """Whether its first prompt has still to say which route is the session's."""
        if self.is_route_chosen or routing.kept(self.project, self.payload.session) is not None:
            return False
        return not self._is_taken and (self.choice.rule != routing.DEFAULT or routing.names_sessions(self.project))

    @property
    def _is_taken(self) -> bool:
        """Whether something of it was taken into its route; nothing can be where that is damaged."""
        with suppress(Damaged):
            return bool(self.standing.position.byte)
        return False

    def rerouted(self) -> None:
        """The rules may choose another route now."""
        for name in ("choice", "standing"):
            self.__dict__.pop(name, None)

    @cached_property
    def transcript(self) -> Transcript | None:
        """The session's log; None while there is none. DamagedTranscript for what is no log."""
        with suppress(TranscriptNotFound):
            return open_transcript(self.payload.transcript) if self.payload.transcript is not None else None
        return None

    @property
    def readable(self) -> Transcript | None:
        """The log; None also for one that ralf cannot read: what is handed over does not depend on it."""
        with suppress(RalfError, OSError):
            return self.transcript
        return None

    @cached_property
    def standing(self) -> IngestOffset:
        """How far the log was taken into the route; at the start of one that was replaced since."""
        source = self.readable
        if source is None:
            return offsets.ingest_offset(self.project, self.route, self.payload.session)
        stand = offsets.ingest_offset(self.project, self.route, source.session)
        return stand if offsets.is_unchanged(stand, source) else IngestOffset(source.session)

    @cached_property
    def known(self) -> session_registry.KnownSession:
        """What earlier hooks have left; `note` changes it."""
        found = session_registry.load(self.project, self.payload.session)
        return replace(found, client=self.payload.client, transcript=str(self.payload.transcript or found.transcript))

    def note(self, **changes: Any) -> None:
        """Change what the next hook will know of the session; fields of `KnownSession`."""
        self.__dict__["known"] = replace(self.known, **changes)

    def foretell(self, told: usage.Foretold | None, *, is_off: bool = False) -> None:
        """Leave the hint that no look is needed for so long; None: the next hook looks."""
        payload, hint = self.payload, ""
        if told is not None:
            hint = usage.hint(self.project, payload.session, payload.transcript, told, is_off=is_off)
        self.note(hint=hint)

    def hand(self, said: Answer) -> None:
        """Note what an answer hands the model by this event, so that its arrival can be confirmed (`receipts`)."""
        text = said.context
        if not text:
            return
        at = 0
        with suppress(OSError):
            at = self.payload.transcript.stat().st_size if self.payload.transcript is not None else 0
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        named = (self.payload.name, said.what, digest, len(text), text[:_START])
        handed = session_registry.Handed(*named, at=at, labels=said.labels, when=int(time.time()))
        kept = (*self.known.handed, handed)[-_MOST_HANDED:]
        self.note(handed=kept, cost=self.known.cost + tokens.estimate(text))

    @property
    def worktree(self) -> str:
        """Where the session began, "" where nobody has said: its working directory is wherever its last command was."""
        began = self.payload.sender.started_in()
        goes_on = self.payload.event != "session-start" or self.payload.source == "compact"
        if began is None and self.known.worktree and goes_on:
            return self.known.worktree
        return str(began or self.payload.cwd or self.known.worktree)

    def keep(self) -> None:
        """Leave what is known to the next hook."""
        self.note(route=self.route, worktree=self.worktree, seen=time.time())
        self.note(run=self.project.run, memory=environment.memory_name())
        session_registry.save(self.project, self.known)

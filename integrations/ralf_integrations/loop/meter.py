"""Tokens that a running agent has used, as far as its transcript tells them: read as it grows, every few seconds.

Sub-agents keep transcripts of their own, which are not read: their tokens count when the client reports its totals at
the end.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ralf.errors import RalfError
from ralf.storage.files import open_regular
from ralf.transcripts.reader import is_own_log
from ralf_integrations.loop import told
from ralf_integrations.loop.launch import CLAUDE, CODEX

EVERY = 5.0
"""Seconds between two looks at an agent that runs: so much later a cap is seen at most."""

_MOST = 16 << 20  # bytes that one look reads
_TELLS = {CLAUDE: b'"usage"', CODEX: b'"token_count"'}


@dataclass(slots=True)
class Meter:
    """The tokens of one agent.

    client  whose records the transcript has; one of no client's is not read
    tokens  used so far, input without what the cache held, and output; None while nothing tells them
    path    of the transcript, None while there is none; `size`: bytes of it that were read
    """

    client: str
    tokens: int | None = None
    path: Path | None = None
    size: int = 0
    _next: float = -math.inf
    _answers: dict[tuple[object, object], int] = field(default_factory=dict)

    def look(self, find: Callable[[], Path | None]) -> bool:
        """Read what is new, if it is time to; whether anything was. Never an error: what cannot be read tells nothing.

        find  where the transcript is; asked until it is there
        """
        now = time.monotonic()
        if self.client not in _TELLS or now < self._next:
            return False
        before = self.size
        with suppress(OSError, RalfError, ValueError):
            if self.path is None:
                self.path = found if (found := find()) is not None and is_own_log(found) else None
            if self.path is not None:
                self._take(self.path)
        self._next = now + EVERY
        return self.size > before

    def _take(self, path: Path) -> None:
        with open_regular(path, follow=True) as file:
            file.seek(self.size)
            data = file.read(_MOST)
        whole = data[: data.rfind(b"\n") + 1]
        self.size += len(whole) or (len(data) if len(data) == _MOST else 0)  # a line longer than a look is passed over
        for line in whole.splitlines():
            if _TELLS[self.client] in line:
                with suppress(ValueError, RecursionError):
                    self._count(json.loads(line))

    def _count(self, record: Any) -> None:
        if not isinstance(record, dict):
            return
        if self.client == CODEX:
            self.tokens = told.codex_total(record) or self.tokens
        elif (found := told.claude_answer(record)) is not None:
            key, tokens = found
            self.tokens = (self.tokens or 0) + tokens - self._answers.get(key, 0)
            self._answers[key] = tokens

"""What a client's own records tell of a start: its session and transcript, the last message, a usage limit, the price.

Read are the client's result and its transcript, never what the agent has printed. A client that is not known tells
nothing; one that ralf's hooks have seen is known by its process.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralf.errors import RalfError
from ralf.project import Project
from ralf.storage.files import content_of, open_regular
from ralf.text.cleaning import clean
from ralf.text.patterns import regex
from ralf.transcripts.reader import is_own_log, log_of_session, open_transcript
from ralf_integrations.hooks import session_registry
from ralf_integrations.loop import limits
from ralf_integrations.loop.launch import CLAUDE, CODEX
from ralf_integrations.loop.limits import Limit
from ralf_integrations.loop.logs import tail

_END = 4 << 20  # bytes at the end of a file in which its last records are looked for
_HEAD = 16 << 10
_MOST_MESSAGE = 1 << 20
_LARGE = 64 << 20  # bytes of a transcript that is not read through for one message
_LATEST = 200  # rollouts among which one is looked for

_SESSION_ID = regex(r"^session id: ([0-9a-f-]{36})\s*$", 8)  # MULTILINE


@dataclass(frozen=True, slots=True)
class Told:
    """What a client told of a start.

    client      whose records they are, "" for none
    session     its session, "" where unknown
    transcript  its log, None where there is none
    message     the agent's last message
    limit       the usage limit that it ended with
    tokens      input without what the cache held, and output; None where unknown
    usd         as the client says; None where it does not
    """

    client: str = ""
    session: str = ""
    transcript: Path | None = None
    message: str = ""
    limit: Limit | None = None
    tokens: int | None = None
    usd: float | None = None


def of(
    project: Project,
    client: str,
    *,
    session: str = "",
    process: int = 0,
    born: int = 0,
    output: Path,
    errors: Path,
    last: Path | None = None,
    status: int | None = 0,
) -> Told:
    """What is told of a start that is over. Never an error: what cannot be read tells nothing."""
    known = _seen_by_hooks(project, process, born) if not client or not session else None
    try:
        if client == CLAUDE:
            return _of_claude(session or (known.session if known else ""), output)
        if client == CODEX:
            return _of_codex(session or (known.session if known else ""), output, errors, last, status)
        if known is not None and known.client in (CLAUDE, CODEX):
            path = Path(known.transcript) if known.transcript else None
            told = _claude_log(path) if known.client == CLAUDE else _codex_log(path)
            return replace(told, client=known.client, session=known.session, message="")
    except (OSError, RalfError, ValueError, RecursionError):
        pass
    return Told(client)


def transcript_of(project: Project, client: str, session: str, process: int, born: int, errors: Path) -> Path | None:
    """The transcript of a start, None where there is none (yet)."""
    with suppress(OSError, RalfError, ValueError):
        if not session and client == CODEX:
            session = _session_of_codex(errors)
        found = log_of_session(session, most=_LATEST) if session else None
        if found is None and (known := _seen_by_hooks(project, process, born)) is not None and known.transcript:
            found = Path(known.transcript)
        return found if found is not None and found.is_file() else None
    return None


def _seen_by_hooks(project: Project, process: int, born: int) -> session_registry.KnownSession | None:
    """The session of a process, as ralf's hooks have seen it."""
    if not process or not born:
        return None
    found = (one for one in session_registry.all_sessions(project) if (one.pid, one.born) == (process, born))
    return max(found, key=lambda one: one.seen, default=None)


# ---- Claude Code ----


def _of_claude(session: str, output: Path) -> Told:
    result = _result(output)
    if result is not None and isinstance(named := result.get("session_id"), str):
        session = session or named
    path = log_of_session(session) if session else None
    told = _claude_log(path)
    if result is None:
        return replace(told, client=CLAUDE, session=session)
    message = result.get("result")
    usd = result.get("total_cost_usd")
    return Told(
        CLAUDE,
        session,
        path,
        message=clean(message) if isinstance(message, str) and result.get("is_error") is not True else told.message,
        limit=limits.of_claude_result(result, datetime.now(UTC)) or told.limit,
        tokens=_all_models(result.get("modelUsage")) or _claude_tokens(result.get("usage")) or told.tokens,
        usd=float(usd) if isinstance(usd, int | float) and 0 <= usd < math.inf else None,
    )


def _result(output: Path) -> Mapping[str, Any] | None:
    """The result that `--output-format json` or `stream-json` prints last; None for none."""
    with suppress(OSError, ValueError, RecursionError):
        for line in reversed(_last_bytes(output).splitlines()):
            if line.strip():
                found = json.loads(line)
                return found if isinstance(found, dict) and found.get("type") == "result" else None
    return None


def _claude_log(path: Path | None) -> Told:
    """What a transcript tells: each answer of the model counted once, by its last line."""
    if path is None or not is_own_log(path):
        return Told(CLAUDE)
    usage: dict[object, int] = {}
    limit = None
    for record in _records(path):
        if (found := claude_answer(record)) is not None:
            usage[found[0]] = found[1]
        if record.get("type") == "assistant" and record.get("isSidechain") is not True:
            limit = limits.of_claude_record(record)
    tokens = sum(usage.values()) if usage else None
    return Told(CLAUDE, transcript=path, message=_last_said(path), limit=limit, tokens=tokens)


def claude_answer(record: Mapping[str, Any]) -> tuple[tuple[object, object], int] | None:
    """What names an answer of the model that a record of a transcript tells, and its tokens; None for any other. An
    answer of several lines is told in each of them, the last one counts.
    """
    message = record.get("message")
    if record.get("type") != "assistant" or not isinstance(message, dict):
        return None
    tokens = _claude_tokens(message.get("usage"))
    key = message.get("id"), record.get("requestId")
    return (key, tokens) if tokens is not None and all(isinstance(one, str | None) for one in key) else None


def _claude_tokens(usage: object) -> int | None:
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
    return sum(value for name in names if type(value := usage.get(name)) is int)


def _all_models(usage: object) -> int:
    """What a result says of each model, sub-agents' among them; 0 where it does not."""
    names = ("inputTokens", "cacheCreationInputTokens", "outputTokens")
    models = usage.values() if isinstance(usage, dict) else ()
    return sum(
        value for model in models if isinstance(model, dict) for name in names if type(value := model.get(name)) is int
    )


# ---- Codex ----


def _of_codex(session: str, output: Path, errors: Path, last: Path | None, status: int | None) -> Told:
    session = session or _session_of_codex(errors) or _thread_of_codex(output)
    path = log_of_session(session, most=_LATEST) if session else None
    told = _codex_log(path)
    message = ""
    if last is not None:
        with suppress(OSError):
            message = clean(content_of(last, most=_MOST_MESSAGE).decode("utf-8", "replace"))
    limit = told.limit
    if path is None and status != 0:  # None: nobody knows it, since its loop was killed
        limit = limits.of_codex_errors(tail(errors), datetime.now(UTC)) or _turn_failed(output)
    return replace(told, client=CODEX, session=session, message=message or told.message, limit=limit)


def _session_of_codex(errors: Path) -> str:
    """The session that `codex exec` names in the head of what it prints, before any word of a model."""
    with suppress(OSError), errors.open("rb") as file:
        head = file.read(_HEAD).decode("utf-8", "replace").partition("\n--------\nuser")[0]
        found = _SESSION_ID.search(head)
        return found[1] if found else ""
    return ""


def _thread_of_codex(output: Path) -> str:
    """The session that `codex exec --json` names first."""
    with suppress(OSError, ValueError, RecursionError), output.open("rb") as file:
        found = json.loads(file.readline(_HEAD))
        if isinstance(found, dict) and found.get("type") == "thread.started":
            return str(found.get("thread_id") or "")
    return ""


def _turn_failed(output: Path) -> Limit | None:
    """The limit that `codex exec --json` prints last."""
    with suppress(OSError, ValueError, RecursionError, IndexError):
        found = json.loads(_last_bytes(output).strip().splitlines()[-1])
        if isinstance(found, dict) and found.get("type") == "turn.failed" and isinstance(found.get("error"), dict):
            return limits.of_codex_errors(f"ERROR: {found['error'].get('message')}", datetime.now(UTC))
    return None


def _codex_log(path: Path | None) -> Told:
    """What a rollout tells: the totals that the client told last, and the error with which the last turn ended."""
    if path is None or not is_own_log(path):
        return Told(CODEX)
    tokens: int | None = None
    rates: Mapping[str, Any] = {}
    limit = None
    for record in _records(path):
        payload = record.get("payload")
        if record.get("type") != "event_msg" or not isinstance(payload, dict):
            continue
        kind = payload.get("type")
        if kind == "token_count":
            tokens = codex_total(record) or tokens
            if isinstance(told := payload.get("rate_limits"), dict):
                rates = told
        elif kind in ("task_complete", "error", "turn_complete"):
            error = payload if kind == "error" else payload.get("error")
            limit = limits.of_codex_error(error, limits.time_of(record.get("timestamp")), rates)
        elif kind in ("task_started", "turn_started"):
            limit = None
    return Told(CODEX, transcript=path, message=_last_said(path), limit=limit, tokens=tokens)


def codex_total(record: Mapping[str, Any]) -> int | None:
    """The tokens of the whole session that a record of a rollout tells; None for any other."""
    payload = record.get("payload")
    info = payload.get("info") if isinstance(payload, dict) and payload.get("type") == "token_count" else None
    return _codex_tokens(info.get("total_token_usage")) if isinstance(info, dict) else None


def _codex_tokens(usage: object) -> int | None:
    if not isinstance(usage, dict):
        return None
    names = {name: value for name, value in usage.items() if type(value) is int}
    if "input_tokens" not in names:
        return None
    return max(0, names["input_tokens"] - names.get("cached_input_tokens", 0)) + names.get("output_tokens", 0)


# ---- logs ----


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """The records at the end of a log."""
    for line in _last_bytes(path).splitlines():
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict):
                yield found


def _last_bytes(path: Path) -> bytes:
    """The end of a file, from the beginning of a line on."""
    with open_regular(path, follow=True) as file:
        start = max(0, file.seek(0, os.SEEK_END) - _END)
        file.seek(start)
        data = file.read(_END)
    return data.partition(b"\n")[2] if start else data


def _last_said(path: Path) -> str:
    """The last message of the agent in its transcript."""
    said = ""
    with suppress(RalfError, OSError):
        if path.stat().st_size > _LARGE:
            return ""
        for event in open_transcript(path).events():
            if event.kind == "assistant":
                said = event.text
            elif event.kind in ("user", "call"):
                said = ""
    return said

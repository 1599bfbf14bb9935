"""What a hook does when `instant` cannot tell that it is nothing. It fails open, and says so once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ralf import project as projects
from ralf.errors import Busy, OtherOwner, RalfError, UsageError
from ralf.files import locks
from ralf.project import Project
from ralf.transcripts import clientlogs
from ralf_integrations import environment
from ralf_integrations.hooks import (
    admission,
    answer as answers,
    complaints,
    handler,
    hints,
    instant,
    notices,
    processes,
    rerouting,
)
from ralf_integrations.hooks.payload import EVENTS, Client, Payload, parse
from ralf_integrations.hooks.session import Session

_PATIENCE = 0.75  # seconds that a hook waits for another one of its session, whoever stopped that
_LAST_PATIENCE = 0.3  # and the last one: clients wait little for it
_BACK_OFF = 64 << 10  # bytes by which a transcript grows before a hook that failed looks again


def run(client: str, event: str, data: bytes, say: Callable[[str], object]) -> None:
    """Answer one call of a hook.

    client   claude-code, codex, gemini; "" or another name: told by the payload and the environment
    event    the client's name of the event
    data     what it wrote to our standard input
    say      called with what goes to standard output, if anything does, once: JSON, before a compaction also plain
             text; when it returns, the client has it

    Never an error: what goes wrong is noted (`complaints`), and shown by the next answer that can.
    """
    project: Project | None = None
    payload: Payload | None = None
    said: list[str] = []

    def once(text: str) -> None:
        said.append(text)
        say(text)

    try:
        payload = parse(event, data, client_of(client, event, data))
        project = projects.find(here=_folder(client, payload))
        if payload is None and event in instant.DOES:
            raise ValueError("the client sent no payload that can be read")  # noqa: TRY301  # noted as any other
        if payload is None or payload.event == "other" or payload.agent or not project.folder.exists():
            return
        if not admission.is_admitted(project):
            if not project.config_file.exists():
                return
            if told := admission.introduce(project, payload):
                once(told)
            if not admission.is_admitted(project):
                return
        payload = _with_own_log(payload, project)
        _answer(payload, project, data, once)
    except OtherOwner as error:
        from ralf_integrations.hooks import refused

        if payload is not None and (told := refused.answer(error, payload)):
            say(told)
    except (Exception, instant.Late) as error:  # noqa: BLE001  # a hook never breaks the client
        if project is None or not project.folder.exists() or not _is_admitted(project):
            return
        complaints.add(project, event, error)
        if payload is None or said:  # two answers, or one that was cut, are none
            return
        with suppress(OSError, ValueError):
            _back_off(project, payload)
        _say(answers.Answer(), payload, project, say)


def _is_admitted(project: Project) -> bool:
    with suppress(RalfError, OSError):
        return admission.is_admitted(project)
    return False


def client_of(named: str, event: str, data: bytes) -> Client:
    """The client that calls: as named, else told by what it sent, else by the environment."""
    for client in EVENTS:
        if client == named:
            return client
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        tree = {}
    tree = tree if isinstance(tree, dict) else {}
    if event in ("BeforeAgent", "AfterTool", "AfterAgent") or "/.gemini/" in str(tree.get("transcript_path")):
        return "gemini"
    if "turn_id" in tree or "/rollout-" in str(tree.get("transcript_path")):
        return "codex"
    return "codex" if event in EVENTS["codex"] and environment.clients() == ("codex",) else "claude-code"


def _folder(client: str, payload: Payload | None) -> Path | None:
    """Where the project is looked for: the folder in which the session began, else its working directory."""
    found = environment.claude_folder() if (payload.client if payload else client) == "claude-code" else None
    return found or (payload.cwd if payload is not None else None)


def _with_own_log(payload: Payload, project: Project) -> Payload:
    """The payload; without its transcript where that is no log in a session folder of the user's clients, which is then
    said once: whoever calls may name any file.
    """
    if payload.transcript is None or clientlogs.is_own(payload.transcript):
        return payload
    what = "is no session log in a folder of this user's clients: not read"
    complaints.add(project, payload.name, UsageError(payload.transcript, what, "ralf doctor"))
    return replace(payload, transcript=None)


def _answer(payload: Payload, project: Project, data: bytes, say: Callable[[str], object]) -> None:
    session = Session(payload, project)
    if session.settings.hooks == "off":
        hints.write(project, payload.session, payload.transcript, size=0, until=0, off=True)
        return
    if payload.event == "session-start":
        hints.sweep(project)
    with _alone(project, payload) as waited:
        if waited and instant.is_idle(payload.client, payload.name, data):
            return  # the one before us has looked
        before = session.known
        if before.forked:
            from ralf_integrations.hooks import forks  # few sessions are any

            forks.settle(session)
        rerouting.settle(session)
        with notices.handed(handler.handle(session), session) as said:
            process, born = processes.caller(payload.client)
            session.note(machine=processes.machine())
            if process:
                session.note(pid=process, born=born, ended=payload.event == "session-end")
            if session.known != before or payload.event != "tools-used":
                session.keep()
            _say(said, payload, project, say)


def _say(said: answers.Answer, payload: Payload, project: Project, say: Callable[[str], object]) -> None:
    if text := answers.written(_with_complaint(said, payload, project), payload):
        say(text)


@contextmanager
def _alone(project: Project, payload: Payload) -> Iterator[bool]:
    """One hook of a session at a time (and of few others: they share 256 locks); whether this one had to wait."""
    name = sha256(payload.session.encode("utf-8", "surrogatepass")).hexdigest()[:2]
    path = project.folder / "locks" / "sessions" / f"{name}.lock"  # not where a route's would lie of that name
    with ExitStack() as stack:
        waited = False
        try:
            stack.enter_context(locks.held(path, payload.session, 0))
        except OSError:  # nothing can be written here: what is kept can be handed over all the same
            pass
        except Busy:
            waited = True
            with suppress(Busy):  # two at once are better than none
                seconds = _LAST_PATIENCE if payload.event == "session-end" else _PATIENCE
                stack.enter_context(locks.held(path, payload.session, seconds))
        yield waited


def _with_complaint(said: answers.Answer, payload: Payload, project: Project) -> answers.Answer:
    """The answer, with what went wrong before, once, where it can be shown."""
    if said.steering or not answers.takes_notice(payload):
        return said
    line = complaints.take(project)
    return replace(said, notice=" · ".join(filter(None, (said.notice, line)))) if line else said


def _back_off(project: Project, payload: Payload) -> None:
    """Let a hook that fails look again after a while only."""
    if payload.event == "tools-used":
        size = payload.transcript.stat().st_size if payload.transcript is not None else 0
        hints.write(project, payload.session, payload.transcript, size=size, until=size + _BACK_OFF)

"""The slow path of a hook, where `instant` cannot tell that nothing is to be done: which event leads to what.

It fails open, and says so once. It acts only where this user has opted the project in, never because of what lies in
it. Notices that wait in the session's inbox are handed to its agent, each exactly once as far as the client's log
tells: one counts as delivered when the answer that holds it was written. A hook that is killed before it can say so
leaves the notice waiting: the next one looks into the client's log whether that very text has arrived.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import extensions, project as projects
from ralf.environment import agent_name, lease, user_folder
from ralf.errors import Busy, OtherOwner, RalfError, UsageError
from ralf.project import Project
from ralf.storage import files, locks, registry
from ralf.storage.files import open_single_link
from ralf.text import cleaning
from ralf.text.cleaning import clean, one_line
from ralf.text.digests import sha256
from ralf.text.frozen import replace
from ralf.transcripts.reader import is_own_log
from ralf_integrations import environment
from ralf_integrations.client import CLAUDE_CODE, CLIENTS, CODEX, GEMINI, OPENCODE, Client
from ralf_integrations.hooks import checkpoints, error_log, session_registry, usage
from ralf_integrations.hooks.messages import LIMIT, Answer, Payload, parse, takes_context, takes_notice, written
from ralf_integrations.hooks.session import Session

if TYPE_CHECKING:
    from ralf_integrations.inbox import Notice


_PATIENCE = 0.75  # seconds that a hook waits for another one of its session, whoever stopped that
_LAST_PATIENCE = 0.3  # and the last one: clients wait little for it
_IsIdle = Callable[[str, str, bytes], bool]
_BACK_OFF = 64 << 10  # bytes by which a transcript grows before a hook that failed looks again


def run(client: str, event: str, data: bytes, say: Callable[[str], object], is_idle: _IsIdle) -> None:
    """Answer one call of a hook.

    client   claude-code, codex, gemini, opencode; "" or another name: told by the payload and the environment
    event    the client's name of the event
    data     what it wrote to our standard input
    say      called with what goes to standard output, if anything does, once: JSON, before a compaction also plain
             text; when it returns, the client has it
    is_idle  the fast path: asked again, of the same call, after another hook of the session has looked

    Never an error: what goes wrong is noted (`error_log`), and shown by the next answer that can.
    """
    project: Project | None = None
    payload: Payload | None = None
    said: list[str] = []

    def once(text: str) -> None:
        said.append(text)
        say(text)

    try:
        payload = parse(event, data, client_of(client, event, data).name)
        project = projects.find(here=_folder(client, payload))
        if payload is None and any(event in one.hooks for one in CLIENTS.values()):
            raise ValueError("the client sent no payload that can be read")  # noqa: TRY301  # noted as any other
        if payload is None or payload.event == "other" or payload.agent or not project.folder.exists():
            return
        if not project.owner.has_opted_in:
            if not project.config_file.exists():
                return
            if told := introduce(project, payload):
                once(told)
            return
        payload = _with_own_log(payload, project)
        _answer(payload, project, once, partial(is_idle, payload.client, payload.name, data))
        for problem in extensions.problems:
            error_log.add(project, event, problem)
    except OtherOwner as error:
        if payload is not None and (told := refusal(error, payload)):
            say(told)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # a hook never breaks the client; the time limit is no `Exception`
        if project is None or not project.folder.exists() or not _is_admitted(project):
            return
        error_log.add(project, event, error)
        if payload is None or said:  # two answers, or one that was cut, are none
            return
        with suppress(OSError, ValueError):
            if payload.event == "tools-used":  # it looks again after a while only
                size = payload.transcript.stat().st_size if payload.transcript is not None else 0
                usage.write_hint(project, payload.session, payload.transcript, size=size, until=size + _BACK_OFF)
        _say(Answer(), payload, project, say)
    finally:
        if project is not None and payload is not None and lease():
            _show_life(project)


def _show_life(project: Project) -> None:
    """Renew the lease of the agent's task at the engine of the project's store, where that is due. It comes last: an
    engine that is away takes time, which then is nobody's.
    """
    from ralf.tasks import keeping  # only for agents that hold a task

    try:
        if project.folder.exists() and _is_admitted(project):
            keeping.touch(root=project.root)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # the time limit is no `Exception`, and the client has its answer
        error_log.add(project, "lease", error)


def _is_admitted(project: Project) -> bool:
    """Whether hooks act in the project; not where its registration cannot be read."""
    with suppress(RalfError, OSError):
        return project.owner.has_opted_in
    return False


def client_of(named: str, event: str, data: bytes) -> Client:
    """The client that calls: as named, else told by what it sent, else by the environment."""
    if named in CLIENTS:
        return CLIENTS[named]
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        tree = {}
    tree = tree if isinstance(tree, dict) else {}
    for client in (OPENCODE, GEMINI, CODEX):
        if client.has_sent(event, tree):
            return client
    running = [client for client in CLIENTS.values() if environment.is_set(client.environment)]
    return CODEX if event in CODEX.hooks and running == [CODEX] else CLAUDE_CODE


def _folder(client: str, payload: Payload | None) -> Path | None:
    """Where the project is looked for: the folder in which the session began, else its working directory."""
    sender = payload.sender if payload is not None else CLIENTS.get(client)
    began = sender.started_in() if sender is not None else None
    return began or (payload.cwd if payload is not None else None)


def _with_own_log(payload: Payload, project: Project) -> Payload:
    """The payload; without its transcript where that is no log in a session folder of the user's clients, which is then
    said once: whoever calls may name any file.
    """
    if payload.transcript is None or is_own_log(payload.transcript):
        return payload
    what = "is no session log in a folder of this user's clients: not read"
    error_log.add(project, payload.name, UsageError(payload.transcript, what, "ralf doctor"))
    return replace(payload, transcript=None)


def _answer(payload: Payload, project: Project, say: Callable[[str], object], is_idle: Callable[[], bool]) -> None:
    session = Session(payload, project)
    if session.settings.hooks == "off":
        usage.write_hint(project, payload.session, payload.transcript, size=0, until=0, off=True)
        return
    if payload.event == "session-start":
        usage.sweep_hints(project)
    patience = _LAST_PATIENCE if payload.event == "session-end" else _PATIENCE
    with session_registry.alone(project, payload.session, patience) as waited:
        if waited and is_idle():
            return  # the one before us has looked
        before = session.known
        if before.forked:
            from ralf_integrations.hooks import previous_sessions  # few sessions are any

            previous_sessions.find_origin(session)
        checkpoints.leave_route(session)
        with with_notices(handle(session), session) as said:
            process, born = session_registry.client_process(payload.sender)
            session.note(machine=session_registry.machine())
            if process:
                session.note(pid=process, born=born, ended=payload.event == "session-end")
            if session.known != before or payload.event != "tools-used":
                session.keep()
            _say(said, payload, project, say)
    from ralf.route import archive  # a stamp is looked at, and the client has its answer

    with suppress(RalfError, OSError, NotImplementedError):
        archive.later(project)


def _say(said: Answer, payload: Payload, project: Project, say: Callable[[str], object]) -> None:
    """Write the answer, with what went wrong before, once, where it can be shown."""
    if not said.steering and takes_notice(payload) and (line := error_log.take_unsaid(project)):
        said = replace(said, notice=" · ".join(filter(None, (said.notice, line))))
    if text := written(said, payload):
        say(text)


# ---- what each event does ----


def handle(session: Session) -> Answer:
    """Do what an event asks for, and say what is to be said. Errors come as they are: `run` fails open.

    Events of a subagent, or of the compaction itself, do nothing: the main window is not theirs.
    """
    payload = session.payload
    if payload.agent:
        return Answer()
    said = _answered(session)
    if not said.context and takes_context(payload):
        if waiting := session.known.waiting:  # alone, for a receipt is for a whole text
            session.note(waiting="")
            said = replace(said, context=waiting, what="survived")
        elif payload.event == "tools-used" and not payload.sender.tells_compaction:
            from ralf_integrations.hooks import compacting  # of few clients only the log tells

            said = compacting.noticed(session)
    session.hand(said)
    return said


_PROGRESS = {
    "tools-used": checkpoints.tools_used,
    "task-completed": checkpoints.task_completed,
    "stopped": checkpoints.stopped,
    "session-end": checkpoints.session_ended,
}


def _answered(session: Session) -> Answer:
    event = session.payload.event
    if event in _PROGRESS:
        return _PROGRESS[event](session)
    if event in ("session-start", "prompt"):  # each imports what it needs, and no more
        from ralf_integrations.hooks import injection

        return injection.started(session) if event == "session-start" else injection.prompted(session)
    if event in ("before-compaction", "after-compaction"):
        from ralf_integrations.hooks import compacting

        return compacting.before(session) if event == "before-compaction" else compacting.after(session)
    return Answer()


# ---- whether hooks act in the project ----

_TOLD = "refused"  # folder of the user's own: an empty file for each project that they were told of
_LONGEST_LINE = 400  # characters of a line
_NOT_OPTED_IN = (
    "ralf: hooks do nothing here: .autonomous/context came with the repository or was moved, and you have not opted"
    " this project in; to do that: ralf init; to look at what is there: ralf trust"
)


def introduce(project: Project, payload: Payload) -> str:
    """Why hooks do nothing in a project that this user has said nothing of, as it is written to standard output: the
    person is told once; "" for nothing.
    """
    if registry.find(project.folder.parents[1]) is not None or not takes_notice(payload):
        return ""
    with suppress(RalfError, OSError):  # no folder to remember it in: then it is not said again and again either
        project.owner.update(key="")
        return json.dumps({"systemMessage": _NOT_OPTED_IN})
    return ""


def refusal(error: OtherOwner, payload: Payload) -> str:
    """What is written to standard output, "" for nothing: the person was told before, or cannot be told."""
    folder = user_folder()
    if folder is None or not takes_notice(payload):
        return ""
    name = sha256(os.fsencode(str(error.where))).hexdigest()[:32]
    with suppress(OSError):  # told before; or it cannot be remembered, and would be said again and again
        files.make(folder / _TOLD)
        open(folder / _TOLD / name, "x", opener=open_single_link).close()
        line = f"ralf: hooks do nothing here: {error}; {error.hint}"
        return written(Answer(notice=one_line(clean(line))[:_LONGEST_LINE]), payload)
    return ""


# ---- notices that wait ----


@contextmanager
def with_notices(said: Answer, session: Session) -> Iterator[Answer]:
    """The answer with the notices that wait, where it hands nothing else to the agent: a receipt is told by the text of
    a whole answer. Otherwise, and where not all fit, the session's next hook looks again.

    They are delivered when the block has written the answer and ends without an error. One hook at a time has them.
    """
    project, id_, name = session.project, session.payload.session, agent_name()
    if not usage.inbox_size(project, id_) and not (name and usage.inbox_size(project, name)):
        yield said
        return
    from ralf_integrations import inbox  # few sessions are told anything

    notices: list[Notice] = []
    with ExitStack() as claim:
        try:
            if name:  # what waits under the name that a loop gave the agent
                inbox.forward(project, name, id_)
            said, notices = _with_notices(said, session, claim)
        except (RalfError, OSError) as error:  # what the hook itself has to say is said all the same
            error_log.add(project, session.payload.name, error)
        yield said
        try:
            if notices:
                inbox.deliver(project, id_, notices)
        except (RalfError, OSError) as error:
            error_log.add(project, session.payload.name, error)


def _with_notices(said: Answer, session: Session, claim: ExitStack) -> tuple[Answer, list[Notice]]:
    """The answer with the notices that it hands over, and these."""
    from ralf_integrations import inbox

    payload, project = session.payload, session.project
    if not inbox.waiting(project, payload.session):
        return said, []
    session_registry.drop_hint(project, payload.session)
    if said.context or not takes_context(payload):
        return said, []
    try:
        path = project.folder / "locks" / "inbox" / f"{cleaning.slug(payload.session)}.lock"
        claim.enter_context(locks.locked(path, payload.session, 0))
    except Busy:  # another hook of the session hands them over at this moment
        return said, []
    waiting = inbox.waiting(project, payload.session)
    arrived = _arrived(waiting, session)
    if arrived:
        inbox.deliver(project, payload.session, arrived)
    found = inbox.fitting(waiting[len(arrived) :], LIMIT)
    said = replace(said, context=inbox.rendered(found), what="notice")
    session.hand(said)
    return said, found


def _arrived(waiting: list[Notice], session: Session) -> list[Notice]:
    """Returns those, the oldest, that a hook has handed over which could not say so any more."""
    from ralf_integrations import inbox
    from ralf_integrations.hooks import receipts

    before = {one.digest for one in session.known.handed if one.what == "notice"}
    for count in range(len(waiting), 0, -1) if before else ():
        digest = sha256(inbox.rendered(waiting[:count]).encode("utf-8", "surrogatepass")).hexdigest()
        if digest in before:
            checked = receipts.check(session.project, session.payload.session)
            return waiting[:count] if any(one.digest == digest and there for one, there in checked) else []
    return []

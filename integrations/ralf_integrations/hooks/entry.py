"""The slow path of a hook, where `instant` cannot tell that nothing is to be done: which event leads to what.

It fails open, and says so once. It acts only where this user has opted the project in, never because of what lies in
it. Notices that wait in the session's inbox are handed to its agent; one counts as delivered when the answer that holds
it was written, so a hook that is killed before leaves it waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ralf import extensions, project as projects
from ralf.environment import agent_name, lease
from ralf.errors import OtherOwner, RalfError, UsageError
from ralf.project import Project
from ralf.storage import registry
from ralf.text.frozen import replace
from ralf.transcripts.reader import is_own_log
from ralf_integrations.client import CLAUDE_CODE, CLIENTS, Event
from ralf_integrations.hooks import checkpoints, error_log, session_registry, usage
from ralf_integrations.hooks.messages import LIMIT, Answer, Payload, parse, takes_context, takes_notice, written
from ralf_integrations.hooks.session import Session

if TYPE_CHECKING:
    from ralf_integrations.inbox import Notice


_PATIENCE = 0.75  # seconds that a hook waits for another one of its session, whoever stopped that
_LAST_PATIENCE = 0.3  # and the last one: clients wait little for it


def run(client: str, event: str, data: bytes, say: Callable[[str], object]) -> None:
    """Answer one call of a hook.

    client   claude-code, codex, gemini, opencode; "" for the first
    event    the client's name of the event
    data     what it wrote to our standard input
    say      called with what goes to standard output, if anything does, once: JSON, before a compaction also plain
             text; when it returns, the client has it

    Never an error: what goes wrong is noted (`error_log`), and shown by the next answer that can.
    """
    project: Project | None = None
    payload: Payload | None = None
    said: list[str] = []

    def once(text: str) -> None:
        said.append(text)
        say(text)

    try:
        sender = CLIENTS.get(client, CLAUDE_CODE)
        payload = parse(event, data, sender.name)
        project = projects.find(here=sender.started_in() or (payload.cwd if payload is not None else None))
        if payload is None and event in sender.hooks:
            raise ValueError("the client sent no payload that can be read")  # noqa: TRY301  # noted as any other
        if payload is None or payload.event == "other" or payload.agent or not project.folder.exists():
            return  # of a subagent, or of the compaction itself: the main window is not theirs
        if not project.owner.has_opted_in:
            introduce(project, payload, once)
            return
        _answer(_with_own_log(payload, project), project, once)
        for problem in extensions.problems:
            error_log.add(project, event, problem)
    except OtherOwner:  # hooks do nothing in a store of another user's
        return
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # a hook never breaks the client; the time limit is no `Exception`
        if project is None or not _is_admitted(project):
            return
        error_log.add(project, event, error)
        if payload is not None and not said:  # two answers, or one that was cut, are none
            with suppress(OSError, ValueError):
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
        if _is_admitted(project):
            keeping.touch(root=project.root)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # the time limit is no `Exception`, and the client has its answer
        error_log.add(project, "lease", error)


def _is_admitted(project: Project) -> bool:
    """Whether hooks act in the project; not where its registration cannot be read."""
    with suppress(RalfError, OSError):
        return project.folder.exists() and project.owner.has_opted_in
    return False


_NOT_OPTED_IN = (
    "ralf: hooks do nothing here: .autonomous/context came with the repository or was moved, and you have not opted"
    " this project in; to do that: ralf init; to look at what is there: ralf trust"
)


def introduce(project: Project, payload: Payload, say: Callable[[str], object]) -> None:
    """Tell the person, once, why hooks do nothing in a project with a store that this user has said nothing of."""
    if not project.config_file.exists() or registry.find(project.folder.parents[1]) is not None:
        return
    if takes_notice(payload):
        with suppress(RalfError, OSError):  # no folder to remember it in: then it is not said again and again either
            project.owner.update(key="")
            say(json.dumps({"systemMessage": _NOT_OPTED_IN}))


def _with_own_log(payload: Payload, project: Project) -> Payload:
    """The payload; without its transcript where that is no log in a session folder of the user's clients, which is then
    said once: whoever calls may name any file.
    """
    if payload.transcript is None or is_own_log(payload.transcript):
        return payload
    what = "is no session log in a folder of this user's clients: not read"
    error_log.add(project, payload.name, UsageError(payload.transcript, what, "ralf doctor"))
    return replace(payload, transcript=None)


def _answer(payload: Payload, project: Project, say: Callable[[str], object]) -> None:
    session = Session(payload, project)
    if session.settings.hooks == "off":
        session.foretell(usage.Foretold(), is_off=True)
        session_registry.save(project, session.known)
        return
    if payload.event == "session-start":
        session_registry.sweep(project)
    patience = _LAST_PATIENCE if payload.event == "session-end" else _PATIENCE
    with session_registry.alone(project, payload.session, patience):
        before = session.known
        checkpoints.leave_route(session)
        said, notices = _with_notices(handle(session), session)
        process, born = session_registry.client_process(payload.sender)
        session.note(machine=session_registry.machine())
        if process:
            session.note(pid=process, born=born, ended=payload.event == "session-end")
        if session.known != before or payload.event != "tools-used":
            session.keep()
        _say(said, payload, project, say)
        if notices:
            from ralf_integrations import inbox

            for name in _names(payload):
                inbox.deliver(project, name, notices)
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
    """Do what an event asks for, and say what is to be said. Errors come as they are: `run` fails open."""
    payload = session.payload
    said = _answered(session, payload.event)
    if not said.context and takes_context(payload):
        if waiting := session.known.waiting:  # alone, for a receipt is for a whole text
            session.note(waiting="")
            said = replace(said, context=waiting, what="survived")
        elif payload.event in ("tools-used", "prompt") and not payload.sender.tells_compaction:
            from ralf_integrations.hooks import compacting  # of few clients only the log tells

            said = replace(compacting.noticed(session), notice=said.notice)
    session.hand(said)
    return said


def _answered(session: Session, event: Event) -> Answer:
    if event == "tools-used":
        return checkpoints.tools_used(session)
    if event == "stopped":
        return checkpoints.stopped(session)
    if event in ("session-start", "prompt"):  # each imports what it needs, and no more
        from ralf_integrations.hooks import injection

        return injection.started(session) if event == "session-start" else injection.prompted(session)
    if event in ("before-compaction", "after-compaction"):
        from ralf_integrations.hooks import compacting

        return compacting.before(session) if event == "before-compaction" else compacting.after(session)
    if event in ("task-completed", "session-end"):  # a client waits for little then
        session.note(ended=event == "session-end")
        checkpoints.start(session, event)
    return Answer()


# ---- notices that wait ----


def _names(payload: Payload) -> list[str]:
    """Under which notices wait for the session: its own, and the one that a loop gave its agent."""
    return [name for name in (payload.session, agent_name()) if name]


def _with_notices(said: Answer, session: Session) -> tuple[Answer, list[Notice]]:
    """The answer with the notices that wait, and these, where it hands nothing else to the agent: a receipt is told by
    the text of a whole answer. Otherwise, and where not all fit, the session's next hook looks again.
    """
    project = session.project
    names = [name for name in _names(session.payload) if usage.inbox_size(project, name)]
    if not names:
        return said, []
    from ralf_integrations import inbox  # few sessions are told anything

    waiting: list[Notice] = []
    try:
        waiting = [notice for name in names for notice in inbox.waiting(project, name)]
    except (RalfError, OSError) as error:  # what the hook itself has to say is said all the same
        error_log.add(project, session.payload.name, error)
    if waiting:
        session.note(hint="")
    if not waiting or said.context or not takes_context(session.payload):
        return said, []
    found = inbox.fitting(waiting, LIMIT)
    said = replace(said, context=inbox.rendered(found), what="notice")
    session.hand(said)
    return said, found

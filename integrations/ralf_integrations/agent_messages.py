"""Messages between agents: short, with paths in the place of contents, delivered once by the receiver's inbox.

A message has a summary, facts, artifacts (paths) and what is asked of the receiver. It waits as a notice: the next hook
of the receiving session hands it over; an agent without hooks takes it by `ralf send` or the tool `receive_messages`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralf import environment
from ralf.errors import NotFound, UsageError
from ralf.project import Project
from ralf.redact import redactor_for
from ralf.text import tokens
from ralf.text.cleaning import clean, is_valid, one_line
from ralf.text.frozen import NamedTuple
from ralf.text.sentences import split
from ralf_integrations import copied_text, inbox
from ralf_integrations.inbox import Notice

MOST_TOKENS = 500
"""o200k_base tokens that a message has at most."""

MOST_SENTENCES = 2
"""Sentences of a summary."""

MOST_LINES, MOST_CHARACTERS = 10, 400
"""Of one fact, and of one file in a whole message."""

_LONGEST_PATH = 300  # characters of an artifact
_LEAST = 4  # characters of a session's id by which it is told from others
_LIST = "ralf status --all"
_BY_PATH = "name the file: --artifact PATH"


class Message(NamedTuple):
    """What one agent says to another, as its receiver reads it."""

    sender: str
    text: str


def compose(
    project: Project,
    summary: str,
    *,
    facts: Sequence[str] = (),
    artifacts: Sequence[str] = (),
    action: str = "",
    sender: str = "",
) -> Message:
    """A message that may be sent, redacted.

    summary    one or two sentences
    facts      what the receiver has to know, each in at most `MOST_LINES` lines and `MOST_CHARACTERS` characters
    artifacts  paths of files that belong to it, never their contents
    action     what the receiver is asked to do, "" for nothing
    sender     "": the name of this agent or session

    UsageError for what has another shape, for a message over `MOST_TOKENS`, and for one that copies a file of the
    project.
    """
    said = one_line(clean(summary))
    if not said:
        raise UsageError("message", "needs a summary of one or two sentences", 'ralf send AGENT "SUMMARY"')
    if (count := len(split(said))) > MOST_SENTENCES:
        what = f"the summary has {count} sentences: at most {MOST_SENTENCES}"
        raise UsageError("message", what, "say the rest as facts: --fact TEXT")
    most = f"at most {MOST_LINES} lines and {MOST_CHARACTERS} characters"
    cleaned = [text for fact in facts if (text := clean(fact).strip("\n")).strip()]
    for number, fact in enumerate(cleaned, start=1):
        if (lines := fact.count("\n") + 1) > MOST_LINES or len(fact) > MOST_CHARACTERS:
            what = f"fact {number} has {lines} lines and {len(fact)} characters: {most}"
            raise UsageError("message", what, _BY_PATH)
    parts = [said]
    parts += ["Facts:", *("- " + fact.replace("\n", "\n  ") for fact in cleaned)] if cleaned else []
    parts += [f"Artifacts: {', '.join(map(_path, artifacts))}"] if artifacts else []
    parts += [f"Action: {wanted}"] if (wanted := one_line(clean(action))) else []
    text = redactor_for(project).text("\n".join(parts))
    if (size := tokens.count(text)) > MOST_TOKENS:
        raise UsageError("message", f"has {size:,} tokens: at most {MOST_TOKENS:,}", _BY_PATH)
    # Over all parts, for a file cut into many facts is one file; and as they were given: in one line, line numbers are
    # no longer told from text.
    given = clean("\n".join((summary, *facts, action)))
    found = copied_text.most_copied(given, project.root, lines=MOST_LINES, characters=MOST_CHARACTERS)
    if found is not None:
        what = f"has {found.lines} lines, {found.characters} characters, of {found.path}: {most} of one file"
        raise UsageError("message", what, f"name the file: --artifact {found.path}")
    return Message(one_line(clean(sender)) or own_names()[0], text)


def _path(text: str) -> str:
    path = clean(text).strip()
    if not path or "\n" in path or len(path) > _LONGEST_PATH:
        what = f"an artifact is a path: one line of at most {_LONGEST_PATH} characters, got {path[:60]!a}"
        raise UsageError("message", what, "--artifact src/parser.py")
    return path


def send(project: Project, agent: str, message: Message, *, waits: bool = False) -> tuple[str, str]:
    """Leave an agent's message in the inbox of one receiver (`receivers_of`); whose that is, and the message's id.
    Durable when this returns.

    Raises NotFound (no such name), UsageError (several sessions), Busy, OSError.
    """
    receivers = receivers_of(project, agent, waits=waits)
    if len(receivers) > 1:
        what = f"{len(receivers)} sessions work on this route: {', '.join(receivers[:5])}"
        raise UsageError(agent, what, "name one of them")
    return receivers[0], inbox.send(project, receivers[0], message.text, sender=message.sender)


def receivers_of(project: Project, agent: str, *, waits: bool = False) -> list[str]:
    """Whose inboxes are meant by the name of an agent.

    agent  a session's id, or at least its first 4 characters; a route: all sessions that work on it; or a name by which
           a loop calls an agent (`RALF_AGENT`), or under which somebody holds a task
    waits  whether it may be a name that nobody has yet

    Raises NotFound (nobody has this name), UsageError (it begins several ids).
    """
    from ralf import routing
    from ralf_integrations.health.look import known_ids, look

    name = one_line(clean(agent)).strip()
    if not name:
        raise UsageError("message", "needs an agent: a session, a route or a name", _LIST)
    known = known_ids(project.root)
    begun = [one for one in known if one.startswith(name)] if len(name) >= _LEAST else []
    if name in known or len(begun) == 1:
        return [name] if name in known else begun
    if begun:
        raise UsageError(name, f"begins {len(begun)} sessions' ids: {', '.join(sorted(begun)[:5])}", _LIST)
    going = look(route=name, root=project.root).sessions if is_valid(name) else ()
    if at_it := [one.session for one in going if one.state not in ("ended", "killed")]:
        return at_it
    if waits or name in _agents(project):
        return [name]
    is_route = going or name in routing.names_of(project)
    nobody = "nobody has this name: no session, route, loop or task"
    raise NotFound(name, "no session works on this route" if is_route else nobody, _LIST)


def _agents(project: Project) -> set[str]:
    """The names that a loop has given agents, and those of holders of tasks."""
    from ralf.tasks import store
    from ralf_integrations.loop import state

    names = {one.agent for one in state.load(project).running}
    if (project.folder.parent / "tasks").is_dir():
        held = store.Tasks(project).read(lambda book: book.states(book.claimed())).values()
        names |= {one.claim.by for one in held if one.claim is not None}
    return names


def own_names(session: str = "") -> list[str]:
    """The names under which this process's agent has an inbox: its own, if a loop gave it one, and its session's."""
    names = (environment.agent_name(), session or environment.session() or environment.holder())
    return list(dict.fromkeys(filter(None, names)))


def receive(project: Project, names: Sequence[str], limit: int = inbox.LONGEST) -> list[Notice]:
    """The oldest messages and notices that wait under some names, whose text has at most `limit` characters in all. No
    other call, and no hook, returns them again. Raises what `inbox.take` does.
    """
    found: list[Notice] = []
    for name in names:
        room = limit - len(inbox.rendered(found))
        if room > 0:
            found += inbox.take(project, name, room)
    return found

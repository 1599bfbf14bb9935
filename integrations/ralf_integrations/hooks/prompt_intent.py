"""What a prompt names of our routes, or that it says nothing but to go on; and the route of a session that has none.

Exact names and ids alone choose a route, in the first prompt of a session: a brief that nobody asked for costs the
agent its window, and puts work into another's route. No words are understood but those of one table, each a whole
prompt: every other wish to go on is understood by the agent, which is told what is unfinished.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from re import Match
from typing import Literal

from ralf import config, routing
from ralf.errors import RalfError
from ralf.project import Project
from ralf.route import offsets
from ralf.routing import DEFAULT, TASK_ID
from ralf.storage import git_files
from ralf.text import cleaning
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex
from ralf.transcripts.events import Event
from ralf.transcripts.reader import Transcript, open_transcript, requests
from ralf_integrations.hooks import session_registry
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.session_registry import KnownSession

Kind = Literal["load", "named", "continue", ""]

GO_ON = frozenset(
    (
        *("continue", "please continue", "go on", "carry on", "keep going", "resume", "proceed"),
        *("weiter", "mach weiter", "weitermachen", "continuez", "vas-y", "reprends", "continúa", "sigue", "continua"),
        *("vai avanti", "ga door", "ga verder", "kontynuuj", "fortsätt", "devam et", "продолжай", "продовжуй"),
        *("继续", "繼續", "続けて", "계속", "استمر", "जारी रखें"),
    )
)
"""The prompts, without marks around them, that say nothing but to go on: at most thirty."""

NO_REQUEST = regex(r"\s*(?:[/<!]|#(?!\d))")
"""How prompts begin that ask the client, or that the client has written."""

_READ = 20_000  # characters of a prompt

_LOAD = regex(r"(?<![\w-])--load-context(?:([ =]+)[`'\"]?([^\s`'\",;]+))?")

_UNSPACED = r"\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3"
"""Letters of scripts in which a name may stand beside a word, or beside a particle, without a blank."""

_TOKEN = regex(
    rf"(?<![^\W{_UNSPACED}])(?<![/@\-\\#=.])"
    r"(?>#\d{1,9}|[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?)"
    rf"(?![^\W{_UNSPACED}]|[/@\\(\-])"
)
"""A word that is no part of a longer one, of an address or of an option."""

_SHAPE = regex(r"[A-Za-z0-9][-_][A-Za-z0-9]|\d")

_ID = regex(rf"#\d{{1,9}}|{TASK_ID}")

_HEADED = regex(rf"\s*(?:\S+\s+)?({_ID.pattern})\s*:")

_FEW = 20  # characters of a prompt that is no greeting

_HEAD = 2  # words of a request among which its id stands

_MARKS = " \t\r\n.,:;!?…()[]{}\"'`*_\u2014\u2013\u3002\uff01\uff1f\u061f"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for."""

    kind: Kind = ""  # load: `--load-context`; named: a route, in passing; continue: to go on, and no more; "": nothing
    route: str = ""  # that is named, "" where none is
    other: str = ""  # load: what stands for a route and names none


Ids = Callable[[], Mapping[str, Collection[str]]]
"""Tells which routes have each id, in lower case."""


def read(prompt: str, routes: Iterable[str], ids: Ids = dict) -> Wish:
    """What a prompt asks for, given the names of all routes and their ids. Case counts only between names that differ
    in it; a branch names the route that is named after it.

    One that begins with an id and a colon names no other route; a plain word is a name only in backticks, or as whole
    prompt. Several names are none.
    """
    text, ids = prompt[:_READ], cache(ids)
    named: dict[str, list[str]] = {}
    for route in routes:
        named.setdefault(route.casefold(), []).append(route)

    def exact(word: str) -> str:
        found = named.get(word.casefold()) or (named.get(cleaning.slug(word).casefold(), []) if "/" in word else [])
        return word if word in found else found[0] if len(found) == 1 else ""

    def meant(word: str) -> Collection[str]:
        if route := exact(word):
            return [route]
        return ids().get(word.casefold(), ()) if _ID.fullmatch(word) else ()

    if found := _LOAD.search(text):
        word = (found[2] or "").rstrip(".,;:!?)")
        names_one = bool(_SHAPE.search(word)) or "=" in (found[1] or "")
        return Wish("load", exact(word), word if names_one and not exact(word) else "")
    if head := _HEADED.match(text):
        those = set(meant(head[1]))
    else:
        tokens = (one for one in _TOKEN.finditer(text) if not (route := exact(one[0])) or _is_name(route, one))
        those = {route for token in tokens for route in meant(token[0])}
    if len(those) == 1:
        return Wish("named", those.pop())
    return Wish("continue") if prompt.strip(_MARKS).casefold() in GO_ON else Wish()


def _is_name(route: str, token: Match[str]) -> bool:
    """Whether a token of a prompt is the name of a route, and no plain word."""
    text, begin, end = token.string, token.start(), token.end()
    return (
        bool(_SHAPE.search(route))
        or text[begin - 1 : begin] == text[end : end + 1] == "`"
        or (text.strip(_MARKS) == token[0])
    )


def is_request(prompt: str) -> bool:
    """Whether a prompt asks for work: it is not for the client, nor for ralf, nor says it nothing but to go on."""
    return not NO_REQUEST.match(prompt) and not config.is_all(prompt) and prompt.strip(_MARKS).casefold() not in GO_ON


def says_enough(prompt: str) -> bool:
    """Whether a prompt is a request, and longer than a greeting: a character of a wide script says as much as three."""
    units = sum(3 if unicodedata.east_asian_width(character) in "WF" else 1 for character in prompt[:_READ])
    return units >= _FEW and is_request(prompt)


def ids_at_head(request: str) -> tuple[str, ...]:
    """The ids at the head of a request: `PROJ-7 …`, `issue #41: …`."""
    words = [word.strip(_MARKS) for word in request[:_READ].split(maxsplit=_HEAD)[:_HEAD]]
    return tuple(word for word in words if _ID.fullmatch(word))


def ids_of(project: Project) -> dict[str, set[str]]:
    """The routes that have each id, in lower case: that of their task, and those at the head of their first request."""
    from ralf.finding.reader import list_routes  # few prompts have a word that looks like an id

    found: dict[str, set[str]] = {}
    for one in list_routes(root=project.root):
        for id_ in (*ids_at_head(one.began_as or one.goal), one.current_task):
            found.setdefault(id_.casefold(), set()).add(one.route)
    return found


# ---- the route of a session that has none ----

_MOST_EVENTS = 2_000  # in which a session that has worked has called a tool

_MUCH = 2_000  # characters that an agent says that was asked for something


def give_route(session: Session, prompt: str, named: str = "") -> bool:
    """Give a session without a route the one that its first prompt names, else the one of its branch, else a new one
    that is named after the prompt; it keeps that. A prompt that makes no name leaves it to the next one. Whether it has
    a route now.

    named  the route that is meant by the prompt
    """
    project, id_ = session.project, session.payload.session
    before = requests(session.readable) if session.readable is not None else ()
    for request in (*before, prompt):
        route, task = named if request == prompt else "", routing.task_named(request)
        if not route and not is_request(request):
            continue
        if route := route or read(request, routing.names_meant(project), partial(ids_of, project)).route or task:
            routing.use(project, route, session=id_, rule=routing.NAMED)
        elif branch := routing.of_branch(project, git_files.branch(project.root)):
            routing.use(project, branch.route, session=id_, rule=branch.rule)
        elif not routing.name(project, request, session=id_, redact=partial(_redacted, project)):
            continue
        session.rerouted()
        session.note(unnamed=False)
        return True
    session.note(unnamed=not session.has_route)
    return session.has_route


def name_by_work(session: Session) -> bool:
    """Name the route of a session that has worked though no request of it makes a name. Whether what is new in its log
    has a route to go to: a greeting has none, and makes none.
    """
    if session.has_route and session.choice.rule == routing.FIRST_REQUEST and session.readable is not None:
        return has_content(session.readable)
    if session.has_route or not session.known.unnamed:
        return True
    if session.readable is None or not has_worked(session.readable):
        return False
    if routing.number(session.project, session=session.payload.session):
        session.rerouted()
    return True


def route_of_ended(project: Project, known: KnownSession) -> str:
    """The route of a session that is over: a new one where it has none and has worked, "" where it was only greeted."""
    is_unnamed = known.route == DEFAULT and known.unnamed and routing.names_sessions(project)
    if not is_unnamed and (not known.transcript or routing.known(project, known.route) is not None):
        return known.route
    try:
        source = open_transcript(Path(known.transcript)) if known.transcript else None
        if not is_unnamed and source is not None:
            return known.route if has_content(source) else ""
        return routing.number(project, session=known.session) if source is not None and has_worked(source) else ""
    except (RalfError, OSError):  # what is wrong with its log is no business of a session that begins
        return known.route


def has_worked(source: Transcript) -> bool:
    """Whether an agent has called a tool, or said more than one says to a greeting."""
    much = 0
    for event in islice(source.events(), _MOST_EVENTS):
        if event.kind == "assistant":
            much += len(event.text)
        if event.kind == "call" or much > _MUCH:
            return True
    return False


def has_content(source: Transcript) -> bool:
    """Whether a session is more than a greeting: it has worked, or was asked for something."""
    return has_worked(source) or any(map(says_enough, requests(source)))


def _redacted(project: Project, text: str) -> str:
    from ralf.redact import redactor_for  # who only reads a prompt redacts nothing

    return redactor_for(project).text(text)


# ---- an agent that reads a route before it works goes on with that one ----

_READS = frozenset("show list search status log why diff health".split())
"""Verbs of our own that change nothing."""


def move_by_reading(project: Project, session: str, route: str) -> bool:
    """Make a route that a session's agent reads the session's, where nobody has named one for it and it has done no
    work: nothing of it was recorded, and it has only looked at things. Whether it moved.
    """
    choice = routing.choose(project, session=session)
    if choice.is_chosen or choice.route == route or offsets.of_session(project, session)[0]:
        return False
    known = session_registry.load(project, session)
    try:
        if known.transcript and any(map(_is_work, open_transcript(Path(known.transcript)).events())):
            return False
    except (RalfError, OSError):  # of one that cannot be read nobody knows
        return False
    routing.use(project, route, session=session, rule=routing.READ)
    return True


def _is_work(event: Event) -> bool:
    """Whether an event is a call that does more than to look."""
    from ralf.facts.commands import command_text, is_shell, simple_commands  # no hook asks
    from ralf.facts.steps import Steps

    if event.kind != "call" or "ralf" in event.tool:  # our own MCP tools
        return False
    if is_shell(event.tool):
        commands = [simple.words for simple in simple_commands(command_text(event.input))]
        return not all(_is_reading(words) for words in commands)
    steps = Steps("")
    list(steps.take(event))
    return any(step.kind in ("edit", "agent") for step in steps.pending)


def _is_reading(words: Sequence[str]) -> bool:
    import shlex

    from ralf.facts.commands import only_looks

    if words and words[0].rpartition("/")[2] == "ralf":
        return not _READS.isdisjoint(words)
    return only_looks(shlex.join(words))

"""The texts that are handed to the model: a route's brief, and the line that says that there is one.

Each stands in the fence as a whole, so that none of it is ever taken for somebody's words, and is noted, so that its
arrival can be confirmed (`receipts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from ralf import config
from ralf.brief.rendering import CHARACTERS_PER_TOKEN
from ralf.errors import RouteNotFound
from ralf.finding.reader import get_context
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route.load import load_state
from ralf.text import tokens
from ralf.text.cleaning import FENCE_TOKENS, fence_characters, fenced, shown
from ralf.text.patterns import regex
from ralf_integrations.hooks import prompt_intent
from ralf_integrations.hooks.messages import LIMIT, length
from ralf_integrations.hooks.session import Session

_FEWEST = 40  # tokens without which a brief says nothing
_MUCH = 500  # tokens of a segment in which more was said than one says to a greeting
_SECONDS = ((86_400, "day"), (3_600, "h"), (60, "min"))
_ZONE = regex(r"(?:Z|[+-]\d\d:?\d\d)\Z")


def context_of(project: Project, route: str) -> RouteContext | None:
    """A route's context; None where the route has no substance, or none that is this user's: a greeting is no work to
    go on with. DamagedRouteFile, DamagedJournal.
    """
    try:
        context = get_context(route, root=project.root)
    except RouteNotFound:
        return None
    if context.wholly_foreign:
        return None
    return context if _has_substance(context) else None


def _has_substance(context: RouteContext) -> bool:
    work, facts = context.active_work, context.facts
    done = facts.paths or facts.commands or facts.errors or facts.commits or facts.tests or work.completed_steps
    open_ = work.todos or work.next_steps or work.blockers or work.findings or work.last_runs or work.task_title
    if context.decisions or done or open_ or any(entry.tokens >= _MUCH for entry in context.checkpoint_history):
        return True
    asked = [text for text in (context.goal, *(fact.request for fact in facts.requests)) if text]
    if asked:
        return any(map(prompt_intent.is_request, asked))
    return bool(context.checkpoint_history or work.attempts)


def brief(session: Session, context: RouteContext, *, said: Sequence[str] = ()) -> str:
    """The brief of a route for who goes on with it, within what the client takes and what is configured.

    said  sentences of ours that stand below it; "" is left out
    """
    route = context.route
    ending = [
        *filter(None, said),
        f"The whole of it: `ralf context show {route}`; find more: `ralf context search WORDS --route {route}`; the"
        f" lines behind an item: `ralf context why {route} ID`. Read files again before you change them.",
    ]
    return within(context, session.settings.brief_tokens, ending=" ".join(ending)) or line(session, route, said=said)


def within(context: RouteContext, most: int, *, ending: str, beginning: str = "") -> str:
    """A context in the fence, with sentences of ours around it, in at most so many tokens, and no more than LIMIT
    characters; "" where they hold next to nothing.
    """
    before = f"{shown(beginning)}\n" if beginning else ""
    behind = f"_{shown(config.typed(ending, context.command))}_\n" if ending else ""
    ours = len(before) + len(behind) + fence_characters()
    room = min(most - FENCE_TOKENS - tokens.estimate(before + behind), (LIMIT - ours) // CHARACTERS_PER_TOKEN)
    while room >= _FEWEST:
        text = fenced(f"{before}{context.render(room, section='resume', fenced=False)}{behind}")
        if length(text) <= LIMIT:
            return text
        room = room * 9 // 10  # characters outside the basic plane count twice
    return ""


def line(session: Session, route: str, *, said: Sequence[str] = ()) -> str:
    """The line that says that a route has something to read, "" where it has nothing; with sentences of ours."""
    state = load_state(session.project, route)
    if state is None:
        return ""
    context = state.own
    if not _has_substance(context):
        return ""
    count, decisions = context.checkpoint_count, len(context.decisions)
    has = f"{count} checkpoint{'s' * (count != 1)}, last {age(context.last_checkpoint)}" if count else ""
    has = has or f"no checkpoint, {decisions} decision{'s' * (decisions != 1)}"
    text = f"Context available for {route} ({has}): read it with `ralf context show {route} --brief`."
    return words(config.typed(" ".join((text, *filter(None, said))), session.project.command))


def beginnings(route: str) -> tuple[str, str]:
    """Words by which a text of ours is told as all that there is of a route: its brief, or that there is nothing."""
    return f"# Context of {route}\n", nothing(route)


def nothing(route: str) -> str:
    """That nothing is kept of a route."""
    return f"Nothing is kept of {route} yet: this is the first attempt."


def words(text: str) -> str:
    """Words of ours in the fence, within LIMIT: none of their characters counts more than twice."""
    return fenced(shown(text)[: LIMIT // 2 - fence_characters(short=True)], short=True)


def age(time: str | float) -> str:
    """How long ago something was: `2 h ago`. A text that is no time is given back as it is."""
    moment = datetime.fromtimestamp(time, UTC) if isinstance(time, float) else None
    with suppress(ValueError):
        moment = moment or datetime.fromisoformat(str(time) if _ZONE.search(str(time)) else f"{time}Z")
    if moment is None:
        return shown(str(time)) or "at an unknown time"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for size, unit in _SECONDS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (unit == 'day' and count != 1)} ago"
    return "just now"


def is_held(session: Session, context: RouteContext) -> bool:
    """Whether the session's window holds all that its route has: it, or the session of which it is a fork, has done all
    of it, and it was not compacted since.
    """
    if session.known.forked:
        return context.route == session.route
    history = context.checkpoint_history
    logged = session.readable.session if session.readable is not None else ""
    own = {session.payload.session, logged, session.known.origin} - {""}
    return bool(history) and all(entry.session in own for entry in history) and not session.known.compacted


def briefed(session: Session, context: RouteContext, *, said: Sequence[str] = ()) -> str:
    """The brief of a route, noted, and not to be handed over again in this window."""
    text = session.hand("brief", brief(session, context, said=said))
    session.note(briefed=tuple(dict.fromkeys((*session.known.briefed, context.route))))
    return text

"""The texts that are handed to the model: a route's brief, the line that says that there is one, and the line that asks
for a hand-over.

What the route holds stands in the fence as a whole, so that none of it is ever taken for somebody's words. Each text is
noted, so that its arrival can be confirmed (`receipts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from ralf import config, environment
from ralf.errors import RouteNotFound
from ralf.finding.reader import get_context
from ralf.model import RouteContext
from ralf.project import Project
from ralf.route.load import load_state
from ralf.text import tokens
from ralf.text.cleaning import FENCE_TOKENS, fence_characters, fenced, shown
from ralf.text.frozen import replace
from ralf.text.tokens import CHARACTERS_PER_TOKEN
from ralf_integrations.hooks import prompt_intent, session_registry, usage
from ralf_integrations.hooks.messages import LIMIT, length
from ralf_integrations.hooks.session import Session
from ralf_integrations.hooks.usage import Look

_SHARE = 20  # part of what a route has consumed that may be handed over of it

LEAST = 350
"""Tokens of a route that may be handed over in any case."""

_FEWEST = 40  # tokens without which a brief says nothing
_MUCH = 500  # tokens of a segment in which more was said than one says to a greeting
_LATELY = 10_000  # tokens within which a hand-over is new enough
_TAIL = 1 << 20  # bytes at the end of a log in which these tokens are looked for
_FULL = "ralf: the window is {percent:.0f} % full."
_FORM = (
    'in at most 400 words: ralf handover {route} <<\'EOF\' \u2026 EOF, with the parts "## Now", "## Next", "## Open",'
    ' "## Decided" (a bullet each, then "why:" and "not:" on lines of their own), "## Avoid", "## Facts". Files,'
    " commands and the person's words are recorded already."
)
_SECONDS = ((86_400, "day"), (3_600, "h"), (60, "min"))


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
        return any(map(prompt_intent.says_enough, asked))
    return bool(context.checkpoint_history or work.attempts)


def brief(session: Session, context: RouteContext, *, said: Sequence[str] = ()) -> str:
    """The brief of a route for who goes on with it, within what the client takes and what is configured.

    said  sentences of ours that stand below it; "" is left out
    """
    ending = " ".join([*filter(None, said), "Read files again before you change them."])
    made = partial(context.render, section="resume", fenced=False)
    found = within(made, left(session, context), session.settings.brief_tokens, command=context.command, ending=ending)
    return found or line(session, context.route, said=said)


def left(session: Session, context: RouteContext | None) -> int:
    """The tokens of a route that hooks may still hand over: a twentieth of what it has consumed, less what they have
    handed over of it.
    """
    consumed = context.total_tokens_consumed + context.since if context is not None else 0
    route = context.route if context is not None else session.route
    known = replace(session.known, route=session.route)
    return consumed // _SHARE - session_registry.cost(session.project, route, known)


def within(
    made: Callable[[int], str], left: int, most: int, *, command: str, ending: str = "", beginning: str = ""
) -> str:
    """A text in the fence, with sentences of ours around it, within LIMIT characters; "" where it would hold next to
    nothing, or where there is no text.

    made        makes the text, within so many tokens
    left, most  tokens of it: those that are `left`, but at least `LEAST` beside our sentences, and never over `most`
    command     how `ralf` is typed
    """
    before = f"{shown(beginning)}\n" if beginning else ""
    behind = f"_{shown(config.typed(ending, command))}_\n" if ending else ""
    ours, words = FENCE_TOKENS + tokens.estimate(before + behind), len(before) + len(behind) + fence_characters()
    room = min(most - ours, max(left - ours, LEAST), (LIMIT - words) // CHARACTERS_PER_TOKEN)
    while room >= _FEWEST:
        said = made(room).strip("\n")
        text = fenced(f"{before}{said}\n{behind}") if said else ""
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
    text = f"Context available for {route} ({has}): read it with `ralf show {route} --brief`."
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
    try:
        moment = datetime.fromtimestamp(time, UTC) if isinstance(time, float) else datetime.fromisoformat(time)
    except ValueError:
        return shown(str(time)) or "at an unknown time"
    seconds = (datetime.now(UTC) - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))).total_seconds()
    for size, unit in _SECONDS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (unit == 'day' and count != 1)} ago"
    return "just now"


def is_held(session: Session, context: RouteContext) -> bool:
    """Whether the session's window holds all that its route has: it has done all of it, and was not compacted since."""
    if session.known.forked and not session.known.compacted:
        return context.route == session.route  # it had that one's window
    history = context.checkpoint_history
    logged = session.readable.session if session.readable is not None else ""
    own = {session.payload.session, logged}
    return bool(history) and all(entry.session in own for entry in history) and not session.known.compacted


# ---- what is asked of the agent ----


def asked(session: Session, look: Look, *, is_done: bool) -> str:
    """The line that asks the agent to hand over: its window is nearly full, or its task `is_done`. It stops nobody, but
    an agent that a loop has started, which begins a fresh one on the same task.
    """
    percent, form = look.percent or 0.0, _FORM.format(route=session.route)
    if is_done:
        text = f"ralf: the task is set to done. Hand over what it leaves behind, {form}"
    elif environment.lease():
        text = (
            f"{_FULL.format(percent=percent)} Finish the step at hand, hand over and end your turn without `ralf task"
            f" done`, unless the task is complete: a fresh agent goes on with it. Hand over {form}"
        )
    else:
        text = full(session.route, percent)
    return config.typed(text, session.project.command)


def full(route: str, percent: float) -> str:
    """The line for the agent of a session whose window is so full."""
    return f"{_FULL.format(percent=percent)} Before it is compacted, hand over, {_FORM.format(route=route)}"


def is_handed_over(session: Session) -> bool:
    """Whether the agent or the person has handed over within the last 10,000 tokens of the session."""
    state, source = load_state(session.project, session.route), session.readable
    made = state.own.handover.last if state is not None else None
    if made is None or made.author not in ("agent", "person") or source is None:
        return False
    return usage.tokens_after(source, made.at, _TAIL) < _LATELY

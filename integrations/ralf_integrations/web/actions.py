"""What a page can do for the person at the browser: decide, drop, nudge; accept, drop and add what is remembered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from ralf import routing
from ralf.errors import Busy, NotFound, UsageError
from ralf.memory import writing
from ralf.memory.family import Delta, delta, stated
from ralf.memory.model import DEFAULT_AGENT, Item, Memory
from ralf.project import Project
from ralf.route import corrections
from ralf_integrations import inbox

Form = Mapping[str, str]

_MOST_ALTERNATIVES = 20


def decide(project: Project, route: str, form: Form) -> str:
    """Record a decision of the user; where to go then, as for all of these. RouteNotFound: a form makes no route. Other
    errors: `record_decision`.
    """
    rejected = [line for line in form.get("rejected", "").splitlines() if line.strip()]
    decision = corrections.record_decision(
        routing.existing(project, route),
        form.get("decision", ""),
        rationale=form.get("because", ""),
        alternatives=rejected[:_MOST_ALTERNATIVES],
        supersedes=form.get("supersedes", "").strip() or None,
        kind="rule" if form.get("kind") == "rule" else "decision",
        origin="user",
        root=project,
    )
    return _back(route, f"recorded-{decision.id}")


def drop(project: Project, route: str, form: Form) -> str:
    """Drop a decision for good. Errors: `corrections.drop`."""
    dropped = corrections.drop(route, form.get("id", ""), because=form.get("because", ""), origin="user", root=project)
    return _back(route, f"dropped-{dropped.decision.id}")


def nudge(project: Project, session: str, form: Form) -> str:
    """Leave a notice to a session. Errors: `inbox.send`."""
    inbox.send(project, session, form.get("text", ""), sender="ralf web", by="user")
    return f"/session?id={quote(session, safe='')}&done=nudged"


def remember(project: Project, agent: str, form: Form) -> str:
    """Add a preference or a fact of the person's to an agent's memory. Errors: `writing.add`."""
    kind = form.get("kind", "")
    if kind not in ("preference", "fact"):
        raise UsageError("memory", "a page adds a preference or a fact", "ralf memory add --help")
    _, item = writing.add(project, agent or DEFAULT_AGENT, stated(kind, form.get("text", ""), origin="person"))
    return _memory(agent, f"recorded-{item.id}")


def accept(project: Project, agent: str, form: Form) -> str:
    """Have an offered item count, in the words that the page has shown. Errors: `_judged`."""
    return _judged(project, agent, form, "accepted", delta("accept", form.get("id", "")))


def refuse(project: Project, agent: str, form: Form) -> str:
    """Drop an offered item for good. Errors: `_judged`."""
    return _judged(project, agent, form, "dropped", delta("drop", form.get("id", ""), origin="person"))


def _judged(project: Project, agent: str, form: Form, done: str, change: Delta) -> str:
    """NotFound for what is not offered, Busy where it says something else by now; else as `writing.write`."""

    def work(memory: Memory) -> Sequence[Delta]:
        item = memory.get(change.get("id", ""))
        if item is None or item.status != "offered":
            raise NotFound(form.get("id", "")[:80], "is not offered (any more)", "ralf memory show --offers")
        if mark(item) != form.get("mark"):
            raise Busy(item.id, "was changed since the page was shown", "look at it again")
        return [change]

    writing.write(project, agent or DEFAULT_AGENT, work)
    return _memory(agent, f"{done}-{form.get('id', '')}")


def mark(item: Item) -> str:
    """What tells whether an item still says what a page has shown."""
    return hashlib.blake2b(f"{item.kind} {item.words}".encode("utf-8", "replace"), digest_size=16).hexdigest()


def _back(route: str, done: str) -> str:
    return f"/routes/{quote(route, safe='')}?done={done}"


def _memory(agent: str, done: str) -> str:
    return f"/memory?agent={quote(agent, safe='')}&done={quote(done, safe='')}"


DONE = {
    "recorded": "Recorded",
    "accepted": "Accepted",
    "dropped": "Dropped",
    "nudged": "The notice waits for the session's next hook",
}
"""What a page says after an action, by the first word of what its address tells."""


def told(done: str) -> str:
    """What was done, in words: of a label only what a label can be."""
    word, _, label = done.partition("-")
    said = DONE.get(word, "")
    is_label = label[:4].isascii() and label.replace("-", "").isalnum() and len(label) < 20
    return f"{said} {label}" if said and is_label and word != "nudged" else said

"""The three things that a page can do, each for the person at the browser: decide, drop, nudge."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from ralf.project import Project
from ralf.route import corrections
from ralf_integrations import inbox

Form = Mapping[str, str]

_MOST_ALTERNATIVES = 20


def decide(project: Project, route: str, form: Form) -> str:
    """Record a decision of the user; where to go then, as for all of these. Errors: `record_decision`."""
    rejected = [line for line in form.get("rejected", "").splitlines() if line.strip()]
    decision = corrections.record_decision(
        route,
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
    dropped = corrections.drop(route, form.get("id", ""), because=form.get("because", ""), root=project)
    return _back(route, f"dropped-{dropped.decision.id}")


def nudge(project: Project, session: str, form: Form) -> str:
    """Leave a notice to a session. Errors: `inbox.send`."""
    inbox.send(project, session, form.get("text", ""), sender="ralf web", by="user")
    return f"/session?id={quote(session, safe='')}&done=nudged"


def _back(route: str, done: str) -> str:
    return f"/routes/{quote(route, safe='')}?done={done}"


DONE = {
    "recorded": "Recorded",
    "dropped": "Dropped",
    "nudged": "The notice waits for the session's next hook",
}
"""What a page says after an action, by the first word of what its address tells."""


def told(done: str) -> str:
    """What was done, in words: of a label only what a label can be."""
    word, _, label = done.partition("-")
    said = DONE.get(word, "")
    is_label = label[:4].isascii() and label.replace("-", "").isalnum() and len(label) < 20
    return f"{said} {label}" if said and is_label and word in ("recorded", "dropped") else said

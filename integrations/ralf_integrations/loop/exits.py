"""How a start ended: by its exit status and the state of its task. Words in an output count for nothing, but for a
promise tag in the agent's own last message, and for the client's own record of a usage limit.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field

from ralf.tasks.model import Evidence
from ralf.text.cleaning import trimmed
from ralf.text.sentences import promised
from ralf_integrations.loop.limits import Limit

COMPLETE = frozenset({"COMPLETE", "COMPLETED", "DONE"})
"""Promises by which an agent says that its task is done."""

FAILED = frozenset({"FAILED", "BLOCKED", "FAIL"})
"""Promises by which it says that it cannot be done."""

_MOST = 2_000  # characters of a message that become a summary or a reason


@dataclass(frozen=True, slots=True)
class Ended:
    """What is known of a start that is over.

    status       the exit status, negative for a signal; None where nobody knows, since its loop was killed
    state        of the task now: done, failed, released (its agent gave the claim back, or lost it) or held
    hung         its time was up, and it was ended
    stopped      the loop was asked to end, and ended it
    handed_over  the agent handed its route over while it ran
    message      the agent's last message, "" where the client does not tell it
    limit        the usage limit that its client told
    said         the last line that it printed, for people and the next attempt
    """

    status: int | None
    state: str
    hung: bool = False
    stopped: bool = False
    handed_over: bool = False
    message: str = ""
    limit: Limit | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a start came to.

    outcome  as `ralf.tasks.model.Attempt` has it
    note     how it ended, in words; some may be others' words
    how      its exit status, where that counts
    promise  by which the agent said so, "" where it used the command or said nothing
    summary  of the agent's last message, where the promise counts
    """

    outcome: str
    note: str = ""
    promise: str = ""
    summary: str = ""
    limit: Limit | None = field(default=None, compare=False)
    how: str = field(default="", compare=False)

    @property
    def told(self) -> str:
        """In our words."""
        return f"{self.outcome}: {self.how}" if self.how else self.outcome

    @property
    def rest(self) -> str:
        """What the note says besides."""
        return self.note.removeprefix(self.how).removeprefix("; ")


def judge(ended: Ended) -> Verdict:
    """What a start came to."""
    how = status_text(ended.status)
    if ended.state == "done":
        return Verdict("done", how=how if ended.status else "")
    if ended.state == "failed":
        return Verdict("failed", "its agent gave it up")
    if ended.state == "released":
        return Verdict("released", f"its agent no longer had the claim; {how}")
    if ended.hung:
        return Verdict("hung", "its time was up")
    if ended.stopped:
        return Verdict("released", "the loop was stopped")
    if ended.limit is not None:
        return Verdict("limit", ended.limit.said, limit=ended.limit)
    if ended.status:
        said = f"; it printed last: {ended.said}" if ended.said else ""
        return Verdict("killed" if ended.status < 0 else "crashed", f"{how}{said}", how=how)
    promise = promised(ended.message)
    summary = _summary(ended.message)
    if promise in COMPLETE:
        return Verdict("done", "", promise, summary)
    if promise in FAILED:
        return Verdict("failed", f"promised {promise}", promise, summary)
    if ended.handed_over:
        return Verdict("handed-over", "its agent handed over and ended")
    return Verdict("unfinished", f"{how} without `ralf task done`", how=f"{how} without `ralf task done`")


def promise_not_kept(evidence: Evidence | None, *, stopped: bool) -> Verdict:
    """What a start came to that promised its task done, where that was not recorded.

    evidence  what the task's `verify:` came to
    stopped   whether the loop was asked to end meanwhile
    """
    if stopped:
        return Verdict("released", "the loop was stopped")
    if evidence is None or evidence.state != "failed":
        return Verdict("unfinished", "its promise could not be recorded")
    how = "it took too long" if evidence.exit_status is None else status_text(evidence.exit_status)
    what = f"promised that it is done, but its `verify:` did not pass: {how}"
    last = next((line for line in reversed(evidence.output.splitlines()) if line.strip()), "").strip()
    return Verdict("unfinished", f"{what}; it printed last: {last}" if last else what, how=what)


def status_text(status: int | None) -> str:
    """An exit status in words."""
    if status is None:
        return "exit status unknown: the loop that started it was killed"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def _summary(message: str) -> str:
    """A message without its promise, as far as a summary goes."""
    lines = (line for line in message.splitlines() if "<promise>" not in line)
    return trimmed("\n".join(lines).strip(), _MOST)

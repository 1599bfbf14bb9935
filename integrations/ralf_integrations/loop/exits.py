"""How a start ended: by its exit status and the state of its task. Words in an output count for nothing, but for a
promise tag in the agent's own last message, and for the client's own record of a usage limit.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

from ralf.tasks.model import Evidence
from ralf.tasks.records import seconds_of
from ralf.text.cleaning import trimmed
from ralf.text.sentences import promised
from ralf_integrations.loop.limits import Limit

COMPLETE = frozenset({"COMPLETE", "COMPLETED", "DONE"})
"""Promises by which an agent says that its task is done."""

FAILED = frozenset({"FAILED", "BLOCKED", "FAIL"})
"""Promises by which it says that it cannot be done."""

_MOST = 2_000  # characters of a message that become a summary or a reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a start came to.

    outcome  as `ralf.tasks.model.Attempt` has it
    how      it ended, in our words; `said`: in others'
    promise  by which the agent said so, "" where it used the command or said nothing
    summary  of the agent's last message, where the promise counts
    """

    outcome: str
    how: str = ""
    said: str = ""
    promise: str = ""
    summary: str = ""
    limit: Limit | None = None

    @property
    def told(self) -> str:
        """In our words."""
        return f"{self.outcome}: {self.how}" if self.how else self.outcome

    @property
    def note(self) -> str:
        """How it ended, for the next agent."""
        return "; ".join(filter(None, (self.how, self.said)))


@dataclass(frozen=True, slots=True)
class Ended:
    """What is known of a start that is over.

    status       the exit status, negative for a signal; None where nobody knows, since its loop was killed
    state        of the task now: done, failed, released (its agent gave the claim back, or lost it) or held
    hung         its time was up, and it was ended
    stopped      the loop was asked to end, and ended it
    handed_over  the agent handed its route over while it ran
    refused      what refused to take the task for done while it ran: see `refusal`
    message      the agent's last message, "" where the client does not tell it
    limit        the usage limit that its client told
    said         the last line that it printed, for people and the next attempt
    """

    status: int | None
    state: str
    hung: bool = False
    stopped: bool = False
    handed_over: bool = False
    refused: tuple[str, str] = ("", "")
    message: str = ""
    limit: Limit | None = None
    said: str = ""


def judge(ended: Ended) -> Verdict:
    """What a start came to. A `verify:` that refused its task is part of it, however it ended."""
    found = _judged(ended)
    how, said = ended.refused
    if not how or found.promise or found.outcome in ("done", "failed"):
        return found
    told = how if found.outcome == "unfinished" else f"{found.how}; {how}" if found.how else how
    return replace(found, how=told, said="; ".join(filter(None, (found.said, said))))


def _judged(ended: Ended) -> Verdict:
    how, promise = status_text(ended.status), promised(ended.message)
    if ended.state == "done":
        return Verdict("done", how if ended.status else "")
    if ended.state == "failed":
        return Verdict("failed", "its agent gave it up")
    if ended.state == "released":
        return Verdict("released", f"its agent no longer had the claim; {how}")
    if ended.hung:
        return Verdict("hung", "its time was up")
    if ended.stopped:
        return Verdict("released", "the loop was stopped")
    if ended.limit is not None:
        return Verdict("limit", said=ended.limit.said, limit=ended.limit)
    if ended.status:
        said = f"it printed last: {ended.said}" if ended.said else ""
        return Verdict("killed" if ended.status < 0 else "crashed", how, said)
    if promise in COMPLETE | FAILED:
        lines = "\n".join(line for line in ended.message.splitlines() if "<promise>" not in line)
        outcome = "done" if promise in COMPLETE else "failed"
        return Verdict(outcome, f"promised {promise}", promise=promise, summary=trimmed(lines.strip(), _MOST))
    if ended.handed_over:
        return Verdict("handed-over", "its agent handed over and ended")
    return Verdict("unfinished", f"{how} without `ralf task done`")


def promise_not_kept(refused: tuple[str, str], *, stopped: bool) -> Verdict:
    """What a start came to that promised its task done, where that was not recorded; whether the loop was stopped
    meanwhile.
    """
    if stopped:
        return Verdict("released", "the loop was stopped")
    how, said = refused
    return Verdict("unfinished", f"promised that it is done, but {how or 'that could not be recorded'}", said)


def refusal(evidence: Evidence | None, since: float) -> tuple[str, str]:
    """What refused to take a task for done since a time, in our words and in those that it printed; else empty."""
    if evidence is None or evidence.state != "failed" or seconds_of(evidence.at) < int(since):
        return "", ""
    how = "it took too long" if evidence.exit_status is None else status_text(evidence.exit_status)
    last = next((line for line in reversed(evidence.output.splitlines()) if line.strip()), "").strip()
    return f"its `verify:` did not pass: {how}", f"it printed last: {last}" if last else ""


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

"""What a start of an agent came to, whether its task stalls, and what the loop came to.

Words in an output count for nothing, but for a promise tag in the agent's own last message, and for the client's own
record of a usage limit.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ralf.environment import of_a_model
from ralf.model import RouteContext
from ralf.storage.git_files import ask
from ralf.tasks import folders
from ralf.tasks.model import Evidence, TaskState
from ralf.tasks.records import seconds_of
from ralf.text.cleaning import trimmed
from ralf.text.sentences import promised
from ralf_integrations.health.limits import Limit
from ralf_integrations.loop.options import Options, Result, Spent, Unfinished
from ralf_integrations.loop.work import Work

_COMPLETE, _FAILED = ("COMPLETE", "COMPLETED", "DONE"), ("FAILED", "BLOCKED", "FAIL")  # promises of an agent
_MOST = 2_000  # characters of a message that become a summary or a reason
_MOST_FILES = 500  # changed files that are looked at
_WHOLE = 1 << 20  # bytes of a file that is read; a larger one counts by its size and time
_OURS = b".autonomous/"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a start came to."""

    outcome: str  # as `ralf.tasks.model.Attempt` has it
    how: str = ""  # it ended, in our words
    said: str = ""  # in others'
    promise: str = ""  # by which the agent said so, "" where it used the command or said nothing
    summary: str = ""  # of the agent's last message, where the promise counts
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
    """What is known of a start that is over."""

    status: int | None  # the exit status, negative for a signal; None where nobody knows, since its loop was killed
    state: str  # of the task now: done, failed, held, or released (its agent gave the claim back, or lost it)
    hung: bool = False  # its time was up, and it was ended
    stopped: bool = False  # the loop was asked to end, and ended it
    handed_over: bool = False  # the agent handed its route over while it ran
    refused: tuple[str, str] = ("", "")  # what refused to take the task for done while it ran: see `refusal`
    message: str = ""  # the agent's last message, where the client reports it
    limit: Limit | None = None  # the usage limit that its client reported
    said: str = ""  # the last line that it printed, for people and the next attempt


def judge(ended: Ended) -> Verdict:
    """What a start came to. A `verify:` that refused its task is part of it, however it ended."""
    found = _judged(ended)
    how, said = ended.refused
    if not how or found.promise or found.outcome in ("done", "failed"):
        return found
    own = "" if found.outcome == "unfinished" else found.how
    return replace(found, how="; ".join(filter(None, (own, how))), said="; ".join(filter(None, (found.said, said))))


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
    if promise in _COMPLETE + _FAILED:
        lines = "\n".join(line for line in ended.message.splitlines() if "<promise>" not in line)
        outcome = "done" if promise in _COMPLETE else "failed"
        return Verdict(outcome, f"promised {promise}", promise=promise, summary=trimmed(lines.strip(), _MOST))
    if ended.handed_over:
        return Verdict("handed-over", "its agent handed over and ended")
    return Verdict("unfinished", f"{how} without `ralf task done`")


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


def signature(cwd: Path, state: TaskState, context: RouteContext | None) -> str:
    """What the work on a task has come to, as one short text.

    cwd      where its agent worked; context: of its route, None where it has none
    """
    known: list[object] = [state.task.text, state.progress, *_of_git(cwd)]
    if context is not None:
        known += [(one.id, one.status, one.decision) for one in context.decisions]
        known += [one.description for one in context.active_work.completed_steps]
        known += [(one.command, one.result) for one in context.facts.tests]
    return hashlib.sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _of_git(cwd: Path) -> list[object]:
    """The newest commit and the content of what was changed since; empty outside of git."""
    changed = _git(cwd, "status", "--porcelain=v1", "-z", "--untracked-files=all").split(b"\0")
    entries = [one for one in changed if one and not one[3:].startswith(_OURS)]
    contents = [(entry, _content(cwd / os.fsdecode(entry[3:]))) for entry in entries[:_MOST_FILES]]
    return [_git(cwd, "rev-parse", "HEAD"), len(entries), *contents]


def _content(path: Path) -> object:
    with suppress(OSError, ValueError):
        seen = path.stat()
        if seen.st_size > _WHOLE:
            return seen.st_size, seen.st_mtime_ns
        return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else None
    return None


def _git(cwd: Path, *words: str) -> bytes:
    with suppress(subprocess.TimeoutExpired):
        done = ask(cwd, words, of_a_model())
        return done.stdout if done is not None and not done.returncode else b""
    return b""


def result(
    options: Options,
    reason: str,
    work: Work,
    completed: Sequence[TaskState],
    spent: Spent,
    seen: Mapping[str, str],
) -> Result:
    """What a loop came to.

    reason     why it ended, "" where nothing more could be started
    completed  tasks with their evidence as it holds now
    seen       titles by task: of all that were not done when the loop looked
    """
    by_cause = sorted(work.unfinished(), key=lambda one: (bool(one.waits_for), one.task.status != "failed"))
    left = [Unfinished(one.task.id, one.task.title, _why(options, one)) for one in by_cause]
    damaged = [one for one in work.tasks.list(limit=0).damaged if not folders.folder_status(one[0])]
    left += [Unfinished(folders.name_of(path), "", f"cannot be read: {why}") for path, why in damaged]
    known = work.tasks.states(list(seen)).keys() | {one.task for one in left}  # what has become unreadable is not gone
    left += [Unfinished(task, title, "its file is gone") for task, title in seen.items() if task not in known]
    unproven = [Unfinished(one.task.id, one.task.title, why) for one in completed if (why := why_not_proven(one))]
    told = reason or ("complete" if not left else "nothing more can be started")
    return Result(told, len(completed), tuple(left), tuple(unproven), spent)


def _why(options: Options, state: TaskState) -> str:
    if state.is_foreign:
        return "foreign: accept it with `ralf trust`"
    if state.task.status == "failed":
        return f"failed: {state.reason}" if state.reason else "failed"
    if state.claim is not None:
        return f"claimed by {state.claim.by}"
    if state.waits_for:
        never = next((line for line in state.warnings if line.startswith(f"{state.task.id} waits for ")), "")
        return never.replace(state.task.id, "blocked:", 1) or f"blocked: waits for {', '.join(state.waits_for[:5])}"
    if options.agent_for(state.task.role) is None:
        return f"no agent for the role {state.task.role}"
    return "not started" if not state.attempts else f"interrupted: {state.attempts[-1].outcome or 'running'}"


def why_not_proven(state: TaskState) -> str:
    """Why a completed task is not verified, with its evidence as it holds now; "" for one that is, or that has nothing
    to verify: no `verify:`, and no test run is known.
    """
    proof, verify = state.evidence, state.task.verify.strip()
    claimed = proof.command if proof is not None and proof.state == "claimed" else ""  # what was run for a bare claim
    if (proof.state == "verified") if proof is not None and proof.state != "claimed" else not (verify or claimed):
        return ""
    if state.is_foreign:
        return f"{evidence_text(state)}: foreign, so its `verify:` is not run"
    if proof is None:
        return f"`{verify}` was not run"
    return f"`{claimed}` {proof.output or 'was not run since the last edit'}" if claimed else evidence_text(state)


def evidence_text(state: TaskState) -> str:
    """What says that a completed task is done, in words."""
    told = {"verified": "verified", "failed": "its check failed", "stale": "edited since it was verified"}
    return told.get(state.evidence.state if state.evidence is not None else "", "not verified")

"""What a loop came to: the tasks that are not done, those that are not verified, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ralf.tasks import folders
from ralf.tasks.model import TaskState
from ralf.tasks.store import Tasks
from ralf_integrations.loop.caps import Spent
from ralf_integrations.loop.options import Options, Result, Unfinished
from ralf_integrations.loop.work import Work


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
    tasks = Tasks(work.project)
    by_cause = sorted(work.unfinished(), key=lambda one: (bool(one.waits_for), one.task.status != "failed"))
    left = [Unfinished(one.task.id, one.task.title, _why(options, one)) for one in by_cause]
    damaged = [one for one in tasks.list(limit=0).damaged if not folders.folder_status(one[0])]
    left += [Unfinished(folders.name_of(path), "", f"cannot be read: {why}") for path, why in damaged]
    known = tasks.states(list(seen)).keys() | {one.task for one in left}  # what has become unreadable is not gone
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
    if (proof.state == "verified") if proof is not None and proof.state != "claimed" else not (verify or _ran(state)):
        return ""
    if state.is_foreign:
        return f"{evidence_text(state)}: foreign, so its `verify:` is not run"
    if proof is None:
        return f"`{verify}` was not run"
    if _ran(state):
        return f"`{proof.command}` {proof.output or 'was not run since the last edit'}"
    return evidence_text(state)


def _ran(state: TaskState) -> str:
    """What was run for a task of which it is only claimed that it is done."""
    return state.evidence.command if state.evidence is not None and state.evidence.state == "claimed" else ""


def evidence_text(state: TaskState) -> str:
    """What says that a completed task is done, in words."""
    told = {"verified": "verified", "failed": "its check failed", "stale": "edited since it was verified"}
    return told.get(state.evidence.state if state.evidence is not None else "", "not verified")

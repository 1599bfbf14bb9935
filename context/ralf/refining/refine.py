"""Has a model improve an acknowledged checkpoint, in a detached worker, by a record that refines it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ralf import environment, project
from ralf.errors import BlobNotFound, Busy, DamagedBlob, NotFound, RalfError
from ralf.facts.grounding import Evidence
from ralf.format.codec import dump_yaml, to_tree
from ralf.model import Decision, RouteContext
from ralf.project import Project
from ralf.proof.loss import recalled
from ralf.proof.recall import seen as seen_items
from ralf.redact import redactor_for
from ralf.refining import local_config
from ralf.refining.gathering import Shown, gathered
from ralf.refining.local_config import LocalConfig
from ralf.route import cap, edits, fold
from ralf.route.fold import WORK, entry_of, owed, section_of
from ralf.route.load import load_state
from ralf.route.write import open_route
from ralf.storage import files
from ralf.storage.journal import Record
from ralf.summarize.answer import SCHEMA, BadAnswer, patch_of
from ralf.summarize.believed import Amendment, Believed, Lines, believed
from ralf.summarize.command import Command, NoAnswer, Usage
from ralf.summarize.prompting import prompt
from ralf.text import tokens
from ralf.text.cleaning import trimmed

# --------------------
# Asks a model to improve an acknowledged checkpoint, drops unsupported items, and appends the rest as a record.
#
# The route's lock is never held while a model runs.


@dataclass(frozen=True, slots=True)
class Refinement:
    """What asking a model about one checkpoint came to.

    failure      why nothing came of it, "" when something did
    kept         sentences and items that are believed; `unsupported`, those that are not: thrown away
    left_alone   changes to what had moved on meanwhile: not made
    input_tokens, output_tokens, cost_usd  as the tool says; `estimated`: the tokens are ours, it tells none
    """

    route: str
    checkpoint_id: str
    summarizer: str
    model: str = ""
    failure: str = ""
    kept: int = 0
    unsupported: int = 0
    left_alone: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = None


def refine(
    project: Project,
    route: str,
    checkpoint_id: str,
    command: Command,
    *,
    cap: local_config.Cap | None = None,
) -> Refinement:
    """Have a model improve one checkpoint, and record what came of it: also that nothing did, and what it cost.

    cap  what may be spent in a day; when it is spent, that is what is recorded

    The caller holds the route's worker lock. Raises NotFound (no such checkpoint), Busy, OSError, DamagedJournal.
    """
    return _Refining(project, route, checkpoint_id, command).run(cap or local_config.Cap())


class _Refining:
    """One call of `refine`."""

    def __init__(self, project: Project, route: str, checkpoint_id: str, command: Command) -> None:
        self._project = project
        self._route = route
        self._id = checkpoint_id
        self._command = command
        self._called = ""
        self._usage = Usage()
        self._unsupported = 0

    def run(self, cap: local_config.Cap) -> Refinement:
        try:
            if cap != local_config.Cap():  # without a cap the other routes need no look
                spends = local_config.spend_of_project(self._project).values()
                if spent := cap.spent(local_config.total(spends, local_config.now()[:10])):
                    return self._failed(spent)
            seen = self._context()
            shown = gathered(self._project, self._route, seen, self._id)
            if not shown.has_substance:
                return self._failed(NOTHING)
            found = self._asked(shown)
            if not found:
                return self._failed(
                    f"nothing that the evidence bears out: {found.unsupported} items thrown away", found
                )
            return self._recorded(seen, shown, found)
        except NoAnswer as error:
            return self._failed(error.reason)
        except (BlobNotFound, DamagedBlob) as error:
            return self._failed("the evidence was pruned" if isinstance(error, BlobNotFound) else str(error))
        except (RalfError, OSError):
            raise
        except Exception as error:  # noqa: BLE001  # unrecorded, a fault of ours would be paid for again and again
            return self._failed(f"internal: {type(error).__name__}: {error}"[:200])

    # ---- asking ----

    def _context(self) -> RouteContext:
        state = load_state(self._project, self._route)
        if state is None:
            raise NotFound(self._route, "no such route", "ralf context list")
        return state.recorded

    def _asked(self, shown: Shown) -> Believed:
        redactor = redactor_for(self._project)
        text = prompt(shown.segment, shown.listed, shown.held)
        self._called = local_config.now()
        try:  # redacted already, but for what was kept before there was redaction
            known = environment.of_a_summarizer(self._command.keeps)
            answer, self._usage = self._command.ask(redactor.text(text), SCHEMA, known)
        except NoAnswer as error:
            self._usage = error.usage
            raise
        try:
            patch = patch_of(redactor.tree(answer))
        except BadAnswer as error:
            raise NoAnswer(f"the answer does not fit the schema: {error}", self._usage) from None
        found = believed(
            patch,
            Lines(shown.segment, imported=shown.imported),
            Evidence(shown.evidence),
            shown.listed,
            session=shown.session,
            timestamp=shown.ended,
            imported=shown.imported,
        )
        self._unsupported = found.unsupported
        return found

    # ---- recording ----

    def _recorded(self, seen: RouteContext, shown: Shown, found: Believed) -> Refinement:
        items = seen_items(shown.segment)
        with open_route(self._project, self._route) as writer:
            writer.absorb_edits()
            payload = self._payload(seen, writer.context, shown, found)
            refused = "" if _says_something(payload) else "the route has moved on"
            if entry_of(writer.context, self._id) is None:  # reverted meanwhile: nothing of it may come back
                refused = "the checkpoint has gone from the route"
            if not refused:
                labelled = edits.labelled(writer.context, "refinement", payload)
                after = fold.apply(writer.context, Record(writer.context.revision + 1, "refinement", labelled))
                payload["recall"] = recalled(after, self._id, items).share
                digest = hashlib.sha256(json.dumps(payload, sort_keys=True).encode("utf-8", "replace")).hexdigest()
                writer.append("refinement", payload, id=f"refinement-{self._id}-{digest[:32]}")
                writer.render_file()
        if refused:
            return self._failed(refused, found)
        return self._outcome(kept=found.kept, left_alone=payload["left_alone"])

    def _payload(self, seen: RouteContext, now: RouteContext, shown: Shown, found: Believed) -> dict[str, Any]:
        """The record: what was believed, made to fit what the route has come to while the model ran."""
        left = 0
        was, still = ({item.id: item for item in context.decisions} for context in (seen, now))

        def moved(label: str) -> bool:
            return label not in was or was[label] != still.get(label)

        decisions: list[dict[str, Any]] = []
        places: dict[str, str] = {}  # `#n` of what was believed to `#m` of the record
        for number, decision in enumerate(found.decisions, start=1):
            if cap.cover(cap.of(now), decision):
                left += 1
                continue
            if decision.supersedes and moved(decision.supersedes):
                decision = replace(decision, supersedes="")
            decisions.append(to_tree(decision))
            places[f"#{number}"] = f"#{len(decisions)}"
        amended: list[dict[str, Any]] = []
        for amendment in found.amendments:
            by = places.get(amendment.replaced_by, "") if amendment.replaced_by[:1] == "#" else amendment.replaced_by
            is_lost = amendment.replaced_by and (not by or (by[:1] != "#" and by not in still))
            if moved(amendment.id) or is_lost:
                left += 1
            else:
                amended += _amended(replace(amendment, replaced_by=by), still)
        is_newest = bool(now.checkpoint_history) and now.checkpoint_history[-1].checkpoint_id == self._id
        closed = {kind: list(items) for kind, items in found.closed.items() if kind in WORK and is_newest}
        fixed = [
            {
                "error": error.error,
                "command": error.command,
                "fixed_by": f"no longer an error, says {self._command.name}",
            }
            for error in found.closed.get("errors", ())
        ]
        entry, old_entry = entry_of(now, self._id), entry_of(seen, self._id)
        section = section_of(now, entry) if entry is not None else None
        untouched = old_entry is not None and section_of(seen, old_entry) == section
        before = shown.held.handover.done if shown.held.handover is not None else ()
        came_to = [f"- {line}" for line in found.handover.done if line not in before]
        text, title = ("\n".join(came_to), found.title) if untouched else ("", "")
        left += not untouched
        handover = replace(found.handover, author=self._command.name, timestamp=shown.ended, session=shown.session)
        added = {"title": title, "text": text, "decisions": decisions}
        return {
            **self._call(),
            **added,
            "above": True,
            "handover": to_tree(handover) if handover else {},
            "amended": amended,
            "closed": closed,
            "fixed": fixed,
            "kept": found.kept,
            "unsupported": found.unsupported,
            "left_alone": left,
            "answer": _answer(found),
            "tokens_stored": shown.tokens_stored + tokens.count(dump_yaml(added)),
        }

    def _failed(self, reason: str, found: Believed | None = None) -> Refinement:
        reason = redactor_for(self._project).text(reason)  # a program tells which key it was refused for
        payload = {**self._call(), "reason": reason, "unsupported": self._unsupported}
        payload |= {"answer": _answer(found)} if found is not None else {}
        with open_route(self._project, self._route) as writer:
            writer.absorb_edits()
            before = writer.context.revision  # who removes the reason by hand has it asked, and perhaps refused, again
            digest = hashlib.sha256(json.dumps([payload, before]).encode("utf-8", "replace")).hexdigest()
            writer.append("unrefined", payload, id=f"unrefined-{self._id}-{digest[:32]}")
            writer.render_file()
        return self._outcome(failure=reason)

    def _call(self) -> dict[str, Any]:
        return {
            "refines": self._id,
            "summarizer": self._command.name,
            "model": self._usage.model or self._command.model,
            "called": self._called,
            "input_tokens": self._usage.input_tokens,
            "output_tokens": self._usage.output_tokens,
            "estimated": self._usage.estimated,
            "cost_usd": self._usage.cost_usd,
        }

    def _outcome(self, *, failure: str = "", kept: int = 0, left_alone: int = 0) -> Refinement:
        return Refinement(
            route=self._route,
            checkpoint_id=self._id,
            summarizer=self._command.name,
            model=self._usage.model or self._command.model,
            failure=failure,
            kept=kept,
            unsupported=self._unsupported,
            left_alone=left_alone,
            input_tokens=self._usage.input_tokens,
            output_tokens=self._usage.output_tokens,
            estimated=self._usage.estimated,
            cost_usd=self._usage.cost_usd,
        )


NOTHING = "nothing in it that a model could add to, so that none was asked"
"""Why a checkpoint without substance is not improved."""

_MOST_TOLD = 20  # sentences, and refusals, of an answer that its record holds

_LONGEST_TOLD = 240  # characters of one


def _says_something(payload: Mapping[str, Any]) -> bool:
    return any(payload[key] for key in ("title", "text", "decisions", "amended", "handover", "closed", "fixed"))


def _answer(found: Believed) -> dict[str, Any]:
    """What became of the answer, as its record holds it."""
    unborne = [[trimmed(sentence, _LONGEST_TOLD), list(missing)] for sentence, missing in found.unborne[:_MOST_TOLD]]
    return {
        "verdicts": dict(found.verdicts),
        "unborne": unborne,
        "refused": [trimmed(line, _LONGEST_TOLD) for line in found.refused[:_MOST_TOLD]],
    }


def _amended(amendment: Amendment, known: Mapping[str, Decision]) -> list[dict[str, Any]]:
    """What becomes of a decision, and of the one that replaces it, so that each links to the other."""
    words = {"decision": amendment.decision, "rationale": amendment.rationale, "status": amendment.status or None}
    made: dict[str, Any] = {"id": amendment.id, **{key: value for key, value in words.items() if value is not None}}
    if amendment.alternatives is not None:
        made["alternatives"] = list(amendment.alternatives)
    if not amendment.replaced_by:
        return [made]
    other = known.get(amendment.replaced_by)
    linked = [{"id": other.id, "supersedes": amendment.id}] if other is not None and not other.supersedes else []
    return [{**made, "superseded_by": amendment.replaced_by}, *linked]


# --------------------
# The detached worker.
#
# Nothing is queued: the journal shows which checkpoints are owed, so the next worker resumes after a crash.


def start(project: Project, route: str, *, written: int = 0) -> str:
    """Start a worker for a route if a model is configured and something is owed it; returns at once.

    written  how many checkpoints the caller has just written

    Returns why no worker was started although one is configured, "" for nothing to say: that the model is switched off
    is said by the first checkpoint after that.
    """
    try:
        settings = local_config.load_local_config(project.local_config_file)
        if not settings.summarizer:
            return ""
        local_config.check_meant(project, settings)
        state = load_state(project, route)
        if state is None or not owed(state.recorded):
            return ""
        here = local_config.switched_off([state.recorded.context_checkpoint.spend], settings.summarizer)
        reason = off(project, settings) if here else ""  # where it failed elsewhere, the worker itself stops
        if reason:
            entries = state.recorded.checkpoint_history[:-written] if written else ()
            first = bool(entries) and bool(entries[-1].unrefined)
            return f"{route}: {switched_off(settings.summarizer, route, reason)}" if first else ""
        environment.start_detached(__name__, __file__, [str(project.root), route])
    except (RalfError, OSError, NotImplementedError) as error:  # the last: a system without `setsid` in `posix_spawn`
        return str(error)
    return ""


def off(project: Project, settings: LocalConfig) -> str:
    """Why the configured model is switched off, "" while it is on."""
    return local_config.switched_off(local_config.spend_of_project(project).values(), settings.summarizer)


def switched_off(summarizer: str, route: str, reason: str) -> str:
    """What to say of a model that is switched off, and how it is switched on again."""
    return f"{summarizer} is {reason}; a call that works switches it on: {again(summarizer, route)}"


def again(summarizer: str, route: str) -> str:
    """The command that asks a model now; when it answers, it is asked in the background again."""
    return f"ralf context checkpoint {route} --summarizer {summarizer}"


def main(arguments: Sequence[str]) -> None:
    """Improve what is owed: `ROOT ROUTE`."""
    root, route = arguments
    os.chdir("/")
    with suppress(RalfError, OSError):  # nobody looks on; what is owed stays owed
        work(project.find(root), route)


def work(project: Project, route: str) -> list[Refinement]:
    """Improve what is owed, oldest first, until nothing is, the model fails too often, or another worker is at it."""
    done: list[Refinement] = []
    settings = local_config.local_config_of(project)
    if not settings.summarizer:
        return done
    command = settings.command_of(settings.summarizer)
    while _owed(project, route) and not off(project, settings):
        # What falls due while the lock is given back is seen by this loop, or by the worker that then gets the lock.
        try:
            with files.locked(project.worker_lock(route), route, timeout=0):
                while (names := _owed(project, route)) and not off(project, settings):
                    done.append(refine(project, route, names[-1], command, cap=settings.cap))
        except Busy:
            break
    return done


def ask_now(
    project: Project, route: str, command: Command, checkpoints: Sequence[str], *, cap: local_config.Cap
) -> list[Refinement]:
    """Have a model improve these checkpoints, or the newest one that none has improved, while the caller waits.

    Busy when a worker is at the route for longer than a call may take.
    """
    with files.locked(project.worker_lock(route), f"{route}: the model's work", timeout=command.timeout):
        state = load_state(project, route)
        entries = state.recorded.checkpoint_history if state is not None else ()
        open_ = [entry.checkpoint_id for entry in entries if not entry.refines]
        wanted = [name for name in checkpoints if name in open_] if checkpoints else open_[-1:]
        return [refine(project, route, name, command, cap=cap) for name in wanted]


def _owed(project: Project, route: str) -> tuple[str, ...]:
    state = load_state(project, route)
    return owed(state.recorded) if state is not None else ()

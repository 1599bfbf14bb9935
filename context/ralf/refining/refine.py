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
from ralf.errors import BlobNotFound, Busy, DamagedBlob, NotFound, RalfError, UnknownToken
from ralf.format.codec import dump_yaml, to_tree
from ralf.model import Checkpoint, Decision, RouteContext
from ralf.project import Project
from ralf.proof.loss import accept, enlarged, recalled
from ralf.proof.recall import Item, seen as seen_items
from ralf.redact import redactor_for
from ralf.refining import local_config
from ralf.refining.local_config import LocalConfig
from ralf.route import cap, edits, fold
from ralf.route.fold import WORK, body_of, entry_of, owed, section_of
from ralf.route.load import load_state
from ralf.route.write import open_route
from ralf.storage import files, journal
from ralf.storage.journal import Record, Token
from ralf.summarize.answer import SCHEMA, Amendment, BadAnswer, Lines, Verified, patch_of, verified
from ralf.summarize.command import Command, NoAnswer, Usage, prompt
from ralf.text import tokens
from ralf.transcripts.events import EvidenceLine, read_evidence

# --------------------
# Asks a model to improve an acknowledged checkpoint, drops unsupported items, and appends the rest as a record.
#
# The route's lock is never held while a model runs.


@dataclass(frozen=True, slots=True)
class Refinement:
    """What asking a model about one checkpoint came to.

    failure      why nothing came of it, "" when something did
    kept         items that its lines bear out; `unsupported`, those that they do not: thrown away
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
    after: Token | None = None,
) -> Refinement:
    """Have a model improve one checkpoint, and record what came of it: also that nothing did, and what it cost.

    cap    what may be spent in a day; when it is spent, that is what is recorded
    after  a place in the journal before the checkpoint's record, to look for it from there

    The caller holds the route's worker lock. Raises NotFound (no such checkpoint), Busy, OSError, DamagedJournal.
    """
    return _Refining(project, route, checkpoint_id, command).run(cap or local_config.Cap(), after)


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

    def run(self, cap: local_config.Cap, after: Token | None) -> Refinement:
        try:
            if cap != local_config.Cap():  # without a cap the other routes need no look
                spends = local_config.spend_of_project(self._project).values()
                if spent := cap.spent(local_config.total(spends, local_config.now()[:10])):
                    return self._failed(spent)
            seen = self._context()
            record = self._record(seen, after)
            said = list(read_evidence(self._project.store, str(record.payload.get("evidence", ""))))
            found = self._asked(seen, record, said)
            if not found:
                return self._failed(f"nothing that the lines bear out: {found.dropped} items thrown away")
            return self._recorded(seen, record, found, seen_items(said))
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

    def _record(self, context: RouteContext, after: Token | None) -> Record:
        """The checkpoint's record: the newest one of its session, lines and time."""
        entry = entry_of(context, self._id)
        if entry is None:
            raise NotFound(self._route, f"has no checkpoint {self._id}", f"ralf context show {self._route}")
        found = None
        for start in (after, None) if after is not None else (None,):
            try:
                for _, record in journal.read(self._project.store, self._route, after=start):
                    found = record if not record.foreign and _is_of(record, entry) else found
            except UnknownToken:
                continue
            if found is not None:
                return found
        raise NoAnswer("the journal has no record of this checkpoint: it was imported")

    def _asked(self, seen: RouteContext, record: Record, said: list[EvidenceLine]) -> Verified:
        payload = record.payload
        current = [item for item in seen.decisions if item.status == "active"]
        text = prompt(
            said,
            schema=SCHEMA,
            facts=payload.get("facts", {}),
            decisions=current,
            work=seen.active_work,
            keep=[str(hint) for hint in payload.get("keep", ())],
        )
        redactor = redactor_for(self._project)
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
        period = payload.get("period", ("", ""))
        session = str(payload.get("source", {}).get("session", ""))
        found = verified(
            patch,
            Lines(said),
            current,
            session=session,
            timestamp=str(period[1]),
            imported=payload.get("origin") == "import",
        )
        self._unsupported = found.dropped
        return found

    # ---- recording ----

    def _recorded(self, seen: RouteContext, record: Record, found: Verified, items: Sequence[Item]) -> Refinement:
        with open_route(self._project, self._route) as writer:
            writer.absorb_edits()
            payload = self._payload(seen, writer.context, record, found)
            labelled = edits.labelled(writer.context, "refinement", payload)
            after = fold.apply(writer.context, Record(writer.context.revision + 1, "refinement", labelled))
            refused = accept(writer.context, after, self._id, items)
            if not refused:
                payload["recall"] = recalled(after, self._id, items).share
            elif payload["text"]:  # the decisions may stand without the section
                payload = {**payload, "title": "", "text": "", "refused": refused}
                refused = "" if _says_something(payload) else refused
            if not refused and not _says_something(payload):
                refused = "the route has moved on"
            if entry_of(writer.context, self._id) is None:  # reverted meanwhile: nothing of it may come back
                refused = "the checkpoint has gone from the route"
            if not refused:
                digest = hashlib.sha256(json.dumps(payload, sort_keys=True).encode("utf-8", "replace")).hexdigest()
                writer.append("refinement", payload, id=f"refinement-{self._id}-{digest[:32]}")
                writer.render_file()
        if refused:
            return self._failed(refused)
        return self._outcome(kept=found.kept, left_alone=payload["left_alone"])

    def _payload(self, seen: RouteContext, now: RouteContext, record: Record, found: Verified) -> dict[str, Any]:
        """The record: what was found, made to fit what the route has come to while the model ran."""
        left = 0
        was, still = ({item.id: item for item in context.decisions} for context in (seen, now))

        def moved(label: str) -> bool:
            return label not in was or was[label] != still.get(label)

        decisions = []
        for decision in found.decisions:
            if cap.cover(cap.of(now), decision):
                left += 1
                continue
            if decision.supersedes and moved(decision.supersedes):
                decision, left = replace(decision, supersedes=""), left + 1
            decisions.append(to_tree(decision))
        amended: list[dict[str, Any]] = []
        replaced = {item.get("supersedes") for item in decisions}
        for amendment in found.amendments:
            other = amendment.replaced_by
            if moved(amendment.id) or (other and (moved(other) or still[other].status != "active")):
                left += 1
            elif amendment.id not in replaced:
                amended += _amended(amendment, still)
        text, title = found.text, found.title
        entry = entry_of(now, self._id)
        old_entry = entry_of(seen, self._id)
        old = section_of(seen, old_entry) if old_entry is not None else None
        section = section_of(now, entry) if entry is not None else None
        if old is not None and old != section and section is not None:
            text, title, left = "", "", left + 1
        work = {}
        if now.checkpoint_history and now.checkpoint_history[-1].checkpoint_id == self._id:
            for key in WORK:
                if found.work.get(key) and getattr(now.active_work, key) == getattr(seen.active_work, key):
                    work[key] = list(found.work[key])
                elif found.work.get(key):
                    left += 1
        if text and section is not None:
            text = enlarged(text, body_of(section)[1], now, {"decisions": decisions, "active_work": work})
        added = {"title": title, "text": text, "decisions": decisions}
        stored = tokens.count(dump_yaml(added))
        before = tokens.count(body_of(section)[1]) if section is not None and text else 0
        return {
            **self._call(),
            **added,
            "amended": amended,
            "active_work": work,
            "kept": found.kept,
            "unsupported": found.dropped,
            "left_alone": left,
            "tokens_stored": max(0, int(record.payload.get("tokens_stored", 0)) - before) + stored,
        }

    def _failed(self, reason: str) -> Refinement:
        reason = redactor_for(self._project).text(reason)  # a program tells which key it was refused for
        payload = {**self._call(), "reason": reason, "unsupported": self._unsupported}
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


def _is_of(record: Record, entry: Checkpoint) -> bool:
    if record.kind != "checkpoint":
        return False
    source, period = record.payload.get("source", {}), record.payload.get("period", ("", ""))
    lines = f"{int(source.get('from_line', 0)) + 1}-{source.get('to_line', 0)}"
    return (source.get("session"), lines, period[1]) == (entry.session, entry.lines, entry.timestamp)


def _says_something(payload: Mapping[str, Any]) -> bool:
    return any(payload[key] for key in ("text", "decisions", "amended", "active_work"))


def _amended(amendment: Amendment, known: Mapping[str, Decision]) -> list[dict[str, Any]]:
    """What becomes of a decision, and of the one that replaces it, so that each links to the other."""
    made: dict[str, Any] = {
        "id": amendment.id,
        "status": amendment.status,
        "rationale": amendment.rationale,
        "alternatives": list(amendment.alternatives),
    }
    if not amendment.replaced_by:
        return [made]
    other = known[amendment.replaced_by]
    linked = [] if other.supersedes else [{"id": other.id, "supersedes": amendment.id}]
    return [{**made, "superseded_by": other.id}, *linked]


# --------------------
# The detached worker.
#
# Nothing is queued: the journal shows which checkpoints are owed, so the next worker resumes after a crash.


def start(project: Project, route: str, *, after: Token | None = None, written: int = 0) -> str:
    """Start a worker for a route if a model is configured and something is owed it; returns at once.

    after    a place in the journal before the newest checkpoints, to save the worker a look at what lies before it
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
        environment.start_detached(__name__, __file__, [str(project.root), route, after or ""])
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
    """Improve what is owed: `ROOT ROUTE AFTER`."""
    root, route, after = arguments
    os.chdir("/")
    with suppress(RalfError, OSError):  # nobody looks on; what is owed stays owed
        work(project.find(root), route, after=after or None)


def work(project: Project, route: str, *, after: Token | None = None) -> list[Refinement]:
    """Improve what is owed, newest first, until nothing is, the model fails too often, or another worker is at it."""
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
                    done.append(refine(project, route, names[0], command, cap=settings.cap, after=after))
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
        return [refine(project, route, name, command, cap=cap) for name in reversed(wanted)]


def _owed(project: Project, route: str) -> tuple[str, ...]:
    state = load_state(project, route)
    return owed(state.recorded) if state is not None else ()

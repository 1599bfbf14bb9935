"""Has a model improve a checkpoint that is acknowledged already: asks, throws away what the lines do not bear out, and
appends what is left as a record that refines it. The route's lock is never held while a model runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ralf import (
    environment,
    evidence,
    journal,
    labels,
    route as heart,
    state as states,
    tokens,
    tombstones,
    yamlwriting,
)
from ralf.context import RouteContext
from ralf.errors import BlobNotFound, DamagedBlob, NotFound, RalfError, UnknownToken
from ralf.journal import Record
from ralf.model import Checkpoint, Decision
from ralf.project import Project
from ralf.proving.acceptance import accept, enlarged, recalled
from ralf.proving.items import Item, seen as seen_items
from ralf.refining import spend
from ralf.refining.refinement import WORK, body_of, entry_of, section_of
from ralf.store import Token
from ralf.summarizers.command import Command, NoAnswer, Usage
from ralf.summarizers.patch import SCHEMA, BadAnswer, patch_of
from ralf.summarizers.prompt import prompt
from ralf.summarizers.support import Lines
from ralf.summarizers.verify import Amendment, Verified, verified
from ralf.tree import to_tree
from ralf.writer import RouteWriter, writing


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
    cap: spend.Cap | None = None,
    after: Token | None = None,
) -> Refinement:
    """Have a model improve one checkpoint, and record what came of it: also that nothing did, and what it cost.

    cap    what may be spent in a day; when it is spent, that is what is recorded
    after  a place in the journal before the checkpoint's record, to look for it from there

    The caller holds the route's worker lock. Raises NotFound (no such checkpoint), Busy, OSError, DamagedJournal.
    """
    return _Refining(project, route, checkpoint_id, command).run(cap or spend.Cap(), after)


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

    def run(self, cap: spend.Cap, after: Token | None) -> Refinement:
        try:
            spent = self._spent(cap)
            if spent:
                return self._failed(spent)
            seen = self._context()
            record = self._record(seen, after)
            said = list(evidence.read(self._project.store, str(record.payload.get("evidence", ""))))
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

    def _spent(self, cap: spend.Cap) -> str:
        if cap == spend.Cap():
            return ""  # without a cap nobody needs to look at all routes
        return cap.spent(spend.total(spend.of_project(self._project).values(), spend.now()[:10]))

    def _context(self) -> RouteContext:
        state = states.load(self._project, self._route)
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

    def _asked(self, seen: RouteContext, record: Record, said: list[evidence.Line]) -> Verified:
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
        redactor = self._project.redactor
        self._called = spend.now()
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
        with writing(self._project, self._route) as writer:
            payload = self._payload(seen, writer.context, record, found)
            after = self._folded(writer, payload)
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
                writer.show()
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
            if tombstones.cover(tombstones.of(now), decision):
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
        stored = tokens.count(yamlwriting.dump(added))
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

    def _folded(self, writer: RouteWriter, payload: Mapping[str, Any]) -> RouteContext:
        """The route as it would be with the record."""
        context = writer.context
        labelled = labels.labelled(context, "refinement", payload)
        return heart.apply(context, Record(context.revision + 1, "refinement", labelled))

    def _failed(self, reason: str) -> Refinement:
        reason = self._project.redactor.text(reason)  # a program tells which key it was refused for
        payload = {**self._call(), "reason": reason, "unsupported": self._unsupported}
        with writing(self._project, self._route) as writer:
            before = writer.context.revision  # who removes the reason by hand has it asked, and perhaps refused, again
            digest = hashlib.sha256(json.dumps([payload, before]).encode("utf-8", "replace")).hexdigest()
            writer.append("unrefined", payload, id=f"unrefined-{self._id}-{digest[:32]}")
            writer.show()
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

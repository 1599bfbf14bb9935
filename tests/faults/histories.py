"""Random histories of a route: what changed between any two moments, made to the one, is the other; a revert gives back
what was, and a revert of that gives back what was before.

python -m tests.faults.histories --rounds 100000
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any
from unittest.mock import patch

from tests.contexts import as_read
from tests.faults import rig

from ralf.document import merge
from ralf.document.tree import to_tree
from ralf.model import BODY, Decision, RouteContext, Section
from ralf.model.handover import number_of
from ralf.route import cap, edits, fold, routefile, taking_back
from ralf.route.comparing import in_words
from ralf.storage.journal import Record

_WORDS = ("use tabs", "keep the columns", "never push", "one file", "a server", "---", "## x", "é → 日", "batch 10", "")
_PATHS = ("src/a.py", "src/b.py", "docs/x y.md", "paths", "decisions")
_MARK = re.compile(r"\bm[0-9]+m\b")


class History:
    """A route whose records are made at random, folded one by one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.records: list[Record] = []
        self.contexts = [fold.empty("TASK-1")]  # after each revision, from 0 on
        self.lost: list[str] = []  # what an edit made unfindable in the file
        self._said = 0

    @property
    def now(self) -> RouteContext:
        """What the route comes to."""
        return self.contexts[-1]

    def add(self, kind: str, payload: dict[str, Any]) -> RouteContext:
        """Append a record, as a writer does, and as it comes back from a file."""
        payload = json.loads(json.dumps(edits.labelled(self.now, kind, payload)))
        self.records.append(Record(self.now.revision + 1, kind, payload))
        self.contexts.append(fold.apply(self.now, self.records[-1]))
        return self.now

    def step(self) -> None:
        """One more record of a random kind."""
        kinds = ["checkpoint"] * 3 + ["decision"] * 2 + ["edit"] * 3 + ["revert"] * 2 + ["handover", "unknown"]
        kinds += ["drop"] * ("drop" in fold._KINDS)
        getattr(self, f"_{self.rng.choice(kinds)}")()

    # ---- records ----

    def _checkpoint(self) -> None:
        rng, number = self.rng, len(self.records)
        payload: dict[str, Any] = {
            "source": {"session": f"s{rng.randrange(2)}", "from_line": number * 10, "to_line": number * 10 + 9},
            "period": [f"2026-03-01T10:{number % 60:02d}:00Z", f"2026-03-01T10:{number % 60:02d}:30Z"],
            "tokens": rng.randrange(9000),
            "title": self._words(),
            "text": f"- {self._words()}\n  {self._words()}",
            "goal": self._words(),
            "decisions": [self._made() for _ in range(rng.randrange(3))],
            "facts": {
                "paths": [{"path": path, "did": ["edited"]} for path in self._some(_PATHS)],
                "commands": [
                    {"command": f"make {path}", "status": "failed", "failures": 1} for path in self._some(_PATHS)
                ],
                "names": self._some(_PATHS),
            },
            "active_work": {
                "work_status": rng.choice(["in_progress", "done", ""]),
                "next_steps": self._some(_WORDS),
                "todos": [
                    {"content": words, "status": rng.choice(["pending", "completed"])} for words in self._some(_WORDS)
                ],
                "open_files": [{"path": path} for path in self._some(_PATHS)],
            },
        }
        self.add("checkpoint", payload)

    def _decision(self) -> None:
        self.add("decision", {"decision": self._made()})

    def _made(self) -> dict[str, Any]:
        made = {"decision": f"{self._words()} {self.rng.randrange(30)}", "rationale": self._words(), "origin": "user"}
        known = [item.id for item in self.now.decisions]
        if known and self.rng.random() < 0.3:
            made["supersedes"] = self.rng.choice(known)
        return made

    def _drop(self) -> None:
        if self.now.decisions:
            stone = cap.tombstone(self.rng.choice(self.now.decisions))
            self.add("drop", {"tombstone": to_tree(stone)})

    def _handover(self) -> None:
        moment = {
            "now": self._words(),
            "next": self._some(_WORDS),
            "author": "agent",
            "at": f"{len(self.contexts):06d}",
        }
        payload: dict[str, Any] = {"moment": moment, "author": "agent"}
        if self.rng.random() < 0.5:
            ids = [entry.id for entry in self.now.handover.kept]
            number = max([number_of(one) for one in (*self.now.handover.numbers, *ids)], default=0) + 1
            payload["kept"] = [{"kind": "open", "id": f"OPEN-{number:03d}", "text": self._words(), "author": "agent"}]
            label = f"DEC-{self.now.context_checkpoint.decision_count + 1:03d}"
            payload["decisions"] = [{"id": label, "decision": self._words(), "origin": "agent"}]
            payload["ended"] = [{"id": one} for one in ids[:1]]
        known = [item.id for item in self.now.active_decisions]
        if known and self.rng.random() < 0.5:
            by = {"superseded_by": payload["decisions"][0]["id"]} if payload.get("decisions") else {}
            payload["amended"] = [{"id": self.rng.choice(known), "ended": {"by": "agent"}, **by}]
        self.add("handover", payload)

    def _unknown(self) -> None:
        self.add("annotation", {"note": self._words()})

    def _edit(self) -> None:
        """A person edits the file of this revision or of an older one."""
        seen_then = self.rng.choice(self.contexts[-3:])
        base, edited = routefile.parse(routefile.render(seen_then).encode(), "file"), seen_then
        for _ in range(self.rng.randrange(1, 4)):
            edited = self._edited(edited)
        edited = routefile.parse(routefile.render(edited).encode(), "file")
        written, seen = (_marks(context) for context in (edited, base))
        since = _marks(self.now) - seen  # nobody who edited the older file can have meant to remove it
        changes = edits.changes_of_edit(base, edited, self.now)
        payload = edits.body_of(changes, edits.conflicts(base, self.now, changes))["payload"]
        after = _marks(self.add("edit", payload))
        after |= set(_MARK.findall(json.dumps(payload)))  # of two values the record has the other
        self.lost += sorted((written - seen) - after) + sorted(since - after)

    def _edited(self, context: RouteContext) -> RouteContext:
        rng, decisions, sections = self.rng, list(context.decisions), list(context.body.sections)
        match rng.randrange(8):
            case 0:
                return replace(context, goal=self._words())
            case 1 if decisions:
                number = rng.randrange(len(decisions))
                decisions[number] = replace(
                    decisions[number], rationale=self._words(), status=rng.choice(["active", "reversed"])
                )
            case 2 if decisions:
                del decisions[rng.randrange(len(decisions))]
            case 3:
                rng.shuffle(decisions)
            case 4:
                sections.insert(
                    rng.randrange(len(sections) + 1), Section(None, f"Mine {rng.randrange(3)}", "- by hand")
                )
            case 5 if sections:
                rng.shuffle(sections)
                sections = sections[: rng.randrange(1, 9)]
            case 6:
                return replace(
                    context,
                    extra={**context.extra, rng.choice("xyz"): {"paths": {"a": rng.randrange(3)}, "b": [1, {}]}},
                )
            case _:
                steps = (*self._some(_WORDS), self._words())
                work = replace(context.active_work, next_steps=steps, todos=context.active_work.todos[::-1])
                return replace(context, active_work=work)
        return replace(context, decisions=tuple(decisions), body=replace(context.body, sections=tuple(sections)))

    def _revert(self) -> None:
        self.revert(self.rng.choice(self.contexts))

    def revert(self, then: RouteContext) -> RouteContext:
        """Revert to what the route was."""
        changes = taking_back.changes_back(self.now, then)
        payload = {"to": f"r{then.revision}", "to_revision": then.revision, "because": self._words()}
        return self.add(fold.REVERT, {**payload, "timestamp": "2026-03-02", "changes": changes})

    def _words(self) -> str:
        """Words, most of which are known again wherever they stand."""
        self._said += 1
        return f"{self.rng.choice(_WORDS)} m{self._said}m" if self.rng.random() < 0.8 else self.rng.choice(_WORDS)

    def _some(self, items: tuple[str, ...]) -> list[str]:
        return self.rng.sample(items, self.rng.randrange(min(4, len(items))))


# ---- what has to hold ----


def faults(rng: random.Random) -> Iterator[str]:
    """What is wrong with one random history."""
    history = History(rng)
    for _ in range(rng.randrange(2, 14)):
        history.step()
    yield from _of_reverts(history)
    for _ in range(4):
        yield from _of_difference(rng.choice(history.contexts), rng.choice(history.contexts))
    if reduce(fold.apply, history.records, history.contexts[0]) != history.now:
        yield "the journal folded at once comes to something else"
    if routefile.parse(routefile.render(history.now).encode(), "file") != as_read(history.now):
        yield "the file is not read as what it was written from"
    yield from _of_labels(history)
    if history.lost:
        yield f"an edit of an older file lost {history.lost}"


def _marks(context: RouteContext) -> set[str]:
    return set(_MARK.findall(routefile.render(context)))


def _of_difference(one: RouteContext, other: RouteContext) -> Iterator[str]:
    before, after = to_tree(one), to_tree(other)
    found = json.loads(json.dumps(merge.diff(before, after)))
    if _exact(merge.apply(before, found)) != _exact(after):
        yield f"diff(r{one.revision}, r{other.revision}) applied to the one is not the other"
    if _exact(before) == _exact(after) and found:
        yield "changes between equals"
    told = in_words(one, other)
    if any("\n" in line.text for line in told):
        yield "a change in words of two lines"
    if {item.id for item in other.decisions} - {item.id for item in one.decisions} and not told:
        yield "a new decision that is not told"


def _of_reverts(history: History) -> Iterator[str]:
    before, then = history.now, history.rng.choice(history.contexts)
    after = history.revert(then)
    if _content(after) != _content(then):
        yield f"a revert to r{then.revision} does not give its content back"
    books, kept = before.context_checkpoint, after.context_checkpoint
    if (kept.total_tokens_consumed, kept.spend, kept.decision_count, kept.checkpoint_count) != (
        books.total_tokens_consumed, books.spend, books.decision_count, books.checkpoint_count,
    ):  # fmt: skip
        yield "a revert changed the books"
    again = history.revert(before)
    if _content(again) != _content(before):
        yield "a revert of a revert is not the identity"


def _of_labels(history: History) -> Iterator[str]:
    """No label is given to two decisions, and none to two checkpoints."""
    given: dict[str, str] = {}
    for record in history.records:
        payload = record.payload
        made = [*payload.get("decisions", ()), *filter(None, [payload.get("decision")])]
        for item in made:
            words = given.setdefault(item["id"], item["decision"])
            if (
                edits.said(Decision(decision=words)) != edits.said(Decision(decision=item["decision"]))
                and record.kind != "edit"
            ):
                yield f"{item['id']} was given twice"
    numbers = [
        context.checkpoint_history[-1].checkpoint_id
        for record, context in zip(history.records, history.contexts[1:], strict=True)
        if record.kind == "checkpoint"
    ]
    if len(numbers) != len(set(numbers)):
        yield f"a checkpoint's label was given twice: {numbers}"


def _content(context: RouteContext) -> str:
    tree = to_tree(context)
    tree.pop("context_checkpoint", None)
    return _exact(tree)


def _exact(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True)


# ---- broken variants ----


def _forgetful(kept: Callable[[merge.Change], bool]) -> Any:
    """An `apply` that passes over some changes."""
    real = merge.apply
    return patch.object(merge, "apply", lambda tree, found: real(tree, [change for change in found if kept(change)]))


def _without_sections() -> Any:
    real = taking_back.changes_back
    return patch.object(
        taking_back, "changes_back", lambda now, then: [one for one in real(now, then) if one["at"][:1] != [BODY]]
    )


BROKEN = {
    "apply without order": lambda: _forgetful(lambda change: "order" not in change),
    "apply without removals": lambda: _forgetful(lambda change: not change.get("removed")),
    "revert without sections": _without_sections,
}


def run(size: rig.Rounds, seed: int, _: Sequence[str] = ()) -> rig.Found:
    """The faults of so many histories."""
    return rig.cases(faults, size.rounds, seed, first=size.first, jobs=size.jobs)


if __name__ == "__main__":
    sys.exit(rig.command("histories", rig.Rounds(100_000), run, broken=BROKEN))

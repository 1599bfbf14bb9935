"""Random histories of two to four clones that share a route: nothing of anyone is lost, whoever merges and in whatever
order.

by the driver   each clone decides, rewords, drops, checkpoints and renames, merges what the others have pushed, accepts
                it and goes on; at the end all have all. The same merge the other way round is the same to the byte, and
                all orders of merging come to the same.
by git alone    two clones that have decided different things, merged, squashed, rebased and cherry-picked by git, which
                knows no driver: the merge is clean, or has conflict markers, which the reader reports.
by git with it  the same with the driver in the clone's configuration.

    python -m tests.faults.merges --rounds 2000
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults import rig

from kit import git
from ralf.errors import DamagedRouteFile
from ralf.format import merge, routefile, spread
from ralf.format.codec import to_tree
from ralf.maintenance import trust
from ralf.model import Decision, RouteContext
from ralf.route import cap, edits, filed, fold, pairing, sharing
from ralf.storage.journal import Record

KINDS = ("by the driver", "by git alone", "by git with it")
USERS = {"status": "active", "origin": "user"}  # of a decision that the user of a clone records
CLEAN = 0.95  # of the merges by git alone
_WAYS = ("merge", "squash", "rebase", "cherry-pick")
_EVERY = (
    40  # of the histories that git alone merges, one is merged by git with the driver, too: it takes a process each
)


class Clone:
    """A clone of a shared route, in memory: its records, folded, and what its user does.

    seen  the version of the shared file that it has merged last
    """

    replaces = 0.3  # of its decisions stand in the place of another one

    def __init__(self, number: int, dice: random.Random) -> None:
        self.tag = spread.tag_of(dice.randbytes(32))
        self.dice = dice
        self.name = f"k{number}"
        self.context = fold.empty("TASK-1")
        self.by_lineage: dict[str, RouteContext] = {}
        self.seen = b""
        self.made: set[str] = set()  # markers of all that it has recorded
        self._count = 0

    @property
    def content(self) -> bytes:
        """Its route file."""
        return filed.content_of(self.context, self.tag)

    def append(self, kind: str, payload: dict[str, Any]) -> None:
        """Append a record, as a writer does."""
        ready = edits.signed(self.context, kind, edits.labelled(self.context, kind, payload), self.tag)
        self.context = fold.apply(self.context, Record(self.context.revision + 1, kind, dict(ready)))
        self.by_lineage[self.context.lineage] = self.context

    def _marker(self) -> str:
        self._count += 1
        made = f"m{self.name}x{self._count}m"
        self.made.add(made)
        return made

    def _now(self) -> str:
        return f"2026-11-{self.dice.randint(1, 9):02d}T10:00:{self.dice.randint(0, 2):02d}Z"

    # ---- what a user does ----

    def decide(self) -> None:
        """Record a decision, now and then in the place of another one."""
        item = {"decision": f"Choose {self._marker()}", "rationale": "so", "timestamp": self._now()} | USERS
        if self.context.active_decisions and self.dice.random() < self.replaces:
            other = self.dice.choice(self.context.active_decisions)
            item["supersedes"] = other.id
            item["decision"] += f" over {_marked(other)[1:-1]}"
        self.append("decision", {"decision": item})

    def reword(self) -> None:
        """Change a field of a decision in an editor."""
        if not self.context.active_decisions:
            return
        item = self.dice.choice(self.context.active_decisions)
        name = self.dice.choice(("rationale", "decision"))
        value = f"{item.decision} again" if name == "decision" else f"so says {self.name}"
        self._edit([{"at": ["decisions", item.id, name], "value": value}])

    def drop(self) -> None:
        """Drop a decision, whatever its status."""
        if self.context.decisions:
            item = self.dice.choice(self.context.decisions)
            self.append("drop", {"tombstone": to_tree(cap.tombstone(item)), "timestamp": self._now()})

    def checkpoint(self) -> None:
        """Checkpoint a segment."""
        marker, now = self._marker(), self._now()
        payload = {
            "source": {"session": self.name, "from_line": 10 * self._count, "to_line": 10 * self._count + 9},
            "period": [now, now],
            "tokens": 100,
            "title": f"Segment {marker}",
            "text": f"- Carried {marker} over.",
            "goal": f"Carry over {self.name}",
            "decisions": [
                {"decision": f"Keep {self._marker()}", "timestamp": now, "status": "active"}
                for _ in range(self.dice.randint(1, 3))  # what one message says has one time
            ],
            "facts": {"requests": [{"request": f"Please carry {marker} over."}], "paths": [{"path": "a.py"}]},
            "active_work": {"next_steps": [f"Go on with {marker}"], "last_output": "Bash: make"},
        }
        self.append("checkpoint", payload)

    def write(self) -> None:
        """Add a decision to the file in an editor."""
        label = f"DEC-{self.context.context_checkpoint.decision_count + 1:03d}"
        item = {"id": label, "decision": f"Choose {self._marker()}", "status": "active", "origin": "human-edit"}
        self._edit([{"at": ["decisions", label], "value": item}])

    def note(self) -> None:
        """Write a key of one's own into the file."""
        self._edit([{"at": [f"note_{self._marker()}"], "value": True}])

    def rename(self) -> None:
        """Rename the route."""
        header = replace(self.context.context_checkpoint, route=f"TASK-{self.dice.randint(2, 3)}")
        self.context = replace(self.context, context_checkpoint=header)
        self.by_lineage[self.context.lineage] = self.context

    def _edit(self, changes: list[merge.Change]) -> None:
        self.append("edit", {"timestamp": self._now(), "changes": changes})

    def work(self, steps: int) -> None:
        """Do some of it."""
        kinds = (
            [self.decide] * 5
            + [self.reword] * 2
            + [self.drop]
            + [self.checkpoint] * 2
            + [self.write, self.note, self.rename]
        )
        for _ in range(steps):
            self.dice.choice(kinds)()

    # ---- what comes from others ----

    def take(self, content: bytes) -> None:
        """Accept a version of the file, as `ralf context trust` does."""
        found = spread.as_of(routefile.parse(content, "a file"), self.tag)
        clones = [one for one in found.context_checkpoint.clones if spread.parsed(one)[0] != self.tag]
        more = {"accepts": True, "clones": clones}
        if not self.context.revision:
            self.append("import", {"document": trust._imported(to_tree(found)), **more})
        else:
            found = spread.as_merged(found, self.context)
            joined = [one for one in found.context_checkpoint.joined if one in self.by_lineage]
            base = self.by_lineage[joined[-1]] if joined else self.by_lineage.get(found.lineage)
            if base is None:
                changes = edits.changes_of_foreign(self.context, found)
            else:
                changes = edits.changes_since(base, spread.with_output(found, base), self.context)
            changes = trust._marked(list(changes), self.context)
            self.append("edit", {"timestamp": self._now(), "origin": "import", "changes": changes, **more})
            route = {"route": found.route or self.context.route}
            self.context = edits.with_header(self.context, **route)
            self.by_lineage[self.context.lineage] = self.context
        self.seen = content


def said(context: RouteContext) -> Counter[str]:
    """Every marker of a context, and in how many places of those that hold one each."""
    texts = [item.decision for item in context.decisions]
    texts += [section.title for section in context.body.sections]
    texts += list(context.extra)
    return Counter(word for text in texts for word in text.replace("_", " ").split() if word[:1] + word[-1:] == "mm")


def judged(content: bytes, made: set[str], when: str, found: rig.Found) -> RouteContext | None:
    """Note what is wrong with a file that has to hold what was made."""
    try:
        context = routefile.parse(content, "a file")
    except DamagedRouteFile as error:
        found.note("damaged", f"{when}: {error}")
        return None
    _judged(context, made, when, found)
    again = sharing.merge_files(b"", content, content, "a file").content
    if again != content:
        found.note("torn", f"{when}: merged with itself it is another")
    return context


def _judged(context: RouteContext, made: set[str], when: str, found: rig.Found) -> None:
    markers = said(context)
    lost = made - markers.keys()
    found.note("lost", f"{when}: {sorted(lost)[:4]}", len(lost))
    for name, labels in (
        ("decisions", [item.id for item in context.decisions]),
        ("checkpoints", [entry.checkpoint_id for entry in context.checkpoint_history]),
        ("sections", [str(one.number) for one in context.body.sections]),
    ):
        twice = len(labels) - len(set(labels))
        found.note("doubled", f"{when}: labels of {name}: {sorted(labels)}", twice)
    doubled = [marker for marker, count in markers.items() if count > 1]
    found.note("doubled", f"{when}: {doubled[:4]} stand twice", len(doubled))
    for wrong in mislinked(context):
        found.note("mislinked", f"{when}: {wrong}")


def _marked(item: Decision) -> str:
    return item.decision.split()[1]


def mislinked(context: RouteContext) -> Iterator[str]:
    """The links between decisions that are not what their authors meant: a decision says itself which one it was put in
    the place of.
    """
    known = {item.id: item for item in context.decisions}
    for item in context.decisions:
        meant = item.decision.partition(" over ")[2].partition(" ")[0]
        other = known.get(item.supersedes)
        if item.supersedes and other is None:
            yield f"{item.id} supersedes {item.supersedes}, which is not there"
        elif other is not None and _marked(other)[1:-1] != meant:
            yield f"{item.id} supersedes {item.supersedes}, and its author meant another one"
        elif other is None and meant in {_marked(one)[1:-1] for one in context.decisions}:
            yield f"{item.id} does not say any more what it supersedes"
        by = known.get(item.superseded_by)
        if item.superseded_by and by is None:
            yield f"{item.id} is superseded by {item.superseded_by}, which is not there"
        elif by is not None and by.decision.partition(" over ")[2].partition(" ")[0] != _marked(item)[1:-1]:
            yield f"{item.id} is superseded by {item.superseded_by}, whose author meant another one"
        elif item.status == "superseded" and by is None:
            yield f"{item.id} is superseded, and by none"
        seen = {item.id}
        while (item := known.get(item.supersedes)) is not None:  # type: ignore[assignment]
            if item.id in seen:
                yield f"{item.id} supersedes itself"
                break
            seen.add(item.id)


def both_ways(base: bytes, ours: bytes, theirs: bytes, when: str, found: rig.Found) -> sharing.Merged:
    """The merge by the driver, which must not depend on who is who."""
    merged = sharing.merge_files(base, ours, theirs, "a file")
    if merged != sharing.merge_files(base, theirs, ours, "a file"):
        found.note("one-sided", f"{when}: the other way round it is another")
    return merged


# ---- by the driver ----


def by_the_driver(number: int, seed: int, found: rig.Found) -> None:
    """One history."""
    dice = random.Random(f"{seed} {number}")
    clones = [Clone(place, dice) for place in range(dice.randint(2, 4))]
    first = clones[0]
    for _ in range(dice.randint(1, 4)):
        dice.choice((first.decide, first.decide, first.checkpoint))()
    main = first.content
    first.seen = main
    for clone in clones[1:]:
        clone.take(main)
    for clone in clones:
        clone.work(dice.randint(0, 4))
    made = set().union(*(clone.made for clone in clones))
    _any_order(main, [clone.content for clone in clones], made, f"history {number}", dice, found)
    for turn in range(dice.randint(2, 6)):
        clone = dice.choice(clones)
        main = _synced(clone, main, f"history {number}, turn {turn}", found)
        dice.choice(clones).work(dice.randint(0, 3))
    made = set().union(*(clone.made for clone in clones))
    for clone in (*clones, *clones):
        main = _synced(clone, main, f"history {number}, at the end", found)
    judged(main, made, f"history {number}", found)
    for clone in clones:
        _judged(clone.context, made, f"history {number}, {clone.name} at the end", found)
    found.acknowledged += len(made)
    found.rounds += 1


def _any_order(
    base: bytes, versions: list[bytes], made: set[str], when: str, dice: random.Random, found: rig.Found
) -> None:
    """Merge all versions in two orders: both have everything, and say the same."""
    results = []
    for _ in range(2):
        dice.shuffle(versions)
        merged = versions[0]
        for other in versions[1:]:
            merged = both_ways(base, merged, other, when, found).content
        results.append(judged(merged, made, when, found))
    one, other = results
    if one is not None and other is not None and _content(one) != _content(other):
        found.note("apart", f"{when}: {sorted(_content(one) ^ _content(other))[:4]}")


def _content(context: RouteContext) -> set[tuple[str, ...]]:
    """What a merged file says, however its items are labelled; of a field that several have changed, all values."""
    others: dict[tuple[str, ...], list[str]] = {}
    for entry in context.unresolved:
        others.setdefault(entry.at, []).extend(map(str, entry.also))
    content: set[tuple[str, ...]] = set()
    for item in context.decisions:
        marker = next(
            iter(said(replace(context, decisions=(item,), body=replace(context.body, sections=()), extra={})))
        )
        for name in ("decision", "rationale", "status"):
            at = ("decisions", item.id, name)
            content.add((marker, name, *sorted({str(getattr(item, name)), *others.get(at, ())})))
    content |= {("section", section.title, section.text) for section in context.body.sections}
    return content


def _synced(clone: Clone, main: bytes, when: str, found: rig.Found) -> bytes:
    """A clone merges what is pushed into its branch, accepts that, and pushes its file."""
    if clone.content == clone.seen:
        merged = main
    elif main == clone.seen:
        merged = clone.content
    else:
        merged = both_ways(clone.seen, clone.content, main, when, found).content
    if merged != clone.content:
        clone.take(merged)
    clone.seen = merged
    return merged


# ---- by git ----


@dataclass
class Repository:
    """A repository with one route file, and git in it."""

    root: Path
    driver: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make it."""
        paths = os.pathsep.join(path for path in sys.path if path)
        self.environment = {"GIT_EDITOR": "true", "PYTHONPATH": paths}
        self.git("init", "-q", "-b", "main")
        self.path.parent.mkdir(parents=True)
        (self.path.parent / ".gitattributes").write_text("*.md merge=ralf\n")
        if self.driver:
            self.git("config", "merge.ralf.driver", self.driver)

    @property
    def path(self) -> Path:
        """The route file."""
        return self.root / ".autonomous" / "context" / "routes" / "TASK-1.md"

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run git."""
        done = git.tried(self.root, *words, env=self.environment)
        if "Traceback" in done.stderr:
            raise AssertionError(done.stderr)
        return done

    def commit(self, content: bytes) -> None:
        """Commit a version."""
        self.path.write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "more")


DECIDED, LINKS, HOUR, LOPSIDED = "decisions", "with links", "an hour each", "an hour against decisions"


def _decides(clone: Clone) -> None:
    item = {"decision": f"Choose {clone._marker()}", "timestamp": clone._now(), "origin": "user"}
    clone.append("decision", {"decision": item})


def _links(clone: Clone) -> None:
    clone.replaces = 0.5
    clone.dice.choice((clone.decide, clone.decide, clone.drop))()


def _works(clone: Clone) -> None:
    clone.decide()
    clone.checkpoint()


def _works_alone(clone: Clone) -> None:
    (_works if clone.name == "k0" else _decides)(clone)


STEPS: dict[str, Callable[[Clone], None]] = {
    DECIDED: _decides,
    LINKS: _links,
    HOUR: _works,
    LOPSIDED: _works_alone,
}
"""What two clones do between two commits: decide different things; replace and drop decisions, those of the other, too;
each work with an agent, which is checkpointed; one does, and the other only decides.
"""


def by_git(
    number: int, seed: int, found: rig.Found, counts: Counter[str], driver: str = "", steps: str = DECIDED
) -> None:
    """One history of two clones, merged in each of the ways; `steps`: what they do, of `STEPS`."""
    dice = random.Random(f"{seed} {number} {steps}")
    one, other = Clone(0, dice), Clone(1, dice)
    of = f", {steps}" if steps != DECIDED else ""
    for _ in range(dice.randint(1, 6)):
        _decides(one)
    if steps not in (DECIDED, LINKS):
        one.checkpoint()
    base = one.content
    other.take(base)
    versions: list[list[bytes]] = []
    for clone in (one, other):
        made = []
        for _ in range(dice.randint(1, 4)):
            STEPS[steps](clone)
            made.append(clone.content)
        versions.append(made)
    wanted = one.made | other.made
    with tempfile.TemporaryDirectory(prefix="ralf-merges-", dir=rig.storekit.MEMORY) as top:
        repository = Repository(Path(top), driver)
        repository.commit(base)
        for branch, contents in zip(("ours", "theirs"), versions, strict=True):
            repository.git("checkout", "-q", "-b", branch, "main")
            for content in contents:
                repository.commit(content)
        for way in _WAYS:
            repository.git("checkout", "-q", "--force", "-B", "work", "ours")
            name = f"{way} {'with the driver' if driver else 'by git alone'}{of}"
            counts[f"{name}: histories"] += 1
            is_clean = _joined(repository, way)
            content = repository.path.read_bytes()
            if is_clean:
                counts[f"{name}: clean"] += 1
                context = judged_as_read(content, wanted, f"{name}, history {number}", found)
                if context is not None and way == "merge":
                    _taken(one, content, wanted, f"{name}, history {number}", found)
                continue
            if b"<<<<<<< " not in content:
                found.note("unmarked", f"{name}, history {number}: a conflict without a marker")
                continue
            try:
                routefile.parse(content, "a file")
                found.note("unsaid", f"{name}, history {number}: a conflict that the reader does not report")
            except DamagedRouteFile:
                pass
            repository.git(way if way != "squash" else "reset", "--hard" if way == "squash" else "--abort")
    found.acknowledged += len(wanted)
    found.rounds += 1


def _joined(repository: Repository, way: str) -> bool:
    """Bring the commits of the other branch to this one; whether that went without a conflict."""
    words = {
        "merge": ("merge", "-q", "--no-edit", "theirs"),
        "squash": ("merge", "-q", "--squash", "theirs"),
        "rebase": ("rebase", "-q", "theirs"),
        "cherry-pick": ("cherry-pick", "ours..theirs"),
    }[way]
    return repository.git(*words).returncode == 0


def judged_as_read(content: bytes, made: set[str], when: str, found: rig.Found) -> RouteContext | None:
    """As `judged`, of a file that git made: it need not be as we write it."""
    try:
        context = routefile.parse(content, "a file")
    except DamagedRouteFile as error:
        found.note("damaged", f"{when}: {error}")
        return None
    _judged(context, made, when, found)
    return context


def _taken(clone: Clone, content: bytes, made: set[str], when: str, found: rig.Found) -> None:
    """Accept the merged file in the clone: nothing of its own journal is lost, nothing of the other missing."""
    before = {item.decision: item.id for item in clone.context.decisions}
    clone.take(content)
    _judged(clone.context, made, f"{when}, accepted", found)
    now = {item.decision: item.id for item in clone.context.decisions}
    moved = [words for words, label in before.items() if now.get(words) != label]
    found.note("relabelled", f"{when}, accepted: {moved[:3]}", len(moved))


# ---- the command ----


def _as_they_are(pairs: Sequence[Any], taken: set[str], count: int, shape: str) -> list[dict[str, str]]:
    for pair in pairs:
        pair.label, pair.aliases = pair.any.id, ()
    return [{}, {}]


def _newer_alone(base: bytes, ours: bytes, theirs: bytes, where: object, *, route: str = "") -> sharing.Merged:
    return sharing.Merged(max(ours, theirs))


def _ours(base: bytes, ours: bytes, theirs: bytes, where: object, *, route: str = "") -> sharing.Merged:
    return sharing.Merged(ours)


BROKEN: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "labels as they are": lambda: patch.object(pairing, "label_all", _as_they_are),
    "the newer alone": lambda: patch.object(sharing, "merge_files", _newer_alone),
    "ours": lambda: patch.object(sharing, "merge_files", _ours),
    "no slots": lambda: patch.object(spread, "SLOTS", 1),
}
"""By name, what breaks the merge for a block."""


@dataclass(frozen=True)
class Size:
    """How many histories, and the number of the first, to play one again."""

    rounds: int = 200
    first: int = 0


def run(size: Size, seed: int, only: Sequence[str]) -> rig.Found:
    """So many histories of each kind; git merges a quarter as many."""
    found = rig.Found()
    counts: Counter[str] = Counter()
    driver = f"{sys.executable} -P -m ralf_cli merge-driver -- %O %A %B %P"
    for number in range(size.first, size.first + size.rounds):
        if KINDS[0] in only:
            by_the_driver(number, seed, found)
        if KINDS[1] in only and number % 4 == 0:
            for steps in STEPS:
                by_git(number, seed, found, counts, steps=steps)
        if KINDS[2] in only and number % _EVERY == 0:
            for steps in STEPS:
                by_git(number, seed, found, counts, driver, steps)
    found.figures["histories"] = f"{found.rounds:,}"
    for name in [name for name in counts if name.endswith(": histories")]:
        way, of = name.removesuffix(": histories"), counts[name]
        clean = counts[f"{way}: clean"]
        found.figures[f"{way}, clean"] = f"{clean:,} of {of:,} ({clean / of:.1%})"
        if way == "merge by git alone" and of >= 40 and clean < CLEAN * of:
            found.note("conflicts", f"{of - clean} of {of} merges by git alone are not clean")
        if "with the driver" in way and clean < of:
            found.note("conflicts", f"{way}: {of - clean} of {of}")
    return found


if __name__ == "__main__":
    status = rig.command(
        "merges",
        Size,
        lambda size, given: run(size, given.seed, given.only or KINDS),
        of="recorded items",
        faults=("lost", "doubled", "one-sided", "apart", "damaged", "unmarked", "unsaid", "relabelled", "mislinked"),
        only=KINDS,
        broken=BROKEN,
        targets={"merge by git alone, clean": f"≥ {CLEAN:.0%}"},
    )
    sys.exit(status)

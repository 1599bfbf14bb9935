"""What clones share through git: one small file for each record by which somebody decided, dropped, reworded or handed
over. No file is ever changed, so branches, merges, rebases and copies do not conflict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ralf import environment
from ralf.document import bullets
from ralf.document.record import now
from ralf.document.tree import from_tree, to_tree
from ralf.model import OF_A_PERSON, Decision, RouteContext
from ralf.model.items import EXTRACTED
from ralf.project import Project
from ralf.storage import durable, git_files, shared_files
from ralf.storage.files import content_of
from ralf.storage.journal import MALFORMED
from ralf.storage.shared_files import SharedFile
from ralf.text import digests
from ralf.text.cleaning import clean, one_line, trimmed
from ralf.text.frozen import NamedTuple, replace
from ralf.text.patterns import regex

KINDS = ("decision", "drop", "edit", "handover", "revert", "undo")
"""Records that may be shared: what a checkpoint takes from a session is talk."""

ORIGIN = "clone"
"""The origin of a decision that another clone has recorded, and that this user has accepted."""

_LABEL = regex(r"DEC-\d{1,9}-[0-9a-f]{6}\Z")

_NO_NAME = regex(r"[^\w .,'()@+&-]")
"""Characters of no person's name: a name is typed back, and may be read where no fence is."""

_OURS = ("user", "agent", "by hand", "human-edit", "import", "file", "the person")
"""Words by which ralf says whose something is: no clone is called so."""

_LONGEST, _TEXT = 60, 2_000  # characters of a person's name, and of any other text

_ACCEPTED = "shared"  # the stream of what the user has accepted

_LINKS = ("supersedes", "superseded_by")

_KINDS = ("decision", "rule", "failed-approach")

_STATUSES = ("active", "superseded", "reversed", "done", "proposed", "dropped")

_MOST_OTHERS = 20  # rejected options of a decision

_OWN = ("decision", "rationale", "alternatives", "status", "supersedes", "superseded_by", "timestamp", "kind")
"""What is shared of a decision: neither the words of the talk that it rests on, nor where they stand."""


class Note(NamedTuple):
    """What one file says.

    path       below the folder of shared files: CLONE/NAME
    by         the person, as git calls them
    decisions  as they are there from then on, by the labels that all clones use
    dropped    labels of decisions that are taken back
    restored   labels of other clones' decisions that this one had taken back, and no longer does
    handed     what was handed over, "" for nothing
    """

    path: str
    clone: str
    at: str
    by: str
    route: str
    decisions: tuple[Decision, ...] = ()
    dropped: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    handed: str = ""


# ---- writing ----


def folder_of(project: Project) -> Path:
    """Where the shared files lie: all that git sees of the store."""
    return project.folder / shared_files.FOLDER


def clone_of(project: Project) -> str:
    """The id of this clone, "" where it shares nothing: of the key of its path, which it does not tell."""
    if not project.git.shares():
        return ""
    return digests.blake2b(b"shared", key=bytes.fromhex(project.owner.key), digest_size=8).hexdigest()


def publish(project: Project, route: str, revision: int, before: RouteContext, after: RouteContext) -> None:
    """Share what has changed in a route from one context to another, which is durable in the journal, if this clone
    shares. OSError.
    """
    from ralf.route import cap  # here: a read folds nothing

    clone, tag = clone_of(project), project.git.clone
    if not clone:
        return
    was, present = ({item.id: item for item in one.decisions if _is_shared(item)} for one in (before, after))
    unshared = {item.id for item in before.decisions} - was.keys()
    gone = [stone.id for stone in after.dropped if stone not in before.dropped and stone.id not in unshared]
    if after.folded.decision_count == before.folded.decision_count:
        gone += [label for label in was if label not in present and label not in gone]
    restored = [stone.id for stone in before.dropped if stone not in after.dropped and stone.id not in present]
    folded = {label: cap.bare(item) for label, item in was.items()}  # the cap takes nothing back
    changed = [
        one for one in present.values() if one not in (was.get(one.id), folded.get(one.id)) and one.id not in gone
    ]
    last = after.handover.last if after.handover.last != before.handover.last else None
    tree = {
        "decisions": [_plain(item, tag) for item in changed],
        "dropped": [shared_label(label, tag) for label in gone],
        "restored": [shared_label(label, tag) for label in restored],
        "handed": trimmed(one_line(" ".join(filter(None, [last.now, *last.next]))), _TEXT // 2) if last else "",
    }
    if any(tree.values()):
        head = {"at": now(), "by": _person(project), "route": route, "revision": revision}
        shared_files.write(folder_of(project), clone, head | {key: value for key, value in tree.items() if value})
    path = _published(project, route)
    with suppress(OSError):  # a cache: without it the newest record is shared again, which changes nothing
        project.make_room(path)
        durable.write(path, b"%d" % revision, is_synced=False)


def is_published(project: Project, route: str, revision: int) -> bool:
    """Whether this clone has shared the records of a route up to one, as a writer that was killed may not have."""
    with suppress(OSError, ValueError):
        return int(content_of(_published(project, route), most=32)) >= revision
    return False


def own_routes(project: Project) -> set[str]:
    """The routes of which this clone has shared anything."""
    clone = clone_of(project)
    return {file.route for file in shared_files.read(folder_of(project))[0] if file.clone == clone}


def _published(project: Project, route: str) -> Path:
    return project.cache / "shared" / route


def _is_shared(item: Decision) -> bool:
    return item.origin not in (EXTRACTED, "answer", "import", ORIGIN)


def shared_label(label: str, tag: str) -> str:
    """A label as all clones write it: one that was given before sharing has the tag of its clone, too."""
    return label if label.count("-") > 1 or not label else f"{label}-{tag}"


def _plain(item: Decision, tag: str) -> dict[str, Any]:
    tree = to_tree(item)
    links = {key: shared_label(tree[key], tag) for key in ("supersedes", "superseded_by") if tree.get(key)}
    return {"id": shared_label(item.id, tag), **{key: tree[key] for key in _OWN if tree.get(key)}, **links}


def _person(project: Project) -> str:
    """What git calls this user, "" where it does not."""
    import subprocess  # loaded only to ask git

    with suppress(OSError, subprocess.TimeoutExpired):
        found = git_files.ask(project.folder, ["config", "user.name"], environment.of_a_model())
        if found is not None and found.returncode == 0:
            return _name(found.stdout.decode("utf-8", "replace"))
    return ""


# ---- reading ----


def read(project: Project) -> tuple[list[Note], list[str]]:
    """What the clones in this checkout share, oldest first; and the files that are not what they claim to be."""
    notes = list[Note]()
    found, refused = shared_files.read(folder_of(project))
    for file in found:
        try:
            notes.append(_note(file))
        except MALFORMED:
            refused.append(f"{shared_files.FOLDER}/{file.path}")
    return sorted(notes, key=lambda note: (note.at, note.path)), refused


def _note(file: SharedFile) -> Note:
    tree = file.tree
    return Note(
        file.path,
        file.clone,
        one_line(clean(str(tree["at"])))[:40],
        _name(str(tree["by"])),
        file.route,
        tuple(_decision(one, str(tree["by"])) for one in tree.get("decisions", ())),
        tuple(map(str, tree.get("dropped", ()))),
        tuple(map(str, tree.get("restored", ()))),
        trimmed(one_line(clean(str(tree.get("handed", "")))), 1_000),
    )


def _decision(tree: Mapping[str, Any], by: str) -> Decision:
    made = from_tree(Decision, {key: tree[key] for key in ("id", *_OWN) if key in tree})
    if not made.decision.strip() or not _LABEL.match(made.id):
        raise ValueError(made.id)
    if made.status not in _STATUSES or made.kind not in _KINDS:
        raise ValueError(made.id)
    said, why, *others = (
        trimmed(one_line(clean(text)), _TEXT) for text in (made.decision, made.rationale, *map(str, made.alternatives))
    )
    labels = {key: label for key in _LINKS if _LABEL.match(label := str(getattr(made, key)))}
    return replace(
        made,
        timestamp=one_line(clean(made.timestamp))[: len("2026-12-01T10:00:00.000000Z")],
        decision=said,
        rationale=why,
        alternatives=tuple(others[:_MOST_OTHERS]),
        supersedes=labels.get("supersedes", ""),
        superseded_by=labels.get("superseded_by", ""),
        origin=ORIGIN,
        extra={"by": _name(by)},
    )


def _name(text: str) -> str:
    name = trimmed(one_line(_NO_NAME.sub("", clean(text))), _LONGEST) or "somebody"
    return f'clone "{name}"' if name.strip(" ()").casefold() in _OURS else name


# ---- what other clones say of a route ----


class Others(NamedTuple):
    """What other clones have shared, oldest first: what this user has accepted of it, and what is new."""

    accepted: tuple[Note, ...] = ()
    new: tuple[Note, ...] = ()

    @property
    def state(self) -> str:
        """What is another one when others have shared more, or more is accepted; "" for nothing."""
        paths = [[note.path for note in notes] for notes in self]
        return digests.sha256(json.dumps(paths).encode()).hexdigest() if any(paths) else ""

    def by_route(self) -> dict[str, Others]:
        """The same, by route."""
        found: dict[str, tuple[list[Note], list[Note]]] = {}
        for place, notes in enumerate(self):
            for note in notes:
                found.setdefault(note.route, ([], []))[place].append(note)
        return {route: Others(*map(tuple, both)) for route, both in found.items()}


def accepted(project: Project) -> frozenset[str]:
    """The paths of the files that this user has accepted."""
    found: set[str] = set()
    for entry in project.store.read(_ACCEPTED):
        with suppress(*MALFORMED):
            found |= set(map(str, json.loads(entry.record)["accepted"]))
    return frozenset(found)


def accept(project: Project, notes: Iterable[Note]) -> None:
    """Accept what a clone has shared up to now; the user was shown each of them. Errors: `Store.append`."""
    paths = sorted(note.path for note in notes)
    record = json.dumps({"accepted": paths}, separators=(",", ":")).encode()
    id_ = digests.sha256(record).hexdigest()
    project.store.append(_ACCEPTED, record, id=id_, after=project.store.head(_ACCEPTED))


def others(project: Project, route: str | None = None) -> Others:
    """What other clones have shared, of one route or of all."""
    own = clone_of(project)
    theirs = [note for note in read(project)[0] if route in (None, note.route) and note.clone != own]
    known = accepted(project) if theirs else frozenset()
    return Others(
        tuple(note for note in theirs if note.path in known), tuple(note for note in theirs if note.path not in known)
    )


def decision_of(project: Project, route: str, label: str) -> Decision | None:
    """The decision of another clone that this user has accepted, by its label as for `by_label`; None for none."""
    from ralf.route.edits import by_label  # here: a read edits nothing

    return by_label(_folded(others(project, route).accepted), label)


def with_others(project: Project, context: RouteContext, found: Others | None = None) -> RouteContext:
    """The context with what other clones say of its route: what is accepted among its decisions, under the name of the
    person; what is new apart, as foreign. `found`: that, where it was read before.
    """
    known, new = found if found is not None else others(project, context.route)
    if not known and not new:
        return context
    gone = {stone.id for stone in (*context.dropped, *context.forgotten)}
    own = {shared_label(item.id, project.git.clone): item for item in context.decisions}
    taken_back = _taken_back(known)
    by_own = {item.supersedes: item.id for item in context.decisions if item.supersedes}
    theirs = [
        replace(item, status="superseded", superseded_by=by_own[item.id]) if item.id in by_own else item
        for item in _folded(known)
        if item.id not in own and item.id not in gone
    ]
    mine = tuple(
        replace(item, status="dropped") if label in taken_back and item.status == "active" else item
        for label, item in own.items()
    )
    lines = tuple(line for note in new for line in lines_of(note, _by_label(known, new) | own))
    return replace(
        context,
        decisions=(*mine, *theirs),
        foreign=context.foreign or bool(lines),
        foreign_notes=(*context.foreign_notes, *lines),
        foreign_by=tuple(dict.fromkeys(note.by for note in new)),
    )


def _folded(notes: Iterable[Note]) -> list[Decision]:
    """The decisions of some files, each as it is now."""
    notes = list(notes)
    owners: dict[str, str] = {}  # a label is its clone's: one that another clone gives, too, takes nobody's place
    known: dict[str, Decision] = {}
    for note in notes:
        for item in note.decisions:
            is_own = owners.setdefault(item.id, note.clone) == note.clone
            label = item.id if is_own else f"{item.id}-{note.clone[:4]}"
            known[label] = item if is_own else replace(item, id=label)
    gone = _taken_back(notes)
    return [item for label, item in known.items() if label not in gone]


def _taken_back(notes: Iterable[Note]) -> set[str]:
    """The labels that a clone has taken back, and has not shared again since: another clone's word does not lift it."""
    gone: set[tuple[str, str]] = set()
    for note in notes:
        gone -= {(label, note.clone) for label in (*(item.id for item in note.decisions), *note.restored)}
        gone |= {(label, note.clone) for label in note.dropped}
    return {label for label, _ in gone}


def taken_back_by(project: Project, route: str, label: str) -> str:
    """Who took back a decision by its label, of those whose files this user has accepted; "" for nobody."""
    known, wanted = others(project, route).accepted, shared_label(label, project.git.clone)
    newest = (note.by for note in reversed(known) if wanted in note.dropped)
    return next(newest, "") if wanted in _taken_back(known) else ""


def named_in(project: Project, route: str) -> dict[str, Decision]:
    """The decisions of a route that what another clone shares may name, by label: this user's, and all that is shared
    of it. DamagedJournal.
    """
    from ralf.route.load import load_state  # here: a route is read without what is shared

    state = load_state(project, route)
    own = state.context.decisions if state is not None and not state.context.wholly_foreign else ()
    return _by_label(*others(project, route)) | {shared_label(item.id, project.git.clone): item for item in own}


def _by_label(*notes: Iterable[Note]) -> dict[str, Decision]:
    return {item.id: item for some in notes for note in some for item in note.decisions}


def _whose(item: Decision) -> str:
    if item.origin == ORIGIN:
        return f"{item.extra['by']}'s {item.kind}"
    return f"your {item.kind}" if item.origin in OF_A_PERSON else f"your agent's {item.kind}"


def lines_of(note: Note, named: Mapping[str, Decision]) -> Iterator[str]:
    """What a file says, a line each: all of it, since a person accepts what these lines show. A label of another
    decision stands with whose that is and its words. `named`: see `named_in`.
    """

    def words_of(label: str) -> str:
        item = named.get(label)
        return f': {_whose(item)} "{one_line(item.decision)}"' if item is not None else ""

    for item in note.decisions:
        kind = ", ".join(filter(None, (note.by, item.kind if item.kind != "decision" else "")))
        said = item.status if item.status != "active" else ""
        links = (
            item.supersedes and f"replaces {item.supersedes}{words_of(item.supersedes)}",
            item.superseded_by and f"see {item.superseded_by}{words_of(item.superseded_by)}",
        )
        state = "; ".join(filter(None, (said, *links)))
        parts = [f"{item.id} ({kind}): {item.decision}"]
        parts += [f"Because: {item.rationale}"] if item.rationale else []
        parts += [f"Rejected: {'; '.join(item.alternatives)}"] if item.alternatives else []
        yield f"{bullets.sentences(parts)}{f' [{state}]' if state else ''}"
    for label in note.dropped:
        yield f"{one_line(clean(label))[:40]} ({note.by}): taken back{words_of(label)}"
    for label in note.restored:
        yield f"{one_line(clean(label))[:40]} ({note.by}): in force again{words_of(label)}"
    if note.handed:
        yield f"handed over by {note.by}: {note.handed}"

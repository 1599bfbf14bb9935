"""Random items of random small stores are forgotten: no byte of their words is left, and the store verifies.

    python -m tests.faults.forget --rounds 10000

A round copies a store, changes it a little (decisions, edits by hand, a model's work, drops, an archive), forgets a
decision, a section or a text of it, in every third round killed on the way and then called again, and searches every
file by other means than the program's own: the words, white space and case aside, in what each file holds, unpacked and
parsed.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from unittest.mock import patch

from tests.faults import rig
from tests.storekit import MEMORY, V100, context_of, copied, write_session, zipped

import ralf
from ralf import project as projects
from ralf.document.tree import to_tree
from ralf.maintenance.forget import _Forgetting, forget
from ralf.maintenance.verify import verify
from ralf.model import Decision
from ralf.route import archive, corrections, history
from ralf.route.write import open_route
from ralf.storage import journal
from ralf.text.cleaning import MARK
from ralf.transcripts.events import read_evidence

ROUTES = ("tide", "moon", "star")
_NOUNS = "anchor beacon cable derrick engine funnel gangway halyard island jetty keel lantern mast needle oar".split()
_VERBS = "keep move paint number oil drain lower raise count name close open mark wash".split()
_PLACES = "harbour north pier lighthouse station third stone old quay inner basin western mole".split()


# ---- stores ----


def base(folder: Path) -> Path:
    """A small store: two routes of sessions that share their words, evidence, and a part of it archived."""
    folder.mkdir(parents=True)
    write_session(folder / "one.jsonl", 1_600)
    write_session(folder / "two.jsonl", 900, "s-2")
    for route, session in (("tide", "one"), ("moon", "one"), ("moon", "two")):
        ralf.checkpoint(route, folder / f"{session}.jsonl", root=folder, segment_tokens=700)
    ralf.record_decision("star", "Steer by the pole star", rationale="it stands still all night", root=folder)
    ralf.search("tide table", root=folder)
    return folder


def sentence(rng: random.Random) -> str:
    """A decision that nobody made before."""
    noun, place = rng.choice(_NOUNS), " ".join(rng.sample(_PLACES, 2))
    mark, number = rng.choice(["", "`", "**"]), rng.randrange(10**6)
    return f'{rng.choice(_VERBS).title()} the {mark}{noun}{mark} of the {place}, \u00e9tage {number} \u2192 "{noun}"'


def changed(root: Path, rng: random.Random) -> None:
    """A few changes, of every kind."""
    for _ in range(rng.randint(1, 3)):
        rng.choice((_decide, _decide, _write, _refine, _drop, _archive, _search, _bring))(root, rng)


def _decide(root: Path, rng: random.Random) -> None:
    text, why = sentence(rng), f"since {sentence(rng).lower()} was {rng.choice(_NOUNS)}"
    for route in rng.sample(ROUTES, rng.randint(1, 2)):
        ralf.record_decision(route, text, rationale=why, alternatives=[sentence(rng), "no"], root=root)


def _write(root: Path, rng: random.Random) -> None:
    """A person writes into a file, what a decision says or something else; half of the time it waits there."""
    route = rng.choice(ROUTES)
    said = rng.choice([item.decision for item in ralf.get_context(route, root=root).decisions] or ["nothing yet"])
    with projects.find(root).route_file(route).open("a", encoding="utf-8") as file:
        file.write(f"\nNB {said.upper() if rng.random() < 0.5 else sentence(rng)}\nand {sentence(rng)}\n")
    if rng.random() < 0.5:
        corrections.take_in(route, root=root)


def _refine(root: Path, rng: random.Random) -> None:
    """What a model makes of a checkpoint, with a decision that repeats what was said."""
    route = rng.choice(ROUTES[:2])
    text = f"- **Done:** {sentence(rng)}\n  {sentence(rng)}"
    item = to_tree(Decision(decision=sentence(rng), rationale=sentence(rng), timestamp="t", origin="agent"))
    payload = {"title": sentence(rng), "text": text, "decisions": [item]}
    with open_route(projects.find(root), route) as writer:
        writer.append("handover", payload, id=f"made-{rng.random()}")
        writer.render_file()


def _drop(root: Path, rng: random.Random) -> None:
    route = rng.choice(ROUTES)
    decisions = ralf.get_context(route, root=root).decisions
    if decisions:
        corrections.drop(route, rng.choice(decisions).id, because=sentence(rng), root=root)


def _archive(root: Path, rng: random.Random) -> None:
    archive.archive(projects.find(root), rng.choice(ROUTES))
    blobs = sorted(blob.digest for blob in projects.find(root).store.blobs())
    if rng.random() < 0.5:
        zipped(root, rng.sample(blobs, rng.randint(1, len(blobs))))  # as an earlier version did


def _bring(root: Path, rng: random.Random) -> None:
    """A route file that somebody brought, and one that was set aside, with words of a decision."""
    said = rng.choice([item.decision for item in ralf.get_context("star", root=root).decisions])
    for number, name in enumerate((f"brought-{rng.randrange(100)}.md", "tide.displaced-12345678")):
        text = V100.replace('"Better async support"', json.dumps(f"NB: {said}"))
        (context_of(root) / "routes" / name).write_text(text if not number else f"not a file\n{said}\n")


def _search(root: Path, rng: random.Random) -> None:
    ralf.search(rng.choice(_NOUNS), root=root)


# ---- forgetting ----


def target(root: Path, rng: random.Random) -> tuple[str, str | None, str | None, list[str]]:
    """Route, label and text to be forgotten, and words that must be gone then."""
    route = rng.choice(ROUTES)
    project = projects.find(root)
    records = [record for _, record in journal.read(project.store, route)]
    kind = rng.choice(("decision", "decision", "section", "text"))
    context = ralf.get_context(route, root=root)
    labelled = [item for item in context.decisions if item.id]
    if kind == "decision" and labelled:
        item = rng.choice(labelled)
        return route, item.id, None, [item.decision, *filter(_long, (item.rationale, *item.alternatives))]
    digests = [str(record.payload["evidence"]) for record in records if record.payload.get("evidence")]
    if kind == "section" and digests:
        label = rng.choice([entry.checkpoint_id for entry in context.checkpoint_history])
        named = history.records(project, route)
        own = [one.payload for name, one in named if label in (name, one.payload.get("refines"))]
        texts = [str(payload.get(key, "")) for payload in own for key in ("title", "text")]
        lines = [line for text in texts for line in text.split("\n") if _long(line) and not line.startswith("**")]
        return route, label, None, [line.lstrip("-> ").removeprefix("**Asked:** ") for line in lines]
    said = [line.text for digest in digests[:1] for line in read_evidence(project.store, digest)]
    said = [text for text in said if _long(text)] or [item.decision for item in context.decisions] or [sentence(rng)]
    words = rng.choice(said).split()
    start = rng.randrange(max(1, len(words) - 6))
    return route, None, " ".join(words[start : start + rng.randint(4, 8)]), []


def _long(text: str) -> bool:
    return len(text.split()) >= 5  # more than the program asks for: short ones are left where they stand


def round_of(seed: int, made: Path, scratch: Path) -> Iterator[tuple[str, str]]:
    """What is wrong with one round; a third of them are killed on the way."""
    rng = random.Random(seed)  # to be repeated, not to be secret
    root = scratch / f"round-{seed}"
    copied(made, root)
    try:
        changed(root, rng)
        route, label, text, words = target(root, rng)
        words = [text] if text is not None else words
        others = _others(root, words)
        if seed % 3 == 0:
            rig.killed_at(rng.randint(1, 80), lambda: forget(route, label, text=text, root=root))
            yield from _unsound(root)
        done = forget(route, label, text=text, root=root)
        left = [f"{path}: {found}" for path in _all_files(root) if (found := found_in(path, words))]
        if left or done.left:
            yield "left", f"{label or text!r} of {route} still stands in {left} {done.left}"
        yield from _unsound(root)
        gone = [item for item in others if item not in _others(root, words) and label != item[1]]
        if gone:
            yield "gone", f"forgetting {label or text!r} of {route} took others with it: {gone}"
    finally:
        shutil.rmtree(root)


def _unsound(root: Path) -> Iterator[tuple[str, str]]:
    if bad := [finding for finding in verify(root=root).findings if finding.damage]:
        yield "unsound", f"the store does not verify: {bad}"


def _others(root: Path, words: list[str]) -> list[tuple[str, str, str]]:
    """The decisions that do not hold the words, each with its route and label."""
    found = []
    for route in ROUTES:
        for item in ralf.get_context(route, root=root).decisions:
            said = _plain(item.decision)
            if MARK not in said and not any(_plain(word) in said for word in words):
                found.append((route, item.id, item.decision))
    return found


# ---- looking by other means ----


def _all_files(root: Path) -> Iterator[Path]:
    return (path for path in sorted(context_of(root).rglob("*")) if path.is_file())


def found_in(path: Path, words: list[str]) -> list[str]:
    texts = [_plain(text) for content in _contents(path.read_bytes()) for text in _texts(content)]
    return [word for word in words if word.strip() and any(_plain(word) in text for text in texts)]


def _contents(content: bytes) -> Iterator[bytes]:
    yield content
    try:
        if content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                yield from map(archive.read, archive.namelist())
        elif content.startswith(b"\x1f\x8b"):
            yield gzip.decompress(content)
        else:
            yield zlib.decompress(content)
    except (zlib.error, zipfile.BadZipFile):
        return


def _texts(content: bytes) -> Iterator[str]:
    """What stands there: as it is, and each value of its lines that are JSON."""
    yield content.decode("utf-8", "replace")
    for line in content.split(b"\n"):
        try:
            yield from _strings(json.loads(line))
        except ValueError:
            continue


def _strings(tree: object) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for key, inner in tree.items():
            yield from (key, *_strings(inner))
    elif isinstance(tree, list):
        for inner in tree:
            yield from _strings(inner)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


# ---- the command ----


def _broken(owner: object, name: str, answer: object = None) -> Callable[[], AbstractContextManager[object]]:
    return lambda: patch.object(owner, name, lambda *_: answer)


BROKEN = {
    "blobs": _broken(_Forgetting, "_find_blobs"),
    "caches": _broken(_Forgetting, "_drop_caches"),
    "files": _broken(_Forgetting, "_mask"),
    "records": _broken(_Forgetting, "_count", 0),
}
"""A forget that leaves out a part."""


def run(size: rig.Rounds, seed: int, _: Sequence[str]) -> rig.Found:
    """Rounds on copies of one store."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        made = base(Path(name) / "base")

        def share(numbers: Sequence[int]) -> rig.Found:
            found = rig.Found(rounds=len(numbers))
            for number in numbers:
                for kind, fault in round_of(number, made, Path(name)):
                    found.note(kind, f"--seed {seed} --first {number}: {fault}")
            return found

        first = seed * 1_000_000 + size.first
        return rig.shared_out(share, range(first, first + size.rounds), jobs=size.jobs)


if __name__ == "__main__":
    sys.exit(rig.command("forget", rig.Rounds(), run, broken=BROKEN))

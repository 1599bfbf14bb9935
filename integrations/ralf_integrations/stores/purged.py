"""What two machines have forgotten of one record, and what goes here once a route was forgotten elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import Any

from ralf.project import Project
from ralf.storage import durable
from ralf.storage.filestore import FileStore
from ralf.storage.journal import Entry
from ralf_integrations.stores.files_and_nats import blobs_named

_NAMES = frozenset({"id", "ids", "supersedes", "superseded_by", "refines", "at", "to"})
"""Keys whose value is a label, not a text from which words were taken."""

_OF_A_ROUTE = ("renders", "sessions", "open")
"""Folders of the cache with a file or folder for each route, whose words they may hold."""


def without_both(
    theirs: Entry, ours: Entry | None, seal: Callable[[bytes], bytes], *, part: str, number: str | None
) -> bytes | None:
    """A record of the servers without what either side has forgotten of it, sealed; None where it is that already.

    theirs, ours  the record as the servers and as this machine have it, without seals
    part, number  the keys of what a record says, and of its place (`following.Following`)
    """
    if ours is None or ours.record == theirs.record or ours.foreign or theirs.foreign:
        return None
    here, there = json.loads(ours.record), json.loads(theirs.record)
    flags = [[name for name in ("purged", "outdated") if tree.get(name) is True] for tree in (here, there)]
    if not set(flags[0]) - set(flags[1]) and "purged" not in flags[0]:
        return None
    made = {**there, **dict.fromkeys([name for names in flags for name in names], True)}
    if "purged" in flags[0]:
        is_ours = "purged" not in flags[1]  # and theirs says all that it said
        if is_ours and number is None:
            made[part] = _named(here[part], there[part])
        elif is_ours and here.get(number) == there.get(number):
            made[part] = here[part]
        else:
            made[part] = _common(there[part], here[part])
        if "lineage" in here:
            made.setdefault("lineage", here["lineage"])
    record = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return None if record == theirs.record else seal(record)


def _named(one: Any, other: Any, key: str = "") -> Any:
    """A tree with the labels of another one, which is the same but for these, and for words that were taken out."""
    if key in _NAMES:
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _named(inner, other.get(name, inner), name) for name, inner in one.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_named(*pair) for pair in zip(one, other, strict=True)]
    return one if type(one) is not list else _common(other, one)


def _common(one: Any, other: Any, key: str = "") -> Any:
    """What two trees have in common that were one before words were taken out of each."""
    if one == other or key in _NAMES:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _common(inner, other[name], name) for name, inner in one.items() if name in other}
    if isinstance(one, list) and isinstance(other, list):
        if len(one) == len(other):
            return [_common(*pair) for pair in zip(one, other, strict=True)]
        texts = [[json.dumps(item, sort_keys=True) for item in items] for items in (one, other)]
        return [one[place] for place in _places(*texts)]
    if isinstance(one, str) and isinstance(other, str):
        words = [re.findall(r"\s+|\S+", text) for text in (one, other)]
        return "".join(words[0][place] for place in _places(*words))
    return one if type(one) is not type(other) else other


def _places(one: list[str], other: list[str]) -> Iterable[int]:
    """The places in `one` of what both have, in order."""
    for found in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        yield from range(found.a, found.a + found.size)


def clear(project: Project, local: FileStore, route: str, replaced: Iterable[Entry], named: set[str]) -> None:
    """Remove what may hold the words that were taken out of a route's records: what its file displaced, its caches, the
    search index, and blobs that the records named as they were.

    named  the blobs that records name now
    """
    durable.sweep(project.route_file(route), grace=0)
    for entry in replaced:
        render = json.loads(entry.record).get("render")
        for digest in {*blobs_named(entry.record), *([render] if render else [])} - named:
            local.drop_blob(digest)
    found = [*project.cache.glob("search*")]
    for name in _OF_A_ROUTE:
        for path in (project.cache / name).glob("*"):
            if path.name == route or path.name.partition(".json")[0] == route:
                found += [one for one in (path, *path.rglob("*")) if one.is_file()]
    durable.removed(found)

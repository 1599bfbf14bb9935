"""What changed in a route between two moments of its history: in words, and as data."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from ralf import journal, merge, project as projects, route as heart, routing, state as states
from ralf.cap import is_bare
from ralf.context import RouteContext
from ralf.model import Decision
from ralf.past import history
from ralf.past.changes import Told, in_words
from ralf.project import Project
from ralf.tree import Tree, from_tree, to_tree

NOW = "now"
"""What a route comes to at present."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one moment of a route to another.

    before, after  the two, as they are named: `cp-002`, `r12`, `now`; `from_revision`, `to_revision`: theirs
    words          what a person reads
    changes        what makes the second tree of the first: `merge.apply(tree(before), changes) == tree(after)`
    """

    route: str
    before: str
    after: str
    from_revision: int
    to_revision: int
    words: tuple[Told, ...]
    changes: tuple[merge.Change, ...]


def diff(
    route: str, before: str | None = None, after: str | None = None, *, root: str | os.PathLike[str] | None = None
) -> Difference:
    """What changed in a route from one moment to another.

    before  a checkpoint or revision, as for `history.context_at`; None: the checkpoint before the newest
    after   the same, or `now`, which is None, too: what the route comes to, edits that wait in its file included

    Raises RouteNotFound, NotFound (no such checkpoint or revision), UsageError (a refused name), Damaged.
    """
    project = projects.find(root)
    found = routing.existing(project, route)
    if before is None:
        labels = [entry.checkpoint_id for entry in at_present(project, found).checkpoint_history]
        before = labels[-2] if len(labels) > 1 else "r0"
    before, after = (history.label(moment or NOW) for moment in (before, after))
    contexts = history.contexts_at(project, found, {before, after} - {NOW})
    one, other = (at_present(project, found) if moment == NOW else contexts[moment] for moment in (before, after))
    return between(project, found, (before, one), (after, other))


def between(
    project: Project, route: str, before: tuple[str, RouteContext], after: tuple[str, RouteContext]
) -> Difference:
    """What changed from one context to another, each with the name of its moment.

    In words, a decision that the cap has moved out of one of them, or whose details it has, stands as in the journal.
    """
    (one_name, one), (other_name, other) = before, after
    told_one, told_other = one, other
    if one.folded != other.folded:
        told_one, told_other = _whole(project, route, one, other), _whole(project, route, other, one)
    return Difference(
        route=route,
        before=one_name,
        after=other_name,
        from_revision=one.revision,
        to_revision=other.revision,
        words=in_words(told_one, told_other),
        changes=tuple(merge.diff(to_tree(one), to_tree(other))),
    )


def at_present(project: Project, route: str) -> RouteContext:
    """What a route comes to, edits that wait in its file included, and nothing that is foreign."""
    state = states.load(project, route)
    if state is None:
        return heart.empty(route)
    return state.recorded if state.status == "foreign" or state.context.wholly_foreign else state.context


def _whole(project: Project, route: str, context: RouteContext, other: RouteContext) -> RouteContext:
    """A context with the decisions and details that the cap has taken from it and that `other` has."""
    theirs = {item.id for item in other.decisions if not is_bare(item)}
    mine = {item.id: item for item in context.decisions}
    trees: dict[str, Tree] = {name: {} for name in theirs if name not in mine or is_bare(mine[name])}
    for _, record in journal.read(project.store, route) if trees else ():
        if record.revision > context.revision:
            break
        trees = {name: history.decision_after(tree, name, record) for name, tree in trees.items()}
    told = {name: from_tree(Decision, tree) for name, tree in trees.items() if tree}
    kept = tuple(told.pop(item.id, item) for item in context.decisions)
    return replace(context, decisions=(*told.values(), *kept))

"""Joins the facts of a route with those of a newer stretch: each once, what came last at the end, the lists bounded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from ralf.extraction import commands, recurring
from ralf.extraction.filetools import in_order
from ralf.model import CommandFact, CommitFact, ErrorFact, Facts, PathFact, RequestFact, TestFact

LONG_PASSED = 140
"""Characters from which a command that passed is kept in brief."""

_PASSED = 5  # commands that passed and never failed which a route keeps
_TESTS = 5  # newest test results that a route keeps

_Fact = TypeVar("_Fact", PathFact, CommandFact, ErrorFact, CommitFact, TestFact, RequestFact)


def combine(before: Facts, new: Facts) -> Facts:
    """A route's facts with those of a newer stretch: each once, what came last at the end.

    A command that only looked around counts once it has failed: it is what not to try again. When
    something came last is left to the journal: the order tells enough.
    """
    ran = {same_command(command) for command in before.commands}
    telling = [c for c in new.commands if c.failures or same_command(c) in ran or not commands.only_looks(c.command)]
    return replace(
        before,
        paths=_joined(before.paths, new.paths, lambda f: f.path, lambda a, b: replace(b, did=in_order(a.did + b.did))),
        commands=_newest_passed(_joined(before.commands, telling, same_command, again)),
        errors=_joined(before.errors, new.errors, lambda f: (f.error, f.command)),
        commits=_joined(before.commits, new.commits, lambda f: f.commit),
        tests=_joined(before.tests, new.tests, lambda f: f.command)[-_TESTS:],
        requests=_joined(before.requests, new.requests, lambda f: (f.request, f.omitted)),
        names=recurring.combined(before.names, new.names),
        extra={**before.extra, **new.extra},
    )


def _joined(
    before: Sequence[_Fact],
    new: Sequence[_Fact],
    key: Callable[[_Fact], object],
    merge: Callable[[_Fact, _Fact], _Fact] = lambda _, b: b,
) -> tuple[_Fact, ...]:
    found = {key(fact): fact for fact in before}
    for fact in new:
        old = found.pop(key(fact), None)
        fact = replace(fact, last="")
        merged = fact if old is None else merge(old, fact)
        if old is not None and old.extra:
            merged = replace(merged, extra={**old.extra, **merged.extra})
        found[key(fact)] = merged
    return tuple(found.values())


def _newest_passed(commands: Sequence[CommandFact]) -> tuple[CommandFact, ...]:
    passed = [command for command in commands if not command.failures]
    gone = set(map(id, passed[:-_PASSED]))
    return tuple(command for command in commands if id(command) not in gone)


def same_command(fact: CommandFact) -> tuple[str, str, int]:
    """What tells a command from others, also when one of two is kept longer than the other."""
    if not fact.omitted and len(fact.command) <= LONG_PASSED:
        return fact.command, "", 0
    length = len(fact.command) + (fact.omitted - len(" … ") if fact.omitted else 0)
    return fact.command[:70], fact.command[-20:], length


def again(old: CommandFact, new: CommandFact) -> CommandFact:
    """One fact of a command that ran before and again."""
    longer = old if old.failures and len(old.command) > len(new.command) else new
    return replace(
        new,
        command=longer.command,
        omitted=longer.omitted,
        runs=old.runs + new.runs,
        failures=old.failures + new.failures,
    )

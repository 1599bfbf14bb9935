"""Frozen dataclasses made quickly behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from typing import Any

import pytest

from ralf.text import frozen

pytestmark = pytest.mark.ci  # of what is to go


def pair(made_by: Any) -> Any:
    @made_by.dataclass(frozen=True, slots=True)
    class Pair:
        """Two things."""

        first: int
        second: tuple[str, ...] = ()
        others: dict[str, int] = made_by.field(default_factory=dict, compare=False, repr=False)

    return Pair


Ours, Theirs = pair(frozen), pair(dataclasses)


def behaviour(cls: Any) -> list[object]:
    """What can be seen of a class and its values."""
    value, other = cls(1, ("a",), {"b": 2}), cls(1, second=("a",))
    return [
        repr(value), value == other, hash(value) == hash(other), value == cls(2), value == 1, value != other,
        value.others, cls(3).others is cls(3).others, dataclasses.asdict(value), cls.__match_args__, cls.__slots__,
        dataclasses.replace(value, first=5), [each.name for each in dataclasses.fields(cls)], cls.__doc__,
        list(inspect.signature(cls).parameters), cls.__init__.__annotations__, hasattr(value, "__dict__"),
        dataclasses.is_dataclass(cls), copy.copy(value) == value, copy.deepcopy(value).others,
    ]  # fmt: skip


def test_a_class_made_quickly_behaves_as_one_of_the_standard_library() -> None:
    assert list(map(str, behaviour(Ours))) == list(map(str, behaviour(Theirs)))

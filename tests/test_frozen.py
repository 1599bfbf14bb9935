"""Frozen dataclasses made quickly behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
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


class One:
    """One field."""

    only: float = 0.0


class Empty:
    """No field."""


Ours, Theirs = pair(frozen), pair(dataclasses)
BOTH = pytest.mark.parametrize("made", [Ours, Theirs])


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


@BOTH
def test_its_values_cannot_be_changed(made: Any) -> None:
    value = made(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        value.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'first'"):
        del value.first
    with pytest.raises(TypeError):
        made()
    with pytest.raises(TypeError):
        made(1, (), {}, 4)


def test_one_field_and_none_compare_by_it() -> None:
    one: Any = frozen.dataclass(frozen=True, slots=True)(One)
    none: Any = frozen.dataclass(frozen=True, slots=True)(Empty)
    nan = float("nan")
    assert one(nan) == one(nan)
    assert one(1.0) != one(2.0)
    assert none() == none()
    assert hash(none()) == hash(none())
    assert repr(none()).endswith("Empty()")


def test_without_eq_each_value_is_only_itself() -> None:
    single: Any = frozen.dataclass(frozen=True, slots=True, eq=False)(One)
    assert single() != single()
    assert len({single(), single()}) == 2


def test_values_survive_pickling() -> None:
    from ralf.model import PathFact

    fact = PathFact("a.py", did={"read": 2})
    assert pickle.loads(pickle.dumps(fact)) == fact  # noqa: S301 - its own


def named(base: Any) -> Any:
    class Span(base.NamedTuple):
        """A part."""

        start: int
        end: int = 0

        @property
        def size(self) -> int:
            return self.end - self.start

    return Span


def test_a_named_tuple_is_one_of_the_standard_library() -> None:
    ours, theirs = named(frozen), named(typing)
    for made in (ours, theirs):
        value = made(2, end=5)
        assert (value, value.size, value._replace(end=3), made(1)) == ((2, 5), 3, (2, 3), (1, 0))
    seen = ("__doc__", "__name__", "__qualname__", "__module__", "_fields", "_field_defaults", "__match_args__")
    assert [getattr(ours, name) for name in seen] == [getattr(theirs, name) for name in seen]
    assert repr(ours(1)) == repr(theirs(1))

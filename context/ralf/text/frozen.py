"""Makes frozen dataclasses with slots in a fraction of the standard library's time: that saves a start 25 ms of CPU.

`dataclasses` compiles six methods for each class. Here one is compiled, `__init__`, when a class gets its first value;
all classes share the others.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TypeVar

TYPE_CHECKING = False

T = TypeVar("T")

R = TypeVar("R")

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
    from typing import Any, NoReturn
else:

    def dataclass(*, frozen: bool, slots: bool, eq: bool = True) -> Callable[[type], Any]:
        """`dataclasses.dataclass` of a class that is frozen and has slots: `fields`, `replace` and pickles work."""
        if not (frozen and slots):
            raise TypeError("only for frozen classes with slots")
        return lambda cls: _frozen(cls, eq)


_ALWAYS = ("__repr__", "__setattr__", "__delattr__", "__reduce__")


def _frozen(cls: type, eq: bool) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard library makes one of the signature, which is slow
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__init__ = _compiled_at_first(made)
    if eq:  # the class itself, too: of one name alone `attrgetter` gives no tuple
        made._values = attrgetter("__class__", *(field.name for field in fields(made) if field.compare))
    for name in _ALWAYS + (("__eq__", "__hash__") if eq else ()):
        if made.__dict__.get(name) is None:  # as __hash__ is where a class has only its own __eq__
            setattr(made, name, vars(_Shared)[name])
    return made


def _compiled_at_first(made: Any) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        made.__init__ = init = _init(made)
        init(self, *args, **named)

    return __init__


def _init(made: Any) -> Callable[..., None]:
    known: dict[str, Any] = {"MISSING": MISSING}
    parameters, statements = ["self"], list[str]()
    for field in fields(made):
        name = value = field.name
        known[f"set_{name}"] = getattr(made, name).__set__  # of the slot
        if field.default_factory is not MISSING:
            known[f"make_{name}"] = field.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}"
        known[f"default_{name}"] = field.default
        optional = field.default is not MISSING or field.default_factory is not MISSING
        parameters.append(f"{name}=default_{name}" if optional else name)
        statements.append(f" set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        statements.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(statements or [" pass"]), known)  # noqa: S102 - of names of fields alone
    init: Callable[..., None] = known["__init__"]
    init.__module__, init.__qualname__ = made.__module__, f"{made.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields(made)} | {"return": None}
    return init


class _Shared:
    """The methods of every class."""

    def __eq__(self: Any, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(self._values(self) == self._values(other))

    def __hash__(self: Any) -> int:
        return hash(self._values(self))

    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return self.__class__, tuple(getattr(self, field.name) for field in fields(self))


_MOST_KNOWN = 2_000


def by_identity(make: Callable[[T], R]) -> Callable[[T], R]:
    """A function of frozen objects that keeps what it has made of the last ones: most are the same at each write."""
    known: dict[int, tuple[T, R]] = {}

    def made(item: T) -> R:
        found = known.get(id(item))
        if found is None or found[0] is not item:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[id(item)] = item, make(item)
        return found[1]

    return made

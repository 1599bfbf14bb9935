"""Frozen dataclasses, made without `dataclasses`: a start that does not load it takes a fifth less of the processor.

The standard library loads `inspect`, and compiles six methods for each class. Here one is compiled, `__init__`, when a
class gets its first value; all classes share the others. `fields` and `replace` are for these classes alone. What the
standard library knows of a dataclass, for `asdict` or `is_dataclass`, is made when it is first asked for.

And named tuples, as those of `typing`, which compiles each annotation: a first `compile` takes a start 2 ms.
"""

from __future__ import annotations

from collections import namedtuple
from operator import attrgetter
from reprlib import recursive_repr
from typing import TypeVar

TYPE_CHECKING = False

T = TypeVar("T")

R = TypeVar("R")

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import (
        MISSING as MISSING,
        dataclass as dataclass,
        field as field,
        fields as fields,
        replace as replace,
    )
    from typing import Any, NamedTuple as NamedTuple, NoReturn
else:
    MISSING = object()

    class _Named(type):
        def __new__(cls, name: str, _: tuple[type, ...], namespace: dict[str, Any]) -> type:
            own = namespace["__annotations__"]
            defaults = [namespace[one] for one in own if one in namespace]
            made = namedtuple(name, own, defaults=defaults, module=namespace["__module__"])
            for key in namespace.keys() - own.keys() - {"__module__", "__classcell__"}:
                setattr(made, key, namespace[key])
            return made

    NamedTuple = type.__new__(_Named, "NamedTuple", (), {})

    def dataclass(*, frozen: bool, slots: bool = False, eq: bool = True) -> Callable[[type], Any]:
        """`dataclasses.dataclass` of a class that is frozen; pickles of it work."""
        if not frozen:
            raise TypeError("only for frozen classes")
        return lambda cls: _frozen(cls, slots, eq)

    def field(**given: Any) -> _Field:
        """`dataclasses.field`; of its arguments `default`, `default_factory`, `compare`, `repr`, `metadata`."""
        return _Field(**given)

    def fields(of: Any) -> tuple[_Field, ...]:
        """`dataclasses.fields` of a class that was made here, or of its value."""
        return of._frozen_fields

    def replace(value: Any, /, **changes: Any) -> Any:
        """`dataclasses.replace` of a value of such a class."""
        for name in value.__match_args__:
            if name not in changes:
                changes[name] = getattr(value, name)
        return value.__class__(**changes)


def is_frozen(value: object) -> bool:
    """Whether a value is one of a class that was made here."""
    return hasattr(value, "_frozen_fields")


class _Field:
    """What a class says of a field; `name` and `type` as they stand there."""

    __slots__ = ("compare", "default", "default_factory", "metadata", "name", "repr", "type")

    name: str
    type: str

    def __init__(
        self,
        default: Any = MISSING,
        default_factory: Any = MISSING,
        compare: bool = True,
        repr: bool = True,  # noqa: A002
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.compare, self.repr, self.metadata = compare, repr, metadata or {}

    def given(self) -> dict[str, Any]:
        """What `field` was given, as `dataclasses.field` takes it."""
        given = {name: getattr(self, name) for name in self.__slots__ if name not in ("name", "type")}
        return {name: value for name, value in given.items() if value is not MISSING}


_ALWAYS = ("__repr__", "__setattr__", "__delattr__", "__reduce__", "__replace__")


def _frozen(cls: type, slots: bool, eq: bool) -> Any:
    inherited: tuple[_Field, ...] = getattr(cls, "_frozen_fields", ())
    own = {name: type_ for name, type_ in cls.__annotations__.items() if not type_.startswith("ClassVar")}
    namespace = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    found = {one.name: one for one in inherited}
    for name, type_ in own.items():
        default = namespace.pop(name, MISSING)
        if type(default).__module__ == "dataclasses":
            raise TypeError(f"{cls.__name__}.{name}: made with another `field` than the one here")
        found[name] = one = default if isinstance(default, _Field) else _Field(default)
        one.name, one.type = name, type_
        if one.default is not MISSING and not slots:
            namespace[name] = one.default
    if slots:
        namespace["__slots__"] = tuple(own.keys() - {one.name for one in inherited}) if inherited else tuple(own)
    namespace |= {"_frozen_fields": tuple(found.values()), "__match_args__": tuple(found)}
    namespace |= {"__doc__": cls.__doc__ or cls.__name__, "__qualname__": cls.__qualname__}
    if eq:  # the class itself, too: of one name alone `attrgetter` gives no tuple
        namespace["_values"] = attrgetter("__class__", *(one.name for one in found.values() if one.compare))
    for name in _ALWAYS + (("__eq__", "__hash__") if eq else ()):
        if namespace.get(name) is None:  # as __hash__ is where a class has only its own __eq__
            namespace[name] = vars(_Shared)[name]
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        namespace[name] = _OfTheStandardLibrary(name)
    made: Any = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _compiled_at_first(made)
    return made


def _compiled_at_first(made: Any) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        made.__init__ = init = _init(made)
        init(self, *args, **named)

    return __init__


def _init(made: Any) -> Callable[..., None]:
    known: dict[str, Any] = {"MISSING": MISSING, "set": object.__setattr__}
    parameters, statements = ["self"], list[str]()
    for one in made._frozen_fields:
        name = value = one.name
        if one.default_factory is not MISSING:
            known[f"make_{name}"] = one.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}"
        known[f"default_{name}"] = one.default
        optional = one.default is not MISSING or one.default_factory is not MISSING
        parameters.append(f"{name}=default_{name}" if optional else name)
        if hasattr(getattr(made, name, None), "__set__"):  # a slot, which is set faster by itself
            known[f"set_{name}"] = getattr(made, name).__set__
            statements.append(f" set_{name}(self, {value})")
        else:
            statements.append(f" set(self, {name!r}, {value})")
    if hasattr(made, "__post_init__"):
        statements.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(statements or [" pass"]), known)  # noqa: S102 - of names of fields alone
    init: Callable[..., None] = known["__init__"]
    init.__module__, init.__qualname__ = made.__module__, f"{made.__qualname__}.__init__"
    init.__annotations__ = {one.name: one.type for one in made._frozen_fields} | {"return": None}
    return init


class _OfTheStandardLibrary:
    """What `dataclasses` keeps in a class that it has made, taken from a twin that it makes when it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _: object, owner: Any) -> Any:
        import dataclasses

        its = [(one.name, one.type, dataclasses.field(**one.given())) for one in owner._frozen_fields]
        twin = dataclasses.make_dataclass(owner.__name__, its, init=False, repr=False, eq=False, frozen=True)
        setattr(owner, self._name, found := getattr(twin, self._name))
        return found


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
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in self._frozen_fields if one.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return self.__class__, tuple(getattr(self, name) for name in self.__match_args__)

    def __replace__(self: T, /, **changes: Any) -> T:
        return replace(self, **changes)  # type: ignore[type-var]


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

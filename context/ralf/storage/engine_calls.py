"""Calls of a store whose records lie with an engine: who waits where it is away, and what they are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ralf.errors import Fenced

_waits: ContextVar[bool] = ContextVar("waits", default=False)


def waits_for_engine() -> bool:
    """Whether who calls a store waits for an engine that is away for as long as a call may take: they are to record
    what only the engine can. Others are told at once.
    """
    return _waits.get()


@contextmanager
def fenced(where: str, *, waits: bool = True) -> Iterator[None]:
    """Fenced for a step or for tasks, with what to do about it, for what a block raises about the engine.

    waits  see `waits_for_engine`
    """
    before = _waits.set(waits)
    try:
        yield
    except Fenced as error:
        if error.where == where:
            raise
        what = f"nothing can be recorded: the engine that says who may write does not answer: {error}"
        hint = "try again when it does; whoever claims it then continues. To look at the engine: ralf doctor"
        raise Fenced(where, what, hint, lost=error.lost) from None
    finally:
        _waits.reset(before)

"""Whether a person types this command: at a terminal, and in no shell of an agent. Everybody else is an agent."""

from __future__ import annotations

import os
import sys

from ralf import environment
from ralf.errors import UsageError


def is_person() -> bool:
    """Whether a person has typed this command: what it prints reaches a terminal, and neither a client nor a loop has
    started it.

    A program that an agent starts inherits its stdin, but reads what it prints: that is no terminal's.
    """
    return _is_at_terminal() and not environment.is_agent()


def author() -> str:
    """Who writes what this command records: `user` for a person, else `agent`."""
    return "user" if is_person() else "agent"


def check_person(where: object, what: str, command: str, *, answers: bool = False) -> None:
    """UsageError unless a person has typed this command: no agent may do what it does.

    where    the path or name that it is about
    what     what is not done now, such as "nothing was accepted"
    command  what a person types to have it done
    answers  whether they are asked something: their keyboard answers then, not a program
    """
    if not is_person() or (answers and not sys.stdin.isatty()):
        raise _refusal(where, what, command)


def check_no_agent(where: object, what: str, command: str) -> None:
    """UsageError in the shell of an agent; a script of a person may do it. Arguments: `check_person`."""
    if environment.is_agent():
        raise _refusal(where, what, command)


def _refusal(where: object, what: str, command: str) -> UsageError:
    variable = environment.agent()
    because = f"an agent runs this (${variable} is set)" if variable else "no person is at a terminal here"
    return UsageError(where, f"{what}: {because}", f"type it yourself, in a terminal of your own: {command}")


def _is_at_terminal() -> bool:
    """Whether what is printed reaches the terminal that this process runs in the foreground of: to write to another's
    terminal makes nobody a person.
    """
    streams = (sys.__stdout__, sys.__stderr__)
    try:
        return all(stream is not None and os.tcgetpgrp(stream.fileno()) == os.getpgrp() for stream in streams)
    except (OSError, ValueError):
        return False

"""Whether a person runs this command, at a terminal and not in the shell of an agent. All other callers are agents."""

from __future__ import annotations

import os
import sys

from ralf import environment
from ralf.errors import UsageError


def is_person() -> bool:
    """Whether a person runs this command: its output reaches a terminal, and neither a client nor a loop started it.
    A program that an agent starts inherits its stdin, but the agent reads its output.
    """
    return _is_at_terminal() and not environment.is_agent()


def author() -> str:
    """The author of the records of this command: `user` for a person, else `agent`."""
    return "user" if is_person() else "agent"


def check_person(where: object, what: str, command: str, *, answers: bool = False) -> None:
    """UsageError unless a person runs this command: an agent may not.

    where    the path or name that the error is about
    what     what the command did not do, such as "nothing was accepted"
    command  the command that a person types instead
    answers  whether the command asks questions, which only a keyboard may answer
    """
    if not is_person() or (answers and not sys.stdin.isatty()):
        raise _refusal(where, what, command)


def check_no_agent(where: object, what: str, command: str) -> None:
    """UsageError in the shell of an agent; a person's script is allowed. Arguments: `check_person`."""
    if environment.is_agent():
        raise _refusal(where, what, command)


def _refusal(where: object, what: str, command: str) -> UsageError:
    variable = environment.agent()
    because = f"an agent runs this (${variable} is set)" if variable else "not at a person's terminal"
    return UsageError(where, f"{what}: {because}", f"type it yourself, in a terminal of your own: {command}")


def _is_at_terminal() -> bool:
    """Whether the output reaches the terminal in whose foreground this process runs, and not another's terminal."""
    streams = (sys.__stdout__, sys.__stderr__)
    try:
        return all(stream is not None and os.tcgetpgrp(stream.fileno()) == os.getpgrp() for stream in streams)
    except (OSError, ValueError):
        return False

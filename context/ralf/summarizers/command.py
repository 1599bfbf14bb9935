"""Asks a command line for one answer: the prompt on its standard input, a JSON object out, within a time."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ralf import tokens
from ralf.errors import UsageError
from ralf.files.opening import without_waiting
from ralf.summarizers.presets import PRESETS, Printed, Reply, read_plain

TIMEOUT = 180
MOST_OUTPUT = 4 << 20
"""Bytes that a command may print; one that prints more is stopped."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1  # seconds between two looks at a running command


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call took; `estimated`: the tokens are ours, the tool tells none."""

    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = None
    model: str = ""


class NoAnswer(Exception):
    """A call without an answer that can be used: `reason` in one line, and what it took all the same."""

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.usage = usage or Usage()


class _NotStarted(NoAnswer):
    """There is no such program, or it cannot be run."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that can be asked.

    name       of the preset, or `command`
    argv       its arguments; `{schema}`, `{schema_json}`, `{answer}` and `{model}` stand for what they say
    read       how its output is read
    model      the model to ask for, "" for its own choice
    timeout    seconds
    keeps      variables that it needs beside those that hold no secret: `environment.of_a_summarizer`
    """

    name: str
    argv: tuple[str, ...]
    read: Callable[[Printed], Reply] = read_plain
    model: str = ""
    timeout: float = TIMEOUT
    keeps: tuple[str, ...] = ()

    def ask(self, prompt: str, schema: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[Any, Usage]:
        """The answer, a JSON object that nobody has checked yet, and what it took.

        Runs in an empty temporary folder, in a session of its own, with this environment. NoAnswer when it cannot be
        started, takes too long, prints too much, ends with an error, or prints no JSON object.
        """
        with tempfile.TemporaryDirectory(prefix="ralf-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "empty").mkdir()
            (folder / "prompt").write_text(prompt, encoding="utf-8", errors="replace")
            (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
            try:
                status = self._run(folder, self._filled(folder, schema), environment)
            except _NotStarted:  # and nothing spent
                raise
            except NoAnswer as error:  # what it has read is not known: it is counted as if it had read it all
                error.usage = self._usage(Reply(), prompt, "")
                raise
            printed = Printed(*(_content(folder / part) for part in ("out", "err", "answer")))
        reply = self.read(printed)
        usage = self._usage(reply, prompt, printed.answer or printed.out)
        if reply.tree is None or status:
            said = reply.problem if reply.problem and not reply.problem.endswith("nothing") else ""
            told = said or " ".join(printed.err.split())[-160:] or reply.problem
            raise NoAnswer(f"{self.name}: exit status {status}: {told}" if status else f"{self.name} {told}", usage)
        return reply.tree, usage

    def _filled(self, folder: Path, schema: Mapping[str, Any]) -> list[str]:
        values = {
            "{schema}": str(folder / "schema.json"),
            "{schema_json}": json.dumps(schema, separators=(",", ":")),
            "{answer}": str(folder / "answer"),
            "{model}": self.model,
        }
        return [values.get(part, part) for part in self.argv]

    def _run(self, folder: Path, argv: Sequence[str], environment: Mapping[str, str]) -> int:
        empty = folder / "empty"
        with (
            (folder / "prompt").open("rb") as given,
            (folder / "out").open("wb") as out,
            (folder / "err").open("wb") as err,
        ):
            try:
                child = subprocess.Popen(
                    argv,
                    stdin=given,
                    stdout=out,
                    stderr=err,
                    cwd=empty,
                    env={**environment, "PWD": str(empty)},
                    start_new_session=True,
                    preexec_fn=_ending_with_us(),
                )
            except (OSError, ValueError) as error:
                said = error.strerror if isinstance(error, OSError) else str(error)
                raise _NotStarted(f"{argv[0]}: cannot be started: {said}") from None
            try:
                return self._wait(child, [folder / part for part in ("out", "err", "answer")])
            finally:  # also for Ctrl-C, which a session of its own does not see, and for what it leaves behind
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _wait(self, child: subprocess.Popen[bytes], printed: Sequence[Path]) -> int:
        deadline = time.monotonic() + self.timeout
        pause = _FIRST_PAUSE
        while True:
            with suppress(subprocess.TimeoutExpired):
                return child.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if sum(map(_size, printed)) > MOST_OUTPUT:
                raise NoAnswer(f"{self.name} printed more than {MOST_OUTPUT >> 20} MiB")
            if time.monotonic() > deadline:
                raise NoAnswer(f"{self.name} took longer than {self.timeout:g} s")

    def _usage(self, reply: Reply, prompt: str, answer: str) -> Usage:
        known = reply.input_tokens is not None or reply.output_tokens is not None
        return Usage(
            input_tokens=(reply.input_tokens or 0) if known else tokens.estimate(prompt),
            output_tokens=(reply.output_tokens or 0) if known else tokens.estimate(answer),
            estimated=not known,
            cost_usd=reply.cost_usd,
            model=reply.model or self.model,
        )


def named(
    name: str,
    *,
    model: str = "",
    arguments: Sequence[str] = (),
    timeout: float = TIMEOUT,
    keeps: Sequence[str] = (),
) -> Command:
    """The command of a preset, which keeps these variables beside its own; UsageError for a name that is none."""
    preset = PRESETS.get(name)
    if preset is None:
        raise UsageError(name, f"no such preset; known: {', '.join(PRESETS)}", "docs/summarizers.md")
    return Command(name, preset.command(model, arguments), preset.read, model, timeout, (*preset.keeps, *keeps))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # not made yet, or removed by the command
        return 0


def _content(path: Path) -> str:
    """What the command left there; nothing where it laid something else than a file."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(MOST_OUTPUT).decode("utf-8", "replace") if regular else ""
    except OSError:
        return ""


def _ending_with_us() -> Callable[[], object] | None:
    """Where the kernel can: ends a model with the process that asked it. Killed, that one could not stop it, and it
    would run on without a time-out, at somebody's cost.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl  # looked up before the fork
    return partial(prctl, 1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG

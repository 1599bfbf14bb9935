"""Asks a model: runs the command line of an agent, and reads what it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ralf.errors import UsageError
from ralf.storage.files import open_regular
from ralf.talk.answer import last_object
from ralf.text import tokens
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex

SYSTEM = "You write the memory of a coding agent: what its successor must know. You answer with JSON only."
"""The system prompt, for the tools that take one."""


# ---- what each command line prints ----

_LLM_USAGE = regex(r"Token usage: ([\d,]+) input(?:, ([\d,]+) output)?")


class Printed(NamedTuple):
    """What a command printed, and what it wrote into the file that it was told to answer in."""

    out: str
    err: str
    answer: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One call's answer and price.

    tree           the answer, None for none
    problem        why there is no answer, in the tool's words
    input_tokens   that the model read, as the tool says, cached ones included; None where it says nothing
    output_tokens  that it wrote
    cost_usd       as the tool says, None where it says nothing
    model          that answered, "" where unknown
    is_words       it answered, in words alone
    """

    tree: Any = None
    problem: str = ""
    is_words: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model: str = ""


def read_plain(printed: Printed) -> Reply:
    """The answer of a command that prints it: the last object in its output."""
    return _parsed(printed.answer or printed.out)


def _parsed(text: str) -> Reply:
    tree = last_object(text)
    return Reply(tree) if tree is not None else Reply(problem=_in_words(text), is_words="{" not in text)


def _object_in(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, None where it is none."""
    with suppress(ValueError, RecursionError):
        tree = json.loads(text)
        return tree if isinstance(tree, dict) else None
    return None


def _in_words(text: str) -> str:
    said = one_line(text)[:160]
    return f"answered in words: {said}" if said else "answered nothing"


def _read_claude(printed: Printed) -> Reply:
    found = _parsed(printed.out)
    told = found.tree
    if not isinstance(told, dict) or "type" not in told:
        return Reply(problem=found.problem or "printed no result")
    usage = _mapping(told.get("usage"))
    read = [usage.get(key) for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    reply = Reply(
        input_tokens=sum(n for n in map(_number, read) if n is not None) if usage else None,
        output_tokens=_number(usage.get("output_tokens")),
        cost_usd=_money(told.get("total_cost_usd")),
        model=next(iter(_mapping(told.get("modelUsage"))), ""),
    )
    said = str(told.get("result") or told.get("subtype") or "")
    if told.get("is_error"):
        return replace(reply, problem=f"failed: {one_line(said)[:160]}")
    if not isinstance(told.get("structured_output"), dict):
        return replace(reply, problem=_in_words(said), is_words=bool(said) and "{" not in said)
    return replace(reply, tree=told["structured_output"])


def _read_codex(printed: Printed) -> Reply:
    reply = Reply(problem="printed no result")
    trouble = ""
    for event in filter(None, map(_object_in, printed.out.splitlines())):
        if event.get("type") == "turn.completed":
            usage = _mapping(event.get("usage"))
            reply = replace(
                reply,
                input_tokens=_number(usage.get("input_tokens")),
                output_tokens=_number(usage.get("output_tokens")),
            )
        elif event.get("type") in ("turn.failed", "error"):
            trouble = str(_mapping(event.get("error")).get("message") or event.get("message") or "")
    found = _parsed(printed.answer)
    problem = f"failed: {one_line(trouble)[:160]}" if trouble and found.tree is None else found.problem
    return replace(reply, tree=found.tree, problem=problem, is_words=found.is_words and not trouble)


def _read_llm(printed: Printed) -> Reply:
    usage = _LLM_USAGE.search(printed.err)
    counts = [int(text.replace(",", "")) if text else None for text in usage.groups()] if usage else [None, None]
    return replace(_parsed(printed.out), input_tokens=counts[0], output_tokens=counts[1])


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _money(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


# ---- asking one ----

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

    def with_more(self, more: Usage) -> Usage:
        """What this and another call took."""
        costs = [cost for cost in (self.cost_usd, more.cost_usd) if cost is not None]
        return Usage(
            self.input_tokens + more.input_tokens,
            self.output_tokens + more.output_tokens,
            self.estimated or more.estimated,
            sum(costs) if costs else None,
            more.model or self.model,
        )


class NoAnswer(Exception):
    """A call without an answer that can be used: `reason` in one line, and what it took all the same.

    is_unreadable  it ended well and printed something, but no JSON object; `is_refusal`: nothing like one
    """

    def __init__(
        self, reason: str, usage: Usage | None = None, *, is_unreadable: bool = False, is_refusal: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.usage = usage or Usage()
        self.is_unreadable = is_unreadable
        self.is_refusal = is_refusal


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
        try:
            status, printed = self.run(prompt, environment, schema)
        except _NotStarted:  # and nothing spent
            raise
        except NoAnswer as error:  # what it has read is not known: it is counted as if it had read it all
            error.usage = self._usage(Reply(), prompt, "")
            raise
        reply = self.read(printed)
        usage = self._usage(reply, prompt, printed.answer or printed.out)
        if reply.tree is None or status:
            said = reply.problem if reply.problem and not reply.problem.endswith("nothing") else ""
            told = said or " ".join(printed.err.split())[-160:] or reply.problem
            if status:
                raise NoAnswer(f"{self.name}: exit status {status}: {told}", usage)
            has_failed = reply.problem.startswith("failed:")
            is_refusal = reply.is_words and not has_failed and not reply.problem.endswith("nothing")
            raise NoAnswer(f"{self.name} {told}", usage, is_unreadable=not has_failed, is_refusal=is_refusal)
        return reply.tree, usage

    def run(
        self, given: str, environment: Mapping[str, str], schema: Mapping[str, Any] | None = None
    ) -> tuple[int, Printed]:
        """The exit status, and what it printed with a text on its standard input, as `ask` runs it.

        NoAnswer when it cannot be started, takes too long or prints too much.
        """
        with tempfile.TemporaryDirectory(prefix="ralf-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            (folder / "empty").mkdir()
            (folder / "prompt").write_text(given, encoding="utf-8", errors="replace")
            (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
            status = self._run(folder, self._filled(folder, schema or {}), environment)
            return status, Printed(*(_content(folder / part) for part in ("out", "err", "answer")))

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
                    preexec_fn=ending_with_us(),
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


PRESETS: Mapping[str, Command] = {
    "claude": Command(
        "claude",
        argv=(
            *("claude", "-p", "--output-format", "json", "--json-schema", "{schema_json}"),
            *("--tools", "", "--strict-mcp-config", "--disable-slash-commands"),
            *("--no-session-persistence", "--setting-sources", "", "--system-prompt", SYSTEM, "{options}"),
        ),
        read=_read_claude,
        keeps=(
            *("ANTHROPIC_*", "CLAUDE_*", "AWS_* if CLAUDE_CODE_USE_BEDROCK", "AZURE_* if CLAUDE_CODE_USE_FOUNDRY"),
            *(f"{cloud}_* if CLAUDE_CODE_USE_VERTEX" for cloud in ("GOOGLE", "GCLOUD", "CLOUDSDK", "VERTEX")),
        ),
    ),
    "codex": Command(
        "codex",
        argv=(
            *("codex", "exec", "--json", "--output-schema", "{schema}", "-o", "{answer}", "--ephemeral"),
            # The user's configuration would start their servers and give the model their tools.
            *("--skip-git-repo-check", "--ignore-user-config", "--ignore-rules", "--sandbox", "read-only"),
            *("-c", "features.hooks=false", "-c", "features.shell_tool=false", "-c", "features.view_image=false"),
            *("-c", "features.apps=false", "-c", "features.plugins=false", "-c", "features.goals=false"),
            *("-c", "features.multi_agent=false", "-c", "features.multi_agent_v2=false", "-c", "agents.enabled=false"),
            *("-c", "skills.include_instructions=false", "-c", 'web_search="disabled"', "{options}", "-"),
        ),
        read=_read_codex,
        keeps=("OPENAI_*", "CODEX_*"),
    ),
    "llm": Command(
        "llm",
        argv=("llm", "prompt", "--schema", "{schema}", "--no-stream", "--no-log", "--usage", "{options}"),
        read=_read_llm,
        keeps=("OPENAI_*", "LLM_*"),
    ),
}
"""`{options}` is where the model and the user's own arguments go."""


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
    options = (*(("--model", "{model}") if model else ()), *arguments)
    argv = tuple(part for given in preset.argv for part in (options if given == "{options}" else (given,)))
    return replace(preset, argv=argv, model=model, timeout=timeout, keeps=(*preset.keeps, *keeps))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # not made yet, or removed by the command
        return 0


def _content(path: Path) -> str:
    """What the command left there; nothing where it laid something else than a file."""
    try:
        with open_regular(path, follow=True) as file:
            return file.read(MOST_OUTPUT).decode("utf-8", "replace")
    except OSError:
        return ""


def ending_with_us() -> Callable[[], object] | None:
    """Where the kernel can: ends a model with the process that asked it. Killed, that one could not stop it, and it
    would run on without a time-out, at somebody's cost.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl  # looked up before the fork
    return partial(prctl, 1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG

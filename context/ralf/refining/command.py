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

from ralf.config.local_config import A_COMMAND, TIMEOUT, LocalConfig
from ralf.errors import UsageError
from ralf.storage.files import open_regular
from ralf.talk.answer import last_object
from ralf.text import tokens
from ralf.text.cleaning import one_line
from ralf.text.patterns import regex

SYSTEM = "You write the memory of a coding agent: what its successor must know. You answer with JSON only."
"""The system prompt, for the tools that take one."""


# ---- what each command line prints ----

_MOST = 1e15  # tokens or dollars

_LLM_USAGE = regex(r"Token usage: (?P<input_tokens>[\d,]+) input(?:, (?P<output_tokens>[\d,]+) output)?")


class Printed(NamedTuple):
    """What a command printed, and what it wrote into the file that it was told to answer in."""

    out: str
    err: str
    answer: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls took; `estimated`: the tokens are ours, the tool tells none. Input tokens include cached ones."""

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


@dataclass(frozen=True, slots=True)
class Reply:
    """One call's answer and price.

    tree       the answer, a JSON object that nobody has checked yet; None for none
    problem    why there is no answer, in one line
    is_words   it answered in words alone
    is_odd     it ended well, without a JSON object: worth another try
    """

    tree: Mapping[str, Any] | None = None
    problem: str = ""
    is_words: bool = False
    is_odd: bool = False
    usage: Usage = Usage()


def _in_text(text: str) -> Reply:
    """The last object in a text, or what the text says instead."""
    tree = last_object(text)
    if tree is not None:
        return Reply(tree, usage=_UNTOLD)
    said = one_line(text)[:160]
    problem = f"answered in words: {said}" if said else "answered nothing"
    return Reply(problem=problem, is_words=bool(said) and "{" not in text, is_odd=True, usage=_UNTOLD)


_UNTOLD = Usage(estimated=True)


_ENDS = ("result", "turn.completed", "turn.failed", "error")
"""Types of the last event of a call: claude prints one object, codex an event a line."""


def read(printed: Printed) -> Reply:
    """The answer in what a command printed, and what the call took as far as the tool says it; a command of one's own
    prints the answer alone.
    """
    events = [last_object(line) or {} for line in printed.out.splitlines()]
    end: Mapping[str, Any] = next((event for event in reversed(events) if event.get("type") in _ENDS), {})
    said = str(end.get("result") or end.get("subtype") or "") if end else printed.out
    answer, reply = end.get("structured_output"), _in_text(printed.answer or said)
    wrong = said if end.get("is_error") else _mapping(end.get("error")).get("message") or end.get("message")
    if wrong and not printed.answer:
        reply = Reply(problem=f"failed: {one_line(str(wrong))[:160]}")
    elif isinstance(answer, dict):
        reply = Reply(answer)
    return replace(reply, usage=_usage(end, printed.err))


_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _usage(end: Mapping[str, Any], err: str) -> Usage:
    """The tokens and the price that a tool tells: with its last event, or on the other stream as llm does."""
    told = dict(_mapping(end.get("usage")))
    if found := _LLM_USAGE.search(err):
        told = {key: int(text.replace(",", "")) for key, text in found.groupdict("0").items()}
    counts = [_number(told.get(key)) for key in (*_READ, "output_tokens")]
    if not any(count is not None for count in counts):
        return _UNTOLD
    *taken, written = (int(count or 0) for count in counts)
    model = next(iter(_mapping(end.get("modelUsage"))), "")
    return Usage(sum(taken), written, cost_usd=_number(end.get("total_cost_usd")), model=model)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float | None:
    """A number that a tool tells, None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    return None


# ---- asking one ----

MOST_OUTPUT = 4 << 20
"""Bytes that a command may print; one that prints more is stopped."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1  # seconds between two looks at a running command


class NoAnswer(Exception):
    """Why there is no answer, in one line.

    has_begun   the command may have read all that it was given
    is_settled  it is not worth asking about the same again
    """

    def __init__(self, reason: str, *, has_begun: bool = True, is_settled: bool = False) -> None:
        super().__init__(reason)
        self.has_begun, self.is_settled = has_begun, is_settled


@dataclass(frozen=True, slots=True)
class Command:
    """A command line that can be asked.

    name       of the preset, or `command`
    argv       its arguments; `{schema}`, `{schema_json}`, `{answer}` and `{model}` stand for what they say
    model      the model to ask for, "" for its own choice
    timeout    seconds
    keeps      variables that it needs beside those that hold no secret: `environment.of_a_summarizer`
    """

    name: str
    argv: tuple[str, ...]
    model: str = ""
    timeout: float = TIMEOUT
    keeps: tuple[str, ...] = ()

    def ask(self, prompt: str, schema: Mapping[str, Any], environment: Mapping[str, str]) -> Reply:
        """The answer, or why there is none: it cannot be started, takes too long, prints too much, ends with an error,
        or prints no JSON object. Runs in an empty temporary folder, in a session of its own, with this environment.
        """
        try:
            status, printed = self.run(prompt, environment, schema)
        except NoAnswer as error:  # what it has read is not known: it is counted as if it had read it all
            reply = Reply(problem=str(error), usage=_UNTOLD if error.has_begun else Usage())
            return self._priced(reply, prompt, "")
        reply = self._priced(read(printed), prompt, printed.answer or printed.out)
        if reply.tree is not None and not status:
            return reply
        said = "" if reply.problem.endswith("nothing") else reply.problem
        told = said or " ".join(printed.err.split())[-160:] or reply.problem
        if status:
            return Reply(problem=f"{self.name}: exit status {status}: {told}", usage=reply.usage)
        return replace(reply, problem=f"{self.name} {told}")

    def _priced(self, reply: Reply, prompt: str, answer: str) -> Reply:
        usage = replace(reply.usage, model=reply.usage.model or self.model)
        if usage.estimated:
            usage = replace(usage, input_tokens=tokens.estimate(prompt), output_tokens=tokens.estimate(answer))
        return replace(reply, usage=usage)

    def run(
        self, given: str, environment: Mapping[str, str], schema: Mapping[str, Any] | None = None
    ) -> tuple[int, Printed]:
        """The exit status, and what it printed with a text on its standard input, as `ask` runs it.

        NoAnswer when it cannot be started, takes too long or prints too much.
        """
        with tempfile.TemporaryDirectory(prefix="ralf-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            empty = folder / "empty"
            empty.mkdir()
            (folder / "prompt").write_text(given, encoding="utf-8", errors="replace")
            (folder / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
            values = {
                "{schema}": str(folder / "schema.json"),
                "{schema_json}": json.dumps(schema, separators=(",", ":")),
                "{answer}": str(folder / "answer"),
                "{model}": self.model,
            }
            printed = [folder / part for part in ("out", "err", "answer")]
            with (folder / "prompt").open("rb") as prompt, printed[0].open("wb") as out, printed[1].open("wb") as err:
                try:
                    child = subprocess.Popen(
                        [values.get(part, part) for part in self.argv],
                        stdin=prompt,
                        stdout=out,
                        stderr=err,
                        cwd=empty,
                        env={**environment, "PWD": str(empty)},
                        start_new_session=True,
                        preexec_fn=ending_with_us(),
                    )
                except (OSError, ValueError) as error:
                    said = error.strerror if isinstance(error, OSError) else str(error)
                    raise NoAnswer(f"{self.argv[0]}: cannot be started: {said}", has_begun=False) from None
                try:
                    status = self._wait(child, printed)
                finally:  # also for Ctrl-C, which a session of its own does not see, and for what it leaves behind
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
            return status, Printed(*map(_content, printed))

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


PRESETS: Mapping[str, Command] = {
    "claude": Command(
        "claude",
        argv=(
            *("claude", "-p", "--output-format", "json", "--json-schema", "{schema_json}"),
            *("--tools", "", "--strict-mcp-config", "--disable-slash-commands"),
            *("--no-session-persistence", "--setting-sources", "", "--system-prompt", SYSTEM, "{options}"),
        ),
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
        keeps=("OPENAI_*", "CODEX_*"),
    ),
    "llm": Command(
        "llm",
        argv=("llm", "prompt", "--schema", "{schema}", "--no-stream", "--no-log", "--usage", "{options}"),
        keeps=("OPENAI_*", "LLM_*"),
    ),
}
"""`{options}` is where the model and the user's own arguments go."""


def command_of(settings: LocalConfig, name: str) -> Command:
    """The command line behind the name of a model, as it is configured; UsageError for a name that is none, and for
    `command` without a command line.
    """
    if name == "command":
        if not settings.command:
            raise UsageError("config.local.yaml", "names no command", f"write into the file: {A_COMMAND}")
        found = Command(name, settings.command)
    elif name in PRESETS:
        found = PRESETS[name]
    else:
        raise UsageError(name, f"no such preset; known: {', '.join(PRESETS)}", "docs/models.md")
    arguments = settings.arguments if name == settings.summarizer else ()
    options = (*(("--model", "{model}") if settings.model else ()), *arguments)
    argv = tuple(part for given in found.argv for part in (options if given == "{options}" else (given,)))
    keeps = (*found.keeps, *settings.environment)
    return replace(found, argv=argv, model=settings.model, timeout=settings.timeout, keeps=keeps)


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

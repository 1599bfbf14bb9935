"""How the agents' own command lines are asked for one answer by a schema, and what they print.

Every flag here is there for a reason: nothing of the user's hooks, servers, skills or instruction files takes part,
the model gets no tool that could do anything, and no transcript is left behind. The login is the user's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ralf.summarizers.prompt import SYSTEM

_OPENS_FENCE, _ENDS_FENCE = re.compile(r"```(?:json)?[ \t]*+\n"), re.compile(r"\n[ \t]*+```")
_LLM_USAGE = re.compile(r"Token usage: ([\d,]+) input(?:, ([\d,]+) output)?")


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
    """

    tree: Any = None
    problem: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """A command line: its arguments, where `{schema}` is a file with the schema, `{schema_json}` the schema itself,
    `{answer}` a file for the answer and `{model}` the model; the arguments that choose a model; what goes last; how its
    output is read; the variables with keys of its own that it needs (`environment.of_a_summarizer`).
    """

    argv: tuple[str, ...]
    for_model: tuple[str, ...]
    last: tuple[str, ...]
    read: Callable[[Printed], Reply]
    keeps: tuple[str, ...]

    def command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """The whole command line, with the user's own arguments behind ours."""
        return (*self.argv, *(self.for_model if model else ()), *arguments, *self.last)


def read_plain(printed: Printed) -> Reply:
    """The answer of a command that prints it, alone, in a code fence, or as the last line."""
    return _parsed(printed.answer or printed.out)


def _parsed(text: str) -> Reply:
    last = text.strip().rsplit("\n", 1)[-1]
    for candidate in (text, *_last_fenced(text), last):
        try:
            tree = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(tree, dict):
            return Reply(tree)
    said = " ".join(text.split())
    return Reply(problem=f"answered in words: {said[:160]}" if said else "answered nothing")


def _last_fenced(text: str) -> list[str]:
    """What stands in the last code fence of a text, [] where there is none."""
    found: list[str] = []
    at = 0
    while opening := _OPENS_FENCE.search(text, at):
        end = _ENDS_FENCE.search(text, opening.end())
        if end is None:
            break
        found, at = [text[opening.end() : end.start()]], end.end()
    return found


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
    said = " ".join(str(told.get("result") or told.get("subtype") or "").split())[:160]
    if told.get("is_error"):
        return replace(reply, problem=f"failed: {said}")
    if not isinstance(told.get("structured_output"), dict):
        return replace(reply, problem=f"answered in words: {said}" if said else "answered nothing")
    return replace(reply, tree=told["structured_output"])


def _read_codex(printed: Printed) -> Reply:
    reply = Reply(problem="printed no result")
    trouble = ""
    for line in printed.out.splitlines():
        try:
            event = _mapping(json.loads(line))
        except (ValueError, RecursionError):
            continue
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
    problem = f"failed: {' '.join(trouble.split())[:160]}" if trouble and found.tree is None else found.problem
    return replace(reply, tree=found.tree, problem=problem)


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


PRESETS: Mapping[str, Preset] = {
    "claude": Preset(
        argv=(
            *("claude", "-p", "--output-format", "json", "--json-schema", "{schema_json}"),
            *("--tools", "", "--strict-mcp-config", "--disable-slash-commands"),
            *("--no-session-persistence", "--setting-sources", "", "--system-prompt", SYSTEM),
        ),
        for_model=("--model", "{model}"),
        last=(),
        read=_read_claude,
        keeps=(
            *("ANTHROPIC_*", "CLAUDE_*", "AWS_* if CLAUDE_CODE_USE_BEDROCK", "AZURE_* if CLAUDE_CODE_USE_FOUNDRY"),
            *(f"{cloud}_* if CLAUDE_CODE_USE_VERTEX" for cloud in ("GOOGLE", "GCLOUD", "CLOUDSDK", "VERTEX")),
        ),
    ),
    "codex": Preset(
        argv=(
            *("codex", "exec", "--json", "--output-schema", "{schema}", "-o", "{answer}", "--ephemeral"),
            # The user's configuration would start their servers and give the model their tools.
            *("--skip-git-repo-check", "--ignore-user-config", "--ignore-rules", "--sandbox", "read-only"),
            *("-c", "features.hooks=false", "-c", "features.shell_tool=false", "-c", "features.view_image=false"),
            *("-c", "features.apps=false", "-c", "features.plugins=false", "-c", "features.goals=false"),
            *("-c", "features.multi_agent=false", "-c", "features.multi_agent_v2=false", "-c", "agents.enabled=false"),
            *("-c", "skills.include_instructions=false", "-c", 'web_search="disabled"'),
        ),
        for_model=("--model", "{model}"),
        last=("-",),
        read=_read_codex,
        keeps=("OPENAI_*", "CODEX_*"),
    ),
    "llm": Preset(
        argv=("llm", "prompt", "--schema", "{schema}", "--no-stream", "--no-log", "--usage"),
        for_model=("--model", "{model}"),
        last=(),
        read=_read_llm,
        keeps=("OPENAI_*", "LLM_*"),
    ),
}

"""The clients that ralf knows: one record each, which every module asks instead of the client's name.

Contracts: Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, opencode 1.18, as the programs themselves keep them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ralf.project import Project
from ralf.storage.files import without_waiting
from ralf.text.frozen import NamedTuple, dataclass
from ralf_integrations import environment

Event = Literal[
    "session-start",
    "prompt",
    "tools-used",
    "before-compaction",
    "after-compaction",
    "task-completed",
    "stopped",
    "session-end",
    "other",
]
"""What has happened, in our words; `other` is anything that we do nothing about."""

_SECONDS = 30
_MOST_HEAD = 256 << 10  # bytes of a rollout's first record
_MOST_OF_ALL = 20_000  # sessions, of all projects, that are looked at where a client keeps them in one place

# Python ends with status 2 where a script is gone, which clients take for "block this": after an uninstall no prompt
# would get through. A module that is gone is status 1, which they only report.
_CODE = "import sys; sys.path.insert(0, sys.argv[1]); import instant; instant.main()"


class Hook(NamedTuple):
    """What one of a client's events is to us."""

    event: Event  # what has happened
    seconds: int = _SECONDS  # how long a hook may take before the client gives up; 0: understood, but not asked for
    context: bool = False  # whether the answer can hand the model a text
    notice: bool = False  # whether the answer can show the person a line
    matcher: str = ""  # which of the event's kinds are asked for, "" for all


OTHER = Hook("other", 0)
"""An event that we do nothing about."""


@dataclass(frozen=True, slots=True)
class Client:
    """What ralf knows of a client."""

    name: str  # as `--client` takes it
    title: str  # as people call it
    program: str
    proven: str  # the version with which ralf was tried
    local: str  # the settings of this checkout alone, from the project's root; or the plugin
    shared: str  # the settings that a repository shares
    hooks: Mapping[str, Hook]  # its events, by its names of them
    then: tuple[str, ...]  # what the person has to do before the hooks run
    module: str = ""  # the JavaScript module in `clients` that is its plugin; "": its settings name the hooks
    takes_argv: bool = False  # its settings take a hook's arguments one by one, and need no shell
    milliseconds: bool = False  # its settings count the time of a hook in milliseconds
    takes_steering: bool = False  # a hook before a compaction can say what the client's own summary is to keep
    marks_injected: bool = False  # it writes what hooks hand over into the prompt itself, between two tags
    reserve: int = (
        0  # tokens at the end of a window before which it compacts by itself; 0: its settings move that place
    )
    summarizer: str = ""  # the model that its login pays for
    sessions: Callable[[Project], Iterable[tuple[float, Path]]] | None = None  # its logs of a project, with their times
    started_in: Callable[[], Path | None] = lambda: None  # which stays while its working directory changes
    process: Callable[[], int] = lambda: 0  # the id of its process, 0 where it does not say
    window: Callable[[], int] = lambda: 0  # tokens of its window where a person has set it, else 0
    compacts_at: Callable[[], int] = lambda: 100  # percent of the window, where it or a person says so
    is_headless: Callable[[Path | None], bool] = lambda _: False  # whether it ends when the agent stops, by its log

    @property
    def installed(self) -> dict[str, Hook]:
        """The events that its settings name."""
        return {event: hook for event, hook in self.hooks.items() if hook.seconds}

    @property
    def tells_compaction(self) -> bool:
        """Whether a hook is told that the window was compacted; else only its log shows it."""
        return any(hook.event == "after-compaction" for hook in self.hooks.values())

    @property
    def has_local(self) -> bool:
        """Whether it reads settings of this checkout alone, beside those that are shared."""
        return self.local != self.shared

    def path(self, root: Path, *, shared: bool) -> Path:
        """Where its hooks are set, for a project."""
        return root / (self.shared if shared else self.local)

    def entries(self, *, shared: bool) -> dict[str, Mapping[str, Any]]:
        """By event, what stands in its settings: the `ralf` of the PATH where they are shared, else this one here."""
        import shlex  # no hook needs it

        found: dict[str, Mapping[str, Any]] = {}
        for event, hook in self.installed.items():
            first, *rest = command = self.command(event, shared=shared)
            is_listed = self.takes_argv and not shared
            words = {"command": first, "args": rest} if is_listed else {"command": shlex.join(command)}
            timeout = hook.seconds * (1000 if self.milliseconds else 1)
            found[event] = {"type": "command", **words, "timeout": timeout}
        return found

    def groups(self, *, shared: bool) -> dict[str, Mapping[str, Any]]:
        """By event, the entry in the group that its settings have around it."""
        return {
            event: {**({"matcher": found} if (found := self.hooks[event].matcher) else {}), "hooks": [entry]}
            for event, entry in self.entries(shared=shared).items()
        }

    def command(self, event: str, *, shared: bool) -> list[str]:
        """The arguments of the process that answers an event: an absolute interpreter and folder where it is local."""
        if shared:
            return ["ralf", "hook", event, "--client", self.name]
        folder = Path(__file__).parent.absolute() / "hooks"
        return [sys.executable, "-I", "-S", "-c", _CODE, str(folder), self.name, event]


def _logs(name: str, **most: int) -> Callable[[Project], Iterable[tuple[float, Path]]]:
    """What finds the session logs that a client keeps of a project: a function of the reader, which no hook loads."""
    return lambda project: getattr(import_module("ralf.transcripts.reader"), name)(project, **most)


def _codex_is_headless(rollout: Path | None) -> bool:
    if rollout is None:
        return False
    try:
        with open(rollout, "rb", opener=without_waiting) as file:
            head = json.loads(file.readline(_MOST_HEAD))["payload"]
        return "exec" in (head.get("source"), str(head.get("originator", "")).removeprefix("codex_"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


CLAUDE_CODE = Client(
    name="claude-code",
    title="Claude Code",
    program="claude",
    proven="2.1.329",
    local=".claude/settings.local.json",  # not committed
    shared=".claude/settings.json",
    hooks={
        "SessionStart": Hook("session-start", context=True, notice=True),
        "UserPromptSubmit": Hook("prompt", context=True, notice=True),
        "PostToolBatch": Hook("tools-used", context=True, notice=True),
        "PostToolUse": Hook("tools-used", 0, context=True, notice=True),
        "PreCompact": Hook("before-compaction", notice=True),
        "PostCompact": Hook("after-compaction", notice=True),
        "SubagentStop": Hook("after-compaction", matcher="^$"),  # the compaction's own agent, which has no type, and
        # tells the summary first
        "Stop": Hook("stopped", notice=True),
        "SessionEnd": Hook("session-end", 5, notice=True),  # its own limit is 1.5: what takes longer is detached
        "TaskCompleted": Hook("task-completed"),
    },
    then=("a session that is open goes on without them: start a new one",),
    takes_argv=True,
    takes_steering=True,
    reserve=33_000,
    summarizer="claude",
    sessions=_logs("logs_of_claude_code"),
    started_in=environment.claude_folder,
    process=partial(environment.number, "CLAUDE_PID"),
    window=partial(environment.number, "CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
    compacts_at=environment.claude_compacts_at,
    is_headless=lambda _: environment.claude_is_headless(),
)

CODEX = Client(
    name="codex",
    title="Codex",
    program="codex",
    proven="0.169.0",
    local=".codex/hooks.json",  # one file for both kinds of settings
    shared=".codex/hooks.json",
    hooks={
        "SessionStart": Hook("session-start", context=True, notice=True),
        "UserPromptSubmit": Hook("prompt", context=True, notice=True),
        "PostToolUse": Hook("tools-used", context=True, notice=True),
        "PreCompact": Hook("before-compaction", notice=True),
        "PostCompact": Hook("after-compaction", notice=True),
        "Stop": Hook("stopped", notice=True),
        "SessionEnd": Hook("session-end", 3),  # it takes no more, and complains of each session
    },
    then=(
        "Codex reads a project's hooks once you trust the project: say so when it asks, or run: codex exec --trust",
        "and runs each once you have looked at it: type /hooks in Codex, and trust those of ralf",
    ),
    summarizer="codex",
    sessions=_logs("logs_of_codex", most=_MOST_OF_ALL),
    is_headless=_codex_is_headless,
)

GEMINI = Client(
    name="gemini",
    title="Gemini CLI",
    program="gemini",
    proven="0.61.0",
    local=".gemini/settings.json",  # one file for both kinds of settings
    shared=".gemini/settings.json",
    hooks={  # its PreCompress comes before every call of the model: no compaction
        "SessionStart": Hook("session-start", context=True, notice=True),
        "BeforeAgent": Hook("prompt", context=True, notice=True),
        "AfterTool": Hook("tools-used", context=True, notice=True),
        "AfterAgent": Hook("stopped", notice=True),
        "SessionEnd": Hook("session-end", 5),
    },
    then=("Gemini CLI reads a project's settings once you trust its folder",),
    milliseconds=True,
    marks_injected=True,
    sessions=_logs("logs_of_gemini"),
    compacts_at=lambda: 50,  # its `compressionThreshold`, unless a person sets another
)

OPENCODE = Client(
    name="opencode",
    title="opencode",
    program="opencode",
    proven="1.18.33",
    local=".opencode/plugin/ralf.js",  # one file for both kinds
    shared=".opencode/plugin/ralf.js",
    hooks={
        "session.created": Hook("session-start", context=True, notice=True),
        "chat.message": Hook("prompt", context=True, notice=True),
        "tool.execute.after": Hook("tools-used", context=True, notice=True),
        "experimental.session.compacting": Hook("before-compaction", notice=True),
        "session.compacted": Hook("after-compaction", notice=True),
        "session.idle": Hook("stopped"),
        "dispose": Hook("session-end"),
    },
    then=("a session that is open goes on without the plugin: start opencode anew",),
    module="opencode.js",
    takes_steering=True,
    sessions=_logs("logs_of_opencode", most=_MOST_OF_ALL),
    process=partial(environment.number, "OPENCODE_PID"),
)

CLIENTS: Mapping[str, Client] = MappingProxyType(
    {client.name: client for client in (CLAUDE_CODE, CODEX, GEMINI, OPENCODE)}
)
"""All of them, by name."""


def packaged_text(name: str) -> str:
    """One of the texts of the plugin, of AGENTS.md and of a loop's prompts."""
    return (Path(__file__).parent / "texts" / name).read_text(encoding="utf-8")

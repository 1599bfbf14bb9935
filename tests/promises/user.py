"""A user of ralf, as the promises see one: a home, a project, the installed command, hooks with real payloads, Python,
git and an editor. Nothing here knows how ralf is built; a new command tree changes `VERBS` and nothing else.
"""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import gemini_records
import rollouts
from kit import command
from kit.claude_log import ClaudeLog
from kit.command import Child, Ran

FIXTURES = Path(__file__).parent / "fixtures"
ROUTES, TASKS = Path(".autonomous/context/routes"), Path(".autonomous/tasks")
MEMORY, JOURNAL = Path(".autonomous/context/memory"), Path(".autonomous/context/journal")

VERBS: dict[str, tuple[str, ...]] = {
    "checkpoint": ("checkpoint",),
    "config": ("config",),
    "decide": ("decide",),
    "doctor": ("doctor",),
    "forget": ("forget",),
    "handover": ("handover",),
    "hook": ("hook",),
    "import": ("import",),
    "init": ("init",),
    "list": ("list",),
    "log": ("log",),
    "loop": ("loop",),
    "mcp": ("mcp",),
    "memory": ("memory",),
    "plan": ("plan",),
    "route": ("route",),
    "run": ("run",),
    "search": ("search",),
    "send": ("send",),
    "show": ("show",),
    "status": ("status",),
    "task": ("task",),
    "trust": ("trust",),
    "undo": ("undo",),
    "verify": ("doctor", "--store"),
}
"""What a user asks for, and how it is typed."""

NOTES = "## My notes"
_PRIMARY = (
    "journal routes memory tasks shared blobs prev archive config.yaml config.local.yaml .gitignore installed".split()
)
"""What of `.autonomous/context` is no cache. `archive` is what earlier versions have instead of compressed journals."""

_DROPPED = (
    *"BB5_ RALF_ BLACKBOX5 GIT_ XDG_ CLAUDE CODEX GEMINI OPENCODE".split(),
    *"AI_AGENT AUGMENT_AGENT CLINE_ACTIVE CURSOR_AGENT QWEN_CODE".split(),
)


class User:
    """Somebody with a home and a project."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project = home, project
        home.mkdir(parents=True, exist_ok=True)
        project.mkdir(parents=True, exist_ok=True)

    @classmethod
    def initialized(cls, folder: Path) -> User:
        """One who has typed `ralf init` in a git repository."""
        found = cls(folder / "home", folder / "project")
        found.git("init", "-q", "-b", "main", ".")
        found.does("init")
        return found

    # ---- the command ----

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of this user's programs: nothing of whoever runs the tests."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
        paths = [str(command.SOURCE / name) for name in ("context", "cli", "integrations", "migrations")]
        return kept | {
            "HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(paths),
            "COLUMNS": "100",
            "TZ": "UTC",
            **more,
        }

    def start(
        self, verb: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, **more: Any
    ) -> Child | subprocess.Popen[bytes]:
        """Start what is typed for a verb and do not wait for it; `more` as for `kit.command.start`."""
        words = [*VERBS[verb], *arguments] if verb else arguments
        return command.start(*words, cwd=cwd or self.project, env=self.environment(**(env or {})), **more)

    def ralf(
        self, verb: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, **more: Any
    ) -> Ran:
        """Type a verb with arguments in the project, into a pipe; `more` as for `kit.command.run`."""
        words = [*VERBS[verb], *arguments] if verb else arguments
        return command.run(*words, cwd=cwd or self.project, env=self.environment(**(env or {})), **more)

    def does(self, verb: str, *arguments: object, **more: Any) -> Ran:
        """`ralf`, which has to succeed."""
        ran = self.ralf(verb, *arguments, **more)
        assert ran.status == 0, (verb, arguments, ran)
        return ran

    def types(
        self, verb: str, *arguments: object, answer: str = "", env: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Type a verb at a terminal, and an answer; the exit status, and what the terminal shows."""
        ours, theirs = pty.openpty()
        child = self.start(
            verb, *arguments, env=env, stdin=theirs, stdout=theirs, stderr=theirs, session=True, terminal=True
        )
        os.close(theirs)
        os.write(ours, answer.encode())
        said = b""
        while select.select([ours], [], [], command.HANGS)[0]:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # how Linux says that no one holds the other end
                break
            if not part:
                break
            said += part
        os.close(ours)
        return child.wait(command.HANGS), said.decode("utf-8", "replace").replace("\r\n", "\n")

    def has_typed(self, verb: str, *arguments: object, answer: str = "") -> str:
        """`types`, which has to succeed; what the terminal shows."""
        status, said = self.types(verb, *arguments, answer=answer)
        assert status == 0, (verb, arguments, said)
        return said

    def python(self, code: str, *arguments: object, **more: Any) -> Ran:
        """Run Python code in the project, which may `import ralf`: the public API."""
        return command.run(*arguments, code=code, cwd=self.project, env=self.environment(**more.pop("env", {})), **more)

    @contextmanager
    def mcp(self) -> Iterator[McpServer]:
        """`ralf mcp`, as a client has started it in the project; it has to end with status 0."""
        child = self.start("mcp", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        server = McpServer(child)
        client = {"name": "a test", "version": "1"}
        server.asks("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        server.tells("notifications/initialized")
        yield server
        child.stdin.close()  # type: ignore[union-attr]
        child.stdout.close()  # type: ignore[union-attr]
        assert child.wait(command.HANGS) == 0

    # ---- tasks ----

    def adds(self, title: str, *options: str) -> str:
        """Add a task; its id."""
        return self.does("task", "add", title, *options).out.split()[0]

    def task(self, id_: str) -> dict[str, Any]:
        """What is said of a task."""
        shown = self.does("task", "show", id_, "--json").json()
        assert isinstance(shown, dict)
        return shown

    def status_of(self, id_: str) -> str:
        """`pending`, `completed`, `failed` or `cancelled`."""
        return str(self.task(id_)["task"]["status"])

    def task_file(self, id_: str) -> Path:
        """The one file of a task."""
        (found,) = (self.project / TASKS).glob(f"*/{id_}.md")
        return found

    # ---- clients ----

    def log_of(self, client: str, session: str) -> Path:
        """Where a client keeps the log of a session of this project."""
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(self.project))
        kept = {
            "claude-code": f".claude/projects/{slug}/{session}.jsonl",
            "codex": f".codex/sessions/2026/03/01/rollout-2026-03-01T08-00-00-{session}.jsonl",
            "gemini": f".gemini/tmp/{slug}/chats/session-2026-03-01T08-00-{session[:8]}.jsonl",
        }
        path = self.home / kept[client]
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def session(self, client: str = "claude-code") -> Session:
        """A new session of a client in this project."""
        return Session(self, client, str(uuid.uuid4()))

    # ---- files ----

    def route_file(self, route: str) -> Path:
        """The file of a route."""
        return self.project / ROUTES / f"{route}.md"

    def edit(self, path: Path, old: str, new: str) -> None:
        """Replace words in a file as an editor does: a new file takes its name."""
        text = path.read_text(encoding="utf-8")
        assert text.count(old) >= 1, f"{old!r} is not in {path}"
        save(path, text.replace(old, new, 1))

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Run git in the project."""
        done = subprocess.run(
            ["git", "-c", "user.name=A User", "-c", "user.email=user@example.org", *words],  # noqa: S607
            cwd=cwd or self.project,
            env=self.environment(GIT_CONFIG_NOSYSTEM="1"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def store_bytes(self) -> Iterator[tuple[Path, bytes]]:
        """Every file below `.autonomous`, with its bytes."""
        for path in sorted((self.project / ".autonomous").rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path, path.read_bytes()

    def files_holding(self, words: str) -> list[Path]:
        """Files of the store, and of the user's own folder of ralf, that hold words: as they are, or compressed."""
        wanted, found = words.encode().lower(), []
        own = sorted((self.home / ".config").rglob("*"))
        pairs = [*self.store_bytes(), *((path, path.read_bytes()) for path in own if path.is_file())]
        for path, data in pairs:
            with suppress(zlib.error):
                data += zlib.decompress(data, 47)  # zlib or gzip
            if wanted in data.lower() or wanted in str(path).lower().encode():
                found.append(path)
        return found

    def lose_derived(self) -> None:
        """Delete all that ralf can make anew: caches, indexes, locks, leftovers."""
        for path in (self.project / ".autonomous/context").iterdir():
            if path.name not in _PRIMARY:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def has_decided(self, route: str, *texts: str) -> None:
        """Record decisions with the API: one process for all."""
        done = self.python(
            "import ralf, sys\nfor text in sys.argv[2:]: ralf.record_decision(sys.argv[1], text)", route, *texts
        )
        assert done.status == 0, done

    def decisions(self, route: str) -> list[str]:
        """The texts of the active decisions of a route, as any program reads them."""
        return self.decisions_of(self.does("show", route, "--json"))

    @staticmethod
    def decisions_of(shown: Ran) -> list[str]:
        """The texts of the active decisions in what `show --json` printed."""
        found = shown.json()["decisions"]
        return [decision["decision"] for decision in found if decision.get("status", "active") == "active"]

    def write_note(self, route: str, text: str) -> None:
        """Write a line below a heading of one's own, at the end of a route file, with an editor."""
        path = self.route_file(route)
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
        if NOTES in lines:
            lines[lines.index(NOTES) + 1 : lines.index(NOTES) + 1] = ["", text]
        else:
            place = max(number for number, line in enumerate(lines) if line == "---" or number == len(lines) - 3)
            lines[place:place] = [NOTES, "", text, ""]
        save(path, "\n".join(lines) + "\n")


class McpServer:
    """A server of the Model Context Protocol that answers on its standard output."""

    def __init__(self, child: Any) -> None:
        self._child, self._number = child, 0

    def tells(self, method: str, **more: Any) -> None:
        """Send a notification, or with an `id` a request."""
        self._child.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **more}).encode() + b"\n")
        self._child.stdin.flush()

    def asks(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request, and return its result."""
        self._number += 1
        self.tells(method, id=self._number, params=params)
        while True:
            line = self._child.stdout.readline()
            assert line, "the server has ended"
            answer = json.loads(line)
            if answer.get("id") == self._number:
                return dict(answer["result"])

    def tools(self) -> list[str]:
        """The names of its tools."""
        return [tool["name"] for tool in self.asks("tools/list")["tools"]]

    def calls(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return what it answers."""
        return self.asks("tools/call", name=tool, arguments=arguments)


class Session(ClaudeLog):
    """A session of a client: its log grows, and the client calls the hooks that `ralf init` installed."""

    def __init__(self, user: User, client: str, session: str) -> None:
        super().__init__(user.log_of(client, session), session, user.project)
        self.user, self.client = user, client

    def hook(
        self,
        event: str,
        *,
        env: Mapping[str, str] | None = None,
        settle: bool = True,
        killed: bool = False,
        **fields: Any,
    ) -> dict[str, Any]:
        """The client calls the hook of an event; what it answers, {} for nothing. It must end with status 0.

        settle  wait for what the hook has started in the background
        killed  the client's process is gone as soon as the hook has answered
        """
        payload = {"session_id": self.id, "transcript_path": str(self.log), "cwd": str(self.user.project)}
        payload |= {"hook_event_name": event, **fields}
        variables = {"CLAUDE_CODE_ENTRYPOINT": "cli"} if self.client == "claude-code" else {}
        words = ("hook", event, "--client", self.client)
        more: dict[str, Any] = {"stdin": json.dumps(payload), "env": variables | dict(env or {})}
        if killed:
            ran = self.user.python(_OF_A_CLIENT, *VERBS["hook"], *words[1:], **more)
        else:
            ran = self.user.ralf(*words, **more)
        assert ran.status == 0, ran
        if settle:
            command.settle()
        if event == "PreCompact" and not ran.out.startswith("{"):
            return {"printed": ran.out} if ran.out else {}  # added to what the client asks its model for
        answer = json.loads(ran.out) if ran.out.strip() else {}
        assert isinstance(answer, dict)
        return answer

    def handed(self, event: str, **fields: Any) -> str:
        """What the hook of an event hands the model."""
        return str(self.hook(event, **fields).get("hookSpecificOutput", {}).get("additionalContext", ""))

    def starts(self, prompt: str, **more: Any) -> str:
        """The session starts, and the person asks for something; what the two hooks hand the model."""
        handed = self.handed("SessionStart", source="startup", **more)
        return handed + self.handed(
            "BeforeAgent" if self.client == "gemini" else "UserPromptSubmit", prompt=prompt, **more
        )

    def begins(self, prompt: str, **more: Any) -> str:
        """`starts`, and the client writes the prompt into its log."""
        handed = self.starts(prompt, **more)
        if self.client == "codex":
            self.add(rollouts.meta(str(self.user.project), self.id), *rollouts.typed(prompt))
        elif self.client == "gemini":
            self.add(gemini_records.META | {"sessionId": self.id}, gemini_records.asked(prompt))
        else:
            self.says(prompt)
        return handed

    @property
    def route(self) -> str:
        """The route of this session, as its agent's shell is told."""
        name = {"claude-code": "CLAUDE_CODE_SESSION_ID", "codex": "CODEX_THREAD_ID"}[self.client]
        return str(self.user.does("route", "--json", env={name: self.id}).json()["route"])


_OF_A_CLIENT = """
import os, runpy, sys
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
runpy.run_module("ralf_cli", run_name="__main__", alter_sys=True)
"""
"""A client that calls the command, and ends with it."""


def save(path: Path, text: str) -> None:
    """Save a file as editors do: a new file takes its name."""
    made = path.with_name(f".{path.name}.swp")
    made.write_text(text, encoding="utf-8")
    made.replace(path)


def captured(name: str, user: User) -> list[dict[str, Any]]:
    """Payloads of hooks as a real client sent them to this user, in order: `fixtures/NAME.json`."""
    text = (FIXTURES / f"{name}.json").read_text(encoding="utf-8")
    client = {"claude": "claude-code"}.get(name.partition("_")[0], name.partition("_")[0])
    places = {"LOGS": user.log_of(client, "session").parent, "HOME": user.home, "PROJECT": user.project}
    for place, path in places.items():
        text = text.replace(f"${place}", str(path))
    found = json.loads(text)
    assert isinstance(found, list)
    return found

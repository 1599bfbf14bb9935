"""A person who was handed a hostile repository: their home, their clients' hooks, the commands that they type, and all
that they and their agent are told.

`tests.faults.judged` says what of it is a fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests import storekit
from tests.faults import planted

from kit.command import Ran, converse, run

OWN = "vjk"
"""How each word begins that the person and their agent say themselves."""

OWN_WORDS = ("vjktable", "vjkrule", "vjkchoice", "vjknext")
_SETTLES = 30.0  # seconds

Kind = Literal["hook", "notice", "text", "json", "mcp", "error"]


@dataclass(frozen=True)
class Told:
    """Something that the person or their agent was told, and by what."""

    kind: Kind
    by: str
    text: str


@dataclass
class Victim:
    """The person, and the project that they were handed."""

    folder: Path
    told: list[Told] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    sessions: int = 0
    shares: bool = False

    def __post_init__(self) -> None:
        """Make the home."""
        self.home = self.folder / "home"
        self.project = self.folder / "project"
        self.marker = self.folder / "ran" / "marker"
        self.secret = self.folder / "outside" / "secret.md"
        (self.home / ".config").mkdir(parents=True)
        self.marker.parent.mkdir(mode=0o777)
        self.marker.parent.chmod(0o777)
        words = planted.records_of_a_session(self.folder, "0" * 8, "oyw")
        planted.write(self.secret, f"oywsecret: the merger is signed on Friday.\n{words}", 0o644)
        self._secret = self.secret.read_bytes()
        os.utime(self.secret, (1_000_000, self.secret.stat().st_mtime))

    @property
    def runs(self) -> str:
        """A command of the attacker's that leaves a mark when it runs."""
        return f"touch {self.marker}"

    @property
    def environment(self) -> dict[str, str]:
        """What the person's processes know."""
        known = storekit.environment(self.home, XDG_CONFIG_HOME=str(self.home / ".config"), COLUMNS="2000")
        known = {name: value for name, value in known.items() if not name.startswith(("CODEX", "GEMINI"))}
        return known | {"CODEX_HOME": str(self.home / ".codex"), **self.variables}

    # ---- what they type ----

    def ralf(self, *arguments: object, cwd: Path | None = None, **variables: str) -> Ran:
        """Run a command in the project."""
        words = [str(each) for each in arguments]
        ran = run(*words, cwd=cwd or self.project, env=self.environment | variables)
        name = " ".join(words)
        out: Kind = "json" if "--json" in words else "text"
        self.told += [Told(out, name, ran.out), Told("error", name, ran.err)]
        if "Traceback" in ran.err:
            self.faults.append(f"`ralf {name}` broke: {ran.err[-300:]}")
        return ran

    def rules(self, route: str, text: str) -> None:
        """Type a rule of their own, at a terminal: from anything else it would be their agent's."""
        words = ("decide", route, text, "--rule", "--origin", "user")
        storekit.on_a_terminal(self.project, *words, **self.environment)

    def opts_in(self, *more: str, cwd: Path | None = None) -> Ran:
        """`ralf init --yes`."""
        return self.ralf("init", "--yes", *more, cwd=cwd)

    def reads(self, *routes: str, cwd: Path | None = None) -> None:
        """Ask for everything that a store has: each command that shows it, as text and as JSON, and MCP."""
        for form in ([], ["--json"]):
            self.ralf("list", *form, cwd=cwd)
            self.ralf("search", "release command", "-k", "40", *form, cwd=cwd)
            for route in routes:
                self.ralf("show", route, *form, cwd=cwd)
                self.ralf("log", route, *form, cwd=cwd)
                self.ralf("show", route, "DEC-001", *form, cwd=cwd)
        for route in routes:
            self.ralf("show", route, "--brief", cwd=cwd)
            self.ralf("show", route, "--max-tokens", "300", cwd=cwd)
        self.asks_mcp(*routes, cwd=cwd)

    def asks_mcp(self, *routes: str, cwd: Path | None = None, calls: Sequence[tuple[str, Any]] = ()) -> list[Any]:
        """Have the agent ask ralf's MCP server, started in the project."""
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("tools/call", {"name": "list_routes", "arguments": {}}),
            ("tools/call", {"name": "search", "arguments": {"query": "release command", "limit": 20}}),
            *(("tools/call", {"name": "get_context", "arguments": {"route": route}}) for route in routes),
            *(("resources/read", {"uri": f"ralf://route/{route}"}) for route in routes),
            ("prompts/get", {"name": "resume", "arguments": {}}),
            *(("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls),
        ]
        place = cwd or self.project
        env = self.environment | {"CLAUDE_PROJECT_DIR": str(place)}
        answers = converse(wanted, cwd=place, env=env)
        for (method, parameters), answer in zip(wanted, answers, strict=False):
            self.told.append(Told("mcp", f"mcp {method} {json.dumps(parameters)}", json.dumps(answer)))
        return answers

    def git(self, *arguments: str, fails: bool = False) -> str:
        """Run git in the project."""
        return planted.git(self.project, *arguments, env=self.environment, fails=fails)

    # ---- what their client does ----

    def session(self, words: str | None = None, *, cwd: Path | None = None, codex: bool = False) -> tuple[str, Path]:
        """A new session of the client, and its log in the client's own folder; of WORDS, where it has worked."""
        self.sessions += 1
        name = f"{self.sessions:08d}-aaaa-4000-8000-{len(self.folder.name):012d}"
        folder = self.home / (".codex/sessions/2026/03/01" if codex else ".claude/projects/-project")
        log = folder / (f"rollout-2026-03-01T08-00-00-{name}.jsonl" if codex else f"{name}.jsonl")
        text = planted.records_of_a_session(cwd or self.project, name, words) if words else ""
        planted.write(log, text)
        return name, log

    def hook(
        self,
        event: str,
        session: tuple[str, Path],
        *,
        client: str = "claude-code",
        cwd: Path | None = None,
        command: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        **more: object,
    ) -> str:
        """Have the client call ralf's hook, by `ralf hook` or by the command that its settings name; what it said."""
        place = cwd or self.project
        payload = {"session_id": session[0], "transcript_path": str(session[1]), "cwd": str(place)}
        data = json.dumps({**payload, "hook_event_name": event, **more})
        known = self.environment | {"CLAUDE_PROJECT_DIR": str(place), "CLAUDE_CODE_ENTRYPOINT": "cli"}
        if client != "claude-code":
            known = {name: value for name, value in known.items() if not name.startswith("CLAUDE")}
        known |= variables or {}
        by = f"hook {event} {' '.join(f'{key}={value}' for key, value in more.items())}"
        if command:
            done = subprocess.run(command, input=data.encode(), cwd=place, env=known, capture_output=True, check=False)
            ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        else:
            ran = run("hook", event, "--client", client, cwd=place, env=known, stdin=data)
        if ran.status:
            self.faults.append(f"{by} ended with {ran.status}: {ran.err[-300:]}")
        self._heard(by, ran.out, ran.err)
        return ran.out

    def _heard(self, by: str, out: str, err: str) -> None:
        notice = ""
        if out.startswith("{"):
            tree = json.loads(out)
            notice = str(tree.pop("systemMessage", ""))
            out = json.dumps(tree, ensure_ascii=False)
        self.told += [Told("hook", by, out), Told("notice", by, notice), Told("error", by, err)]

    def looks_in(self, *routes: str, cwd: Path | None = None, **more: Any) -> None:
        """A short session in the project: it starts, the person wants to go on, it is compacted."""
        new = self.session(cwd=cwd)
        for route in ("", *routes):
            known = {**more, "cwd": cwd, "variables": {**(more.get("variables") or {}), "BB5_ROUTE": route}}
            self.hook("SessionStart", new, source="startup", **known)
            self.hook("UserPromptSubmit", new, prompt=f"resume {route}".strip(), **known)
            self.hook("PreCompact", new, trigger="auto", custom_instructions="", **known)
        self.hook("SessionEnd", new, reason="other", cwd=cwd)

    def lives(self, *routes: str, cwd: Path | None = None, **more: Any) -> None:
        """A session in the project, through every event of Claude Code; the person asks for each of the routes, too."""
        new = self.session(cwd=cwd)

        def hook(event: str, **tree: object) -> None:
            self.hook(event, new, cwd=cwd, **more, **tree)

        for source in ("startup", "resume", "clear"):
            hook("SessionStart", source=source)
        for prompt in ("Please look at the build of this project.", "continue", "weiter", "--load-context go on"):
            hook("UserPromptSubmit", prompt=prompt)
        for route in routes:
            hook("UserPromptSubmit", prompt=f"resume {route}")
            hook("UserPromptSubmit", prompt=f"--load-context {route}")
        usage = {"input_tokens": 10, "cache_read_input_tokens": 190_000, "output_tokens": 10}
        message = {"role": "assistant", "model": "m", "id": "x", "usage": usage}
        record = {"type": "assistant", "sessionId": new[0], "cwd": str(cwd or self.project)}
        content = [{"type": "text", "text": "Looking."}]
        record |= {"timestamp": "2026-03-01T09:00:00Z", "message": message | {"content": content}}
        with new[1].open("a") as file:
            file.write(json.dumps(record) + "\n")
        hook("PostToolBatch")
        hook("PreCompact", trigger="auto", custom_instructions="")
        hook("SubagentStop", agent_type="", last_assistant_message="<summary>nothing</summary>")
        hook("PostCompact", trigger="auto", compact_summary="nothing")
        hook("SessionStart", source="compact")
        hook("TaskCompleted", task_id="1", task_subject="x")
        hook("Stop", stop_hook_active=False)
        hook("SessionEnd", reason="other")
        other = self.session(cwd=cwd)
        for route in routes:
            named = {"BB5_ROUTE": route, **(more.get("variables") or {})}
            rest = {key: value for key, value in more.items() if key != "variables"}
            self.hook("SessionStart", other, cwd=cwd, source="startup", variables=named, **rest)
            self.hook("PreCompact", other, cwd=cwd, trigger="auto", variables=named, **rest)
        hook_other = {key: value for key, value in more.items() if key != "variables"}
        self.hook("SessionEnd", other, cwd=cwd, reason="other", **hook_other)

    def lives_in(self, client: str, events: Mapping[str, dict[str, object]]) -> None:
        """A session of another client."""
        new = self.session(codex=client == "codex")
        for event, tree in events.items():
            self.hook(event, new, client=client, **tree)

    def works(self, *, cwd: Path | None = None, **variables: str) -> str:
        """The person has a session work, and starts another one that goes on: what hooks handed to that one."""
        first = self.session(OWN, cwd=cwd)
        known: dict[str, Any] = {"cwd": cwd, "variables": variables}
        self.hook("SessionStart", first, source="startup", **known)
        self.hook("UserPromptSubmit", first, prompt=f"Please carry the {OWN}table release over.", **known)
        self.hook("PreCompact", first, trigger="auto", custom_instructions="", **known)
        self.settles()
        self.hook("SessionEnd", first, reason="other", **known)
        self.settles()
        second = self.session(cwd=cwd)
        heard = self.hook("SessionStart", second, source="startup", **known)
        heard += self.hook("UserPromptSubmit", second, prompt="continue", **known)
        for route in [variables["BB5_ROUTE"]] if "BB5_ROUTE" in variables else self._own_routes(cwd):
            heard += self.hook("UserPromptSubmit", second, prompt=f"--load-context {route}", **known)
        return heard

    def _own_routes(self, cwd: Path | None) -> list[str]:
        """The routes that are named after the person's own request, or that the environment names."""
        listed = self.ralf("list", "--json", cwd=cwd).out
        rows = json.loads(listed) if listed.startswith("[") else []
        named = {value for name, value in self.variables.items() if name in ("BB5_ROUTE", "RALF_TASK_ID")}
        return [row["route"] for row in rows if OWN in row["route"]] + sorted(named)

    def settles(self) -> None:
        """Wait for what hooks have started behind the client's back."""
        end = time.monotonic() + _SETTLES
        while any(os.fsencode(self.folder) in words for words in _command_lines()):
            if time.monotonic() > end:
                self.faults.append("what a hook started did not end")
                return
            time.sleep(0.01)

    # ---- what became of things outside ----

    def secret_was_touched(self) -> str:
        """What was done to the file outside; "" for nothing."""
        status = self.secret.stat()
        if status.st_atime > 2_000_000:
            return "was read"
        if self.secret.read_bytes() != self._secret:
            return "was written"
        return ""


def hook_commands(victim: Victim) -> dict[str, list[str]]:
    """What the project's settings have the client run for each event."""
    settings = json.loads((victim.project / ".claude/settings.local.json").read_text())
    entries = {event: found[0]["hooks"][0] for event, found in settings["hooks"].items()}
    return {event: [entry["command"], *entry["args"]] for event, entry in entries.items()}


def _command_lines() -> list[bytes]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and folder.name != str(os.getpid()):
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            found.append(words)
    return found

"""The real clients in the kit's closed namespace, with ralf installed for them as a person installs it.

RALF_TEST_CLIENTS names the folder that holds their `node_modules`; the kit that builds the namespace stands beside the
checkout. Without them the tests are skipped, and say so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import storekit
from ralf.storage import registry

CLIENTS = os.environ.get("RALF_TEST_CLIENTS", "")
KIT = storekit.SOURCE.parent / "shared" / "clients"
INSIDE = Path("/tmp/run/proj")
CLAUDE = "claude --output-format json --dangerously-skip-permissions --model claude-sonnet-4-5"
CODEX = (
    "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --dangerously-bypass-hook-trust"
)
GEMINI = "gemini --yolo --model gemini-2.5-pro"
OPENCODE = "opencode run"
_LONGEST = 600  # seconds: it stops what hangs, also on a machine that has much else to do
_PACKAGES = {"gemini": "@google/gemini-cli", "opencode": "opencode-linux-x64"}


def why_not(client: str = "") -> str:
    """Why the clients cannot run here, "" where they can; of those that not everybody has installed, one by name."""
    if not CLIENTS or not (Path(CLIENTS) / "node_modules").is_dir():
        return "RALF_TEST_CLIENTS names no folder with the clients' node_modules"
    if client in _PACKAGES and not (Path(CLIENTS) / "node_modules" / _PACKAGES[client]).is_dir():
        return f"RALF_TEST_CLIENTS has no {_PACKAGES[client]}"
    if client == "gemini" and shutil.which("node") is None:
        return "Gemini CLI needs node"
    if not (KIT / "ns.sh").exists():
        return f"the kit is not at {KIT}"
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return "unshare and ip are needed"
    return ""


def plain(folder: Path, path: Path) -> Path:
    """A path without blanks, at which the kit would part it: a link to the one given."""
    link = folder / f"link-to-{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    return link


def installed(folder: Path) -> Path:
    """An environment that holds this tree's packages, as a wheel would put them there; inside it is `/tmp/venv`."""
    venv.create(folder, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    for root, name in (
        ("context", "ralf"),
        ("cli", "ralf_cli"),
        ("integrations", "ralf_integrations"),
        ("migrations", "ralf_migrations"),
    ):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(storekit.SOURCE / root / name, packages / name, ignore=ignored)
    (packages / "needed.pth").write_text("/tmp/needed\n")
    command = folder / "bin" / "ralf"
    command.write_text("#!/tmp/venv/bin/python\nfrom ralf_cli.main import run\n\nrun()\n")
    command.chmod(0o755)
    return folder


@dataclass
class Ran:
    """How commands in the namespace ended."""

    out: str
    err: str
    status: int


def typed(command: str) -> str:
    """A command as a person types it, at a terminal: from anything else it would be their agent's."""
    return f"script -qec {shlex.quote(command)} /dev/null"


class World:
    """A project and a home in the namespace, which stay from one run to the next; the model answers by a script.

    folder  outside; `/tmp/run` inside
    """

    def __init__(self, folder: Path, environment: Path) -> None:
        self.folder = folder
        self.project = folder / "proj"
        self.home = folder / "home"
        self._environment = environment
        self.project.mkdir(parents=True)
        (self.home / ".claude").mkdir(parents=True)
        (self.home / ".codex").mkdir()
        (self.home / ".gemini").mkdir()
        (self.home / ".gemini/settings.json").write_text(json.dumps(_GEMINI_SETTINGS))
        (self.home / ".config/opencode").mkdir(parents=True)
        (self.home / ".config/opencode/opencode.json").write_text(json.dumps(_OPENCODE_CONFIG))

    def run(
        self,
        commands: str,
        script: Mapping[str, Any] | None = None,
        *,
        model: str = "anthropic",
        env: Sequence[str] = (),
        toml: str = "",
    ) -> Ran:
        """Run shell commands beside a scripted model; the clients and `ralf` are on their PATH.

        model  whose interface it speaks: anthropic, openai, or scripted, that of Gemini and of chat completions
        env    K=V for the commands
        toml   lines at the top of Codex's configuration
        """
        (self.folder / "script.json").write_text(json.dumps(script or {"main": []}))
        (self.folder / "commands.sh").write_text(commands)
        (self.folder / "inside.sh").write_text(_inside(model, env))
        (self.folder / "codex.toml").write_text(_codex(toml))
        needed, own = Path(sysconfig.get_paths()["purelib"]), Path(__file__).parent
        self._carry_registrations(inwards=True)
        done = subprocess.run(
            [str(KIT / "ns.sh"), str(self.folder), "sh", "/tmp/run/inside.sh"],
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                "CLIENTS": CLIENTS,
                "KIT_BIND": " ".join(
                    f"{plain(self.folder, path)}:{name}"
                    for path, name in ((self._environment, "venv"), (needed, "needed"), (own, "own"))
                ),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
        self._carry_registrations(inwards=False)
        return Ran(done.stdout, done.stderr, done.returncode)

    def _carry_registrations(self, *, inwards: bool) -> None:
        """Register each project at its other path, too: it has one inside and one outside, and one user."""
        outside, inside = Path(os.path.realpath(self.folder)), INSIDE.parent
        before, after = (outside, inside) if inwards else (inside, outside)
        with pytest.MonkeyPatch.context() as environment:
            if not inwards:
                environment.setenv("XDG_CONFIG_HOME", str(self.home / ".config"))
            found = [each for each in registry.everyone() if Path(each.path).is_relative_to(before)]
        with pytest.MonkeyPatch.context() as environment:
            if inwards:
                environment.setenv("XDG_CONFIG_HOME", str(self.home / ".config"))
            for each in found:
                changes = {name: value for name, value in each.tree().items() if name != "path"}
                registry.update(after / Path(each.path).relative_to(before), **changes)

    def requests(self) -> list[dict[str, Any]]:
        """What the model was sent, in order, over all runs."""
        log = self.folder / "requests.jsonl"
        found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [request for request in found if request["method"] == "POST"]

    def asked(self, kind: str = "main") -> list[str]:
        """The texts of all messages in each request of an agent at work (`main`) or for a summary (`compact`)."""
        return ["\n".join(_texts(request["body"])) for request in self.requests() if request["kind"] == kind]

    def transcripts(self) -> list[Path]:
        """The clients' session logs, oldest first."""
        places = (
            *(".claude/projects/*/*.jsonl", ".codex/sessions/*/*/*/*.jsonl"),
            *(".gemini/tmp/*/chats/*.jsonl", ".local/share/opencode/ralf/*.jsonl"),
        )
        found = [path for place in places for path in self.home.glob(place)]
        return sorted(found, key=lambda path: path.stat().st_mtime)

    def outside(self, path: str) -> Path:
        """Where a path of the namespace lies outside of it."""
        return self.folder / Path(path).relative_to("/tmp/run")


def waited(condition: Any, seconds: float = 20) -> bool:
    """Whether a condition comes to hold within some time."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(holds)


def bash(command: str, *, text: str = "", filled: int = 15_000) -> dict[str, Any]:
    """A step of Claude's script: say something, and run a command.

    filled  tokens that the client's window then holds
    """
    return tool("Bash", {"command": command, "description": "run it"}, text=text, filled=filled)


def tool(name: str, given: Mapping[str, Any], *, text: str = "", filled: int = 15_000) -> dict[str, Any]:
    """A step of Claude's script: say something, and call a tool."""
    return {"text": text, "tool": {"name": name, "input": given}, "usage": _usage(filled)}


def call(command: str, *, text: str = "", filled: int = 15_000) -> dict[str, Any]:
    """A step of Codex's script: say something, and run a command."""
    usage = {"input_tokens": filled - 50, "cached": filled - 200, "output_tokens": 50}
    return {"text": text, "call": {"name": "exec_command", "arguments": {"cmd": command}}, "usage": usage}


def said(text: str, *, filled: int = 15_000) -> dict[str, Any]:
    """A step of Claude's script that ends a turn."""
    return {"text": text, "usage": _usage(filled)}


def _usage(filled: int) -> dict[str, int]:
    return {"input_tokens": 10, "cache_read_input_tokens": filled - 60, "output_tokens": 50}


def _texts(tree: Any) -> list[str]:
    """Every text in a request's messages, as it is: not as JSON writes it."""
    if isinstance(tree, str):
        return [tree]
    if isinstance(tree, Mapping):
        return [text for key, value in tree.items() if key != "tools" for text in _texts(value)]
    return [text for value in tree for text in _texts(value)] if isinstance(tree, list) else []


def _inside(model: str, env: Sequence[str]) -> str:
    settings = " ".join(f"'{pair}'" for pair in env)
    server = "/tmp/own" if model == "scripted" else "/tmp/kit/model"
    return f"""
mkdir -p /tmp/run/bin
ln -sf /tmp/clients/node_modules/@anthropic-ai/claude-code/bin/claude.exe /tmp/run/bin/claude
ln -sf "$(ls /tmp/clients/node_modules/@openai/codex-linux-*/vendor/*/bin/codex | head -1)" /tmp/run/bin/codex
ln -sf /tmp/clients/node_modules/@google/gemini-cli/bundle/gemini.js /tmp/run/bin/gemini
ln -sf /tmp/clients/node_modules/opencode-linux-x64/bin/opencode /tmp/run/bin/opencode
rm -f /tmp/run/port
/tmp/venv/bin/python -u {server}/{model}_model.py --port-file /tmp/run/port --log /tmp/run/requests.jsonl \\
    --script /tmp/run/script.json 2>/tmp/run/server.err &
server=$!
i=0; while [ ! -s /tmp/run/port ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
port=$(cat /tmp/run/port)
sed "s/PORT/$port/" /tmp/run/codex.toml >/tmp/run/home/.codex/config.toml
env -i PATH=/tmp/run/bin:/tmp/venv/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp/run/home LANG=C.UTF-8 TMPDIR=/tmp \\
    TERM=dumb \\
    CLAUDE_CONFIG_DIR=/tmp/run/home/.claude CODEX_HOME=/tmp/run/home/.codex SCRIPTED_KEY=dummy IS_SANDBOX=1 \\
    ANTHROPIC_BASE_URL=http://127.0.0.1:$port ANTHROPIC_API_KEY=dummy-not-a-key DISABLE_AUTOUPDATER=1 \\
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 \\
    GEMINI_API_KEY=dummy-not-a-key GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:$port \\
    GEMINI_CLI_TRUST_WORKSPACE=true GEMINI_CLI_NO_RELAUNCH=true \\
    SCRIPTED_URL=http://127.0.0.1:$port/v1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 \\
    OPENCODE_DISABLE_LSP_DOWNLOAD=1 npm_config_fetch_retries=0 {settings} \\
    timeout {_LONGEST - 20} sh /tmp/run/commands.sh
status=$?
kill $server
exit $status
"""


_GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
}

_OPENCODE_CONFIG = {
    "autoupdate": False,
    "share": "disabled",
    "permission": {"external_directory": "allow"},
    "model": "scripted/scripted",
    "small_model": "scripted/scripted",
    "provider": {
        "scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{env:SCRIPTED_URL}", "apiKey": "dummy-not-a-key"},
            "models": {"scripted": {"limit": {"context": 200_000, "output": 8_000}}},
        }
    },
}


def _codex(toml: str) -> str:
    return f"""model = "gpt-5.2-codex"
model_provider = "scripted"
check_for_update_on_startup = false
{toml}
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:PORT/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0
[projects."{INSIDE}"]
trust_level = "trusted"
[analytics]
enabled = false
[otel]
exporter = "none"
"""

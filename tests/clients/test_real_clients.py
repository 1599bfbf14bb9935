"""The real `claude` and `codex` programs as summarisers, against scripted models, in a namespace with no way out.

RALF_TEST_CLIENTS names the folder that holds their `node_modules`; the kit that builds the namespace stands beside the
checkout. Without them these tests are skipped, and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from offline import CLIENTS, KIT, plain, why_not

import ralf
import storekit

ROUTE = "tide"

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

WORDS = (
    "The deploy script breaks on the spare host. Find out why, and keep the old columns in the tide table.",
    "The lock file on NFS let two hosts migrate at once; the advisory lock of the database does not. The advisory lock"
    " it is, in `deploy/lock.py`.",
    "The retry count is 7 now, and `deployRunner` waits 250 ms between two tries.",
)
"""What is said in the session, a message a line of the transcript: the user's request, then the agent."""

GOOD: dict[str, Any] = {
    "now": "The retry count is 7, `deployRunner` waits 250 ms.",
    "why": "Find out why the deploy script breaks on the spare host.",
    **{name: [] for name in ("next", "open", "done", "facts", "avoid", "lasting", "ended")},
    "decisions": [
        {
            "text": "Use the advisory lock of the database in `deploy/lock.py`",
            "words": "",
            "line": 2,
            "reason": "the lock file on NFS let two hosts migrate at once",
            "rejected": ["lock file: let two hosts migrate at once"],
        }
    ],
}
LYING: dict[str, Any] = {**GOOD, "done": ["The script is in `deploy/forged.py`."]}


def _session(path: Path, *, long: bool = False) -> None:
    lines = []
    more = [f"Row {number} of the tide table keeps its old columns, as it was asked." for number in range(300)]
    for number, text in enumerate([*WORDS, "\n".join(more)] if long else WORDS):
        kind = "assistant" if number else "user"
        message = {"role": kind, "content": text if kind == "user" else [{"type": "text", "text": text}]}
        record = {"type": kind, "sessionId": "s-1", "uuid": f"u-{number}", "cwd": "/srv/tide", "message": message}
        lines.append(json.dumps({**record, "timestamp": f"2026-03-01T08:00:{number:02d}.000Z"}))
    path.write_text("\n".join(lines) + "\n")


@dataclass
class Ran:
    """One run in the namespace: its folder, what was printed, how it ended."""

    folder: Path
    out: str
    err: str
    status: int

    def __post_init__(self) -> None:
        self.project = self.folder / "proj"

    def requests(self) -> list[dict[str, Any]]:
        """What the model was sent."""
        log = self.folder / "requests.jsonl"
        found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [request["body"] for request in found if request["method"] == "POST"]

    def entry(self) -> dict[str, Any]:
        """The checkpoint's entry in the route file."""
        (entry,) = ralf.get_context(ROUTE, root=self.project).checkpoints
        return {
            name: getattr(entry, name) for name in ("summarizer", "refines", "unrefined", "spent_tokens", "cost_usd")
        }


def _inside(client: str) -> str:
    """What runs in the namespace: the scripted model, then the command. Without a script the model is silent, with an
    empty one it is gone.
    """
    server = "anthropic_model" if client == "claude" else "openai_model"
    silent = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
    silent += "open('/tmp/run/port', 'w').write(str(s.getsockname()[1])); time.sleep(600)"
    tree = ":".join(f"/tmp/repo/{name}" for name in ("context", "cli", "integrations", "migrations"))
    return f"""
mkdir -p /tmp/run/bin /tmp/run/hooks
ln -sf /tmp/clients/node_modules/@anthropic-ai/claude-code/bin/claude.exe /tmp/run/bin/claude
ln -sf "$(ls /tmp/clients/node_modules/@openai/codex-linux-*/vendor/*/bin/codex | head -1)" /tmp/run/bin/codex
rm -f /tmp/run/port
if [ "$(cat /tmp/run/script.json)" = null ]; then
    python3 -c "{silent}" &
elif [ "$(cat /tmp/run/script.json)" = '{{}}' ]; then
    echo 9 >/tmp/run/port
    sleep 600 &
else
    python3 -u /tmp/kit/model/{server}.py --port-file /tmp/run/port --log /tmp/run/requests.jsonl \\
        --script /tmp/run/script.json 2>/tmp/run/server.err &
fi
server=$!
i=0; while [ ! -s /tmp/run/port ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
port=$(cat /tmp/run/port)
sed -i "s/PORT/$port/" /tmp/run/proj/.autonomous/context/config.local.yaml
chmod 600 /tmp/run/proj/.autonomous/context/config.local.yaml
env -i PATH=/tmp/run/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp/run/home LANG=C.UTF-8 TERM=dumb PYTHONPATH={tree} \\
    CLAUDE_CONFIG_DIR=/tmp/run/home/.claude CODEX_HOME=/tmp/run/home/.codex SCRIPTED_KEY=dummy \\
    ANTHROPIC_BASE_URL=http://127.0.0.1:$port ANTHROPIC_API_KEY=dummy-not-a-key HOOK_CAPTURE_DIR=/tmp/run/hooks \\
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 DISABLE_AUTOUPDATER=1 \\
    RALF_CONSENT=$(sha256sum /tmp/run/proj/.autonomous/context/config.local.yaml | cut -d" " -f1) \\
    GIT_DIR=/nowhere "$@"
status=$?
[ -z "$WAIT_FOR" ] || {{ i=0; while ! grep -q "$WAIT_FOR" /tmp/run/proj/.autonomous/context/journal/routes/*.jsonl \\
    && [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done; sleep 0.3; }}
kill $server
exit $status
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """Run `ralf checkpoint` in the namespace with a client whose model answers by a script."""

    def run(
        client: str, script: dict[str, Any], *, background: bool = False, timeout: int = 60, extra: str = ""
    ) -> Ran:
        folder = tmp_path / f"run-{time.monotonic_ns()}"
        context = folder / "proj" / ".autonomous" / "context"
        context.mkdir(parents=True)
        _session(folder / "proj" / "session.jsonl", long=background)
        home = folder / "home"
        (home / ".claude").mkdir(parents=True)
        (home / ".codex").mkdir()
        shutil.copy(KIT / "claude" / "settings.json", home / ".claude" / "settings.json")
        (home / ".claude" / "CLAUDE.md").write_text("MARKER-OF-THE-USER\n")
        shutil.copy(KIT / "codex" / "hooks.json", home / ".codex" / "hooks.json")
        (home / ".codex" / "config.toml").write_text('[mcp_servers.stub]\ncommand = "/tmp/run/server-of-the-user"\n')
        server = folder / "server-of-the-user"
        server.write_text("#!/bin/sh\ntouch /tmp/run/server-was-started\n")
        server.chmod(server.stat().st_mode | stat.S_IXUSR)
        provider = '{name="s",base_url="http://127.0.0.1:PORT/v1",env_key="SCRIPTED_KEY",wire_api="responses"'
        provider += ",request_max_retries=0,stream_max_retries=0}"
        arguments = ["-c", 'model_provider="scripted"', "-c", f"model_providers.scripted={provider}"]
        local = f"project: /tmp/run/proj\nsummarizer: {client}\ntimeout: {timeout}\n{extra}"
        local += f'arguments: {json.dumps(arguments)}\nenvironment: ["SCRIPTED_KEY"]\n' if client == "codex" else ""
        (context / "config.local.yaml").write_text(local)
        (folder / "script.json").write_text(json.dumps(script))
        command = ["/tmp/venv/bin/python", "-P", "-m", "ralf_cli", "checkpoint", ROUTE]
        command += ["--transcript", "session.jsonl", *(() if background else ("--summarizer", client))]
        done = subprocess.run(
            [str(KIT / "ns.sh"), str(folder), "sh", "-c", _inside(client), "sh", *command],
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                "CLIENTS": CLIENTS,
                "KIT_BIND": f"{plain(folder, storekit.SOURCE)}:repo {plain(folder, Path(sys.prefix))}:venv",
                "WAIT_FOR": '"kind":"refinement' if background else "",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        return Ran(folder, done.stdout, done.stderr, done.returncode)

    return run


def script_of(client: str, answer: dict[str, Any] | str) -> dict[str, Any]:
    """A script whose model gives one answer: a patch, or words."""
    usage = {"input_tokens": 1_000, "output_tokens": 200}
    if client == "claude" and isinstance(answer, dict):
        return {"main": [{"tool": {"name": "StructuredOutput", "input": answer}, "usage": usage}]}
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return {"main": [{"text": text, "usage": usage}], "default_text": text}


both = pytest.mark.parametrize("client", ["claude", "codex"])


@both
def test_a_good_model_hands_over_and_its_price_is_recorded(run: Callable[..., Ran], client: str) -> None:
    ran = run(client, script_of(client, GOOD))
    assert ran.status == 0, ran.err
    context = ralf.get_context(ROUTE, root=ran.project)
    assert "Use the advisory lock of the database in `deploy/lock.py`" in [item.decision for item in context.decisions]
    assert "**Tokens:**" in context.history
    assert f"(import) handed over: now: {GOOD['now']}" in str(context)  # in the home of the test it is nobody's own
    entry = ran.entry()
    assert (entry["summarizer"], entry["refines"], entry["unrefined"]) == (client, "extractive", "")
    assert entry["spent_tokens"] >= 1_020
    assert (entry["cost_usd"] or 0) > 0 if client == "claude" else entry["cost_usd"] is None
    assert f"(by {client};" in ran.out


@both
def test_a_model_gets_no_tool_no_hook_no_server_and_leaves_no_transcript(run: Callable[..., Ran], client: str) -> None:
    ran = run(client, script_of(client, GOOD))
    (asked,) = ran.requests()
    tools = {tool.get("name", tool.get("type")) for tool in asked.get("tools", [])}
    assert tools <= {"StructuredOutput", "DeferredToolPlaceholder"}
    text = json.dumps(asked)
    assert "MARKER-OF-THE-USER" not in text
    assert "advisory lock" in text
    assert list((ran.folder / "hooks").iterdir()) == []
    assert not (ran.folder / "server-was-started").exists()
    assert [path for path in (ran.folder / "home").rglob("*.jsonl") if "skills" not in path.parts] == []


@both
def test_a_name_of_a_lying_model_that_the_record_does_not_have_is_marked(run: Callable[..., Ran], client: str) -> None:
    ran = run(client, script_of(client, LYING))
    assert "not found in the record: `deploy/forged.py`" in ran.out
    assert GOOD["why"] in (ran.project / ".autonomous/context/routes/tide.md").read_text()


@both
@pytest.mark.parametrize(
    ("answer", "reason"),
    [("I cannot help with that.", "answered in words"), ({**GOOD, "decisions": "none"}, "")],
    ids=["refusing", "broken"],
)
def test_without_a_usable_answer_the_embedded_checkpoint_stands(
    run: Callable[..., Ran], client: str, answer: dict[str, Any] | str, reason: str
) -> None:
    ran = run(client, script_of(client, answer))
    assert ran.status == 0, ran.err
    entry = ran.entry()
    assert (entry["summarizer"], entry["refines"]) == ("extractive", "")
    assert entry["unrefined"]
    assert reason in entry["unrefined"]
    assert f"{client} wrote no hand-over" in ran.err


def test_a_provider_that_refuses_the_key_is_recorded(run: Callable[..., Ran]) -> None:
    refusal = {"error": {"type": "authentication_error", "message": "invalid x-api-key"}, "status": 401}
    ran = run("claude", {"main": [refusal] * 20, "default_text": "-"}, timeout=6)
    assert ran.entry()["summarizer"] == "extractive"
    assert ran.entry()["unrefined"].startswith("claude")


@both
def test_a_configured_model_works_in_the_background(run: Callable[..., Ran], client: str) -> None:
    ran = run(client, script_of(client, GOOD), background=True)
    assert ran.status == 0, ran.err
    assert "improved" not in ran.out
    assert ran.entry()["summarizer"] == client

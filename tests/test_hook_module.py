"""opencode's plugin: run by node with what opencode 1.18.33 passed to it, and a hook that answers as a file says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.transcripts.reader import open_transcript
from ralf_integrations.client import OPENCODE
from ralf_integrations.clients import hook_module, installation
from ralf_integrations.clients.installation import Part
from storekit import HANGS

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")

SESSION = "ses_de32ae3dbffeMCZ1EdfkxJgaWc"
USER, ANSWER = "msg_21cd51c48001jRKCfWe7PzvPWn", "msg_21cd51f9c0016C1ct4FEqxcHuz"
WHEN = 1795780059036
PROMPT = {
    "type": "text",
    "text": "please say hi",
    "messageID": USER,
    "sessionID": SESSION,
    "id": "prt_21cd51c61001hZa7Da4",
}
TOKENS = {"total": 5030, "input": 5000, "output": 30, "reasoning": 0, "cache": {"write": 0, "read": 0}}
BASH = {"id": "prt_3", "sessionID": SESSION, "messageID": ANSWER, "type": "tool", "tool": "bash", "callID": "call_1"}
INPUT = {"command": "echo hi", "description": "hi"}
MARK = "what ralf kept"

_HARNESS = """
import { Ralf } from %(plugin)s
const client = { session: { messages: async () => ({ data: %(before)s }) } }
const hooks = await Ralf({ directory: %(directory)s, client })
const told = []
for (const [name, input, output] of %(calls)s) {
  await hooks[name](input, output)
  told.push(output)
}
console.log(JSON.stringify(told))
"""

_HOOK = f"""
import json, os, sys, time
event = sys.argv[1]
if event == "session.log":
    if os.path.exists(%(broken)r):
        sys.exit(1)
    from ralf_integrations.hooks import instant
    sys.exit(instant.write_logs())
payload = json.load(sys.stdin)
with open(%(log)r, "a") as file:
    file.write(json.dumps({{"event": event, **payload}}) + "\\n")
if %(seconds)r:
    time.sleep(%(seconds)r)
if event in ("session.created", "chat.message", "tool.execute.after"):
    print(json.dumps({{"hookSpecificOutput": {{"hookEventName": event, "additionalContext": f"{MARK} {{event}}"}}}}))
elif event == "experimental.session.compacting":
    print("keep this")
"""


def happened(kind: str, **properties: Any) -> list[Any]:
    return ["event", {"event": {"type": kind, "properties": properties}}, None]


def message(id_: str, role: str, **info: Any) -> list[Any]:
    given = {"id": id_, "role": role, "sessionID": SESSION, "time": {"created": WHEN}, **info}
    return happened("message.updated", sessionID=SESSION, info=given)


def part(**given: Any) -> list[Any]:
    return happened("message.part.updated", sessionID=SESSION, part=given)


def prompted() -> list[Any]:
    return ["chat.message", {"sessionID": SESSION}, {"message": {"id": USER, "role": "user"}, "parts": [PROMPT]}]


def answered() -> list[list[Any]]:
    """An answer that says something, runs a command, and is complete, as the client's events tell it."""
    text = {"id": "prt_2", "sessionID": SESSION, "messageID": ANSWER, "type": "text"}
    running = {"status": "running", "input": INPUT, "time": {"start": WHEN}}
    done = {"status": "completed", "input": INPUT, "output": "hi\n", "metadata": {"exit": 0}, "time": {"end": WHEN}}
    cwd = {"path": {"cwd": "/srv/tides", "root": "/"}}
    return [
        message(ANSWER, "assistant", **cwd),
        part(**text, text=""),
        part(**BASH, state={"status": "pending", "input": {}, "raw": ""}),
        part(**BASH, state=running),
        part(**text, text="Step 1", time={"start": WHEN, "end": WHEN}),
        part(**BASH, state=running),
        [
            "tool.execute.after",
            {"tool": "bash", "sessionID": SESSION, "callID": "call_1", "args": INPUT},
            {"output": "hi\n"},
        ],
        part(**BASH, state=done),
        message(ANSWER, "assistant", **cwd, tokens=TOKENS, time={"created": WHEN, "completed": WHEN}),
    ]


class Rig:
    """A project with the plugin in it, whose command is a program of the test."""

    def __init__(self, folder: Path, *, name: str = "tides", seconds: float = 0.0) -> None:
        self.root = folder / name
        self.root.mkdir(parents=True)
        self._home = folder / "home"
        self._payloads = folder / "payloads.jsonl"
        self._program = folder / "hook.py"
        self.broken = folder / "broken"  # while it is there, no log can be written
        self._program.write_text(_HOOK % {"log": str(self._payloads), "seconds": seconds, "broken": str(self.broken)})
        self.limits: dict[str, float] = dict.fromkeys(OPENCODE.installed, 10.0)

    def run(self, *calls: list[Any], before: list[Any] | None = None) -> list[Any]:
        """What the calls' outputs are afterwards."""
        text = hook_module.text_of(OPENCODE, shared=True)
        command = [sys.executable, str(self._program), "EVENT"]
        lines = text.replace('["ralf", "hook", "EVENT", "--client", "opencode"]', json.dumps(command)).splitlines()
        lines = [
            f"const LIMITS = {json.dumps(self.limits)}" if one.startswith("const LIMITS") else one for one in lines
        ]
        plugin = self._program.with_name("ralf.mjs")
        plugin.write_text("\n".join(lines))
        parts = {"plugin": plugin.as_uri(), "before": before or [], "directory": str(self.root), "calls": calls}
        script = _HARNESS % {name: json.dumps(value) for name, value in parts.items()}
        home = {"HOME": str(self._home), "XDG_CONFIG_HOME": str(self._home / ".config"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [str(NODE), "--input-type=module", "-e", script], env=home, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    def opt_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As the person does whose home it is."""
        monkeypatch.setenv("XDG_CONFIG_HOME", str(self._home / ".config"))
        ownership.init(Project(self.root), share=False)

    @property
    def log(self) -> Path:
        """Where the plugin keeps the log of the session."""
        return self._home / ".local/share/opencode/ralf" / f"{SESSION}.jsonl"

    def payloads(self) -> list[dict[str, Any]]:
        """What hooks were called with, each with its event."""
        return [json.loads(line) for line in self._payloads.read_text().splitlines()] if self._payloads.exists() else []


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    found = Rig(tmp_path)
    found.opt_in(monkeypatch)
    return found


@pytest.mark.ci
@needs_node
def test_a_session_is_logged_line_by_line_and_its_hooks_are_told(rig: Rig) -> None:
    told = rig.run(
        prompted(), message(USER, "user"), part(**PROMPT), *answered(), happened("session.idle", sessionID=SESSION)
    )
    texts = [one["text"] for one in told[0]["parts"]]
    assert texts == ["please say hi", f"{MARK} session.created", f"{MARK} chat.message"]
    assert all(one["synthetic"] and one["messageID"] == USER for one in told[0]["parts"][1:])
    ids = [one["id"] for one in told[0]["parts"]]
    assert ids == sorted(ids)
    assert told[9] == {"output": f"hi\n\n\n{MARK} tool.execute.after"}
    events = list(open_transcript(rig.log).events())
    assert [(one.kind, one.text) for one in events] == [
        ("user", "please say hi"),
        ("call", "echo hi\nhi"),
        ("assistant", "Step 1"),
        ("result", "hi\n"),
        ("other", ""),
    ]
    assert (events[3].exit_status, events[4].window, events[4].cwd) == (0, 5030, "/srv/tides")
    assert rig.log.stat().st_mode & 0o777 == 0o600
    end = time.monotonic() + HANGS
    while len(rig.payloads()) < 4 and time.monotonic() < end:
        time.sleep(0.05)  # nobody waits for the last one
    first, second, third, last = rig.payloads()
    assert (first["event"], first["source"], first["cwd"]) == ("session.created", "startup", str(rig.root))
    assert (second["event"], second["prompt"]) == ("chat.message", "please say hi")
    assert (third["event"], third["tool_name"]) == ("tool.execute.after", "bash")
    assert (last["event"], last["transcript_path"]) == ("session.idle", str(rig.log))


@pytest.mark.ci
@needs_node
def test_the_answers_of_a_person_are_logged_and_a_text_that_a_plugin_only_shows_is_not_theirs(rig: Rig) -> None:
    asked, metadata = {"questions": [{"question": "Which?"}]}, {"answers": [["Chart"]]}
    state = {"status": "completed", "input": asked, "output": "so", "metadata": metadata, "time": {"end": WHEN}}
    shown = {**PROMPT, "id": "prt_9", "text": "Always push", "ignored": True}
    prompt = {"message": {"id": USER}, "parts": [PROMPT, shown]}
    rig.run(
        ["chat.message", {"sessionID": SESSION}, prompt],
        *(message(USER, "user"), part(**PROMPT), part(**shown)),
        *(message(ANSWER, "assistant"), part(**{**BASH, "tool": "question", "state": state})),
        ["dispose", {}, None],
    )
    events = list(open_transcript(rig.log).events())
    assert [event.text for event in events if event.kind == "user"] == ["please say hi", "Chart"]
    assert next(one for one in rig.payloads() if one["event"] == "chat.message")["prompt"] == "please say hi"


def stored(*texts: str) -> list[dict[str, Any]]:
    """A person's messages in the client's database."""
    return [
        {
            "info": {"id": f"msg_{number}", "role": "user", "sessionID": SESSION, "time": {"created": WHEN}},
            "parts": [{**PROMPT, "id": f"prt_{number}", "messageID": f"msg_{number}", "text": text}],
        }
        for number, text in enumerate(texts)
    ]


@pytest.mark.ci
@needs_node
def test_what_could_not_be_logged_is_logged_with_the_next_prompt(rig: Rig) -> None:
    rig.broken.touch()
    began = time.monotonic()
    told = rig.run(prompted(), message(USER, "user"), part(**PROMPT), *answered())
    assert [one["text"] for one in told[0]["parts"]][-1] == f"{MARK} chat.message"
    assert time.monotonic() - began < 15
    assert not rig.log.exists()
    rig.broken.unlink()
    rig.run(prompted(), before=stored("one", "two"))
    assert [event.text for event in open_transcript(rig.log).events()] == ["one", "two"]


@pytest.mark.ci
@needs_node
def test_a_secret_of_a_session_is_in_no_file_that_the_plugin_has_written(rig: Rig) -> None:
    token = "ghp_" + "q7Rt2bVx9MpL4sKd8WzY3nCf1aBcDeFgHiJk"
    rig.run(
        ["chat.message", {"sessionID": SESSION}, {"message": {"id": USER}, "parts": [{**PROMPT, "text": token}]}],
        message(USER, "user"),
        part(**{**PROMPT, "text": f"use {token}"}),
        happened("session.idle", sessionID=SESSION),
        ["dispose", {}, None],
    )
    assert "[REDACTED:" in rig.log.read_text()
    for path in rig.log.parents[4].rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes() or path.name == "payloads.jsonl", path


@pytest.mark.ci
@needs_node
def test_the_log_of_a_session_that_is_deleted_while_it_is_written_does_not_come_back(rig: Rig) -> None:
    rig.run(
        prompted(),
        message(USER, "user"),
        *(part(**{**PROMPT, "id": f"prt_{number}", "text": f"words {number}"}) for number in range(300)),
        happened("session.deleted", info={"id": SESSION}),
        part(**{**PROMPT, "id": "prt_last", "text": "the last words"}),
        ["dispose", {}, None],
    )
    end = time.monotonic() + HANGS
    while rig.log.exists() and time.monotonic() < end:
        time.sleep(0.05)  # nobody waits for it
    time.sleep(1)
    assert not rig.log.exists()


@pytest.mark.ci
@needs_node
def test_after_a_compaction_what_did_not_survive_reaches_the_next_tools_answer(rig: Rig) -> None:
    summary = {"id": "prt_9", "sessionID": SESSION, "messageID": "msg_9", "type": "text", "text": "did one"}
    output: dict[str, list[str]] = {"context": []}
    told = rig.run(
        prompted(),
        ["experimental.session.compacting", {"sessionID": SESSION}, output],
        message("msg_9", "assistant", summary=True),
        part(**summary, time={"end": WHEN}),
        happened("session.compacted", sessionID=SESSION),
        ["tool.execute.after", {"tool": "bash", "sessionID": SESSION, "callID": "c", "args": {}}, {"output": "x"}],
    )
    assert told[1] == {"context": ["keep this\n"]}
    assert told[5]["output"] == f"x\n\n{MARK} session.created\n{MARK} tool.execute.after"
    compacted = next(one for one in rig.payloads() if one["event"] == "session.compacted")
    assert compacted["compact_summary"] == "did one"


@needs_node
def test_a_subagents_session_is_none_of_ours(rig: Rig) -> None:
    told = rig.run(happened("session.created", info={"id": SESSION, "parentID": "ses_parent"}), prompted())
    assert len(told[1]["parts"]) == 1
    assert (rig.log.exists(), rig.payloads()) == (False, [])


@needs_node
def test_where_nobody_has_opted_in_nothing_is_written_and_nothing_called(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert len(rig.run(prompted())[0]["parts"]) == 1
    assert (rig.log.exists(), rig.payloads()) == (False, [])


@pytest.mark.ci
@needs_node
def test_a_hook_that_is_late_or_gone_costs_no_more_than_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, seconds=30)
    rig.opt_in(monkeypatch)
    rig.limits = dict.fromkeys(OPENCODE.installed, 0.5)
    began = time.monotonic()
    assert len(rig.run(prompted())[0]["parts"]) == 1
    assert time.monotonic() - began < 15
    rig._program.unlink()
    assert len(rig.run(prompted())[0]["parts"]) == 1


# ---- the file ----


def plugin(root: Path, *, shared: bool = False) -> Part:
    return installation.of_client(Project(root), OPENCODE, shared=shared)


def test_a_module_of_somebody_else_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / OPENCODE.local
    path.parent.mkdir(parents=True)
    path.write_text("export const Mine = async () => ({})\n")
    with pytest.raises(UsageError):
        installation.plan(Project(tmp_path), plugin(tmp_path))
    assert installation.plan_removal(Project(tmp_path), plugin(tmp_path)) is None


MINE = 'export const Mine = async () => ({ dispose: () => console.log("mine") })\n'


def installed(root: Path) -> Path:
    """The plugin's file, in a project where it was installed."""
    change = installation.plan(Project(root), plugin(root))
    assert change is not None
    installation.apply(Project(root), change)
    return root / OPENCODE.local


@pytest.mark.parametrize(("before", "after"), [("", MINE), (MINE, ""), ("// mine\n", f"\n{MINE}")])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_uninstalling_leaves_the_lines_that_a_person_has_put_around_the_plugin(
    tmp_path: Path, before: str, after: str, is_recorded: bool
) -> None:
    path = installed(tmp_path)
    path.write_text(before + path.read_text() + after)
    if not is_recorded:
        shutil.rmtree(tmp_path / ".autonomous")
    project = Project(tmp_path)
    assert installation.plan(project, plugin(tmp_path)) is None
    assert len(hook_module.ours(path.read_text())) == len(OPENCODE.installed)
    gone = installation.plan_removal(project, plugin(tmp_path))
    assert gone is not None
    installation.apply(project, gone)
    assert path.read_text() == before + after
    assert installation.plan_removal(project, plugin(tmp_path)) is None


def extended(text: str) -> list[str]:
    """The plugin with a person's lines in it, in ways in which that is done."""
    middle = text.index("  // ---- what the client tells")
    return [
        text[:middle] + '  console.log("mine")\n' + text[middle:],
        text.replace("const PATIENCE = 2_000", "const PATIENCE = 9_000"),
        "\n".join(text.splitlines()[:-1]) + "\n" + MINE,
        text.splitlines()[0] + "\n" + MINE,
        text.replace("const PATIENCE = 2_000", "const PATIENCE = 9_000") + MINE,
    ]


@pytest.mark.parametrize("way", range(5))
def test_a_plugin_with_a_persons_lines_in_it_is_left_as_it_is_and_that_is_told(tmp_path: Path, way: int) -> None:
    path = installed(tmp_path)
    text = extended(path.read_text())[way]
    path.write_bytes(text.encode())
    for planned in (installation.plan, installation.plan_removal):
        with pytest.raises(UsageError) as caught:
            planned(Project(tmp_path), plugin(tmp_path))
        assert str(path) in str(caught.value)
        assert caught.value.hint
    assert path.read_bytes() == text.encode()

"""`ralf init --client` asks nobody for more than it needs, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from promises.user import User

pytestmark = pytest.mark.ci

SETTINGS = {
    "claude-code": ".claude/settings.local.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".opencode/plugin/ralf.js",
}
CLIENTS = list(SETTINGS)
JSON_CLIENTS = CLIENTS[:3]
ODD = (
    '{\r\n\t"z": 1.50, "a":[ 1,2 ],\r\n   "hooks" : {"SessionStart":[{"hooks":[{"type":"command",'
    '"command":"date \\u00e9"}]}],\r\n  "Nobody\\/s": []},  "é": "\\ud83d\\ude00"\r\n\r\n}\r\n\r\n'
)
BEFORE = {
    "absent": None,
    "empty object": b"{}",
    "odd": ODD.encode(),
    "one line without an end": b'{"permissions":{"allow":["Bash(ls)"]},"hooks":{}}',
}


def tree(*folders: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of folders but those of stores and git's objects, and every empty folder."""
    found = {}
    for folder in folders:
        for path in folder.rglob("*"):
            place = path.relative_to(folder)
            if place.parts[0] == ".autonomous" or place.parts[:2] == (".config", "ralf") or "objects" in place.parts:
                continue
            if path.is_file():
                found[str(path)] = (path.read_bytes(), path.stat().st_mode)
            elif not any(path.iterdir()):
                found[str(path)] = (b"", path.stat().st_mode)
    return found


def placed(user: User, client: str, content: bytes | None) -> Path:
    path = user.project / SETTINGS[client]
    if content is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        path.chmod(0o640)
    return path


@pytest.mark.parametrize(
    ("client", "before"),
    [(client, before) for client in JSON_CLIENTS for before in BEFORE] + [("opencode", "absent")],
)
def test_uninstalling_restores_the_settings_byte_for_byte_and_leaves_nothing(
    user: User, client: str, before: str
) -> None:
    path = placed(user, client, BEFORE[before])
    was = tree(user.project, user.home)
    user.does("init", "--client", client, "--yes")
    assert path.read_bytes() != BEFORE[before]
    user.does("init", "--uninstall", "--yes")
    assert tree(user.project, user.home) == was


@pytest.mark.parametrize("client", CLIENTS)
def test_installing_twice_changes_nothing_and_a_dry_run_writes_nothing(user: User, client: str) -> None:
    was = tree(user.project, user.home)
    user.does("init", "--client", client, "--dry-run")
    assert tree(user.project, user.home) == was
    user.does("init", "--client", client, "--yes")
    installed = tree(user.project, user.home)
    user.does("init", "--client", client, "--yes")
    assert tree(user.project, user.home) == installed


@pytest.mark.parametrize(
    "content",
    [b'{"a": 1, // mine\n}', b'{"a": [1,],}', b"[]", b'{"\xff": 1}', b"", b'{"hooks": 3}', b'{"hooks": {"Stop": {}}}'],
    ids=["comment", "trailing comma", "list", "no utf-8", "empty", "hooks a number", "an event an object"],
)
def test_settings_that_cannot_be_changed_safely_are_refused_and_stay(user: User, content: bytes) -> None:
    path = placed(user, "claude-code", content)
    was = tree(user.project, user.home)
    ran = user.ralf("init", "--client", "claude-code", "--yes")
    if ran.status == 0:  # what it can read is restored as well
        user.does("init", "--uninstall", "--yes")
    else:
        ran.complains(2, path)
    assert tree(user.project, user.home) == was


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_what_others_add_to_the_settings_meanwhile_stays(user: User, client: str) -> None:
    path = placed(user, client, ODD.encode())
    user.does("init", "--client", client, "--yes")
    tree_ = json.loads(path.read_bytes())
    tree_["permissions"] = {"allow": ["Bash(make)"]}
    tree_["hooks"]["SessionStart"].append({"hooks": [{"type": "command", "command": "notify-send done"}]})
    path.write_text(json.dumps(tree_))
    user.does("init", "--client", client, "--uninstall", "--yes")
    wanted = json.loads(ODD)
    wanted["permissions"] = {"allow": ["Bash(make)"]}
    wanted["hooks"]["SessionStart"].append({"hooks": [{"type": "command", "command": "notify-send done"}]})
    assert json.loads(path.read_bytes()) == wanted


@pytest.mark.ci
@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_the_installed_command_answers_the_client(user: User, client: str) -> None:
    user.does("decide", "harbour", "Use SQLite for the tide table")
    user.does("init", "--client", client, "--yes")
    settings = json.loads((user.project / SETTINGS[client]).read_bytes())
    entry = settings["hooks"]["SessionStart"][0]["hooks"][0]
    session = user.session(client)
    session.add()
    payload = {"session_id": session.id, "transcript_path": str(session.log), "cwd": str(user.project)}
    payload |= {"hook_event_name": "SessionStart", "source": "startup"}
    words = [entry["command"], *entry["args"]] if "args" in entry else ["/bin/sh", "-c", entry["command"]]
    done = subprocess.run(
        words,
        input=json.dumps(payload).encode(),
        cwd=user.project,
        env=user.environment(RALF_TASK_ID="harbour"),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Use SQLite for the tide table" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]

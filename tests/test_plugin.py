"""Claude Code's plugin: made from the same source as everything else, and true to the command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import ralf
from ralf.document import guarded_yaml
from ralf.errors import UsageError
from ralf_cli.main import main
from ralf_integrations.client import CLAUDE_CODE
from ralf_integrations.clients import agents_md, plugin
from storekit import process

TEXTS = {**plugin.files(), "AGENTS.md": agents_md.section()}
MARKDOWN = {name: text for name, text in TEXTS.items() if name.endswith(".md")}


def commands_in(text: str) -> Iterator[str]:
    """What a text tells somebody to type."""
    found = [*re.findall(r"`(ralf(?: [^`]*)?)`", text), *re.findall(r"(?m)^    (ralf .*)$", text)]
    return (one for one in found if one != "ralf")


def resolved(line: str) -> None:
    """Raise what the command line would say of it."""
    words = shlex.split(line)[1:]
    context = click.Context(main, info_name="ralf")
    command: click.Command = main
    while words and isinstance(command, click.Group):
        command = command.get_command(context, words[0]) or pytest.fail(f"{line}: no command {words[0]}")
        words = words[1:]
    command.make_context(line, words, parent=context, resilient_parsing=False)


def front_matter(text: str) -> dict[str, Any]:
    found = guarded_yaml.load(text.split("---\n")[1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", MARKDOWN)
def test_every_command_that_a_text_names_is_one(name: str) -> None:
    seen = list(commands_in(MARKDOWN[name]))
    assert seen
    for line in seen:
        if line != "ralf mcp":  # a command of its own extra
            resolved(line)


@pytest.mark.parametrize("name", [name for name in MARKDOWN if name.startswith(("commands/", "skills/"))])
def test_a_command_may_run_what_it_tells_the_agent_to_run(name: str) -> None:
    text = MARKDOWN[name]
    allowed = re.findall(r"Bash\((.*?):\*\)", str(front_matter(text)["allowed-tools"]))
    for line in commands_in(text):
        assert any(line == one or line.startswith(f"{one} ") for one in allowed), line


def test_the_manifest_names_this_version_and_each_command_says_what_it_does() -> None:
    manifest = json.loads(TEXTS[".claude-plugin/plugin.json"])
    assert (manifest["name"], manifest["version"]) == ("ralf", ralf.__version__)
    assert {name for name in TEXTS if name.startswith("commands/")} == {
        *("commands/checkpoint.md", "commands/handover.md", "commands/show.md", "commands/route.md"),
    }
    for name in (*(f"commands/{name}.md" for name in plugin.COMMANDS), "skills/ralf/SKILL.md"):
        assert front_matter(TEXTS[name])["description"]
    for name in plugin.COMMANDS:
        assert "$ARGUMENTS" in TEXTS[f"commands/{name}.md"]


def test_the_hooks_are_those_of_the_shared_settings_and_the_server_is_ours() -> None:
    hooks = json.loads(TEXTS["hooks/hooks.json"])["hooks"]
    assert {event: groups[0]["hooks"][0] for event, groups in hooks.items()} == CLAUDE_CODE.entries(shared=True)
    assert json.loads(TEXTS[".mcp.json"]) == {"mcpServers": {"ralf": {"command": "ralf", "args": ["mcp"]}}}


@pytest.mark.ci
def test_it_is_written_once_and_brought_up_to_date_later(tmp_path: Path) -> None:
    args = ("init", "--client", "claude-code", "--plugin", "made", "--yes")
    assert process(*args, cwd=tmp_path).status == 0
    made = {
        str(path.relative_to(tmp_path / "made")): path.read_text()
        for path in (tmp_path / "made").rglob("*")
        if path.is_file()
    }
    assert made == plugin.files()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    assert not [line for line in process(*args, cwd=tmp_path).lines if ": change: " in line]
    (tmp_path / "made/commands/show.md").write_text("old")
    assert process(*args, cwd=tmp_path).lines == [f"{tmp_path}/made/commands/show.md: change: part of the plugin"]
    assert (tmp_path / "made/commands/show.md").read_text() == plugin.files()["commands/show.md"]


def test_the_folder_of_another_plugin_and_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".claude-plugin").mkdir()
    for other in ('{"name": "other"}', "[]", "no JSON"):
        (tmp_path / ".claude-plugin/plugin.json").write_text(other)
        with pytest.raises(UsageError, match="another plugin"):
            plugin.plan(tmp_path)
    (tmp_path / ".claude-plugin/plugin.json").unlink()
    (tmp_path / "commands").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="symbolic link"):
        plugin.plan(tmp_path)

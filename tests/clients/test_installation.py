"""The real clients take what `ralf init` writes: settings, the plugin with its commands, skill and server."""

from __future__ import annotations

import pytest
import scenario
from offline import CLAUDE, CODEX, World, said, why_not

import ralf
from examples import each_second

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

PLUGIN = "ralf init --yes && ralf init --client claude-code --plugin /tmp/run/plugin --yes"
more = [
    pytest.param(name, marks=pytest.mark.skipif(bool(why_not(name)), reason=why_not(name) or "-"))
    for name in ("gemini", "opencode")
]
HELLO = {"main": [said("Hi.")], "default_text": "Done."}


def test_claude_finds_the_plugin_valid_and_installs_it(world: World) -> None:
    ran = world.run(
        f"{PLUGIN} && claude plugin validate /tmp/run/plugin && claude plugin marketplace add /tmp/run/plugin"
        " && claude plugin install ralf@ralf && claude plugin list && claude plugin details ralf@ralf"
    )
    assert ran.status == 0, ran.out + ran.err
    assert "Validation passed" in ran.out
    assert "ralf@ralf" in ran.out
    assert "SubagentStop" in ran.out


def test_a_command_of_the_plugin_reaches_the_model_with_its_argument(world: World) -> None:
    ralf.record_decision("tides", "Use SQLite", root=world.project)
    ran = world.run(f"{PLUGIN} && {CLAUDE} --plugin-dir /tmp/run/plugin -p '/ralf:show tides'", HELLO)
    assert ran.status == 0, ran.out + ran.err
    sent = world.asked()[0]
    assert "Load the notes of the route: tides" in sent
    assert "ralf show ROUTE --brief" in sent


def test_the_model_is_told_of_the_skill_and_the_server(world: World) -> None:
    ran = world.run(f"{PLUGIN} && {CLAUDE} --plugin-dir /tmp/run/plugin -p 'Say hi.'", HELLO)
    assert ran.status == 0, ran.out + ran.err
    body = str(world.requests()[-1]["body"])
    assert "ralf:ralf" in body or "Read and write what earlier sessions of this project left" in body


def test_hooks_of_the_plugin_call_the_command_on_the_path(world: World) -> None:
    ran = world.run(f"{PLUGIN} && {CLAUDE} --plugin-dir /tmp/run/plugin -p 'Say hi.'", HELLO)
    assert ran.status == 0, ran.err
    assert list(world.project.glob(".autonomous/context/cache/*/hooks/*.json"))


@pytest.mark.parametrize("client", ["claude-code", "codex", *each_second(more)])
@pytest.mark.parametrize("shared", ["", "--shared"])
def test_the_client_calls_what_is_installed_and_the_doctor_sees_it(world: World, client: str, shared: str) -> None:
    hello = scenario.command(client, "Say hi.")
    ran = world.run(
        f"ralf init --client {client} {shared} --yes && {hello}; ralf doctor", HELLO, **scenario.model(client)
    )
    assert list(world.project.glob(".autonomous/context/cache/*/hooks/*.json")), ran.err
    assert ran.status == 0, ran.out + ran.err
    assert "one answers in" in ran.out
    assert f"of {client}" in ran.out
    assert "problem" not in ran.out
    assert kit_version(client) in ran.out
    if client == "codex":
        assert "Codex does not trust the hooks for SessionStart" in ran.out  # they were let through without


def kit_version(client: str) -> str:
    versions = {
        "claude-code": "Claude Code 2.",
        "codex": "Codex 0.",
        "gemini": "Gemini CLI 0.",
        "opencode": "opencode 1.",
    }
    return versions[client]


def test_codex_reads_no_hooks_of_a_project_that_is_not_trusted(world: World) -> None:
    """As the notes of `ralf init --client codex` say."""
    untrusted = "sed -i '/projects/,+1d' /tmp/run/home/.codex/config.toml"
    ran = world.run(
        f"{untrusted} && ralf init --client codex --yes && {CODEX} 'Say hi.'; ralf doctor", HELLO, model="openai"
    )
    assert "Codex reads a project's hooks once you trust the project" in ran.err
    assert not list(world.project.glob(".autonomous/context/cache/*/hooks/*.json"))
    assert "Codex does not trust this project yet" in ran.out

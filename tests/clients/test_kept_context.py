"""The real clients keep their context through ralf: hooks as `ralf init` installs them, a scripted model, and what that
model is then sent.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import scenario
from offline import World, bash, said, why_not
from scenario import CHOICE, FEW, MUCH, ON_ROUTE, REQUEST, ROUTE, RULE, install, script, work

import ralf
import ralf.errors

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

both = pytest.mark.parametrize("client", ["claude-code", "codex"])


def checkpoints(world: World, route: str = ROUTE) -> tuple[Any, ...]:
    try:
        return ralf.get_context(route, root=world.project).checkpoints
    except ralf.errors.RalfError:
        return ()


@both
def test_what_a_compaction_drops_is_handed_over_after_it(world: World, client: str) -> None:
    install(world, client)
    steps = [
        bash("mkdir -p src && echo 1 > src/tides.py", text=CHOICE, filled=60_000),
        bash("echo two", text=RULE, filled=190_000),
        bash("echo three", text="Step three.", filled=20_000),
        said("Finished.", filled=21_000),
    ]
    ran = work(
        world,
        client,
        REQUEST,
        steps,
        summary="SUMMARY-OF-THE-CLIENT: did one and two.",
        env=(*ON_ROUTE, "CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000"),
        toml="model_auto_compact_token_limit = 180000",
    )
    assert ran.status == 0, ran.err
    (wanted,) = list(world.asked("compact"))[-1:]
    after = next(text for text in world.asked() if "SUMMARY-OF-THE-CLIENT" in text)
    for text in ("Use SQLite instead of Postgres", "src/tides.py"):
        assert text in after, text
    if client == "claude-code":  # the only one whose own summary can be steered
        assert "in their very words" in wanted


@pytest.mark.skipif(bool(why_not("gemini")), reason=why_not("gemini") or "-")
def test_what_a_compaction_of_gemini_drops_is_handed_over_with_the_next_tools_answer(world: World) -> None:
    """It tells no hook of a compaction: its log shows it. A session of one request it does not compact."""
    install(world, "gemini")
    write = "mkdir -p src && echo 1 > src/tides.py"
    summary = "SUMMARY-OF-THE-CLIENT: did one and two."
    work(world, "gemini", REQUEST, [bash(write, text=CHOICE), said("One is done.")], env=ON_ROUTE)
    steps = [bash("echo two", text=RULE, filled=700_000), bash("echo three", text="Step three."), said("Finished.")]
    again = scenario.command("gemini", "Go on with two.").replace("gemini ", "gemini --resume latest ", 1)
    ran = world.run(again, script("gemini", steps, summary), env=ON_ROUTE, **scenario.model("gemini"))
    assert ran.status == 0, ran.err
    compacted = [text for text in world.asked() if "SUMMARY-OF-THE-CLIENT" in text]
    for text in ("Use SQLite instead of Postgres", "src/tides.py"):
        assert text not in compacted[0], text
        assert text in compacted[1], text


@pytest.mark.skipif(bool(why_not("opencode")), reason=why_not("opencode") or "-")
def test_what_a_compaction_of_opencode_drops_is_steered_and_handed_over(world: World) -> None:
    install(world, "opencode")
    steps = [
        bash("mkdir -p src && echo 1 > src/tides.py", text=CHOICE, filled=60_000),
        bash("echo two", text=RULE, filled=196_000),
        bash("echo three", text="Step three.", filled=20_000),
        said("Finished.", filled=21_000),
    ]
    summary = "SUMMARY-OF-THE-CLIENT: did one and two."
    ran = work(world, "opencode", REQUEST, steps, summary=summary, env=ON_ROUTE)
    assert ran.status == 0, ran.err
    (wanted,) = world.asked("compact")
    assert "in their very words" in wanted
    after = [text for text in world.asked() if "SUMMARY-OF-THE-CLIENT" in text]
    for text in ("Use SQLite instead of Postgres", "src/tides.py"):
        assert text in after[-1], text
    assert "compaction" in [one.reason for one in checkpoints(world)]


@both
def test_uninstalling_leaves_the_settings_as_they_were(world: World, client: str) -> None:
    path = world.project / (".claude/settings.local.json" if client == "claude-code" else ".codex/hooks.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = {"hooks": [{"type": "command", "command": "touch /tmp/run/of-another-tool"}]}
    before = json.dumps({"hooks": {"SessionStart": [entry]}}, indent=3) + "\n\n"
    path.write_text(before)
    install(world, client)
    assert path.read_text() != before
    work(world, client, "Please say hi.", [said("Hi.")], env=ON_ROUTE)
    assert (world.folder / "of-another-tool").exists()
    done = world.run(f"ralf init --client {client} --uninstall --yes")
    assert done.status == 0, done.err
    assert path.read_text() == before


@pytest.mark.release(seconds=34)
def test_after_a_clear_one_line_says_where_the_notes_are(world: World, client: str = "claude-code") -> None:
    install(world, client, FEW)
    steps = [bash(MUCH, text=CHOICE), said("Hi."), said("And again.")]
    tui = "SETTINGS=/tmp/run/proj/.claude/settings.local.json python3 /tmp/kit/tui.py"
    world.run(f"{tui} '{REQUEST}' sleep:3 /clear 'What is there to do?' sleep:2 /exit", script(client, steps))
    sent = world.asked()[-1]
    assert "ralf show" in sent
    assert sent.count("Use SQLite instead of Postgres") == 0

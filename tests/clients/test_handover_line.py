"""A real client's agent is asked to hand over when its window is nearly full: once, and nothing depends on the answer.

Claude Code denies the command by a rule, or because it would ask and nobody is there. Codex has no rule for it alone:
it compares a `prefix_rule` with plain commands only, and takes one with a here-document for a call of the shell. So the
rule here denies every such call. In its read-only sandbox the command runs, and cannot write.
"""

from __future__ import annotations

import re

import pytest
import scenario
from offline import Ran, World, bash, said, why_not
from scenario import FEW, ON_ROUTE, REQUEST, ROUTE

import ralf
import storekit

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

WINDOW = {"claude-code": 200_000, "codex": 258_400}
LINE = "% full. Before it is compacted, hand over, in at most 400 words: "
HAND_OVER = """\
ralf handover tides <<'EOF'
## Now
The reader reads one station from `SQLite`.
## Next
- Carry the harbour offsets over
## Decided
- Keep the CSV reader until March
  why: two harbours still send CSV
EOF"""

FULL = f"sleep 0.5; {scenario.MUCH}"
"""A command after which a hook looks at the session: by then the log has the usage, and has grown by `FEW` tokens."""

CLIENTS = {
    "claude-code": "claude -p --output-format json --model claude-sonnet-4-5",
    "codex": "codex exec --skip-git-repo-check --dangerously-bypass-hook-trust",
}
FREE = {"claude-code": "--dangerously-skip-permissions", "codex": "--dangerously-bypass-approvals-and-sandbox"}
"""The options with which a client runs every command that no rule denies."""

AGAIN = {"claude-code": "--continue", "codex": "resume --last"}


def work(world: World, client: str, options: str, *commands: str, prompt: str = REQUEST) -> Ran:
    """Run a session that calls commands and ends. Its window is 69 % full at the first, then 2 % more at each."""
    steps = [bash(each, text=f"Step {number}.") for number, each in enumerate(commands, 1)] + [said("Finished.")]
    for number, step in enumerate(steps):
        step["usage"]["cache_read_input_tokens"] = (69 + 2 * number) * WINDOW[client] // 100
    script = scenario.script(client, steps)
    return world.run(f"{CLIENTS[client]} {options} '{prompt}'", script, env=ON_ROUTE, **scenario.model(client))


def begin(world: World, client: str, rules: str = "") -> None:
    """Install ralf for a client, and the user's rules for its commands."""
    scenario.install(world, client, FEW)
    (world.home / ".profile").write_text("PATH=/tmp/venv/bin:$PATH\n")  # Codex runs a login shell
    path = world.home / (".claude/settings.json" if client == "claude-code" else ".codex/rules/default.rules")
    path.parent.mkdir(exist_ok=True)
    if rules:
        path.write_text(rules)


def assert_no_hook_failed(world: World, ran: Ran) -> None:
    assert "no hook has complained of late" in world.run("ralf doctor").out
    said_by_client = ran.err + "".join(path.read_text() for path in world.transcripts())
    assert not re.search(r"hook_\w*error|hook: \w+ Failed", said_by_client)  # as Claude Code and Codex word it


@pytest.mark.parametrize("client", CLIENTS)
def test_the_line_is_said_once_in_a_session_when_seven_tenths_are_full(world: World, client: str) -> None:
    begin(world, client)
    ran = work(world, client, FREE[client], "echo one", FULL, FULL, FULL)
    assert ran.status == 0, ran.err
    options = f"{FREE[client]} {AGAIN[client]}"
    ran = work(world, client, options, FULL, FULL, prompt="Go on.")
    assert ran.status == 0, ran.err
    assert [text.count(LINE) for text in world.asked()] == [0, 0, 1, 1, 1, 1, 1, 1]
    told = re.search(rf"ralf: the window is (\d+) {LINE}(.*)", world.asked()[2])
    assert told is not None
    assert told[1] == "71"
    assert told[2].startswith(HAND_OVER.partition("\n")[0])


@pytest.mark.parametrize(
    ("client", "options", "rules", "denial"),
    [
        ("claude-code", FREE["claude-code"], '{"permissions": {"deny": ["Bash(ralf handover:*)"]}}', "been denied."),
        ("claude-code", "", '{"permissions": {"allow": ["Bash(seq:*)"]}}', "This command requires approval"),
        ("codex", FREE["codex"], 'prefix_rule(pattern=["bash"], decision="forbidden")', "rejected: policy forbids"),
        ("codex", "--sandbox read-only", "", "Read-only file system"),
    ],
    ids=["claude-code-rule", "claude-code-nobody-there", "codex-rule", "codex-sandbox"],
)
def test_a_denied_hand_over_stops_nothing(world: World, client: str, options: str, rules: str, denial: str) -> None:
    begin(world, client, rules)
    ralf.record_decision(ROUTE, "Keep the old table until March", rationale="two harbours", root=world.project)
    before = storekit.journal_file(world.project, ROUTE).read_bytes()
    ran = work(world, client, options, "echo one", FULL, HAND_OVER, FULL, FULL)
    assert ran.status == 0, ran.err
    assert "Finished." in ran.out
    asked = world.asked()
    assert [text.count(LINE) for text in asked] == [0, 0, 1, 1, 1, 1]
    assert [text.count(denial) > 0 for text in asked] == [False, False, False, True, True, True]
    assert_no_hook_failed(world, ran)
    assert storekit.journal_file(world.project, ROUTE).read_bytes().startswith(before)
    context = ralf.get_context(ROUTE, root=world.project)
    assert context.handover.last is None
    assert [one.decision for one in context.decisions] == ["Keep the old table until March"]
    assert context.checkpoint_history[-1].reason == "session-end"
    for words in ("Step 3.", "Step 5.", "Finished."):  # what came before the denial, and after it
        assert words in context.history
    assert "refused by the person" not in str(context)


@pytest.mark.parametrize(
    ("client", "options", "rules"),
    [
        ("claude-code", "", '{"permissions": {"allow": ["Bash(seq:*)", "Bash(ralf handover:*)"]}}'),
        ("codex", "--sandbox workspace-write", ""),
    ],
    ids=CLIENTS,
)
def test_an_allowed_hand_over_is_the_agents_and_leads_the_next_brief(
    world: World, client: str, options: str, rules: str
) -> None:
    begin(world, client, rules)
    ran = work(world, client, options, "echo one", FULL, HAND_OVER, FULL)
    assert ran.status == 0, ran.err
    assert "tides: now, 1 next, 1 decided (DEC-001)" in world.asked()[3]
    assert [text.count(LINE) for text in world.asked()] == [0, 0, 1, 1, 1]
    assert_no_hook_failed(world, ran)
    context = ralf.get_context(ROUTE, root=world.project)
    assert context.handover.last is not None
    assert context.handover.last.author == "agent"
    assert [(one.id, one.author) for one in context.carried.current("decision")] == [("DEC-001", "agent")]
    ran = work(world, client, options, prompt="Go on.")
    assert ran.status == 0, ran.err
    brief = world.asked()[5].partition(f"# Context of {ROUTE}\n")[2]
    sections = re.findall("^### (.*)", brief, re.M)
    place = next(place for place, title in enumerate(sections) if title.startswith("Hand-over, by the agent"))
    assert place <= 2  # behind what the person said last, and what holds
    first = brief.partition(f"### {[*sections, 'nothing'][place + 1]}")[0]
    for words in (
        "one station from `SQLite`.",
        "- Carry the harbour offsets",
        "DEC-001 Keep the CSV reader until March",
    ):
        assert words in first

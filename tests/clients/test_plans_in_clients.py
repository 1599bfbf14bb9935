"""A plan of six tasks with checkpoints, run to its end by `ralf loop` and a real client, a fresh session for each task:
the request that opens a session holds the summaries and decisions of all before it.
"""

from __future__ import annotations

import re
import time
from datetime import datetime

import pytest
import scenario
from offline import World, bash, said, why_not

from ralf.tasks import store

pytestmark = [pytest.mark.release, pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]

COMMANDS = {
    "claude-code": "claude --dangerously-skip-permissions --model claude-sonnet-4-5",
    "codex": "codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
}
RALF = "/tmp/venv/bin/ralf"  # Codex runs a login shell, which makes its own PATH
TASKS = ("schema", "reader", "writer", "index", "command", "guide")


def add(names: tuple[str, ...]) -> str:
    """Commands that add a chain of tasks, and put checkpoints into it."""
    lines, before = [], ""
    for name in names:
        lines.append(f'ralf task add "Make the {name}" -d "It is for the harbour." {before}')
        before = f'--after "Make the {name}"'
    return "\n".join(["set -e", *lines, "ralf plan --every 2"])


def steps(name: str) -> list[dict]:
    """What the agent of a task does."""
    decide = f'{RALF} context decide "$RALF_TASK_ID" "Keep {name} small" --because "reason of {name}" --origin agent'
    return [
        bash(decide, text=f"I begin with the {name}."),
        bash(f'{RALF} task done "The {name} stands and reads what it wrote"', text="It works."),
        said(f"The {name} is done."),
    ]


@pytest.mark.parametrize("client", COMMANDS)
def test_each_fresh_session_begins_with_what_all_before_it_came_to(world: World, client: str) -> None:
    ready = world.run(add(TASKS))
    assert ready.status == 0, ready.err
    does = [step for name in TASKS for step in steps(name)]
    loop = f"ralf loop --agent '{COMMANDS[client]}' --max-time 2m"
    ran = world.run(loop, scenario.script(client, does), **scenario.model(client))
    assert ran.status == 0, ran.out + ran.err
    assert "complete: 6 completed\n" in ran.out
    asked = world.asked()
    assert len(asked) == len(does)
    for number, name in enumerate(TASKS):
        opening = asked[3 * number]
        assert f"Make the {name}" in opening
        for earlier in TASKS[:number]:
            assert f"The {earlier} stands and reads what it wrote" in opening, (name, earlier)
            assert f"Keep {earlier} small" in opening, (name, earlier)
        for later in TASKS[number + 2 :]:
            assert f"The {later} stands" not in opening
        ours = "Report progress as you go; if you are stopped, the next agent reads it"
        assert opening.count(ours) == 1  # our own words are no goal, request or rule
    assert len(world.transcripts()) == len(TASKS)
    if client == "claude-code":  # which tells tokens and a price
        assert "unknown" not in ran.out


LIMITED = "You've hit your session limit \u00b7 resets 11:30pm (UTC)"


def test_a_usage_limit_of_claude_code_is_told_by_its_own_record(world: World) -> None:
    ready = world.run(add(TASKS[:1]))
    assert ready.status == 0, ready.err
    error = {"error": {"type": "rate_limit_error", "message": LIMITED}, "status": 429}
    loop = f"ralf loop --agent '{COMMANDS['claude-code']}' --no-park --max-time 2m --retries 0"
    ran = world.run(loop, {"main": [error] * 30}, env=("CLAUDE_CODE_MAX_RETRIES=0",))
    logs = sorted(world.project.glob(".autonomous/context/cache/**/logs/*.log"))
    told = ran.out + ran.err + "".join(path.read_text() for path in logs)
    assert ran.status == 1, told
    assert store.list_tasks(root=world.project).tasks[0].attempts[-1].outcome == "limit", told


REFUSES = """\
import http.server, json, sys
class Refuses(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        error = {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": int(sys.argv[1])}
        self.send_response(429)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"error": error}).encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", 8429), Refuses).serve_forever()
"""
"""A service that answers as that of Codex does where an account has used up its limit."""


def test_a_usage_limit_of_codex_is_told_by_its_own_record_and_names_its_time(world: World) -> None:
    ready = world.run(add(TASKS[:1]))
    assert ready.status == 0, ready.err
    resets = int(time.time()) + 7_200
    (world.folder / "refuses.py").write_text(REFUSES)
    there = '-c model_providers.scripted.base_url=\\"http://127.0.0.1:8429/v1\\"'
    loop = f"""
/tmp/venv/bin/python /tmp/run/refuses.py {resets} &
sleep 1
ralf loop --agent '{COMMANDS["codex"]} {there}' --no-park --max-time 2m --retries 0
status=$?
kill $!
exit $status
"""
    ran = world.run(loop, {"main": []}, **scenario.model("codex"))
    logs = sorted(world.project.glob(".autonomous/context/cache/**/logs/*.err"))
    told = ran.out + ran.err + "".join(path.read_text() for path in logs)
    assert ran.status == 1, told
    assert store.list_tasks(root=world.project).tasks[0].attempts[-1].outcome == "limit", told
    until = re.search(r"usage limit of codex until (\S+ \d\d:\d\d\S*)", ran.out)
    assert until is not None, told
    assert abs(datetime.fromisoformat(until[1]).timestamp() - resets) < 120, told

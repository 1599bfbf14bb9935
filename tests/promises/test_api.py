"""The public Python API (DESIGN 8), and the file that others read."""

from __future__ import annotations

from typing import Any

import frontmatter
import pytest

from promises.user import JOURNAL, User

SIGNATURES = {
    "get_context": "(route, *, root=None, max_tokens=None, query=None)",
    "list_routes": "(*, root=None)",
    "checkpoint": "(route, transcript, *, root=None, summarizer=None, reason='manual')",
    "record_decision": "(route, decision, *, rationale='', alternatives=(), supersedes=None, origin=None, root=None)",
    "search": "(query, *, route=None, root=None, limit=5)",
}
_SIGNATURE = """
import inspect, json, sys, ralf
signature = inspect.signature(getattr(ralf, sys.argv[1]))
bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
promised = [one for one in bare if one.name in sys.argv[2:] or one.default is one.empty or one.kind != one.KEYWORD_ONLY]
print(inspect.Signature(promised))
print(inspect.Signature(bare))
"""


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_five_functions_have_the_promised_parameters_and_ask_for_no_more(stranger: User, name: str) -> None:
    words = SIGNATURES[name].translate(str.maketrans("()*,", "    ")).split()
    ran = stranger.python(_SIGNATURE, name, *(word.partition("=")[0] for word in words))
    assert ran.lines[0] == SIGNATURES[name], ran


def api(user: User, code: str, *arguments: object) -> Any:
    """What Python code prints as JSON."""
    ran = user.python("import json, sys\nimport ralf\nfrom ralf import errors\n" + code, *arguments)
    assert ran.status == 0, ran
    return ran.json()


@pytest.mark.ci
def test_what_the_api_records_the_api_reads_lists_and_finds(user: User) -> None:
    found = api(
        user,
        """
old = ralf.record_decision("harbour", "Keep the levels in Postgres")
new = ralf.record_decision("harbour", "Use SQLite for the tide table", rationale="one file needs no server",
                           alternatives=["Postgres: needs a server"], supersedes=old.id)
context = ralf.get_context("harbour")
print(json.dumps([
    [old.id, new.id],
    {one.id: one.status for one in context.decisions},
    [one.route for one in ralf.list_routes()],
    [[hit.route, hit.kind, hit.id] for hit in ralf.search("tide table server", limit=1)],
    context.render(max_tokens=2_000),
]))
""",
    )
    (old, new), statuses, routes, hits, rendered = found
    assert (old, new, statuses) == ("DEC-001", "DEC-002", {"DEC-001": "superseded", "DEC-002": "active"})
    assert (routes, hits) == (["harbour"], [["harbour", "decision", "DEC-002"]])
    assert "one file needs no server" in rendered
    shown = user.does("show", "harbour", "--json").json()
    assert {one["id"]: one["status"] for one in shown["decisions"]} == statuses


@pytest.mark.ci
def test_a_checkpoint_by_the_api_keeps_what_was_said_and_the_same_again_writes_nothing(user: User) -> None:
    session = user.session()
    session.says("Carry the harbour offsets over to SQLite.")
    session.edits("src/tides.py", said="The offsets are read.")
    before = api(
        user,
        """
reports = [ralf.checkpoint("harbour", sys.argv[1]) for _ in range(2)]
context = ralf.get_context("harbour")
print(json.dumps([type(reports[0]).__name__, context.checkpoint_count, context.render(max_tokens=3_000)]))
""",
        session.log,
    )
    assert before[:2] == ["CheckpointReport", 1]
    assert "Carry the harbour offsets over to SQLite." in before[2]
    assert "src/tides.py" in before[2]


SYNCED = """
import ctypes, json, sys
import ralf
shim = ctypes.CDLL(None)
shim.ralf_log.restype = ctypes.c_char_p
ralf.record_decision("harbour", "Use SQLite")
print(json.dumps([line.split("\\t") for line in shim.ralf_log().decode().splitlines()]))
"""


@pytest.mark.ci
def test_a_decision_is_synced_to_the_disk_before_the_call_returns(user: User) -> None:
    ran = user.python(SYNCED, fault=(0, 0))
    assert ran.status == 0, ran
    calls = [call for call, path in ran.json() if f"/{JOURNAL}/" in path and "harbour" in path]
    last = max(number for number, call in enumerate(calls) if "write" in call and "open" not in call)
    assert {"fsync", "fdatasync"} & set(calls[last:]), calls


ERRORS = {
    "get_context('harbor')": ("RouteNotFound", "NotFound", 3),
    "get_context('../harbour')": ("UsageError", "UsageError", 2),
    "checkpoint('harbour', 'session.jsonl')": ("TranscriptNotFound", "NotFound", 3),
    "record_decision('harbour', 'Use it', supersedes='DEC-099')": ("NotFound", "NotFound", 3),
    "search('levels', route='harbor')": ("RouteNotFound", "NotFound", 3),
    "get_context('broken')": ("DamagedRouteFile", "Damaged", 4),
}


@pytest.mark.ci
def test_errors_have_a_type_a_status_the_route_or_path_first_and_a_hint(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite")
    user.route_file("broken").write_text("<<<<<<< ours\n---\n=======\n>>>>>>> theirs\n")
    code = """
found = []
for call in sys.argv[1:]:
    try:
        eval("ralf." + call)
        found.append(None)
    except errors.RalfError as error:
        kinds = [one.__name__ for one in type(error).__mro__]
        found.append([kinds, error.exit_status, str(error), error.hint])
print(json.dumps(found))
"""
    for call, found in zip(ERRORS, api(user, code, *ERRORS), strict=True):
        kind, parent, status = ERRORS[call]
        assert found is not None, call
        kinds, exit_status, words, hint = found
        assert kind in kinds and parent in kinds and exit_status == status, (call, found)
        assert ": " in words and hint, (call, found)
    assert not user.route_file("harbor").exists()


@pytest.mark.ci
def test_the_route_file_is_front_matter_with_the_documented_keys_and_keeps_keys_of_others(user: User) -> None:
    user.does("decide", "harbour", "Use SQLite", "--because", "one file needs no server")
    session = user.session()
    session.says("Carry the offsets over.")
    session.answers("They are carried over.")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    path = user.route_file("harbour")
    user.edit(path, "context_checkpoint:\n", "harbour_master: Ann\ncontext_checkpoint:\n")
    user.does("decide", "harbour", "Read the gauges twice a day")
    post = frontmatter.load(str(path))
    head = post["context_checkpoint"]
    assert head["version"].startswith("1.")
    assert (head["route"], head["checkpoint_count"], post["harbour_master"]) == ("harbour", 1, "Ann")
    assert {"created", "last_checkpoint", "total_tokens_consumed"} <= set(head)
    first = post["decisions"][0]
    assert (first["id"], first["decision"], first["status"]) == ("DEC-001", "Use SQLite", "active")
    assert (first["rationale"], "timestamp" in first) == ("one file needs no server", True)
    (checkpoint,) = post["checkpoint_history"]
    assert checkpoint["checkpoint_id"] == "cp-001"
    assert {"timestamp", "tokens", "summary_ref"} <= set(checkpoint)
    assert "## Compressed History" in post.content

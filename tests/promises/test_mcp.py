"""`ralf mcp` over standard input and output (docs/clients.md)."""

from __future__ import annotations

import json

import pytest

from promises.user import User


@pytest.mark.ci
def test_an_mcp_client_lists_the_tools_and_gets_the_context_and_no_tool_speaks_as_the_person(user: User) -> None:
    pytest.importorskip("mcp")
    user.does("decide", "harbour", "Use SQLite", "--because", "one file needs no server")
    with user.mcp() as server:
        assert {"get_context", "search", "list_routes", "record_decision", "checkpoint"} <= set(server.tools())
        assert "one file needs no server" in json.dumps(server.calls("get_context", route="harbour"))
        assert not server.calls("record_decision", route="harbour", decision="Draw the levels in feet").get("isError")
        assert server.calls("get_context", route="tidepool")["isError"]
    decisions = user.does("show", "harbour", "--json").json()["decisions"]
    assert {one["decision"]: one["origin"] for one in decisions}["Draw the levels in feet"] == "agent"
    assert not user.route_file("tidepool").exists()

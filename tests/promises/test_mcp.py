"""`ralf mcp` over standard input and output (docs/mcp.md)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from kit import command
from promises.user import User


@pytest.mark.ci
def test_an_mcp_client_lists_the_tools_and_gets_the_context_and_no_tool_speaks_as_the_person(user: User) -> None:
    pytest.importorskip("mcp")
    user.does("decide", "harbour", "Use SQLite", "--because", "one file needs no server")
    server = user.start("mcp", stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert server.stdin is not None and server.stdout is not None
    number = 0

    def tells(method: str, **more: Any) -> None:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **more}).encode() + b"\n")
        server.stdin.flush()

    def asks(method: str, **params: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        tells(method, id=number, params=params)
        while True:
            line = server.stdout.readline()
            assert line, "the server has ended"
            answer = json.loads(line)
            if answer.get("id") == number:
                return dict(answer["result"])

    def calls(tool: str, **arguments: Any) -> dict[str, Any]:
        return asks("tools/call", name=tool, arguments=arguments)

    client = {"name": "a test", "version": "1"}
    asks("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    tells("notifications/initialized")
    assert {"get_context", "search", "list_routes", "record_decision", "checkpoint"} <= {
        tool["name"] for tool in asks("tools/list")["tools"]
    }
    assert "one file needs no server" in json.dumps(calls("get_context", route="harbour"))
    assert not calls("record_decision", route="harbour", decision="Draw the levels in feet").get("isError")
    assert calls("get_context", route="tidepool")["isError"]
    server.stdin.close()
    server.stdout.close()
    assert server.wait(command.HANGS) == 0
    decisions = user.does("show", "harbour", "--json").json()["decisions"]
    assert {one["decision"]: one["origin"] for one in decisions}["Draw the levels in feet"] == "agent"
    assert not user.route_file("tidepool").exists()

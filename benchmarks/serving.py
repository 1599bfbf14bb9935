"""What `ralf mcp` takes to start, until it has told its tools, against importing the SDK that it is made with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from installed import ralf
from measure import BARE, Row, Sample, main, run

from ralf.maintenance import ownership
from ralf.project import Project

TITLE = "Starting the MCP server"

MOST = 1.2
_SDK = [sys.executable, "-I", "-c", "from mcp.server.mcpserver import MCPServer"]


def produce(rounds: int) -> list[Row]:
    """Both in turns."""
    command = ralf()
    with tempfile.TemporaryDirectory() as root:
        ownership.init(Project(Path(root)), share=False)
        samples: dict[str, list[Sample]] = {"python -I -c pass": [], "importing the SDK": [], "ralf mcp": []}
        for _ in range(rounds):
            samples["python -I -c pass"].append(run(BARE))
            samples["importing the SDK"].append(run(_SDK))
            samples["ralf mcp"].append(_served([command, "--root", root, "mcp"]))
    taken = {name: median(sample.cpu for sample in each) for name, each in samples.items()}
    sdk = taken["importing the SDK"]
    targets = {"ralf mcp": MOST}
    return [
        Row(name, 1000 * cpu, "ms CPU", cpu / sdk, max(sample.peak for sample in samples[name]), targets.get(name))
        for name, cpu in taken.items()
    ]


def _served(command: Sequence[str]) -> Sample:
    """One server, from its start to the list of its tools."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, given) in enumerate((("initialize", hello), ("tools/list", {})), start=1):
            call = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
            server.stdin.write(json.dumps(call).encode() + b"\n")
            if method == "initialize":
                server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
        if not answer["result"]["tools"]:
            raise RuntimeError("the server told no tools")
        server.stdin.close()
        _, status, usage = os.wait4(server.pid, 0)
        server.returncode = os.waitstatus_to_exitcode(status)
    return Sample(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


if __name__ == "__main__":
    sys.exit(main(TITLE, produce))

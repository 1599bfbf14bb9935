"""Commands of ralf as forks of one process that has loaded everything: each has its own folder, environment and user,
as a process of its own has, and takes a tenth of the time.

The process is started once (`Forks()`), told what to run as a JSON line, and answers with a JSON line. It is no part of
whoever asks: nothing is imported into a test's process, and no thread of that is forked.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

_LIMIT = 60.0  # seconds for one command: what takes longer hangs
_KILLED = 137
_SERVER = "ralf_integrations.mcp.server"  # as large as all else together, and each fork costs what there is
_LEFT_OUT = ("__main__", ".instant")
_CODECS = ("utf-8-sig", "utf-16-le", "idna", "ascii", "latin-1")  # another user may not read Python's own folder
_PACKAGES = ("ralf", "ralf_cli", "ralf_integrations", "ralf_migrations")
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "victim", "version": "0"}}


class Forks:
    """The side that asks."""

    def __init__(self, environment: Mapping[str, str], *, mcp: bool = False) -> None:
        command = [sys.executable, "-m", "tests.faults.forked", *(["mcp"] if mcp else [])]
        self._server = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env=dict(environment),
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()

    def run(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], **more: Any) -> dict[str, Any]:
        """Run `ralf ARGUMENTS`; {status, out, err}. `stdin`: its input. `uid`: the user whose process it is."""
        return self._ask({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), **more})

    def talk(self, calls: Sequence[tuple[str, dict[str, Any]]], **more: Any) -> list[dict[str, Any]]:
        """Have a conversation with an MCP server of ralf: (method, parameters) each, and the answers."""
        messages = [{"method": method, "params": parameters} for method, parameters in calls]
        answers = self.run(**more, messages=messages)["answers"]
        assert isinstance(answers, list)
        return answers

    def _ask(self, wanted: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(wanted) + "\n")
        self._server.stdin.flush()
        found = json.loads(self._server.stdout.readline())
        assert isinstance(found, dict)
        return found


# ---- the process that has everything loaded ----


def main() -> None:
    """Serve until the input ends."""
    _load()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        wanted = json.loads(line)
        answers.write(json.dumps(_talked(wanted) if "messages" in wanted else _ran(wanted)) + "\n")
        answers.flush()


def _load() -> None:
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if module.name.endswith(_LEFT_OUT) or ("mcp" not in sys.argv and module.name == _SERVER):
                continue
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # of an extra that is not installed
                if str(error.name).partition(".")[0] in _PACKAGES:
                    raise
    for codec in _CODECS:
        "".encode(codec)
    importlib.import_module("ralf.text.tokens").count("the rank file is loaded")
    gc.collect()
    gc.freeze()


def _ran(wanted: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(str(wanted.get("stdin", "")).encode("utf-8", "surrogatepass"))
        given.seek(0)
        child = _forked(wanted, given, out, err)
        end = time.monotonic() + _LIMIT
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > end:
                os.kill(child, 9)
                os.waitpid(child, 0)
                return {"status": _KILLED, "out": _text(out), "err": _text(err) + "\nit hung"}
            time.sleep(0.001)
        return {"status": os.waitstatus_to_exitcode(done[1]), "out": _text(out), "err": _text(err)}


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _forked(wanted: dict[str, Any], *files: IO[bytes]) -> int:
    child = os.fork()
    if not child:
        _become(wanted, [file.fileno() for file in files])
    return child


def _become(wanted: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 200)
        if (uid := wanted.get("uid")) is not None:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        os.umask(0o022)
        os.chdir(wanted["cwd"])
        os.environ.clear()
        os.environ.update(wanted["env"])
        tempfile.tempdir = None
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115  # they end with it
        sys.argv = ["ralf", *wanted["arguments"]]
        run: Callable[[], object] = importlib.import_module("ralf_cli.main").run
        run()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _talked(wanted: dict[str, Any]) -> dict[str, Any]:
    ours, theirs = os.pipe(), os.pipe()
    with tempfile.TemporaryFile() as err, os.fdopen(ours[0], "rb") as given, os.fdopen(theirs[1], "wb") as said:
        child = _forked(wanted, given, said, err)
        given.close()
        said.close()
        asked = os.fdopen(ours[1], "wb", buffering=0)  # a server that has ended must not fail what closes this
        with asked as asking, os.fdopen(theirs[0], "rb", buffering=0) as answering:
            answers = _conversation(wanted["messages"], asking, answering)
        os.kill(child, 15)
        os.waitpid(child, 0)
        return {"answers": answers, "err": _text(err)}


def _conversation(messages: Sequence[dict[str, Any]], asking: IO[bytes], answering: IO[bytes]) -> list[dict[str, Any]]:
    left = b""

    def answer(number: int) -> dict[str, Any]:
        nonlocal left
        end = time.monotonic() + _LIMIT
        while True:
            *lines, left = left.split(b"\n")
            for place, line in enumerate(lines):
                found = json.loads(line)
                if found.get("id") == number:
                    left = b"\n".join([*lines[place + 1 :], left])
                    return dict(found)
            if not select.select([answering], [], [], max(0, end - time.monotonic()))[0]:
                return {"error": "it hung"}
            more = answering.read(1 << 16)
            if not more:
                return {"error": "the server ended"}
            left += more

    def ask(number: int | None, method: str, parameters: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        asking.write(json.dumps(message | ({} if number is None else {"id": number})).encode() + b"\n")
        asking.flush()

    try:
        ask(0, "initialize", _HELLO)
        found = [answer(0)]
        ask(None, "notifications/initialized", {})
        for number, message in enumerate(messages, 1):
            ask(number, message["method"], message["params"])
            found.append(answer(number))
    except BrokenPipeError:
        return [{"error": "the server ended"}]
    return found


if __name__ == "__main__":
    main()

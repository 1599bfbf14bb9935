"""What the tests of the store share: transcripts made to size, the command in this process and in one of its own."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kit.command
from kit.command import HANGS, Ran
from kit.rights import as_modes_say  # noqa: F401  # tests of the store have it from here
from ralf.checkpointing.section import Extractive, Segment, Summary
from ralf.config import local_config
from ralf.maintenance import ownership
from ralf.maintenance.trust import accept_route
from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.project import Project
from ralf.storage import journal, registry
from ralf.talk.answer import FORM
from ralf.text import tokens

SOURCE = Path(__file__).parents[1]
EARLIER = SOURCE / "tests" / "stores" / "4f05e28"
AT_ONCE = 20.0  # seconds a slow machine with much to do may take for what waits for nobody; for a lock one waits 30
PACKAGES = os.pathsep.join(str(SOURCE / name) for name in ("context", "cli", "integrations", "migrations"))

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where folders lie in memory, None for nowhere: what is not about a disk need not wait for one to sync."""


if not os.path.basename(os.environ.get("XDG_CONFIG_HOME", "")).startswith("ralf-tests-"):
    # The user's own folder of tests and harnesses is theirs, never that of whoever runs them; processes inherit it.
    os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="ralf-tests-", dir=MEMORY)
    atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)

GIT_ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""Have git read no settings but those of a repository: whoever runs the tests may have hooks, signatures, other names
of branches, other ends of lines.
"""
os.environ.update(GIT_ALONE)

CHOOSING = (
    *("BB5_ROUTE", "RALF_TASK_ID", "BB5_TASK_ID", "RALF_PROJECT_DIR"),
    *("RALF_RUN_DIR", "RALF_RUN_FOLDER", "RALF_RUN_ID", "RALF_AGENT_TYPE", "RALF_PROMPT_FILE", "RALF_ENGINE_DIR"),
    *("BLACKBOX5_HOME", "BB5_HOME", "BB5_PROJECT", "BB5_MEMORY_PATH", "BB5_ENGINE_ROOT", "BB5_DISABLE_CHECKPOINTS"),
    *("CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID"),
)
"""Variables that choose a project, a route or a session."""

V100 = (Path(__file__).parent / "promises/fixtures/format_1_0_0.md").read_text(encoding="utf-8")
"""The example of DESIGN 3, as it stands there."""


# ---- transcripts ----


def _record(number: int, kind: str, session: str, content: object) -> dict[str, Any]:
    minutes, seconds = divmod(number, 60)
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"model": "m", "id": f"msg_{number}"}
    return {
        "type": kind,
        "sessionId": session,
        "uuid": f"{session}-{number}",
        "cwd": "/srv/tide",
        "isSidechain": False,
        "timestamp": f"2026-03-01T{8 + minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.000Z",
        "message": message,
    }


def turn(number: int, session: str = "s-1") -> list[dict[str, Any]]:
    """One turn of a made session: now and then a request, always some words, a call and its result; 400 tokens."""
    name, call_id, at = f"part_{number}", f"call_{number}", number * 3
    records = []
    if number % 12 == 0:
        asked = f"Please carry part {number} of the tide table over to the new reader, and keep the old columns."
        records.append(_record(at, "user", session, asked))
    said = f"I read src/{name}.py first." if number % 5 else f"We use batch size {number} instead of {number + 1}."
    if number % 3 == 0:
        tool = {
            "name": "Edit",
            "input": {"file_path": f"/srv/tide/src/{name}.py", "old_string": "a", "new_string": "b"},
        }
        out, failed = f"The file /srv/tide/src/{name}.py has been updated.\n", False
    else:
        failed = number % 7 == 0
        tool = {"name": "Bash", "input": {"command": f"pytest -q tests/test_{name}.py"}}
        out = "Exit code 1\n" if failed else ""
    out += "\n".join(f"{row:03d} level {name} {row * number % 97} cm, station {row % 9}" for row in range(30))
    call = {"type": "tool_use", "id": call_id, **tool}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": out, "is_error": failed}
    records.append(_record(at + 1, "assistant", session, [{"type": "text", "text": said}, call]))
    records.append(_record(at + 2, "user", session, [result]))
    return records


@cache
def _sized(number: int) -> tuple[int, tuple[str, ...]]:
    """The tokens of a turn, and its lines with a place for the session."""
    records = turn(number, "SESSION")
    return sum(_tokens(record) for record in records), tuple(json.dumps(record) for record in records)


def _tokens(record: Mapping[str, Any]) -> int:
    """o200k tokens of a record's event text, as DESIGN counts them: messages, tool input, tool output."""
    content = record["message"]["content"]
    if isinstance(content, str):
        return tokens.count(content)
    found = 0
    for block in content:
        parts = (
            list(block["input"].values()) if block["type"] == "tool_use" else [block.get("text", block.get("content"))]
        )
        found += sum(tokens.count(part) for part in parts)
    return found


def lines_of(wanted: int, session: str = "s-1", *, first: int = 0) -> tuple[str, int]:
    """JSON lines of at least `wanted` tokens, and the number of the turn that would come next."""
    found, number, total = [], first, 0
    while total < wanted:
        size, lines = _sized(number)
        found += [line.replace("SESSION", session) for line in lines]
        total += size
        number += 1
    return "".join(f"{line}\n" for line in found), number


def write_session(path: Path, wanted: int, session: str = "s-1") -> int:
    """Write a session of that many tokens; the number of its next turn, for `grow`."""
    text, number = lines_of(wanted, session)
    path.write_text(text, encoding="utf-8")
    return number


def grow(path: Path, wanted: int, first: int, session: str = "s-1") -> int:
    """Append that many tokens to a session, from turn `first` on."""
    text, number = lines_of(wanted, session, first=first)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    return number


class Listing:
    """A summariser that lists as decisions what is said with "instead of", as a model might, each with its line; all
    else is as the embedded one has it.
    """

    name = "listing"

    def summarize(self, segment: Segment) -> Summary:
        """What the embedded summariser makes of it, and the decisions."""
        summary = Extractive().summarize(segment)
        said = (event for event in segment.events if event.kind in ("user", "assistant"))
        made = (
            Decision(
                decision=line,
                timestamp=event.timestamp,
                source=Source(
                    segment.session,
                    event.start.line + 1,
                    event.end.line,
                    hashlib.sha256(event.text.encode()).hexdigest()[:SHA256_DIGITS],
                ),
                origin="agent" if event.kind == "assistant" else "user",
            )
            for event in said
            for line in event.text.split("\n")
            if " instead of " in line
        )
        return replace(summary, decisions=(*summary.decisions, *made))


# ---- the store on disk ----


def zipped(root: Path, digests: Iterable[str] | None = None) -> Path:
    """Put these blobs, or all, into a zip file, as an earlier version archived them; the file."""
    folder = context_of(root) / "archive" / "blobs"
    files = [path for top in (context_of(root) / "blobs", folder) for path in top.glob("??/*")]
    chosen = [path for path in files if digests is None or path.name in set(digests)]
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{len(list(folder.glob('*.zip'))) + 1:06d}.zip"
    if chosen:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            for path in chosen:
                file.writestr(path.name, zlib.decompress(path.read_bytes()))
        made.chmod(0o600)
    for path in chosen:
        path.unlink()
    return made


def is_intact(record: journal.Record) -> bool:
    """Whether a record's payload is the one that it was written with, or has lost words to a forget since."""
    return record.version != journal.VERSION or record.purged or journal.digest_of(record.payload) == record.digest


def context_of(root: Path) -> Path:
    return root / ".autonomous" / "context"


def route_file(root: Path, route: str) -> Path:
    return context_of(root) / "routes" / f"{route}.md"


def journal_file(root: Path, route: str) -> Path:
    return context_of(root) / "journal" / "routes" / f"{route}.jsonl"


def records_of(root: Path, route: str) -> list[dict[str, Any]]:
    """The records of a journal, read by this test's own eyes."""
    text = journal_file(root, route).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line)["record"] for line in text.splitlines()]


def checkpoints_of(root: Path, route: str) -> list[tuple[str, int, int]]:
    """Session, first and last byte of every checkpoint record."""
    sources = [record["payload"]["source"] for record in records_of(root, route) if record["kind"] == "checkpoint"]
    return [(source["session"], source["from_byte"], source["to_byte"]) for source in sources]


def cache_of(root: Path) -> Path:
    """The folder of what can be made anew."""
    return Project(root).cache


def known(root: Path, route: str) -> Path:
    """Have a route file that has no journal accepted as this user's; the file."""
    accept_route(Project(root), route)
    return route_file(root, route)


def kept_bytes(root: Path, *, cache: bool = False) -> dict[str, bytes]:
    """Every file of a store and its bytes, without the cache."""
    top = context_of(root)
    found = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.is_file() and (cache or not name.startswith("cache/")):
            found[name] = path.read_bytes()
    return found


def hidden(path: Path) -> list[str]:
    """What lies beside a file under a hidden name."""
    return sorted(found.name for found in path.parent.iterdir() if found.name.startswith("."))


def configure(root: Path, text: str) -> Path:
    """Opt a project in, and write its settings; their file."""
    ownership.init(Project(root), share=False)
    path = context_of(root) / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def allow(path: Path, home: Path | None = None) -> Path:
    """A file of what this machine may run, as its user has written and allowed it.

    home  of the user; None: of who runs the tests
    """
    path.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch:
        if home is not None:
            patch.setenv("HOME", str(home))
            patch.delenv("XDG_CONFIG_HOME", raising=False)
        local_config.allow(Project(path.parents[2]), path.read_bytes())
    return path


def moved(before: Path, after: Path) -> Path:
    """Register the copy of a project as the original is registered: as a person does who says that it is theirs."""
    found = registry.find(before)
    if found is not None:
        registry.update(after, **{name: value for name, value in found.tree().items() if name != "path"})
    return after


def copied(project: Path, to: Path, **more: Any) -> Path:
    """A copy of a project, registered as the original is; `more` as for `shutil.copytree`."""
    return moved(project, shutil.copytree(project, to, **more))


def earlier_store(root: Path) -> Path:
    """Lay the store that an earlier version wrote, and had opted in, into a project; without the log of its session."""
    shutil.copytree(EARLIER, context_of(root), ignore=shutil.ignore_patterns("session.jsonl"))
    (context_of(root) / ".gitignore").write_text("*\n")
    return root


# ---- the command ----

MAKING = "ralf_cli.main"
"""A way to an answer that gives none again, but makes it."""


class Cli:
    """The command line in this process, on one project: the whole way from arguments to exit status. A person types it
    at a terminal, as far as the command is told, unless a variable names an agent; its output is that of a pipe.
    """

    is_at_terminal = True

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def __call__(self, *args: object, root: Path | None = None) -> Ran:
        """Run `ralf` with these arguments, on another project where `root` is given."""
        from ralf_cli import person
        from ralf_cli.main import run

        self._capfd.readouterr()
        self._monkeypatch.setattr(person, "_is_at_terminal", lambda: self.is_at_terminal)
        self._monkeypatch.setattr(sys, "argv", ["ralf", "--root", str(root or self.root), *map(str, args)])
        with pytest.raises(SystemExit) as raised:
            run()
        out, err = self._capfd.readouterr()
        assert isinstance(raised.value.code, int)
        return Ran(raised.value.code, out, err)


def session_log(home: Path, root: Path, session: str, client: str = "claude-code") -> Path:
    """Where a client of a user with this home keeps the log of a session of a project; its folder is made."""
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(root))
    kept = {
        "claude-code": f".claude/projects/{slug}/{session}.jsonl",
        "codex": f".codex/sessions/2026/03/01/rollout-2026-03-01T08-00-00-{session}.jsonl",
        "gemini": f".gemini/tmp/{slug}/chats/session-2026-03-01T08-00-{session[:8]}.jsonl",
        "opencode": f".local/share/opencode/ralf/{session}.jsonl",
    }
    path = home / kept[client]
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


_CHOSEN = (
    "BB5_",
    "RALF_",
    "CLAUDE",
    "GIT_",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "AI_AGENT",
    "AUGMENT_AGENT",
    "CLINE_ACTIVE",
    "CODEX_",
    "QWEN_CODE",
)


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a process of ours: no variable that chooses a route or project or names some agents, and
    everything below `home`.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CHOSEN)}
    paths = [PACKAGES, *filter(None, [os.environ.get("PYTHONPATH", "")])]
    return kept | {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CODEX_HOME": str(home / ".codex"),
        "GEMINI_CLI_HOME": str(home),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUTF8": "1",
        "COLUMNS": "100",
        "TZ": "UTC",
        **GIT_ALONE,
        **more,
    }


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "ralf_cli", *map(str, args)]


def process(*args: object, cwd: Path, timeout: float = HANGS, is_new: bool = False, way: str = "", **more: str) -> Ran:
    """`ralf …` as a process of its own in a folder; `is_new`: in an interpreter of its own; `way`: see `MAKING`."""
    known = environment(cwd, **more)
    return kit.command.run(*args, cwd=cwd, env=known, timeout=timeout, is_new=is_new, **({"way": way} if way else {}))


def start(code: str, *args: object, cwd: Path, **more: Any) -> Any:
    """Python code as a process of its own: see `kit.command.start`."""
    return kit.command.start(*args, code=code, cwd=cwd, env=environment(cwd), **more)


def finished(started: Sequence[Any], timeout: float = HANGS) -> list[str]:
    """Wait for processes of ours; what each printed. Fails when one failed."""
    try:
        printed = [child.communicate(timeout=timeout) for child in started]
    finally:
        for child in started:
            child.kill()
            child.communicate()
    for child, (_, err) in zip(started, printed, strict=True):
        assert child.returncode == 0, err.decode()
    return [out.decode() for out, _ in printed]


# ---- disks ----


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system of its own at `folder`, as large as `size`; skips the test where none may be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "ralf-test", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607


def remount(folder: Path, options: str) -> None:
    _mount("-o", f"remount,{options}", str(folder))


def _mount(*args: str) -> None:
    try:
        done = subprocess.run(["mount", *args], capture_output=True, text=True)  # noqa: S607
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


# ---- answers of models ----

NO_ANSWER: dict[str, Any] = {key: type(form)() for key, form in FORM.items()}
"""What a model answers that has nothing to hand over."""


def on_a_terminal(root: Path, *arguments: str, answer: str = "", **more: str) -> tuple[int, str]:
    """The status of a command at a terminal, and what it printed there."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command(*arguments),
        cwd=root,
        env=environment(root, **more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=takes_terminal,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    said = read_terminal(ours)
    return child.wait(HANGS), said


def takes_terminal() -> None:
    """Make the terminal at its standard input that of a process that leads a session of its own, as a shell's is."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_terminal(terminal: int) -> str:
    """What is printed at a terminal until no process holds its other end; this end is closed then."""
    said = b""
    while select.select([terminal], [], [], HANGS)[0]:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # how Linux says that no one holds the other end
            break
        if not part:  # and how others say it
            break
        said += part
    os.close(terminal)
    return said.decode().replace("\r\n", "\n")

"""The fast path, the installed command's first look: whether a hook has anything to do, told by a few system calls.

Most calls of a hook come after a tool was used, and nothing is due: then this is all that runs, in an interpreter that
has loaded next to nothing (no `os`, `re`, `json`, `typing`). It only ever decides that nothing is to be done; whatever
it cannot tell, `entry` does, in the same process. What falls due when is foretold by `usage`.

It is loaded as a module of its own, so that it is compiled once: a script would be at every start.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

LOG = "session.log"
"""What opencode's plugin calls no hook with, but the process that writes the logs of its sessions."""

_AFTER_TOOLS = ("PostToolBatch", "PostToolUse", "AfterTool", "tool.execute.after")
_COMPLETING = ("TodoWrite", "TaskUpdate", "update_plan", "todowrite", "write_todos")

CONTEXT = "/.autonomous/context"
STATES = "/hooks/"  # as in `session_registry`
LEASES = b"/leases/"  # in the cache, a file for each claim that lasts: `ralf.tasks` has the same
_MOST_INPUT = 256 << 20  # bytes; a payload that is longer is none
_MOST_STATE = 1 << 20
_FIGURES = (b'"input_tokens"', b'"cache_creation_input_tokens"', b'"cache_read_input_tokens"', b'"output_tokens"')
SECONDS = 20.0
"""After which a hook gives up, whatever it is at."""

_READ = posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC
_OURS = _READ | posix.O_NOFOLLOW


class Late(BaseException):
    """The hook has taken too long. No `Exception`: whoever is at work must not take it for something of theirs."""


def main() -> "NoReturn":
    """What the installed command runs: `FOLDER CLIENT EVENT`, the payload on standard input. Always exit status 0."""
    _, client, event = sys.argv[-3:]
    sys.path.pop(0)  # our own folder: its names are not to stand before the standard library's
    try:
        open_streams()
        if event == LOG:
            posix._exit(write_logs())
        limit_time()
        data = read()
        if not is_idle(client, event, data):
            _go_on(client, event, data)
    except Late:
        pass
    except Exception as error:  # noqa: BLE001  # a hook never breaks the client
        posix.write(2, f"ralf: {type(error).__name__}: {error}\n".encode("utf-8", "backslashreplace"))
    posix._exit(0)


def write_logs() -> int:
    """Write what standard input has to the logs of sessions, to its end; returns the exit status."""
    posix.nice(10)  # hooks and the client come first
    _find_packages()
    from ralf_integrations.hooks import session_log

    return session_log.run(sys.stdin.buffer, say)


def _find_packages() -> None:
    """Find all of the library, as an interpreter does that is not isolated."""
    import site

    if sys.flags.no_site:
        site.main()
    tree = __file__.rsplit("/", 3)[0]
    if tree not in sys.path:  # a user's own packages, which an isolated Python leaves out, or a folder of one's own
        site.addsitedir(tree)


def _go_on(client: str, event: str, data: bytes) -> None:
    """The slow way, with all of the library."""
    _find_packages()
    import gc

    gc.disable()  # what is loaded stays: looking through it again and again is a tenth of all this
    from ralf_integrations.hooks import entry

    gc.freeze()
    gc.enable()
    entry.run(client, event, data, say)


def open_streams() -> None:
    """Have descriptors 0 to 2 open: the next file that is opened would be what is written to them."""
    while (descriptor := posix.open("/dev/null", posix.O_RDWR)) <= 2:  # the lowest that is free
        posix.set_inheritable(descriptor, True)
    posix.close(descriptor)


def say(text: str) -> None:
    """Write a text to standard output, all of it."""
    said = text.encode()
    while said:
        said = said[posix.write(1, said) :]


def limit_time(seconds: float = SECONDS) -> None:
    """Raise `Late` in the main thread after so many seconds, and again each second: it may be at a place that takes
    every exception.
    """
    import _signal  # type: ignore[import-not-found]  # `signal` is as large as all this

    def late(*_: object) -> None:
        raise Late

    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, seconds, 1.0)


def read() -> bytes:
    """Standard input to its end; nothing where it is longer than any payload."""
    parts, size = [], 0
    while part := posix.read(0, 1 << 20):
        size += len(part)
        if size <= _MOST_INPUT:
            parts.append(part)
    return b"".join(parts) if size <= _MOST_INPUT else b""


def is_idle(client: str, event: str, data: bytes) -> bool:
    """Whether it is certain that nothing is to be done."""
    try:
        payload = _parsed(data)
    except Exception:  # noqa: BLE001  # `entry` says what is wrong with it
        return False
    # not the session itself; the agent of a compaction is one without a type
    is_other = bool(payload.get("agent_type") if event == "SubagentStop" else payload.get("agent_id"))
    if is_other and b"RALF_LEASE" not in posix.environ:
        return True
    folder = _folder(client, payload)
    if not folder:
        return False
    store = _store(folder)
    if store is None:
        return True
    top, config = store
    admitted = _admitted(top)
    if not admitted:
        return admitted is not None
    context, cache = top + CONTEXT, f"{top}{CONTEXT}/cache/{admitted}"
    if _is_due(cache):
        return False
    if is_other:
        return True
    session = payload.get("session_id")
    if not isinstance(session, str) or not _is_plain(session):
        return False
    try:
        known = _parsed(_content(f"{cache}{STATES}{session}.json", _OURS, touch=True))
        chosen, inbox = f"{cache}/chosen/{session}", f"{context}/journal/inbox/{session}.jsonl"
        return _holds(known, event, payload, [config, _stat(chosen)[0], _stat(inbox)[1]])
    except Exception:  # noqa: BLE001  # whatever it is, a look finds out
        return False


def _is_due(cache: str) -> bool:
    """Let an agent that holds a task keep it: each call of a hook is a sign of life. `ralf.tasks` reads the time. A
    lease of a store's engine has another file, whose time says when the engine is to be asked: whether that is now.
    """
    task, _, number = posix.environ.get(b"RALF_LEASE", b"").partition(b":")
    if not (number.isdigit() and task) or b"/" in task:
        return False
    path = cache.encode("utf-8", "surrogateescape") + LEASES + task + b"-" + number
    try:
        posix.utime(path)
    except OSError:  # no claim of this store, or one with a lease of its engine
        try:
            due = posix.stat(path + b".due").st_mtime
        except OSError:
            return False
        import time  # loaded by the interpreter

        return due <= time.time()
    return False


def _holds(known: "dict[str, Any]", event: str, payload: "dict[str, Any]", stands: "list[int]") -> bool:
    """Whether a session's hint, which `usage.hint` has written, still holds and says that nothing is to be done."""
    switch, *words = known["hint"].split()
    figures = [*map(int, words)]
    if switch == "off":
        return figures[0] == stands[0]
    path = payload.get("transcript_path") or ""
    is_as_it_was = figures[:3] == stands and path == known["transcript"]
    if event not in _AFTER_TOOLS or not is_as_it_was or _completes(payload):
        return False
    inode, looked, limit, low, mark = figures[3:]
    try:
        found = posix.stat(path) if path else None
    except FileNotFoundError:
        found = None
    if found is None:
        return looked == 0
    end = found.st_size
    if found.st_ino != inode or end < looked or end >= limit:
        return False
    return end == looked or not _passes(_part(path, looked, end), low, mark)


def _passes(data: bytes, low: int, mark: int) -> bool:
    """Whether what is new in a transcript shows that the client's window passes a mark, or was emptied."""
    place = data.find(_FIGURES[0])  # in a text its quotes are escaped
    while place >= 0:
        figure = _figure(data, place)
        is_total = b"total_token_usage" in data[max(0, place - 24) : place]
        if figure and not is_total and (figure < low or 0 < mark <= figure):
            return True
        place = data.find(_FIGURES[0], place + 1)
    return b"<state_snapshot>" in data


def _part(path: str, begin: int, end: int) -> bytes:
    descriptor = posix.open(path, _READ)
    try:
        return posix.pread(descriptor, end - begin, begin)
    finally:
        posix.close(descriptor)


def _figure(data: bytes, place: int) -> int:
    """The tokens in the window, by the client's figures that begin at a place."""
    near, found = data[place : place + 400], 0
    for key in _FIGURES:
        _, there, rest = near.partition(key)
        digits, end = rest[:80].partition(b":")[2].lstrip(), 0
        while there and digits[end : end + 1].isdigit():
            end += 1
        found += int(digits[:end] or b"0")
    return found


def _completes(payload: "dict[str, Any]") -> bool:
    calls = payload.get("tool_calls")
    for call in calls if isinstance(calls, list) else [payload]:
        if isinstance(call, dict):
            given = call.get("tool_input")
            command = given.get("command") if isinstance(given, dict) else ""
            if call.get("tool_name") in _COMPLETING or "task done" in str(command):
                return True
    return False


def _parsed(data: bytes) -> "dict[str, Any]":
    """The object that a payload is, by the C part of `json`, whose own imports would double what all this takes."""
    from _json import make_scanner

    found, _ = make_scanner(_Scanning())(data.decode().lstrip(), 0)  # type: ignore[arg-type]
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found


class _Scanning:
    """What the scanner asks its decoder."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: "dict[str, Any]" = {}  # noqa: RUF012  # one reading a process


def _folder(client: str, payload: "dict[str, Any]") -> str:
    """Where the project is looked for, upwards: as `entry` does it. "" where that cannot be told here."""
    named = posix.environ.get(b"RALF_PROJECT_DIR", b"")
    if not named and client == "claude-code":
        named = posix.environ.get(b"CLAUDE_PROJECT_DIR", b"")
    if named:
        found = named.decode("utf-8", "surrogateescape").rstrip("/")
        return found.removesuffix("/.autonomous") if found.startswith("/") else ""
    cwd = payload.get("cwd")
    return cwd if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd else ""


def _store(folder: str) -> "tuple[str, int] | None":
    """The project of the nearest store upwards, and when its settings were changed last, 0 for none; None for no
    store.
    """
    while True:
        for top in (folder, _main_worktree(folder)):
            if top is not None and _stat(f"{top}{CONTEXT}")[0]:
                return top, _stat(f"{top}{CONTEXT}/config.yaml")[0]
        if not folder:
            return None
        folder = folder.rpartition("/")[0]


def _admitted(top: str) -> "str | None":
    """The name of the cache of a project that the user has opted in, "" where they have not; None where that cannot be
    told here: `ralf.storage.registry` says how a registration is kept.
    """
    named = posix.environ.get(b"XDG_CONFIG_HOME", b"")
    if not named.startswith(b"/"):
        named = posix.environ.get(b"HOME", b"") + b"/.config"
    try:
        descriptor = posix.open(top, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            real = posix.readlink(f"/proc/self/fd/{descriptor}")
        finally:
            posix.close(descriptor)
    except OSError:
        return None
    name = real.encode("utf-8", "surrogateescape").replace(b"%", b"%25").replace(b"/", b"%2F")
    if len(name) > 200 or not named.startswith(b"/"):
        return None
    said = _content((named + b"/ralf/projects/" + name + b".json").decode("utf-8", "surrogateescape"), _OURS)
    if not said.endswith(b"}\n"):
        return None
    if b'"hooks": true' not in said:
        return ""
    _, _, cache = said.partition(b'"cache": "')
    return cache.partition(b'"')[0].decode("ascii", "replace") or None


def _main_worktree(folder: str) -> "str | None":
    """The main worktree of a linked one, as its `.git` file says; `ralf.storage.git_files` checks it."""
    git = f"{folder}/.git"
    try:
        if posix.stat(git).st_mode & 0o170000 != 0o100000:
            return None
        said = _content(git, _READ).decode("utf-8", "surrogateescape").removeprefix("gitdir:").strip()
    except OSError:
        return None
    main, found, _ = said.rpartition("/.git/worktrees/")
    if not found:
        return None
    return main if main.startswith("/") else f"{folder}/{main}"


def _content(path: str, flags: int, *, touch: bool = False) -> bytes:
    """The first bytes of a file, none where there is none. `touch`: its time says when a hook called last."""
    try:
        descriptor = posix.open(path, flags)
    except OSError:
        return b""
    try:
        if touch:
            posix.utime(descriptor)
        return posix.read(descriptor, _MOST_STATE)
    except OSError:
        return b""
    finally:
        posix.close(descriptor)


def _stat(path: str) -> "tuple[int, int]":
    """When a file was changed last, in nanoseconds, and its bytes; zeros where there is none."""
    try:
        found = posix.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _is_plain(session: str) -> bool:
    """Whether a session's id is the name of its files, too, as it is for ids of letters, digits, hyphens and low lines
    that begin and end with a letter or digit.
    """
    ends, plain = session[:1] + session[-1:], session.replace("-", "").replace("_", "")
    return len(session) <= 64 and session.isascii() and ends.isalnum() and plain.isalnum()

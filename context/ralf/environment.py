"""What the environment says of us, the only module that looks at it; and processes that we start with it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from ralf import extensions
from ralf.text.patterns import regex

_MOST_DIGITS = 11  # of a user id, and one more

_OURS = ("GIT_", "RALF_")

_OF_THE_USER = frozenset({"RALF_CONSENT", "RALF_SAFE_DIRECTORIES"})

_SESSIONS = ("CODEX_THREAD_ID", "CLAUDE_CODE_SESSION_ID", "OPENCODE_SESSION_ID")  # of a client in another: the inner

_OF_A_SESSION = frozenset(
    {
        *_SESSIONS,
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_PROJECT_DIR",
        "CODEX_CI",
        "CODEX_SESSION_ID",
        "CODEX_TOOL_CALL_ID",
        "OPENCODE",
        "OPENCODE_PID",
    }
)

_OF_OTHER_AGENTS = (
    *("AI_AGENT", "AUGMENT_AGENT", "CLINE_ACTIVE", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
    *("CURSOR_AGENT", "GEMINI_CLI", "QWEN_CODE"),
)

_OF_A_LOOP = ("RALF_AGENT", "RALF_LEASE")

# What a summariser's command does not need: names that say what their values are, and the clouds'.
_SECRET = regex(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:PASS|PWD|KEYS?)(?:_|$)|(?:^|_)(?:PAT|AUTH|DSN|COOKIES?)(?:_|$)"
)

_CLOUDS = (
    *(
        "AWS_",
        "AZURE_",
        "ARM_",
        "GOOGLE_",
        "GCP_",
        "GCLOUD_",
        "CLOUDSDK_",
        "VERTEX_",
        "ALIBABA_",
        "OCI_",
        "TENCENTCLOUD_",
    ),
    *(
        "CLOUDFLARE_",
        "DIGITALOCEAN_",
        "HCLOUD_",
        "KUBE",
        "VAULT_",
        "CONSUL_",
        "NOMAD_",
        "PULUMI_",
        "TF_VAR_",
        "TF_TOKEN",
    ),
)

_NO_SECRET = frozenset({"PWD", "OLDPWD"})

_LOGIN_IN_URL = regex(r"://[^/?#\s@:]*+:[^/?#\s@]++@")


def project_directory() -> str:
    """The project that is meant, or its `.autonomous`; "" where nothing says it."""
    return os.environ.get("RALF_PROJECT_DIR", "")


def session() -> str:
    """The session of the client that runs us, "" for none."""
    return next((value for variable in _SESSIONS if (value := os.environ.get(variable, ""))), "")


def is_agent() -> bool:
    """Whether an agent runs us: its client, also one that names no session, or a loop that has started it."""
    return bool(agent())


def lease() -> str:
    """The lease of the task that we work at, `TASK-7k3q:17`; "" where nothing says it."""
    return os.environ.get("RALF_LEASE", "")


def agent_name() -> str:
    """What the loop calls the agent that it has started, "" for none."""
    return os.environ.get("RALF_AGENT", "")


def memory_name() -> str:
    """Whose memory is read and written: as `RALF_MEMORY` says, else `main`, which all agents of a project share."""
    return os.environ.get("RALF_MEMORY", "") or "main"


def holder() -> str:
    """By what name we hold a task outside of any loop: the client's session, else the user's on this machine; an agent
    whose client names no session does not go by the user's name.
    """
    return session() or f"{'agent' if is_agent() else _user()}@{os.uname().nodename}"


def _user() -> str:
    import pwd  # loaded only for who has no other name

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # one that the machine does not know, as in a container
        return str(os.geteuid())


def agent() -> str:
    """The variable by which an agent's client, or a loop, says that an agent runs us, "" where none does."""
    names = (*sorted(_OF_A_SESSION), *_SESSIONS, *_OF_OTHER_AGENTS, *_OF_A_LOOP)
    return next((name for name in names if os.environ.get(name)), "")


def claude_folder() -> Path | None:
    """Where Claude Code keeps what is the user's; None for a user whom the machine does not know, as in a container."""
    return _folder_of(os.environ.get("CLAUDE_CONFIG_DIR", ""), ".claude")


def codex_folder() -> Path | None:
    """Where Codex keeps what is the user's; None for a user whom the machine does not know."""
    return _folder_of(os.environ.get("CODEX_HOME", ""), ".codex")


def gemini_folder() -> Path | None:
    """Where Gemini CLI keeps what is the user's; None for a user whom the machine does not know."""
    home = _folder_of(os.environ.get("GEMINI_CLI_HOME", ""), ".")
    return home and home / ".gemini"


def opencode_folder() -> Path | None:
    """Where opencode keeps what is the user's; None for a user whom the machine does not know."""
    named = os.environ.get("XDG_DATA_HOME", "")
    data = _folder_of(named if named.startswith("/") else "", ".local/share")
    return data and data / "opencode"


def user_folder() -> Path | None:
    """Where ralf keeps what is the user's own: `$XDG_CONFIG_HOME/ralf`, else `~/.config/ralf`; None without a home."""
    named = os.environ.get("XDG_CONFIG_HOME", "")
    folder = _folder_of(named if named.startswith("/") else "", ".config")
    return folder and folder / "ralf"


def _folder_of(named: str, below_home: str) -> Path | None:
    """The folder that a variable names, else one below the user's home; None for a user without a home."""
    try:
        return Path(named) if named else Path.home() / below_home
    except RuntimeError:
        return None


def safe_directories() -> list[str]:
    """The absolute paths in `RALF_SAFE_DIRECTORIES`, real ones: projects that may belong to another user."""
    named = os.environ.get("RALF_SAFE_DIRECTORIES", "").split(os.pathsep)
    return [os.path.realpath(path) for path in named if path.startswith("/")]


def consent() -> str:
    """The sha256 of the `config.local.yaml` that whoever started us allows to run what it names; "" for none."""
    return os.environ.get("RALF_CONSENT", "").strip().lower()


def sudo_user() -> int | None:
    """The user who runs us as root through sudo, None where nothing says it."""
    named = os.environ.get("SUDO_UID", "")
    return int(named) if named.isascii() and named.isdigit() and len(named) < _MOST_DIGITS else None


_NATS = ("RALF_NATS_USER", "RALF_NATS_PASSWORD", "RALF_NATS_CREDS")


def nats_login() -> tuple[str, str, str] | None:
    """The user, the password and the path of the `.creds` file for NATS servers; None where no variable is set."""
    user, password, creds = (os.environ.get(name, "") for name in _NATS)
    return (user, password, creds) if user or password or creds else None


def command() -> str:
    """What is typed in place of `ralf`, as the script of a loop says it; "" where we were not called by one."""
    found = os.environ.get("RALF_COMMAND", "")
    return found if found.isprintable() and "`" not in found else ""


def editor() -> str:
    """The command line of the person's editor: `$VISUAL`, else `$EDITOR`, else `vi`."""
    return os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip() or "vi"


def is_without_colour() -> bool:
    """Whether the terminal gets no colours: `NO_COLOR` is set and not empty, or `TERM` is `dumb`."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def of_a_model() -> dict[str, str]:
    """The environment for a command that is not part of this session: without what points at a repository, a route,
    or the client that runs us; with the user's login.
    """
    ours = tuple(chain(_OURS, *extensions.ask(extensions.RUNS, attrgetter("variable_prefixes"))))
    return {
        name: value
        for name, value in os.environ.items()
        if name in _OF_THE_USER or (not name.startswith(ours) and name not in _OF_A_SESSION)
    }


def of_a_summarizer(keeps: Iterable[str]) -> dict[str, str]:
    """The environment for a command that is given what a session said: `of_a_model` without keys and passwords.

    keeps  names of variables that it needs all the same; `NAME_*` stands for all that begin so, and `NAME_* if OTHER`
           for them where OTHER is set, and neither empty, nor 0, nor false

    Left out is every variable whose name says key, token, secret, password or credential, or begins as a cloud's, and
    every one that holds an address with a password, unless it is a proxy's.
    """
    names = {name for keep in keeps for name in _kept(keep)}
    found = {name: value for name, value in of_a_model().items() if name in names or not _is_secret(name, value)}
    return found | {name: os.environ[name] for name in names if name in os.environ and name not in _OF_A_SESSION}


def _kept(keep: str) -> list[str]:
    pattern, _, condition = keep.partition(" if ")
    if condition and os.environ.get(condition, "").strip().lower() in ("", "0", "false"):
        return []
    if not pattern.endswith("*"):
        return [pattern]
    return [name for name in os.environ if name.startswith(pattern[:-1])]


def _is_secret(name: str, value: str) -> bool:
    upper = name.upper()
    if upper in _NO_SECRET:
        return False
    holds_login = not upper.endswith("_PROXY") and _LOGIN_IN_URL.search(value) is not None
    return upper.startswith(_CLOUDS) or _SECRET.search(upper) is not None or holds_login


# ---- processes that outlive whoever starts them: in a session of their own, with nothing to read from or print to ----

started: list[int] = []
"""By this process: reaped when the next one is started."""

_POLL_SECONDS = 0.01  # seconds between two looks

_TAKE_LOGIN = """\
import json, os, sys
os.environ.update(json.load(sys.stdin))
"""

_RUN_MODULE = """\
import sys
from importlib import import_module
sys.path[:0] = sys.argv[2:4]
import_module(sys.argv[1]).main(sys.argv[4:])
"""


def start_detached(module: str, file: str, arguments: Sequence[str]) -> int:
    """Start `main(arguments)` of a module, of this very tree, and return at once.

    module, file   its name, and where it lies (`__name__` and `__file__` of whoever asks for itself)

    Returns its process id. Its environment is `of_a_model`, of which Python itself takes nothing: a
    PYTHONPATH may name the project, and run its code. A login for NATS servers that is in our own environment comes to
    it through a pipe, so that no list of processes shows it. OSError, NotImplementedError (a system without `setsid` in
    `posix_spawn`) as they come.
    """
    for child in list(started):
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG) == (0, 0):
                continue
        started.remove(child)
    trees = [str(Path(file).parents[module.count(".")]), str(Path(__file__).parents[1])]
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    login = {name: os.environ[name] for name in _NATS if name in os.environ}
    code, pipe = _RUN_MODULE, -1
    if login:
        import json  # hooks start fast

        code, pipe = _TAKE_LOGIN + _RUN_MODULE, _filled_pipe(json.dumps(login).encode())
        actions.append((os.POSIX_SPAWN_DUP2, pipe, 0))
    argv = [sys.executable, "-E", "-P", "-c", code, module, *trees, *arguments]
    try:
        child = os.posix_spawn(sys.executable, argv, of_a_model(), file_actions=actions, setsid=True)
    finally:
        if login:
            os.close(pipe)
    started.append(child)
    return child


def _filled_pipe(content: bytes) -> int:
    """The end of a pipe from which a few bytes can be read."""
    end, begin = os.pipe()
    os.set_blocking(begin, False)  # what is too long is cut instead of waited for
    try:
        os.write(begin, content)
    except OSError:
        os.close(end)
        raise
    finally:
        os.close(begin)
    return end


def status_within(child: int, seconds: float) -> int | None:
    """Wait for a process that `start_detached` has started; its exit status, 0 for success; None where it goes on."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # someone else has waited for it: no one knows
            found, status = 1, 1 << 8
        if found:
            with suppress(ValueError):
                started.remove(child)
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)

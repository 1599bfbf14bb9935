"""The command of an agent: presets for Claude Code and Codex, any other as it is typed; its environment; its worktree.

No preset skips the permissions of its client: whoever wants that passes the client's own flag.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ralf.environment import of_a_model
from ralf.errors import UsageError
from ralf.storage import git_files
from ralf.text.patterns import regex
from ralf_integrations import environment
from ralf_integrations.loop.processes import Launch

PROMPT = "{prompt}"
"""In a word of a command: there stands the prompt, and nothing on standard input."""

PLAIN, CLAUDE, CODEX = "", "claude-code", "codex"
"""What is known of a command's client: nothing, or the names that `ralf_integrations.client` has."""

_PREFIXES = {"plain": PLAIN, "claude": CLAUDE, "codex": CODEX}
_ROLE = regex(r"(?P<role>[A-Za-z][A-Za-z0-9_.-]{0,62})=(?P<rest>.*)", 16)  # DOTALL
_PREFIX = regex(r"(?P<name>plain|claude|codex):(?P<rest>.*)", 16)
_HAS_SESSION = frozenset({"--session-id", "--resume", "-r", "--continue", "-c", "--no-session-persistence"})
_LONGEST_ARGUMENT = 128 << 10  # bytes of one word of a command line
_MOST_SECONDS = 600  # that git may take to make a worktree
_ITS_OWN = ("local", "worktree")  # scopes of settings that lie in the repository
_HELP = "ralf loop --help"


@dataclass(frozen=True, slots=True)
class Agent:
    """A command that works on tasks."""

    role: str  # of the tasks that it gets; "" for those that no other gets
    argv: tuple[str, ...]  # as the person gave it
    client: str = PLAIN  # the preset

    @property
    def label(self) -> str:
        """What it is called in what is printed."""
        return Path(self.argv[0]).name


def parse(text: str) -> Agent:
    """An agent as it is typed, `[ROLE=][CLIENT:]COMMAND`. UsageError for no command, and an open quotation.

    The preset is chosen by the name of the program, or by `claude:`, `codex:` or `plain:` before the command. The
    command is split as a shell would, but none is started: `sh -c '…'` asks for one.
    """
    role, rest, client = "", text.strip(), None
    if found := _ROLE.fullmatch(rest):
        role, rest = found["role"], found["rest"].strip()
    if found := _PREFIX.fullmatch(rest):
        client, rest = _PREFIXES[found["name"]], found["rest"].strip()
    try:
        argv = tuple(shlex.split(rest))
    except ValueError as error:
        raise UsageError("--agent", f"{text!a}: {error}", _HELP) from None
    if not argv or not argv[0]:
        raise UsageError("--agent", f"{text!a} names no command", _HELP)
    return Agent(role, argv, _PREFIXES.get(Path(argv[0]).name, PLAIN) if client is None else client)


def parse_all(texts: Sequence[str]) -> list[Agent]:
    """Agents as they are typed. UsageError where two have the same role."""
    found = [parse(text) for text in texts]
    for role, count in Counter(agent.role for agent in found).items():
        if count > 1:
            raise UsageError("--agent", f"two commands for {role or 'any role'}", "name a role: --agent ROLE=COMMAND")
    return found


def located(agents: Sequence[Agent], folder: Path) -> list[Agent]:
    """Agents whose programs are there. UsageError for one that is not.

    folder  where the person types: a relative path begins there, wherever the agent works
    """
    path = environment.of_an_agent().get("PATH", os.defpath)
    found = []
    for agent in agents:
        program, *rest = agent.argv
        if os.sep in program:
            program = os.path.normpath(folder / program)
        if shutil.which(program, path=path) is None:
            what = "no such program, or not executable" if os.sep in program else "not found on PATH"
            raise UsageError(program, what, _HELP)
        found.append(replace(agent, argv=(program, *rest)))
    return found


def command(agent: Agent, *, session: str, last: str) -> list[str]:
    """The command of a start, with `{prompt}` where the person has it.

    session  a UUID, for a client that lets us choose it
    last     the file for the last message, for a client that writes one
    """
    program, *rest = agent.argv
    if agent.client == CLAUDE:
        return [program, *_claude_options(rest, session), *rest]
    if agent.client == CODEX:
        at = next((number for number, word in enumerate(rest) if word in ("exec", "e")), -1)
        before, after = (rest[: at + 1], rest[at + 1 :]) if at >= 0 else (["exec"], rest)
        own = [] if _last_of(after) else ["--output-last-message", last]
        reads = [] if any(PROMPT in word for word in rest) or after[-1:] == ["-"] else ["-"]
        return [program, *before, *own, *after, *reads]
    return [program, *rest]


def shown(agent: Agent | None, role: str) -> str:
    """The command for a task of a role, as a dry run shows it."""
    if agent is None:
        return f"no agent for the role {role}"
    return shlex.join(command(agent, session="SESSION", last="LAST"))


def _claude_options(rest: Sequence[str], session: str) -> list[str]:
    given = _flags(rest)
    options = [] if given & {"-p", "--print"} else ["-p"]
    options += [] if given & _HAS_SESSION else ["--session-id", session]
    return options + ([] if "--output-format" in given else ["--output-format", "json"])


def _flags(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _last_of(words: Sequence[str]) -> str:
    """The file that the person has named for Codex's last message, "" for none."""
    for word, value in zip(words, (*words[1:], ""), strict=False):
        name, _, joined = word.partition("=")
        if name in ("-o", "--output-last-message"):
            return joined or value
    return ""


def make(agent: Agent, prompt: str, *, name: str, logs: Path, cwd: Path, variables: Mapping[str, str]) -> Launch:
    """A start of an agent. UsageError for a prompt that no command line holds; OSError as it comes.

    name   of the start: of its files in the folder `logs`
    """
    chooses = agent.client == CLAUDE and not _flags(agent.argv) & _HAS_SESSION
    session, last = str(uuid.uuid4()) if chooses else "", ""
    if agent.client == CODEX:
        last = os.path.join(cwd, _last_of(agent.argv) or logs / f"{name}.last.md")  # noqa: PTH118
    argv, prompt = command(agent, session=session, last=last), prompt.replace("\0", "")
    content, given = prompt.encode("utf-8", "replace"), logs / f"{name}.prompt.md"
    logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    given.write_bytes(content)
    given.chmod(0o600)
    takes = any(PROMPT in word for word in agent.argv)
    if takes and len(content) >= _LONGEST_ARGUMENT:
        raise UsageError(PROMPT, "the prompt is too long for a command line", "leave {prompt} out: it is on stdin")
    return Launch(
        argv=tuple(word.replace(PROMPT, prompt) for word in argv) if takes else tuple(argv),
        environment=_with_ralf(environment.of_an_agent()) | dict(variables),
        cwd=str(cwd),
        stdin="" if takes else str(given),
        log=str(logs / f"{name}.log"),
        errors=str(logs / f"{name}.err"),
        session=session,
        last=last,
    )


def _with_ralf(variables: dict[str, str]) -> dict[str, str]:
    """An environment in which `ralf` is found, where this one lies beside its Python and no other is there."""
    path, beside = variables.get("PATH", os.defpath), Path(sys.executable).parent
    if shutil.which("ralf", path=path) is None and (beside / "ralf").is_file():
        return variables | {"PATH": f"{path}{os.pathsep}{beside}"}
    return variables


# ---- a git worktree for each worker ----


class NoWorktree(UsageError):
    """A worker has no worktree, and git makes none."""


def worktree(folder: Path, root: Path, name: str) -> Path:
    """The git worktree of a worker, one that is there or a new one on a branch `ralf/NAME`. NoWorktree where git makes
    none.

    folder  of all worktrees, which the person has named; root: the project, whose newest commit it begins with
    """
    path = Path(os.path.abspath(folder)) / name  # noqa: PTH100  # links are not followed
    if path.is_dir():
        top = os.fsdecode(_git(path, "rev-parse", "--show-toplevel").stdout).strip()
        if not top or Path(top).resolve() != path.resolve():
            raise NoWorktree(path, "is no worktree of git", "name an empty folder: --worktrees DIR")
        return path
    _git(root, "worktree", "remove", str(path))  # an agent may have removed its folder alone
    branch = f"ralf/{name}"
    is_new = _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode
    how = ["-b", branch, str(path)] if is_new else [str(path), branch]
    done = _git(root, "worktree", "add", "--no-checkout", *how, **_without_programs(root))
    if not done.returncode:  # what its settings are depends on the worktree: a repository may include others there
        done = _git(path, "reset", "--hard", **_without_programs(path))
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        what = f"git makes no worktree: {lines[-1] if lines else done.returncode}"
        raise NoWorktree(path, what, "leave --worktrees out")
    return path


def _without_programs(path: Path) -> dict[str, str]:
    """The variables that keep git from running hooks and filters of the repository itself in a worktree, which may have
    come in an archive; the person's own, as of git-lfs, run.
    """
    listed = _git(path, *"config --show-scope --null --name-only --get-regexp ^(filter|hook)[.]".split())
    words = iter(os.fsdecode(listed.stdout).split("\0"))
    names = {name.rpartition(".")[0] for scope, name in zip(words, words, strict=False) if scope in _ITS_OWN}
    settings = {"core.hooksPath": os.devnull}
    for name in names:
        keys = {"smudge": "", "process": "", "required": "false"} if name[0] == "f" else {"enabled": "false"}
        settings |= {f"{name}.{key}": value for key, value in keys.items()}
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _git(folder: Path, *words: str, **given: str) -> subprocess.CompletedProcess[bytes]:
    done = git_files.ask(folder, words, of_a_model() | given, seconds=_MOST_SECONDS)
    if done is None:
        raise NoWorktree("git", "is not installed", "leave --worktrees out")
    return done

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ralf.errors import RalfError, UsageError
from ralf.text.patterns import regex
from ralf_integrations import environment
from ralf_integrations.loop.logs import Logs
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


@dataclass(frozen=True, slots=True)
class Agent:
    """A command that works on tasks.

    role    of the tasks that it gets; "" for those that no other gets
    argv    as the person gave it
    client  the preset: claude-code, codex, "" for none
    """

    role: str
    argv: tuple[str, ...]
    client: str = PLAIN

    @property
    def label(self) -> str:
        """What it is called in what is printed."""
        return Path(self.argv[0]).name


@dataclass(frozen=True, slots=True)
class Made:
    """A start that is ready: `launch` for its gate, and where its client tells of it.

    session  the client's id of its session where we chose it
    last     the file in which the client leaves its last message, None where it has none
    """

    launch: Launch
    session: str = ""
    last: Path | None = None


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
        raise UsageError("--agent", f"{text!a}: {error}", "ralf loop --help") from None
    if not argv or not argv[0]:
        raise UsageError("--agent", f"{text!a} names no command", "ralf loop --help")
    if client is None:
        client = _PREFIXES.get(Path(argv[0]).name, PLAIN)
    return Agent(role, argv, client)


def parse_all(texts: Sequence[str]) -> list[Agent]:
    """Agents as they are typed. UsageError where two have the same role."""
    found = [parse(text) for text in texts]
    roles = [agent.role for agent in found]
    for role in roles:
        if roles.count(role) > 1:
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
            raise UsageError(program, what, "ralf loop --help")
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
        reads = [] if _takes_argument(agent) or after[-1:] == ["-"] else ["-"]
        return [program, *before, *own, *after, *reads]
    return [program, *rest]


def _claude_options(rest: Sequence[str], session: str) -> list[str]:
    given = _flags(rest)
    options = [] if given & {"-p", "--print"} else ["-p"]
    if not given & _HAS_SESSION:
        options += ["--session-id", session]
    if "--output-format" not in given:
        options += ["--output-format", "json"]
    return options


def _flags(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in words}


def _last_of(words: Sequence[str]) -> str:
    """The file that the person has named for Codex's last message, "" for none."""
    for word, value in zip(words, (*words[1:], ""), strict=False):
        name, _, joined = word.partition("=")
        if name in ("-o", "--output-last-message"):
            return joined or value
    return ""


def _takes_argument(agent: Agent) -> bool:
    return any(PROMPT in word for word in agent.argv)


def make(
    agent: Agent, prompt: str, *, name: str, logs: Logs, cwd: Path, variables: Mapping[str, str], write: bool = True
) -> Made:
    """A start of an agent. UsageError for a prompt that no command line holds; OSError as it comes.

    name   of the start: of its files in `logs`
    write  whether the prompt's file is written
    """
    chooses = agent.client == CLAUDE and not _flags(agent.argv) & _HAS_SESSION
    session = str(uuid.uuid4()) if chooses else ""
    last = logs.last_of(name) if agent.client == CODEX else None
    argv = command(agent, session=session, last=str(last or ""))
    prompt = prompt.replace("\0", "")
    given = logs.prompt_of(name)
    if write:
        given.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        given.write_bytes(prompt.encode("utf-8", "replace"))
        given.chmod(0o600)
    stdin = str(given)
    if _takes_argument(agent):
        if len(prompt.encode("utf-8", "replace")) >= _LONGEST_ARGUMENT:
            raise UsageError(PROMPT, "the prompt is too long for a command line", "leave {prompt} out: it is on stdin")
        argv = [word.replace(PROMPT, prompt) for word in argv]
        stdin = ""
    if agent.client == CODEX and (named := _last_of(agent.argv)):
        last = cwd / named
    launch = Launch(
        argv=tuple(argv),
        environment=_with_ralf(environment.of_an_agent()) | dict(variables),
        cwd=str(cwd),
        stdin=stdin,
        log=str(logs.of(name)),
        errors=str(logs.errors_of(name)),
    )
    return Made(launch, session, last)


def _with_ralf(variables: dict[str, str]) -> dict[str, str]:
    """An environment in which `ralf` is found, where this one lies beside its Python and no other is there."""
    path, beside = variables.get("PATH", os.defpath), Path(sys.executable).parent
    if shutil.which("ralf", path=path) is None and (beside / "ralf").is_file():
        return variables | {"PATH": f"{path}{os.pathsep}{beside}"}
    return variables


# ---- a git worktree for each worker ----


@dataclass(frozen=True, slots=True)
class Worktrees:
    """A git worktree for each worker, below a folder that the person has named; one that is there is used as it is.

    root  the project, whose newest commit they begin with, each on a branch `ralf/NAME`
    """

    folder: Path
    root: Path

    def of(self, name: str) -> Path:
        """The worktree of a worker, made if missing. UsageError where git makes none."""
        path = Path(os.path.abspath(self.folder)) / name  # noqa: PTH100  # links are not followed
        if path.is_dir():
            top = self._git("-C", str(path), "rev-parse", "--show-toplevel").stdout.strip()
            if not top or Path(top).resolve() != path.resolve():
                raise UsageError(path, "is no worktree of git", "name an empty folder: --worktrees DIR")
            return path
        branch = f"ralf/{name}"
        known = self._git("-C", str(self.root), "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        how = ["-b", branch, str(path)] if known.returncode else [str(path), branch]
        if self._is_known(path):  # its folder was removed, and git was not told
            how.insert(0, "--force")
        done = self._git("-C", str(self.root), "worktree", "add", *how)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise UsageError(
                path, f"git makes no worktree: {lines[-1] if lines else done.returncode}", "leave --worktrees out"
            )
        return path

    def _is_known(self, path: Path) -> bool:
        """Whether git knows of a worktree there."""
        listed = self._git("-C", str(self.root), "worktree", "list", "--porcelain", "-z").stdout.split("\0")
        there = {os.path.realpath(one.removeprefix("worktree ")) for one in listed if one.startswith("worktree ")}
        return os.path.realpath(path) in there

    @staticmethod
    def _git(*words: str) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in environment.of_an_agent().items() if not name.startswith("GIT_")}
        try:
            return subprocess.run(
                ["git", *words],  # noqa: S607
                capture_output=True,
                text=True,
                errors="replace",
                env=variables,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except FileNotFoundError:
            raise RalfError("git", "is not installed", "leave --worktrees out") from None

"""Whether a client is set up as it should be: its settings, the command that they name, its program, its trust, and
how long it keeps transcripts. Nothing that a repository could have written is run.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ralf import __version__, environment
from ralf.errors import RalfError
from ralf.maintenance import ownership
from ralf.project import Project
from ralf.storage import git_files, registry
from ralf.storage.files import content_of
from ralf.text.cleaning import clean, one_line
from ralf_integrations import existing
from ralf_integrations.client import CLAUDE_CODE, CLIENTS, CODEX, Client
from ralf_integrations.clients import hook_module, installation, interpreter
from ralf_integrations.clients.settings import Ours

State = Literal["ok", "warning", "problem"]

_MOST = 16 << 20  # bytes of settings
_DAYS = 30
_DAY = 86_400
_SLOW = 5.0  # seconds that a call with nothing due may take


class Check(NamedTuple):
    """What was looked at, how it is, and what to type."""

    name: str
    state: State
    what: str
    hint: str = ""


def checks(project: Project) -> Iterator[Check]:
    """Everything about the clients that call ralf in a project."""
    places = [(client, shared) for client in CLIENTS.values() for shared in (False, True)[not client.has_local :]]
    looked = [(client, shared, client.path(project.root, shared=shared)) for client, shared in places]
    found = [(*one, entries) for one in looked if (entries := _called(one[0], one[2]))]
    names = {client.name for client, *_ in found}
    plugin = enabled_plugin(project) if CLAUDE_CODE.name not in names else None
    if plugin is not None:
        yield Check(CLAUDE_CODE.name, "ok", f"{plugin}: the plugin calls ralf's hooks")
    elif not found:
        what = "no client calls ralf in this project"
        yield Check("hooks", "warning", what, "ralf init --client claude-code")
    for client, shared, path, entries in found:
        again = f"ralf init --client {client.name}" + (" --shared" if shared and client.has_local else "")
        if isinstance(entries, str):
            yield Check(client.name, "problem", f"{path}: {entries}", "mend the file")
        else:
            yield from _settings(project, client, path, entries, again)
    if sum(client is CLAUDE_CODE for client, *_ in found) > 1:
        what = "two of its settings call ralf, so that each event calls two"
        yield Check("claude-code", "warning", what, "ralf init --client claude-code --shared --uninstall")
    ours = [one for *_, entries in found if not isinstance(entries, str) for one in entries]
    yield from _on_the_path(needed=plugin is not None or any(one.words[:1] == ["ralf"] for one in ours))
    clients = {client.name: client for client, *_ in found}
    if plugin is not None:
        clients[CLAUDE_CODE.name] = CLAUDE_CODE
    for client in clients.values():
        yield _program(client)
    if CLAUDE_CODE.name in clients:
        yield from of_claude(project, beside=plugin is None)
    if CODEX.name in clients:
        yield trust(project)


# ---- the settings ----


def _called(client: Client, path: Path) -> list[Ours] | str:
    """The entries by which a client's settings call ralf; what is wrong where they name it, and nobody can say."""
    try:
        return installation.called(client, path, content_of(path, follow=True, most=_MOST).decode())
    except FileNotFoundError:
        return []
    except (RalfError, OSError, UnicodeDecodeError) as error:
        what = error.what if isinstance(error, RalfError) else f"cannot be read: {error}"
        return what if "ralf" in _text(path) else []


def _settings(project: Project, client: Client, path: Path, found: Sequence[Ours], again: str) -> Iterator[Check]:
    missing = [event for event in client.installed if event not in {one.event for one in found}]
    if missing:
        yield Check(client.name, "problem", f"{path}: nothing is called for {', '.join(missing)}", again)
    text = _text(path)
    if client.module and not any(hook_module.text_of(client, shared=one) in text for one in (False, True)):
        yield Check(client.name, "warning", f"{path}: is the plugin of another version, or was changed", again)
    commands = {tuple(word for word in one.words if word != one.event): one for one in found}
    for first in commands.values():  # one entry for each command, whatever its event
        yield _command(client, path, first, again)
    if any(one.words[:1] != ["ralf"] for one in found) and git_files.tracks(
        project.root, path.relative_to(project.root)
    ):
        what = f"{path}: is committed, and names a Python of this machine"
        yield Check(client.name, "warning", what, f"git rm --cached {path}, or: {again} --shared")


def _command(client: Client, path: Path, one: Ours, again: str) -> Check:
    """Whether the command in the settings is there, is of this version, and answers."""
    shared = one.words[0] == "ralf"
    _, problem, hint = _ralf()
    if shared and problem:
        return Check(client.name, "problem", f"{path}: calls `ralf`: {problem}", hint)
    if one.words != client.command(one.event, shared=shared):
        python, folder = Path(one.words[0]), Path(one.words[-3])
        gone = next((place for place in (python, folder) if not place.exists()), None)
        if gone is not None and not shared:
            return Check(client.name, "problem", f"{path}: names {gone}, which is not there any more", again)
        what = f"{path}: calls another ralf than this one: not tried: {shlex.join(one.words)[:200]}"
        return Check(client.name, "warning", what, again)
    names = {hook.event: event for event, hook in client.installed.items()}
    tried = try_hook(partial(client.command, shared=shared), names["session-start"], names["tools-used"])
    if tried.problem:
        return Check(client.name, "problem", f"{path}: the hook {tried.problem}", again)
    what = f"{path}: calls {len(client.installed)} hooks; one answers in {tried.seconds * 1000:.0f} ms"
    return Check(client.name, "warning" if tried.seconds > _SLOW else "ok", what)


# ---- programs ----


def _ralf() -> tuple[str, str, str]:
    """The `ralf` of the PATH, why it is not to be run (a repository could have brought it, or it is not ours), and what
    to type then.
    """
    found = shutil.which("ralf") or ""
    if not found:
        what = "`ralf` is not on the PATH: agents cannot type it, and neither the plugin nor shared settings work"
        return "", what, interpreter.how_to_find_ralf()
    if not Path(found).is_absolute():
        return found, f"`ralf` is found in a relative folder of the PATH: {found}", "mend the PATH"
    if interpreter.is_launcher(found):
        what = f"`ralf` is the loop's launcher, another program: {found}"
        return found, what, "ralf init without --shared names this one by its path"
    what = "" if interpreter.is_ralf(found) else f"`ralf` of the PATH is not known as this command: {found}: not run"
    return found, what, interpreter.INSTALL


def _on_the_path(*, needed: bool) -> Iterator[Check]:
    found, problem, hint = _ralf()
    if problem:
        if needed or not (found and interpreter.is_launcher(found)):
            yield Check("command", "problem" if needed else "warning", problem, hint)
        return
    said = _said([found, "--version"])
    version = said.rpartition(" ")[2]
    if version != __version__:
        what = f"{found} is another ralf: {version or 'it does not say which'}; this one is {__version__}"
        yield Check("command", "warning", what, "in a clone of ralf: pipx install --force .")
    else:
        yield Check("command", "ok", f"{found}, version {version}")


def _program(client: Client) -> Check:
    found = shutil.which(client.program)
    if found is None or not Path(found).is_absolute():
        what = f"{client.title}: `{client.program}` is not on the PATH; proven with {client.proven}"
        return Check(client.name, "warning", what)
    version = next((word for word in _said([found, "--version"]).split() if word[:1].isdigit()), "")
    if not version:
        return Check(client.name, "warning", f"{client.title}: {found} does not tell its version")
    return Check(client.name, "ok", f"{client.title} {version} (proven with {client.proven})")


def _said(command: Sequence[str]) -> str:
    """What a command prints, in one line; "" where it fails."""
    with tempfile.TemporaryDirectory(prefix="ralf-doctor-") as folder, suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment.of_a_model(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        return one_line(clean(done.stdout.decode("utf-8", "replace")))[:200] if done.returncode == 0 else ""
    return ""


# ---- Claude Code ----


def enabled_plugin(project: Project) -> Path | None:
    """The settings of Claude Code that enable our plugin, None where none do: it calls the hooks by itself."""
    return next((path for path, tree in _trees(project) if _enables_plugin(tree)), None)


def _enables_plugin(tree: dict[str, Any]) -> bool:
    plugins = tree.get("enabledPlugins")
    return isinstance(plugins, dict) and any(name.startswith("ralf@") and on for name, on in plugins.items())


def _trees(project: Project) -> list[tuple[Path, dict[str, Any]]]:
    """The settings that Claude Code reads in a project, those that win first."""
    home = environment.claude_folder()
    files = [project.root / ".claude/settings.local.json", project.root / ".claude/settings.json"]
    files += [home / "settings.json"] if home is not None else []
    return [(path, _tree(path)) for path in files]


def of_claude(project: Project, *, beside: bool = True) -> Iterator[Check]:
    """What Claude Code's own settings say of hooks and transcripts; `beside`: its settings call ralf's hooks."""
    trees = _trees(project)
    for path, tree in trees:
        if tree.get("disableAllHooks") is True:
            yield Check("claude-code", "problem", f"{path}: disableAllHooks switches every hook off", "remove it")
        if beside and _enables_plugin(tree):
            what = f"{path}: the plugin is enabled, too, so that each event calls two hooks"
            yield Check("claude-code", "warning", what, "ralf init --client claude-code --uninstall")
    days = next(
        (tree["cleanupPeriodDays"] for _, tree in trees if isinstance(tree.get("cleanupPeriodDays"), int)), _DAYS
    )
    yield _retention(project, days)


def _retention(project: Project, days: int) -> Check:
    """Transcripts that the client is about to delete, and of which something is in no route yet."""
    old = []
    for session in existing.found(project, "claude-code"):
        with suppress(OSError):
            left = days - (time.time() - session.path.stat().st_mtime) / _DAY
            if left < min(7, days / 2):
                old.append(left)
    kept = f"Claude Code deletes transcripts after {days} days; what is checkpointed, and its evidence, stays"
    if not old:
        return Check("transcripts", "ok", kept)
    first = "any moment" if min(old) < 1 else f"in {min(old):.0f} days"
    what = f"{kept}. {len(old)} are not checkpointed, the first goes {first}"
    return Check("transcripts", "warning", what, "ralf import claude-code")


# ---- Codex ----


def trust(project: Project) -> Check:
    """Whether Codex runs the hooks, as far as its configuration tells."""
    home = environment.codex_folder()
    tree: dict[str, Any] = {}
    if home is not None:
        with suppress(tomllib.TOMLDecodeError):
            tree = tomllib.loads(_text(home / "config.toml"))
    folders = [str(folder) for folder in (project.root, *project.root.parents)]
    known = _at(tree, "projects")
    if not any(_at(known, folder).get("trust_level") == "trusted" for folder in folders):
        what = "Codex does not trust this project yet: it reads no hooks of it"
        return Check("codex", "warning", what, "codex exec --trust, or say so when Codex asks")
    path = CODEX.path(project.root, shared=False)
    states = [
        key
        for key, state in _at(tree, "hooks", "state").items()
        if isinstance(state, dict) and state.get("trusted_hash") and state.get("enabled") is not False
    ]
    missing = [
        event for event in CODEX.installed if not any(key.startswith(f"{path}:{_snake(event)}:") for key in states)
    ]
    if missing:
        what = f"Codex does not trust the hooks for {', '.join(missing)} yet: it does not run them"
        return Check("codex", "warning", what, "type /hooks in Codex, and trust those of ralf")
    return Check("codex", "ok", "Codex trusts this project and its hooks")


def _snake(event: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")


def _at(tree: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        found = tree.get(key)
        tree = found if isinstance(found, dict) else {}
    return tree


# ---- files ----


def _tree(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(_text(path))
    except (ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _text(path: Path) -> str:
    try:
        return content_of(path, follow=True, most=_MOST).decode("utf-8", "replace")
    except OSError:
        return ""


# ---- trying an installed hook: in a project that is thrown away, with a payload that means nothing ----


_TRIAL_SESSION = "0d0c7082-0000-4000-8000-000000000000"
_TRIAL_SECONDS = 30


class Trial(NamedTuple):
    """How it went: what is wrong, "" for nothing, and the seconds that a call took with nothing due."""

    problem: str
    seconds: float


def try_hook(command: Callable[[str], Sequence[str]], first: str, then: str) -> Trial:
    """Call a hook as a client does, for the beginning of a session and after a tool was used.

    command      what a client starts for an event
    first, then  its names of these events
    """
    with tempfile.TemporaryDirectory(prefix="ralf-doctor-") as name:
        project, seconds = Project(Path(name).resolve()), 0.0
        ownership.init(project, share=False)
        try:
            for event in (first, then, then):
                began = time.monotonic()
                if problem := _try(command(event), event, project.root):
                    return Trial(problem, 0.0)
                seconds = time.monotonic() - began
            is_known = any((project.cache / "hooks").glob("*.json"))
            return Trial("" if is_known else "was called, and nothing of it is known: another ralf answers", seconds)
        finally:
            registry.remove(project.root)


def _try(command: Sequence[str], event: str, root: Path) -> str:
    payload = {
        "session_id": _TRIAL_SESSION,
        "transcript_path": str(root / "session.jsonl"),
        "cwd": str(root),
        "hook_event_name": event,
        "source": "startup",
    }
    inside = {"CLAUDE_PROJECT_DIR": str(root), "GEMINI_PROJECT_DIR": str(root)}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(payload).encode(),
            cwd=root,
            env={**environment.of_a_model(), **inside},
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except OSError as error:
        return f"cannot be started: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return f"does not answer within {_TRIAL_SECONDS} seconds"
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1][:200]
    if done.returncode != 0 or said:
        return f"ends with status {done.returncode}" + (f": {said}" if said else "")
    try:
        json.loads(done.stdout or b"{}")
    except ValueError:
        return "answers something else than JSON"
    return ""

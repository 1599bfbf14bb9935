"""The contract that a hostile store is judged by: who may be told an attacker's words, and how.

1. Hooks never say one, whatever they are asked.
2. A command or MCP tool that was asked says them under the foreign label alone, as what was imported.
3. They are never a goal, a rule, pinned, a next step, a blocker or a request; never by the user or their agent.
4. Nothing of a file outside the project is read, kept or told; none is written.
5. No command of the attacker's runs, and no text of ours names a script of the repository.
6. What a person and their agent have said themselves, hooks do hand over.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import subprocess
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.faults.planted import WORD
from tests.faults.victim import OWN_WORDS, Told, Victim

LABEL = "came with the repository; not written by your ralf"
OUTSIDE = "oyw"
SCRIPTS = re.compile(r"context-checkpoint\.sh")
"""Scripts that a repository may bring: without a pin, no text of ours names one."""

_SAYS_SO = re.compile(r"foreign|import|came with the repository", re.IGNORECASE)
_AS_OURS = re.compile(r"\(user\)|\bby user\b|\buser\b *$|human-edit|\bby agent\b|\(agent\)", re.IGNORECASE)
_AS_IT_STANDS = {
    *("goal", "began_as", "handover", "next_steps", "todos", "blockers", "rules", "pinned", "requests", "last_request"),
}
_ORIGINS = {"user", "agent", "human-edit", "unknown"}


def faults_of(victim: Victim) -> list[str]:
    """Everything by which what happened to a victim breaks the contract, each in a line; each kind once."""
    found: dict[str, None] = dict.fromkeys(victim.faults)
    for told in victim.told:
        found |= dict.fromkeys(faults_in(told))
    found |= dict.fromkeys(_outside(victim))
    if list(victim.marker.parent.iterdir()):
        found["a command of the attacker's ran"] = None
    return list(found)


def hands_over(victim: Victim, heard: str, *words: str) -> None:
    """Fails a scenario in which hooks do not hand over a person's own words."""
    missing = [word for word in words or OWN_WORDS if word not in heard]
    if missing:
        victim.faults.append(f"a hook does not hand over the person's own words: {', '.join(missing)}")


def serves(victim: Victim, route: str, cwd: Path | None = None) -> None:
    """Fails a scenario in which a foreign route is not shown to who asks for it."""
    shown = victim.ralf("show", route, "--json", cwd=cwd)
    text = victim.ralf("show", route, cwd=cwd)
    listed = victim.ralf("list", "--json", cwd=cwd)
    if not any(WORD.search(ran.out) for ran in (shown, text)):
        victim.faults.append(f"on request the foreign route is not shown (status {shown.status})")
    elif LABEL not in text.out.lower():
        victim.faults.append("the foreign route is shown without the label")
    elif not shown.out.startswith("{") or not shown.json().get("foreign"):
        victim.faults.append("the foreign route's JSON does not say that it is")
    if f'"{route}"' not in listed.out:
        victim.faults.append("the foreign route is not listed")


def tree_of(folder: Path) -> dict[str, bytes | str]:
    """Every file below a folder but git's own, and what it holds."""
    found: dict[str, bytes | str] = {}
    for place, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*files, *folders]:
            path = Path(place) / name
            if path.is_symlink():
                found[str(path)] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path)] = path.read_bytes()
    return found


def stages_nothing_of_theirs(victim: Victim) -> None:
    """Fails a scenario in which `git add --all` or `commit -a` takes the person's words out of the store with it."""
    harmless = ("-c", "core.fsmonitor=false")
    status = victim.git(*harmless, "status", "--porcelain", "-uall", "--", ".autonomous")
    for path in (line[3:] for line in status.splitlines() if not line.startswith(("D ", " D"))):
        if victim.shares and path.startswith(".autonomous/context/routes/"):
            continue
        file = victim.project / path.strip('"')
        if file.is_file() and any(word.encode() in file.read_bytes() for word in OWN_WORDS):
            victim.faults.append(f"git would stage the person's own words: {path}")


# ---- what was told ----


def faults_in(told: Told) -> Iterator[str]:
    """Whatever in a thing that was told breaks the contract."""
    command = _plain(told.by)
    if OUTSIDE in told.text:
        yield f"{command}: tells what a file outside holds"
    if told.kind in ("hook", "notice", "mcp", "text", "json") and SCRIPTS.search(told.text):
        yield f"{command}: names a script of the repository"
    typed = set(WORD.findall(told.by))
    if told.kind == "hook":
        yield from (f"{command}: a hook says {word}" for word in _words(told.text)[:1])
    elif told.kind == "notice":
        yield from (f"{command}: a notice says {word}" for word in _words(told.text) if word not in typed)
    elif told.kind == "error":
        words = _words(told.text) if told.by.startswith("hook ") else []  # a command's errors are for a person
        yield from (f"{command}: an error says {word}" for word in words[:1])
    elif told.kind == "text":
        yield from (f"{command}: {fault}" for fault in _of_text(told.text, command, typed))
    else:
        yield from (f"{command}: {fault}" for fault in _of_json(told, typed))


def _plain(by: str) -> str:
    words = by.split()
    return " ".join(words[:2] if words[0] in ("hook", "mcp") else words[:3])[:60] + (" …" if len(words) > 3 else "")


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(WORD.findall(text)))


def _of_text(text: str, command: str, typed: set[str]) -> Iterator[str]:
    """Foreign words stand behind the label, each item says where it is from; in a table each row does."""
    labelled = text.lower().find(LABEL)
    place, item = 0, ""
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.startswith((" ", "\t", ">")):
            item = ""
        item += line
        foreign = [word for word in _words(line) if word not in typed]
        if foreign and not _SAYS_SO.search(item):
            yield f"{foreign[0]} stands there as if it were ours"
            return
        if foreign and "show" in command and not 0 <= labelled < place + len(line):
            yield f"{foreign[0]} stands outside the foreign label"
            return
        if foreign and _AS_OURS.search(line):
            yield f"{foreign[0]} stands there as said by the user or their agent"
            return
        place += len(line)


def _of_json(told: Told, typed: set[str]) -> Iterator[str]:
    if not told.text:
        return
    try:
        tree = json.loads(told.text)
    except ValueError:
        yield "no JSON"
        return
    if told.kind == "mcp":
        tree, texts = _unwrapped(tree)
        shows = "show" if "get_context" in told.by or "resources/read" in told.by else ""
        faults = [fault for text in texts for fault in _of_text(text, shows, typed)]
        if faults:
            yield faults[0]
            return
    for fault in _of_tree(tree, "", told_foreign=False, typed=typed):
        yield fault
        return


def _unwrapped(answer: Any) -> tuple[Any, list[str]]:
    """An MCP answer's own fields, and its texts, without the protocol around them."""
    result = answer.get("result", {}) if isinstance(answer, dict) else {}
    structured = dict(result.get("structuredContent") or {})
    texts = [str(structured.pop("text", ""))]
    texts += [str(each.get("text", "")) for each in [*result.get("content", []), *result.get("contents", [])]]
    texts += [str(each.get("content", {}).get("text", "")) for each in result.get("messages", [])]
    return [structured, answer.get("error", "")], texts


def _of_tree(tree: Any, path: str, *, told_foreign: bool, typed: set[str]) -> Iterator[str]:
    if isinstance(tree, dict):
        values = [each for each in tree.values() if isinstance(each, str)]
        if any(set(_words(each)) - typed for each in values):
            if tree.get("origin") in _ORIGINS:
                yield f"{path or 'it'}: foreign words have the origin {tree['origin']}"
            if "decision" in tree and (tree.get("pinned") or (tree.get("kind") or "decision") != "decision"):
                yield f"{path}: foreign words are a {tree.get('kind')}, pinned: {tree.get('pinned')}"
        told_foreign = told_foreign or bool(tree.get("foreign")) or tree.get("origin") == "import"
        for key, value in tree.items():
            if set(_words(str(key))) - typed:
                yield f"{path}: a foreign key {key}"
            below = f"{path}.{key}" if path else str(key)
            if key in _AS_IT_STANDS and (words := set(_words(json.dumps(value))) - typed):
                yield f"{below}: foreign words are served as such ({min(words)})"
            yield from _of_tree(value, below, told_foreign=told_foreign, typed=typed)
    elif isinstance(tree, list):
        for value in tree:
            yield from _of_tree(value, path, told_foreign=told_foreign, typed=typed)
    elif isinstance(tree, str):
        words = [word for word in _words(tree) if word not in typed]
        if words and not told_foreign and "foreign_notes" not in path:
            yield f"{path}: {words[0]} is not told to be foreign"


# ---- what lies outside ----


def _outside(victim: Victim) -> Iterator[str]:
    if done := victim.secret_was_touched():
        yield f"a file outside {done}"
    theirs = victim.secret.stat()
    for folder in (victim.project, victim.home / ".config", victim.home / ".codex"):
        for path in folder.rglob("*"):
            status = path.lstat()
            same = (status.st_dev, status.st_ino) == (theirs.st_dev, theirs.st_ino)
            ours = stat.S_ISREG(status.st_mode) and not same and ".git" not in path.parts
            if ours and OUTSIDE.encode() in _unpacked(path.read_bytes()):
                yield f"a file outside was kept: {path.relative_to(folder)}"


def _unpacked(data: bytes) -> bytes:
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:2] == b"PK":
            with zipfile.ZipFile(BytesIO(data)) as archive:
                return b"\n".join(_unpacked(archive.read(name)) for name in archive.namelist())
        if data[:1] == b"\x78":
            return zlib.decompress(data)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        pass
    return data


def loaded_atimes(folder: Path) -> bool:
    """Whether this file system keeps when a file was read: without it no read outside is seen."""
    file = folder / "atime"
    file.write_text("x")
    os.utime(file, (1_000_000, 1_000_000))
    subprocess.run(["cat", file], check=True, capture_output=True)  # noqa: S607
    return file.stat().st_atime > 2_000_000

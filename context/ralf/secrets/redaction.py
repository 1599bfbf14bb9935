"""A project's redactor: its key, made at first need and kept in `config.local.yaml`, and the user's own patterns."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import config, environment
from ralf.errors import Damaged, UsageError
from ralf.files import atomic, locks, ownfile
from ralf.secrets.redact import Redactor

if TYPE_CHECKING:
    from ralf.project import Project

_KEY = re.compile(r"^redaction_key:[ \t]*(['\"]?)([0-9a-f]{64})\1[ \t]*(?:#.*)?$", re.M)
_SLOW = 0.02  # seconds that a pattern may take for a probe
_PROBES = (16, 20, 24, 28, 64, 256, 1024, 4096, 16384)  # characters: what doubles with each shows at once


def of(project: Project) -> Redactor:
    """The project's redactor. Makes the key when there is none.

    Where the file that holds the key cannot be trusted (others may read it, it came with a clone), redaction goes on
    under a key that is forgotten: the redactor's `problem` says so. UsageError for a pattern of the user that is none,
    or is slow; Busy, OSError as for any write.
    """
    patterns = compiled(project.config_file, config.load(project.config_file).redact_patterns)
    try:
        return Redactor(_key(project), patterns)
    except (UsageError, Damaged) as error:
        return Redactor(secrets.token_bytes(32), patterns, problem=str(error))


# ---- the key ----


def _key(project: Project) -> bytes:
    path = project.local_config_file
    key = _key_in(path, ownfile.read(path))
    if key is None:
        project.prepare()
        with locks.held(project.folder / "locks" / "config.local.lock", str(path)):
            key = _made(path)
    if ownfile.may_be_cloned(path):
        ownfile.check_not_cloned(path, environment.of_a_model())
    return key


def _key_in(path: Path, text: str | None) -> bytes | None:
    """The key in a file's text, None where it names none; UsageError where it names something else."""
    if not text or "redaction_key" not in text:
        return None
    plain = _KEY.search(text)
    found = plain[2] if plain else config.tree_of(path, text).get("redaction_key")
    if found is None:
        return None
    if not isinstance(found, str) or not re.fullmatch("[0-9a-f]{64}", found):
        raise UsageError(path, "redaction_key: expected 64 hexadecimal digits", "remove the line: a key is made")
    return bytes.fromhex(found)


def _made(path: Path) -> bytes:
    """Write a key behind what stands in the file; the one that another process has written meanwhile, if any.

    It is added, not put in place of the file: whatever a person saves at this moment stays.
    """
    text = ownfile.read(path) or ""
    known = _key_in(path, text)
    if known is not None:
        return known
    key = secrets.token_bytes(32)
    line = f'redaction_key: "{key.hex()}"\n'
    added = ("\n" if text and not text.endswith("\n") else "") + line
    if config.tree_of(path, text + added).get("redaction_key") != key.hex():
        raise UsageError(path, "has no room for a key at its end", f"write into the file: {line.strip()}")
    atomic.add(path, added.encode())
    return _key_in(path, ownfile.read(path)) or key


# ---- the user's patterns ----


def compiled(path: Path, patterns: Sequence[str]) -> list[re.Pattern[str]]:
    """The user's patterns, compiled. UsageError for one that is none, matches nothing at all, or takes too long."""
    made = []
    for text in patterns:
        try:
            pattern = re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(path, f"redact_patterns: {text!r} is no regular expression: {error}") from None
        if pattern.match(""):
            raise UsageError(path, f"redact_patterns: {text!r} matches where nothing stands")
        if _is_slow(pattern):
            hint = "no repeat within a repeat, and bounds on repeats: [a-z]{8,64}"
            raise UsageError(path, f"redact_patterns: {text!r} takes too long on some texts", hint)
        made.append(pattern)
    return made


def _is_slow(pattern: re.Pattern[str]) -> bool:
    """Whether the pattern takes more than linear time on texts made of its own pieces.

    Texts grow, so that a pattern that takes exponential time is found out by a text on which it takes milliseconds.
    """
    for piece in _pieces(pattern.pattern):
        for size in _PROBES:
            text = (piece * (size // len(piece) + 1))[:size] + "\0"
            begin = time.process_time()
            for _ in pattern.finditer(text):
                pass
            if time.process_time() - begin > _SLOW:
                return True
    return False


def _pieces(pattern: str) -> Iterator[str]:
    words = re.findall(r"[A-Za-z0-9_-]{2,40}", pattern)
    characters = dict.fromkeys("aA0 -_./=" + "".join(re.findall(r"[^\\()\[\]{}*+?|^$]", pattern)))
    yield from dict.fromkeys([*characters, *words, "aA0", "a ", "a-", "a.", *(f"{word}a" for word in words)])

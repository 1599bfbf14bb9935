"""A project's redactor: its key, made at first need and kept in `config.local.yaml`, and the user's own patterns."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ralf import config, environment
from ralf.errors import Damaged, UsageError
from ralf.files import atomic, locks, ownfile
from ralf.ownership.owner import NO_FOLDER
from ralf.secrets import engine
from ralf.secrets.engine import Expression
from ralf.secrets.redact import Redactor

if TYPE_CHECKING:
    from ralf.project import Project

_KEY = re.compile(r"^redaction_key:[ \t]*(['\"]?)([0-9a-f]{64})\1[ \t]*(?:#.*)?$", re.M)
_KEY_LINE = re.compile(_KEY.pattern + r"\n?", re.M)


def of(project: Project) -> Redactor:
    """The project's redactor. Makes the key when there is none.

    Where no key can be kept, for a user without a folder that can be written, redaction goes on under a key that is
    forgotten: the redactor's `problem` says so. UsageError for a pattern of the user that cannot run.
    """
    project.owner.establish()
    patterns = compiled(project.config_file, config.redact_patterns_of(project))
    try:
        return Redactor(_key(project), patterns)
    except (UsageError, Damaged, OSError) as error:
        return Redactor(secrets.token_bytes(32), patterns, problem=str(error))


# ---- the key ----


def _key(project: Project) -> bytes:
    """The key in the user's own folder, made at first need; UsageError where none can be kept."""
    owner = project.owner
    found = owner.registration
    if found is None:
        raise UsageError(project.folder, NO_FOLDER)
    if not found.redaction_key:
        found = owner.complete(redaction_key=secrets.token_hex(32))
    return bytes.fromhex(found.redaction_key)


def key_in_file(project: Project) -> str | None:
    """The key that earlier versions kept in `config.local.yaml`, None for none; UsageError where it is something else,
    or the file is not the user's own.
    """
    path = project.local_config_file
    text = ownfile.read(path)
    if not text or "redaction_key" not in text:
        return None
    plain = _KEY.search(text)
    found = plain[2] if plain else config.tree_of(path, text).get("redaction_key")
    if found is None:
        return None
    if not isinstance(found, str) or not re.fullmatch("[0-9a-f]{64}", found):
        raise UsageError(path, "redaction_key: expected 64 hexadecimal digits", "remove the line: a key is made")
    ownfile.check_not_cloned(path, environment.of_a_model())
    return found


def remove_key_from_file(project: Project) -> None:
    """Take the key of earlier versions out of `config.local.yaml`; a file that held nothing else goes. What cannot be
    changed stays. Busy, OSError as for any write.
    """
    path = project.local_config_file
    with locks.held(project.folder / "locks" / "config.local.lock", str(path)):
        try:
            text = ownfile.read(path) or ""
        except (UsageError, Damaged):
            return
        rest = _KEY_LINE.sub("", text)
        if rest.strip():
            if rest != text:
                atomic.write(path, rest.encode())
        elif text:
            path.unlink()


# ---- the user's patterns ----


def compiled(path: Path, patterns: Sequence[str]) -> list[Expression]:
    """The user's patterns, compiled. UsageError for one that is none, matches nothing at all, or cannot run here."""
    made = []
    for text in patterns:
        try:
            made.append(engine.compile_users(text))
        except engine.PatternError as error:
            raise UsageError(path, f"redact_patterns: {text!r} cannot be used: {error}", _HINT) from None
    return made


_HINT = (
    "mend or remove it; patterns have RE2's syntax: no lookaround, no backreference"
    if engine.available()
    else "mend or remove it, or install google-re2; without it patterns need small bounds: [a-z]{8,64}"
)

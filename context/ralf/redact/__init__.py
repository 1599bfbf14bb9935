"""Redaction: secrets are found and replaced by tags before anything is made of a text.

`redactor_for` gives a project's redactor, with its key and the user's patterns; it loads the rules at first need.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ralf.errors import Damaged, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ralf.project import Project
    from ralf.redact.engine import Expression
    from ralf.redact.redactor import Redactor


def redactor_for(project: Project) -> Redactor:
    """Return what removes secrets from all that is stored of a project, under its key, which is made at first need.

    Where no key can be kept, for a user without a folder that can be written, redaction goes on under a key that is
    forgotten: the redactor's `problem` says so. UsageError for a pattern of the user that cannot run.
    """
    return project.once(_make_redactor)


def _make_redactor(project: Project) -> Redactor:
    from ralf import config  # this and the patterns are loaded for the first text that is stored
    from ralf.redact.redactor import Redactor

    patterns = compiled(project.config_file, config.redact_patterns_of(project))
    try:
        return Redactor(_key(project), patterns)
    except (UsageError, Damaged, OSError) as error:
        return Redactor(os.urandom(32), patterns, problem=str(error))


def _key(project: Project) -> bytes:
    """The key in the user's own folder, made at first need; UsageError where none can be kept."""
    project.establish()
    return bytes.fromhex(project.owner.redaction_key)


def compiled(path: Path, patterns: Sequence[str]) -> list[Expression]:
    """Compile the user's patterns. UsageError for one that is none, matches nothing at all, or cannot run here."""
    from ralf.redact import engine

    made = []
    for text in patterns:
        try:
            made.append(engine.compile_users(text))
        except engine.PatternError as error:
            hint = (
                "mend or remove it; patterns have RE2's syntax: no lookaround, no backreference"
                if engine.available()
                else "mend or remove it, or install google-re2; without it patterns need small bounds: [a-z]{8,64}"
            )
            raise UsageError(path, f"redact_patterns: {text!r} cannot be used: {error}", hint) from None
    return made

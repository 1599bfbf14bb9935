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
        project.establish()
        return Redactor(bytes.fromhex(project.owner.redaction_key), patterns)
    except (UsageError, Damaged, OSError) as error:
        return Redactor(os.urandom(32), patterns, problem=str(error))


def compiled(path: Path, patterns: Sequence[str]) -> list[Expression]:
    """Compile the user's patterns. UsageError for one that is none, matches nothing at all, or cannot run here."""
    from ralf.redact.engine import Expression, PatternError, Text, available

    made = []
    for text in patterns:
        try:
            made.append(Expression(text))
            why = "it matches where nothing stands" if any(made[-1].matches(Text(""))) else ""
        except PatternError as error:
            why = str(error)
        if why:
            runs = "mend or remove it; patterns have RE2's syntax: no lookaround, no backreference"
            hint = runs if available() else "install google-re2, or remove the pattern"
            raise UsageError(path, f"redact_patterns: {text!r} cannot be used: {why}", hint)
    return made

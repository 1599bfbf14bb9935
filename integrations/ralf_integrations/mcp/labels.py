"""What of a route may stand outside the fence: labels, ids and times of ours, which can spell nobody's words."""

from __future__ import annotations

import re
from collections.abc import Collection

from ralf.routing import BRANCH

KINDS = ("decision", "rule", "failed-approach", "checkpoint", "fact", "evidence")
STATUSES = ("active", "superseded", "reversed", "dropped")
ORIGINS = ("user", "agent", "human-edit", "import")

_ID = re.compile(r"(?:DEC|cp)-\d{1,9}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)


def label(text: str, known: Collection[str]) -> str:
    """A label, "" where it is none that is known."""
    return text if text in known else ""


def id_of(text: str) -> str:
    """The id of a decision or a checkpoint as ralf gives it, "" for another."""
    return text if _ID.fullmatch(text) else ""


def time_of(text: str) -> str:
    """An ISO 8601 time or date, "" for anything else."""
    return text if _TIME.fullmatch(text) else ""


def rule_of(rule: str) -> str:
    """How a route was chosen, without the name of a branch."""
    return BRANCH if rule.startswith(f"{BRANCH} ") else rule

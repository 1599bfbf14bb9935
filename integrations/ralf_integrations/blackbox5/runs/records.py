"""What a run's folder records beside its documents: metadata.yaml (the loop's, the executor's, the session hook's),
.ralf-metadata, RUN.yaml, context.yaml, status.txt and tracking.json. None has to be there, and none is believed against
one that says more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ralf.document import guarded_yaml
from ralf.text.cleaning import clean, one_line
from ralf.transcripts.events import leaves
from ralf_integrations.blackbox5.runs import handwritten
from ralf_integrations.blackbox5.runs.folder import RECORDS, RunFolder, task_id, time_of

_WORDS = {
    "title": ("task_title",),
    "agent": ("agent", "agent_type", "agent_id"),
    "phase": ("current_phase", "phase"),
    "started": ("timestamp_start", "started", "start_time", "started_at", "timestamp"),
    "ended": ("timestamp_end", "end_time", "completed_at"),
    "status": ("task_status", "status", "result"),
    "summary": ("summary",),
    "task": ("task_claimed", "task_id", "task", "current_task"),
}
_PROSE = ("notes", "thoughts", "error")
_LISTS = {key: key for key in ("discoveries", "next_steps", "blockers")} | {"findings": "discoveries"}
"""Keys that are lists also where one entry stands there alone, and how they are called; any other list counts, too."""
_PATHS = {"files_created": "created", "files_modified": "edited", "files_deleted": "deleted"}
_PARTS = ("", "state", "results", "loop", "run", "context", "git", "task")
_SAYS = ("discovery", "assumption", "statement", "learning", "question", "action", "description", "title", "message")
_NOT_TOLD = (*_PARTS, "decisions", "checkpoints")  # the last is ours
_NOTHING = ("", "none", "null", "n/a", "unknown", "pending", "-", "~")


@dataclass(slots=True)
class Recorded:
    """What is recorded of a run; "" and () where nothing is.

    outcome     how it ended, in the loop's words: COMPLETE, PARTIAL, BLOCKED, RETRY, FAILED; `status`: as written
    started, ended  ISO 8601 as written
    told        lists by their keys, each entry in words: actions_taken, discoveries, next_steps, blockers …
    notes       prose
    paths       (path, created or edited); `commits`: (hash, message)
    decisions   of RUN.yaml, as trees, each with the words that stand there
    rest        everything else that is filled in, `loop.number: 47`
    file        which file the lists and notes are of
    problems    files that could not be read as what they are, and why
    unread      what of them could not: file, line and words
    """

    task: str = ""
    title: str = ""
    agent: str = ""
    phase: str = ""
    outcome: str = ""
    status: str = ""
    started: str = ""
    ended: str = ""
    summary: str = ""
    notes: list[str] = field(default_factory=list)
    told: dict[str, list[str]] = field(default_factory=dict)
    paths: list[tuple[str, str]] = field(default_factory=list)
    commits: list[tuple[str, str]] = field(default_factory=list)
    decisions: list[Mapping[str, Any]] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    file: str = ""
    problems: dict[str, str] = field(default_factory=dict)
    unread: list[tuple[str, int, str]] = field(default_factory=list)


def read(folder: RunFolder) -> Recorded:
    """What a run's folder records. OSError where it is gone."""
    found = Recorded()
    for name in (name for name in RECORDS if name in folder.files):
        text = ""
        try:
            text = folder.text(name)
            if name == "status.txt":  # the loop writes it last
                line = one_line(clean(text))
                found.outcome = outcome_of(line) or found.outcome
                found.status = line if outcome_of(line) else found.status or line
                continue
            record = handwritten.load(text)  # JSON is YAML, too
            _take(found, record.tree, name)
            for first, last, what in record.broken:
                found.problems[name] = f"line {first}: {what}"
                found.unread.append((name, first, "\n".join(text.split("\n")[first - 1 : last])))
        except (guarded_yaml.BadYaml, OSError) as error:
            found.unread += [(name, 1, text)] if text.strip() else []
            found.problems[name] = one_line(str(getattr(error, "what", "") or getattr(error, "strerror", "") or error))
    return found


def _take(found: Recorded, tree: Mapping[str, Any], name: str) -> None:
    """Add what one record says to what is known."""
    parts = {at: part for at in _PARTS if isinstance(part := tree.get(at) if at else tree, Mapping)}
    rows = [(at, key, value) for at, part in parts.items() for key, value in part.items() if at or key not in _NOT_TOLD]
    rows += [("", "task", tree.get("task"))]

    def first(*keys: str) -> str:
        return next(filter(None, (_text_of(value) for one in keys for _, key, value in rows if key == one)), "")

    words = {what: first(*keys) for what, keys in _WORDS.items()}
    words |= {what: time_of(words[what]) for what in ("started", "ended")}
    named = task_id(first("task", "current_task"))
    words["task"] = task_id(first("task_claimed", "task_id")) or (named if re.search(r"\d", named) else "")
    found.outcome = found.outcome or outcome_of(words["status"])
    for what, said in words.items():
        setattr(found, what, getattr(found, what) or said)
    before = (len(found.notes), sum(map(len, found.told.values())))
    for at, key, value in rows:
        entries = _listed(value)
        for path_key, did in _PATHS.items():
            own = [value] if key == path_key else [one.get(path_key) for one in entries if isinstance(one, Mapping)]
            paths = (clean(one.strip()) for listed in own for one in _listed(listed) if isinstance(one, str))
            found.paths += [(path, did) for path in dict.fromkeys(paths) if path and (path, did) not in found.paths]
        if key in _PATHS or any(key in keys for keys in _WORDS.values()):
            continue
        if key in ("commit_hash", "git_commits"):
            logged = [(one.get("hash"), one.get("message")) for one in entries if isinstance(one, Mapping)]
            made = [(_text_of(commit), _text_of(said)) for commit, said in logged or [(value, "")]]
            found.commits += [one for one in made if one[0].casefold() not in _NOTHING]
        elif key in _PROSE:
            found.notes += filter(None, [_text_of(value)])
        elif isinstance(value, list) or key in _LISTS:
            told = list(filter(None, map(_in_words, entries)))
            found.told.setdefault(_LISTS.get(key, key), []).extend(told)
        elif (said := one_line(leaves(value))).casefold() not in _NOTHING:
            found.rest.append(f"{at + '.' if at else ''}{key}: {said}")
    is_told = before != (len(found.notes), sum(map(len, found.told.values()))) or found.summary
    found.file = found.file or (name if is_told else "")
    found.decisions += [one for one in _listed(tree.get("decisions")) if isinstance(one, Mapping)]


def _in_words(entry: object) -> str:
    """An entry of a list in words: what it says, then its other fields."""
    if not isinstance(entry, Mapping):
        return _text_of(entry)
    says = next((key for key in _SAYS if _text_of(entry.get(key))), "")
    others = ((name, one_line(leaves(value))) for name, value in entry.items() if name != says)
    said, rest = _text_of(entry.get(says)), "; ".join(f"{name}: {words}" for name, words in others if words)
    return f"{said} ({rest})" if said and rest else said or rest


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) and value.strip() else []


def _text_of(value: object) -> str:
    said = clean(str(value)).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return "" if said.casefold() in ("null", "none", "~") else said


# ---- outcomes ----

_OUTCOMES = {
    "FAILED": r"\bfail(?:ed|ure)?\b|\berrored\b|\baborted\b|\bcancel?led\b|\babandoned\b",
    "BLOCKED": r"\bblock(?:ed|ing)\b|\bwaiting\b|\bon hold\b",
    "RETRY": r"\bretry\b|\btry again\b",
    "PARTIAL": r"\bpartial(?:ly)?\b|\bincomplete\b",
    "COMPLETE": r"\b(?:complete[d]?|success(?:ful(?:ly)?)?|succeeded|done|finished|passed|merged)\b",
}
_UNDER_WAY = re.compile(
    r"\b(?:in[ _-]?progress|pending|started|active|running|claimed|queued|to ?do|open|not)\b", re.IGNORECASE
)
_LONGEST_STATUS = 60  # characters of a status


def outcome_of(status: str) -> str:
    """What a status as documents have it says of a run's end; "" where the run is under way, or nobody can tell."""
    if len(status) > _LONGEST_STATUS or _UNDER_WAY.search(status):
        return ""
    words = status.replace("_", " ")
    return next((outcome for outcome, said in _OUTCOMES.items() if re.search(said, words, re.IGNORECASE)), "")

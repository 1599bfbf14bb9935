"""What a run's folder records beside its documents: metadata.yaml (the loop's, the executor's, the session hook's),
.ralf-metadata, RUN.yaml, context.yaml, status.txt and tracking.json. None has to be there, and none is believed against
one that says more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
}
_LISTS = {
    "actions_taken": ("actions_taken", "actions"),
    "discoveries": ("discoveries", "findings"),
    "learnings": ("learnings",),
    "assumptions": ("assumptions",),
    "questions": ("questions_asked", "questions_answered", "questions"),
    "next_steps": ("next_steps",),
    "blockers": ("blockers",),
}
_PATHS = {"files_created": "created", "files_modified": "edited", "files_deleted": "deleted"}
_PARTS = ("", "state", "results", "loop", "run", "context", "git")
_SAYS = (
    *("discovery", "assumption", "statement", "learning", "question", "action"),
    *("description", "title", "message", "text"),
)
_NOT_TOLD = (*_PARTS, "decisions", "progress_log", "git_commits", "checkpoints")  # the last is ours
_NOTHING = ("", "none", "null", "n/a", "unknown", "pending", "-")


@dataclass(slots=True)
class Recorded:
    """What is recorded of a run; "" and () where nothing is.

    outcome     how it ended, in the loop's words: COMPLETE, PARTIAL, BLOCKED, RETRY, FAILED; `status`: as written
    started, ended  ISO 8601 as written
    told        named lists of what it did and found, each entry in words: actions, discoveries, next_steps, blockers …
    notes       prose
    paths       (path, created or edited); `commits`: (hash, message)
    decisions   of RUN.yaml and of a tracked run's log, as trees, each with the words that stand there
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
            _Taken(found, record.tree, name)
            if record.broken:
                found.problems[name] = f"line {record.broken[-1][0]}: {record.broken[-1][2]}"
            lines = text.split("\n")
            found.unread += [(name, first, "\n".join(lines[first - 1 : last])) for first, last, _ in record.broken]
        except (guarded_yaml.BadYaml, ValueError, OSError) as error:
            found.unread += [(name, 1, text)] if text.strip() else []
            found.problems[name] = one_line(str(getattr(error, "what", "") or getattr(error, "strerror", "") or error))
    return found


class _Taken:
    """What one record adds to what is known."""

    def __init__(self, found: Recorded, tree: Mapping[str, Any], name: str) -> None:
        if isinstance(task := tree.get("task"), Mapping):
            tree = {
                **tree,
                "task": "",
                **{f"task_{key}": task[key] for key in ("id", "title", "status") if key in task},
            }
        self.parts = {key: part for key in _PARTS if isinstance(part := tree if not key else tree.get(key), Mapping)}
        self.known: set[tuple[str, str]] = {("", key) for key in _NOT_TOLD}
        found.task = found.task or task_id(self.first("task_claimed", "task_id"))
        named = task_id(self.first("task", "current_task"))
        found.task = found.task or (named if any(map(str.isdigit, named)) else "")
        for what, keys in _WORDS.items():
            said = self.first(*keys)
            said = time_of(said) if what in ("started", "ended") else said
            if what == "status":
                found.outcome = found.outcome or outcome_of(said)
            if said and not getattr(found, what):
                setattr(found, what, said)
        notes = [prose for key in ("notes", "thoughts", "error") if (prose := self.first(key))]
        told = {what: entries for what, keys in _LISTS.items() if (entries := [*self.entries(keys)])}
        progress = [one for one in _listed(tree.get("progress_log")) if isinstance(one, Mapping)]
        if messages := [said for one in progress if (said := _text_of(one.get("message")))]:
            told["progress"] = messages
        found.notes += notes
        for what, entries in told.items():
            found.told.setdefault(what, []).extend(entries)
        found.file = found.file or (name if notes or told or found.summary else "")
        found.decisions += [
            {"decision": _text_of(one.get("message")), "timestamp": time_of(_text_of(one.get("timestamp")))}
            for one in progress
            if one.get("category") == "decision" and _text_of(one.get("message"))
        ]
        found.decisions += [one for one in _listed(tree.get("decisions")) if isinstance(one, Mapping)]
        self._take_paths(found)
        for at, part in self.parts.items():
            for key, value in part.items():
                words = one_line(leaves(value)) if (at, str(key)) not in self.known else ""
                if words.casefold() not in _NOTHING:
                    found.rest.append(f"{at + '.' if at else ''}{key}: {words}")

    def values(self, *keys: str) -> Iterator[Any]:
        """The values of these keys in all parts; they are taken up, and no rest."""
        for key in keys:
            for at, part in self.parts.items():
                if key in part:
                    self.known.add((at, key))
                    yield part[key]

    def first(self, *keys: str) -> str:
        """The first text among them."""
        return next(filter(None, map(_text_of, self.values(*keys))), "")

    def entries(self, keys: tuple[str, ...]) -> Iterator[str]:
        """The entries of lists, each in words: what it says, then its other fields."""
        for entry in (entry for value in self.values(*keys) for entry in _listed(value)):
            if not isinstance(entry, Mapping):
                said, rest = _text_of(entry), []
            else:
                key = next((key for key in _SAYS if _text_of(entry.get(key))), "")
                others = [(name, one_line(leaves(value))) for name, value in entry.items() if name != key]
                said, rest = _text_of(entry.get(key)), [f"{name}: {words}" for name, words in others if words]
            if whole := f"{said} ({'; '.join(rest)})" if said and rest else said or "; ".join(rest):
                yield whole

    def _take_paths(self, found: Recorded) -> None:
        actions = [entry for value in self.values("actions_taken") for entry in _listed(value)]
        for key, did in _PATHS.items():
            lists = [*self.values(key), *(entry.get(key) for entry in actions if isinstance(entry, dict))]
            named = [clean(one.strip()) for listed in lists for one in _listed(listed) if isinstance(one, str)]
            found.paths += [(path, did) for path in dict.fromkeys(named) if path and (path, did) not in found.paths]
        commits = [(_text_of(value), "") for value in self.values("commit_hash")]
        logged = [one for one in _listed(self.parts[""].get("git_commits")) if isinstance(one, Mapping)]
        commits += [(_text_of(one.get("hash")), _text_of(one.get("message"))) for one in logged]
        found.commits += [one for one in commits if one[0].casefold() not in _NOTHING]


def _listed(value: object) -> list[object]:
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

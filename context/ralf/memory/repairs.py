"""What repaired a command that failed, told by the calls of a session.

An error is over once its command ran again and did not say it any more, whatever it said then. What the agent did
between that run and the last one with the error repaired it: a command of its own, or an edit of a configuration. An
edit of the sources repairs what is in the tree, and no later session meets that again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ralf.checkpointing.due import EDIT_TOOLS
from ralf.facts.commands import is_shell, only_looks
from ralf.memory.purposes import comparable, program_of, purpose_of
from ralf.model import ErrorFact
from ralf.text.cleaning import one_line
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex
from ralf.transcripts.events import EvidenceLine

_BEGINNING = 60  # characters

_EXIT = regex(r"\A\s*+(?:Error: |<error>)?Exit code [1-9]|^(?:Process exited with code|Exit code:) [1-9]", re.M)

_DEFECT = regex(
    r"\bAssert|\bassert(?:ion)?\b|^FAILED\b|^--- FAIL|(?<!\d)\d++ (?:failed|failing)|^\s*[x✗✘✕●] "
    r"|\bexpected\b.{0,200}\b(?:got|received|but|actual|to (?:be|equal))\b|test result: FAILED|panicked at"
    r"|^[\w./@+-]+\.[A-Za-z]\w{0,7}(?::\d+|\(\d+)"
)
"""In what a test says that failed, or a checker that has found a place in the code."""

_CONFLICT = regex(r"^CONFLICT\b|\b[Mm]erge conflict\b|\bcould not apply\b")

_HUBS = frozenset(("git", "gh", "glab"))
"""Programs that repair nothing but their own errors, but for what fetches files."""

_FETCHES = regex(r"\bgit\b(?: -\S{1,80}| \S{1,200}/\S{0,200}){0,4} (?:submodule|lfs|fetch|config)\b")

_ASKS = regex(r"\b(?:ps|logs|status|--?version|version|list|info|ping|inspect|top|doctor|help|--help)\b")

_WAITS = frozenset(("sleep", "wait", "true", "nc", "curl", "wget", "psql", "ping", "sqlite3", "redis-cli", "mysql"))
"""Programs that wait, or ask a server something, unless they send it something."""

_SENDS = regex(r"-X ?(?:PUT|POST|PATCH|DELETE)|--data|\b(?:CREATE|ALTER|DROP|GRANT|INSERT|UPDATE|DELETE|SET)\b")

_CONFIGURATION = regex(
    r"(?:\A|/)\.[^/]++\Z|(?:\A|/)\.[^/]++/"
    r"|\.(?:toml|cfg|ini|ya?ml|conf|config|properties|env|lock|plist|rc|service|gradle|tf|local)\Z"
    r"|(?:\A|/)(?:(?:Makefile|Dockerfile|Procfile|Gemfile|CMakePresets|CMakeUserPresets|package|tsconfig|composer|pyproject)[^/]*+"
    r"|[^/]*+(?:settings|config|conf|local)[^/.]*+\.[a-z]++)\Z"
    r"|(?:\A|/)(?:settings|config|conf|etc)/(?:[^/]++/)*+[^/]++\Z"
)

_WORD = regex(r"[^\W\d_]{2}")

_FEWEST_LINES = 2  # behind the first one, of a call that is a script

_PATCHED = regex(r"(?m)^\*\*\* (?:Update|Add) File: (.+)$")


@dataclass(frozen=True, slots=True)
class Repair:
    """A command that failed, and what repaired it.

    command     in its comparable form; `error`: the line that told
    resolution  a command, or `edit PATH`
    failed      the places of the run that failed, and of its output; `fix`: of what repaired it
    """

    command: str
    error: str
    resolution: str
    failed: tuple[int, int]
    fix: int


@dataclass(frozen=True, slots=True)
class _Run:
    """A call of a shell: its place, that of its output (-1: none), what was typed and printed, whether it failed."""

    place: int
    output: int
    typed: str
    command: str
    said: str
    failed: bool


def repairs(
    lines: Sequence[EvidenceLine], first: int, errors: Iterable[ErrorFact], paths: Iterable[str]
) -> Iterator[Repair]:
    """What repaired the commands that failed, each error once.

    lines   calls and results, oldest first; `first`: the place from which an error has to be over
    errors  what is known to be an error of which command
    paths   files of the project that were edited, as they are called in it
    """
    known = list(errors)
    runs = _runs(lines, known)
    by_command: dict[str, list[_Run]] = {}
    for run in runs:
        by_command.setdefault(run.command, []).append(run)
    names = list(paths)
    for again in by_command.values():
        told: set[str] = set()
        for number, run in enumerate(again[:-1]):
            after = again[number + 1]
            error = _error_of(run, known) if run.failed else ""
            if not error or error in told or after.place < first or after.output < 0 or _says(after, error):
                continue
            found = _between(lines, runs, run, after, error, names)
            if found is not None:
                told.add(error)
                yield Repair(run.command, error, found[0], (run.place, run.output), found[1])


def is_defect(error: str) -> bool:
    """Whether an error tells a defect of the code: a test that failed, or a place that a checker found."""
    return _DEFECT.search(error) is not None


def _runs(lines: Sequence[EvidenceLine], errors: Sequence[ErrorFact]) -> list[_Run]:
    """Every call of a shell with what it printed."""
    outputs, found = _outputs(lines), []
    for place, line in enumerate(lines):
        if line.kind == "call" and is_shell(line.tool):
            output = outputs.get(place, -1)
            said = lines[output].text if output >= 0 else ""
            typed, *more = line.text.strip().split("\n")  # behind the command stands what the agent said it does
            command = comparable(typed) if len(more) < _FEWEST_LINES else ""
            failed = _EXIT.search(said) is not None
            failed = failed or any(comparable(e.command) == command and beginning(e.error) in said for e in errors)
            found.append(_Run(place, output, typed, command, said, failed))
    return [run for run in found if run.command]


def _outputs(lines: Sequence[EvidenceLine]) -> dict[int, int]:
    """By the place of a call, that of its output: of a call that was made alone and has one. Of several at once nobody
    knows which output is whose, nor whether what follows a call without one, which printed nothing or works on, is not
    of that one.
    """
    found: dict[int, int] = {}
    calls: list[int] = []
    results: list[int] = []
    owed = False
    for place, line in enumerate([*lines, _END]):
        if not is_shell(line.tool):
            continue
        if line.kind == "call" and (results or place == len(lines)):
            if len(calls) == len(results) == 1 and not owed:
                found[calls[0]] = results[0]
            owed = len(calls) > len(results)
            calls, results = [], []
        (calls if line.kind == "call" else results).append(place)
    return found


_END = EvidenceLine(0, 0, "call", "Bash", "")


def beginning(error: str) -> str:
    """The part of an error by which it is found in an output: it may be kept without its end."""
    return error[:_BEGINNING].rstrip("…").rstrip()


def _says(run: _Run, error: str) -> bool:
    return beginning(error) in run.said


def _error_of(run: _Run, known: Iterable[ErrorFact]) -> str:
    """The line that tells what went wrong in a run: as the facts say, else the last one that it printed."""
    for fact in known:
        if fact.error and comparable(fact.command) == run.command and _says(run, fact.error):
            return fact.error
    said = [line.strip() for line in run.said.splitlines() if _WORD.search(line) and not _EXIT.match(line)]
    return said[-1] if said else ""


# ---- what was done between two runs ----


def _between(
    lines: Sequence[EvidenceLine], runs: Sequence[_Run], run: _Run, after: _Run, error: str, paths: Sequence[str]
) -> tuple[str, int] | None:
    """What repaired a command, and its place; None where nothing did, or only an edit of the sources."""
    if _CONFLICT.search(error):
        return None
    is_lint = purpose_of(run.typed) == "lint"  # what it found in the code stands above the line that ends it
    in_code = is_defect(error) or (is_lint and any(map(is_defect, run.said.splitlines())))
    by_place = {one.place: one for one in runs}
    found: tuple[str, int] | None = None
    has_sources = False
    for place in range(run.output + 1, after.place):
        line = lines[place]
        one = by_place.get(place)
        if one is not None:
            if _repairs(one, run, in_code=in_code):
                found = one_line(one.typed), place
        elif line.kind == "call" and line.tool in EDIT_TOOLS:
            edited = _edited(line, paths)
            has_sources = has_sources or any(not _CONFIGURATION.search(path) for path in edited)
            configured = [
                path for path in edited if _CONFIGURATION.search(path) and path.rpartition("/")[2] not in error
            ]
            if configured and not in_code:
                found = f"edit {', '.join(configured)}", place
    return None if in_code and has_sources else found


def _edited(line: EvidenceLine, paths: Sequence[str]) -> list[str]:
    """The files that a call edits, as the project calls them where it knows them."""
    named = _PATCHED.findall(line.text) or [line.text.partition("\n")[0]]
    return [next((known for known in paths if path == known or path.endswith(f"/{known}")), path) for path in named]


def _repairs(one: _Run, run: _Run, *, in_code: bool) -> bool:
    """Whether a command may be what repaired another one: it passed, and did more than look around."""
    program = program_of(one.typed)  # "" where its quotes are open: the rest of it stood on other lines
    if one.failed or not program or "<<" in one.typed or one.command == run.command:
        return False
    if only_looks(one.typed) or (program in _WAITS and not _SENDS.search(one.typed)):
        return False
    if program in _HUBS and program != program_of(run.typed):
        return _FETCHES.search(one.typed) is not None
    if _ASKS.search(" ".join(one.typed.split()[1:4])):
        return False
    purpose = purpose_of(one.typed)
    return not purpose or not (in_code or (purpose, program) == (purpose_of(run.typed), program_of(run.typed)))

"""Which run of a loop we are part of, as the loop's variables say; and its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ralf import environment
from ralf.runs.folder import RunFolder
from ralf.transcripts.notes import session_of

_PLACES = (".autonomous/runs", "runs", "runs/{agent}", ".autonomous/agents/{agent}/runs")


def folder(root: Path) -> RunFolder | None:
    """The folder of the run that we are part of; None where we are of none, or it has none.

    root  the project's directory
    """
    named, run, agent = environment.run()
    if named:
        path = Path(named)
        return RunFolder(path) if path.is_dir() else None
    return next((RunFolder(path) for path in _places(root, run, agent) if path.is_dir()), None) if run else None


def name(root: Path) -> str:
    """The name of the run that we are part of, as a run folder's session has it, else its id; "" for none."""
    named, run, _ = environment.run()
    if not named and not run:
        return ""
    found = folder(root)
    if found is not None:
        return session_of(found.path, root)
    return session_of(Path(named), root) if named else run


def _places(root: Path, run: str, agent: str) -> Iterator[Path]:
    if "/" in run or run in (".", ".."):
        return
    names = dict.fromkeys((run, run if run.startswith("run-") else f"run-{run}"))
    for place in _PLACES:
        if agent or "{agent}" not in place:
            yield from (root / place.format(agent=agent) / name for name in names)

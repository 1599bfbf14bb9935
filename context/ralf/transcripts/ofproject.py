"""The transcripts that the client keeps of a project."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ralf import environment
from ralf.project import Project


def newest_first(project: Project) -> list[Path]:
    """This project's Claude Code transcripts, newest first; [] where the client keeps none, or nobody may look."""
    home = environment.claude_folder()
    if home is None:
        return []
    folder = home / "projects" / "".join(c if c.isascii() and c.isalnum() else "-" for c in str(project.root))
    found = []
    with suppress(OSError):
        for path in folder.glob("*.jsonl"):
            with suppress(FileNotFoundError):  # the client has removed it meanwhile
                found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)]

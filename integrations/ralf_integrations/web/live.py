"""Tells an open page whether what it shows has changed: a stamp of each topic, for which the page asks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ralf.errors import RalfError
from ralf.tasks.records import STREAM
from ralf_integrations.web.reading import Reader, ViewedProject
from ralf_integrations.web.sessions import Sessions


def stamps(reader: Reader, sessions: Sessions) -> dict[str, str]:
    """Of each topic, `home sessions routes tasks memory runs`, what is another text once it has changed; {} while the
    project cannot be read: the page says so.
    """
    try:
        look = sessions.newest()
        project = reader.project()
        signals = (f"{name} {when}" for name, when in project.store.written("signals").items())
        runs = (f"{stream} {project.store.head(stream)}" for stream in project.store.streams("runs/"))
        found = {
            "sessions": _sum([look.stamp]),
            "routes": _written(project, "routes"),
            "tasks": str(project.store.head(STREAM)),
            "memory": _written(project, "memory"),
            "runs": _sum([*signals, *runs]),
        }
    except (RalfError, OSError):
        return {}
    return {**found, "home": _sum(f"{topic} {stamp}" for topic, stamp in found.items() if topic != "runs")}


def _written(project: ViewedProject, folder: str) -> str:
    return _sum(f"{name} {when.changed}" for name, when in project.store.written(folder).items())


def _sum(lines: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(sorted(lines)).encode("utf-8", "replace"), digest_size=8).hexdigest()

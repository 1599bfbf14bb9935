"""What an agent learns across tasks: traps, commands, preferences, facts, patterns and relationships, by evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralf.memory.exporting import Exported as Exported, export as export
    from ralf.memory.model import Item as Item, Memory as Memory
    from ralf.memory.provenance import Provenance as Provenance, why as why
    from ralf.memory.snapshots import (
        Status as Status,
        restore as restore,
        snapshot as snapshot,
        status as status,
    )
    from ralf.memory.tidying import tidy as tidy
    from ralf.memory.writing import (
        agents as agents,
        candidates as candidates,
        load as load,
        new_item as new_item,
        record as record,
    )

_HOMES = {
    "exporting": ("Exported", "export"),
    "model": ("Item", "Memory"),
    "provenance": ("Provenance", "why"),
    "snapshots": ("Status", "restore", "snapshot", "status"),
    "tidying": ("tidy",),
    "writing": ("agents", "candidates", "load", "new_item", "record"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"ralf.memory.{home}"), name)
    raise AttributeError(f"module 'ralf.memory' has no attribute {name!r}")

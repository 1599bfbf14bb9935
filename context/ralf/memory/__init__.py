"""What an agent learns across tasks: traps, commands, preferences, facts, patterns and relationships, by evidence."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralf.memory.exporting import Exported as Exported, export as export
    from ralf.memory.harvest import judge as judge, take_in as take_in
    from ralf.memory.model import Item as Item, Memory as Memory
    from ralf.memory.provenance import Provenance as Provenance, why as why
    from ralf.memory.records import delta as delta, new_item as new_item
    from ralf.memory.selection import Selection as Selection, for_task as for_task
    from ralf.memory.upkeep import restore as restore, snapshot as snapshot, status as status, tidy as tidy
    from ralf.memory.writing import agents as agents, load as load, record as record

_HOMES = {
    "exporting": "Exported export",
    "harvest": "judge take_in",
    "model": "Item Memory",
    "provenance": "Provenance why",
    "records": "delta new_item",
    "selection": "Selection for_task get_memory",
    "upkeep": "restore snapshot status tidy",
    "writing": "accept_item agents drop_item load record remember",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"ralf.memory.{home}"), name)
    raise AttributeError(f"module 'ralf.memory' has no attribute {name!r}")

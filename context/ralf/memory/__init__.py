"""What an agent learns across tasks: traps, commands, preferences, facts, patterns and relationships, by evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralf.memory.exporting import Exported as Exported, export as export
    from ralf.memory.harvest import Harvest as Harvest, take_in as take_in
    from ralf.memory.judging import Verdict as Verdict, judge as judge
    from ralf.memory.model import Item as Item, Memory as Memory
    from ralf.memory.provenance import Provenance as Provenance, why as why
    from ralf.memory.selection import Selection as Selection, for_task as for_task
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


def __getattr__(name: str) -> Any:
    home: Any
    if name in ("Exported", "export"):
        from ralf.memory import exporting as home
    elif name in ("Harvest", "take_in"):
        from ralf.memory import harvest as home
    elif name in ("Verdict", "judge"):
        from ralf.memory import judging as home
    elif name in ("Selection", "for_task"):
        from ralf.memory import selection as home
    elif name in ("Item", "Memory"):
        from ralf.memory import model as home
    elif name in ("Provenance", "why"):
        from ralf.memory import provenance as home
    elif name in ("Status", "restore", "snapshot", "status"):
        from ralf.memory import snapshots as home
    elif name == "tidy":
        from ralf.memory import tidying as home
    elif name in ("agents", "candidates", "load", "new_item", "record"):
        from ralf.memory import writing as home
    else:
        raise AttributeError(f"module 'ralf.memory' has no attribute {name!r}")
    return getattr(home, name)

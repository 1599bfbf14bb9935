"""The JSON schema of a route file's front matter, for editors: made of the model, shipped as a file beside this one.

python -m ralf.format.schema > context/ralf/format/route-file.schema.json
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, Literal

from ralf.model import BODY, RouteContext

_SCALAR = ["string", "number", "boolean", "null"]

_SAID = {
    "RouteContext.context_checkpoint": "Which route, which revision, how much has gone by. ralf keeps it.",
    "RouteContext.goal": "What the work is about now. A goal that you write stays.",
    "RouteContext.began_as": "The route's first message.",
    "RouteContext.handover": "What the last agent, or a model, wrote for the next one.",
    "RouteContext.active_work": "Where the work stands: what is being done, how far it is, what comes next.",
    "RouteContext.decisions": "Decisions, rules and failed approaches, oldest first. Older ones may stand in the body.",
    "RouteContext.pinned": "Messages that every brief shows: take an entry out to take a pin off.",
    "RouteContext.facts": "Earlier versions kept facts here; they now stand in the body, under Facts.",
    "RouteContext.checkpoint_history": "One entry a checkpoint, oldest first.",
    "RouteContext.folded": "How much has moved out of this file; the journal and search still have it.",
    "RouteContext.dropped": "Tombstones of decisions that were dropped, so that none is recorded again.",
    "RouteContext.forgotten": "Tombstones of decisions whose words were purged.",
    "Decision.id": "A label within the route. Leave it out of a decision that you add.",
    "Decision.kind": "decision (when absent), rule or failed-approach",
    "Decision.pinned": "Whether it is handed over whatever else has to go.",
    "Decision.decision": "What was chosen, in words that can be read alone.",
    "Decision.rationale": "Why.",
    "Decision.status": "active (when absent), superseded, reversed, done, proposed or dropped",
    "Decision.alternatives": "What was turned down, each as `option: why not`.",
    "Decision.supersedes": "The id of the decision that this one replaces.",
    "Decision.clone": "Tag of the clone that recorded it, where route files are shared.",
    "Decision.origin": "user, agent, answer, human-edit, import, unknown or extracted",
    "Todo.status": "pending, in_progress or completed",
    "ActiveWork.now": "What the record says of now; it stands in the body.",
    "ActiveWork.tried": "What failed, was refused, undone or taken back. ralf keeps it.",
    "ActiveWork.next_steps": "What comes next. A step that you write stays until you take it out or it is done.",
}
"""What an editor says of a field."""


def schema() -> dict[str, Any]:
    """The schema: what is read without an error. Keys that it does not know are allowed, and kept."""
    definitions: dict[str, Any] = {}
    whole = _of_class(RouteContext, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Front matter of a route file of ralf",
        **whole,
        "$defs": dict(sorted(definitions.items())),
    }


def text() -> str:
    """The schema as the file that is shipped."""
    return as_text(schema())


def as_text(tree: dict[str, Any]) -> str:
    """A schema as the text of a file."""
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def _of_class(cls: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    properties = {}
    for field in dataclasses.fields(cls):
        key = field.metadata.get("key", field.name)
        if field.name != "extra" and key != BODY and field.metadata.get("stored", True):
            said = _SAID.get(f"{cls.__name__}.{field.name}")
            properties[key] = {**_of(hints[field.name], definitions), **({"description": said} if said else {})}
    return {"type": ["object", "null"], "properties": properties}


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint is Any:
        return {}
    if hint is str:
        return {"type": _SCALAR}  # a person may leave the quotes off
    if hint is bool:
        return {"type": ["boolean", "null"]}
    if hint is int:
        return {"type": ["integer", "string", "null"], "pattern": "^[0-9]{1,18}$"}
    if hint is float:
        return {"type": ["number", "string", "null"]}
    if typing.get_origin(hint) is Literal:
        return {"enum": [*typing.get_args(hint), None]}
    if typing.get_origin(hint) is tuple:
        return {"type": ["array", "null"], "items": _of(typing.get_args(hint)[0], definitions)}
    if isinstance(hint, types.UnionType):
        return _of(next(one for one in typing.get_args(hint) if one is not type(None)), definitions)
    if hint.__name__ not in definitions:
        definitions[hint.__name__] = {}  # a place for who names itself
        definitions[hint.__name__] = _of_class(hint, definitions)
    return {"$ref": f"#/$defs/{hint.__name__}"}


if __name__ == "__main__":
    print(text(), end="")

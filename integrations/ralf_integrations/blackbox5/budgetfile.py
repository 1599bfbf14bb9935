"""`context_budget.json`: reads every shape that is found, writes the one that the tool has, keeps all other keys."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ralf.files import atomic, folders
from ralf.files.opening import content_of

NAME = "context_budget.json"
MAX_TOKENS = 200_000
THRESHOLDS: Mapping[str, int] = {"subagent": 40, "warning": 70, "critical": 85, "hard_limit": 95}
"""By name, the percentage of the window at which each is passed; the last one is the highest."""

_MOST = 4 << 20  # bytes
_ROWS = 20  # of the history, as the tool keeps them
_MODE = 0o644
_PERCENT = 100
_LARGEST = 10**15  # what is larger, or none (NaN), is no count
_ROUNDED = 0.06  # points by which a percentage may differ from its count: some were rounded to one decimal

Shape = Literal["none", "tool", "flat", "absolute", "unknown"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a state file says.

    shape       none: there is no file; tool: as the tool writes it; flat: `thresholds` and `current` at the top;
                absolute: thresholds in tokens and `usage`; unknown: nothing of a budget in it
    max_tokens  tokens of the window, None where it does not say
    thresholds  by name, in percent of them, whatever they are written in
    tokens      in the window, None where it does not say
    history     its rows, as they stand
    doubt       why `tokens` is not to be trusted, "" for nothing; the file may have been written by hand
    tree        all of it
    """

    shape: Shape
    max_tokens: int | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None
    history: tuple[Any, ...] = ()
    doubt: str = ""
    tree: Mapping[str, Any] = field(default_factory=dict)

    @property
    def trusted(self) -> int | None:
        """The tokens in the window; None for unknown, also where what is said of them contradicts itself."""
        return None if self.doubt else self.tokens


def read(path: Path) -> Reading:
    """What a state file says. OSError where it cannot be read; ValueError where it holds no JSON object."""
    try:
        content = content_of(path, most=_MOST)
    except FileNotFoundError:
        return Reading("none")
    try:
        tree = json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(tree, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # what it holds, not what we were given
    config, top = _mapping(tree.get("config")), _mapping(tree.get("thresholds"))
    current = _mapping(tree.get("current")) or _mapping(tree.get("usage"))
    named = _numbers(config.get("thresholds")) or _numbers(top) or _numbers(tree)
    window = next(filter(None, (_count(one.get("max_tokens")) for one in (config, tree, current))), None)
    absolute = any(value > _PERCENT for value in named.values())
    shape: Shape = "unknown"
    if config:
        shape = "tool"
    elif absolute:
        shape = "absolute"
    elif top or current:
        shape = "flat"
    size = window or MAX_TOKENS
    percents = {name: _PERCENT * value / size if value > _PERCENT else value for name, value in named.items()}
    tokens = _count(current.get("current_tokens"))
    history = tree.get("history")
    return Reading(
        shape=shape,
        max_tokens=window,
        thresholds=percents,
        tokens=tokens,
        history=tuple(history) if isinstance(history, list) else (),
        doubt=_doubt(tokens, size, current, percents),
        tree=tree,
    )


def write(path: Path, config: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    """Put the newest reading into a state file, whole or not at all; every key that is not the tool's stays as it is.

    config   the tool's own: max_tokens, thresholds
    current  the reading; it is added to the history, whose newest 20 rows are kept

    What cannot be read as a JSON object is kept beside the file; its name is returned, else "". OSError as it comes.
    """
    folders.make(path.parent, mode=folders.NOT_WRITABLE_BY_OTHERS)
    aside = ""
    try:
        tree = dict(read(path).tree)
    except ValueError:
        content = content_of(path, most=_MOST)
        damaged = path.with_name(f"{path.name}.damaged-{hashlib.sha256(content).hexdigest()[:8]}")
        atomic.write(damaged, content, mode=_MODE)
        tree, aside = {}, damaged.name
    history = tree.get("history")
    rows = history if isinstance(history, list) else [history] if history is not None else []
    known = tree.get("config")
    tree["config"] = {**known, **config} if isinstance(known, dict) else dict(config)
    tree["current"] = {**_mapping(tree.get("current")), **current}
    tree["history"] = [*rows, dict(current)][-_ROWS:]
    ordered = {key: tree[key] for key in ("config", "current", "history")}
    ordered |= {key: value for key, value in tree.items() if key not in ordered}
    atomic.write(path, json.dumps(ordered, indent=2).encode("utf-8", "surrogatepass"), mode=_MODE)
    return aside


def _doubt(tokens: int | None, size: int, current: Mapping[str, Any], thresholds: Mapping[str, float]) -> str:
    if tokens is None:
        return ""
    percent, said = _PERCENT * tokens / size, current.get("percentage")
    if isinstance(said, int | float) and not (_is_number(said) and abs(percent - said) <= _ROUNDED):
        return f"{tokens:,} of {size:,} tokens are {percent:.2f} %, not {said}"
    if "threshold_triggered" not in current:
        return ""
    passed = [name for name in THRESHOLDS if thresholds.get(name, math.inf) <= percent]
    told = current["threshold_triggered"]
    if told != (passed[-1] if passed else None):
        return f"at {percent:.2f} % the threshold {passed[-1] if passed else None} is passed, not {told}"
    return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _numbers(value: object) -> dict[str, float]:
    """The thresholds of a mapping, by name."""
    found = _mapping(value)
    return {name: found[name] for name in found if _is_number(found[name]) and (name in THRESHOLDS)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and _is_number(value) and value >= 0 else None

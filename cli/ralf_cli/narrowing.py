"""A context as JSON, the part that is asked for, within a budget: what the text of that budget says goes last."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ralf.text.cleaning import one_line, prose

_ALWAYS = ("route", "revision")

_KEPT = (*_ALWAYS, "goal", "decisions", "history")  # whatever they hold

_OF_SECTION = {
    "goal": ("goal", "goal_origin", "began_as"),
    "work": ("handover", "active_work", "since"),
    "decisions": ("decisions", "pinned"),
    "facts": ("facts",),
    "history": ("checkpoints", "history"),
}

_NOT_BRIEF = ("history", "folded")

_HEADING = "\n### "

_BOOKKEEPING = frozenset(
    "timestamp source session sha256 lines tokens tokens_stored"
    " summarizer reason key_events last_modified extra further_sources created"
    " total_tokens_consumed agent_type last_progress".split()
)
"""Fields of items that say where one came from and what it cost: a budget gives them up before any item."""

_DEFAULTS = {"status": "active", "kind": "decision", "origin": ("user", "agent", "human-edit")}

_PROBES = (
    "id",
    "checkpoint_id",
    "path",
    "commit",
    "error",
    "command",
    "request",
    "content",
    "description",
    "task",
    "result",
)
"""The field by which an item is found in the text, the first that it has."""

_PROBE = 60  # characters of it: the text may cut what follows

_Unit = tuple[tuple[str, ...], int]
"""An item that can go: the keys that lead to its list, or to a section of the history, and its number there."""

_LAST = ("since", "folded", "began_as", "active_work", "handover", "goal_origin", "goal")
"""What is taken out as a whole, the goal last."""


def narrowed(tree: Mapping[str, Any], part: str | None, max_tokens: int | None, said: str) -> str:
    """The keys of a context's tree (`output.context_as_json`) that are asked for, as JSON of at most so many tokens.

    part        a section of the text: the keys that it is made of, beside route and revision; brief: all but the
                history, and of facts and checkpoints those that the text says; None: all
    max_tokens  o200k_base tokens of what is printed; None: no limit
    said        the text of this part in the same budget

    Where all has no room, the JSON is compact, and these go, in this order: what the items cost and where they came
    from, with fields that are empty or have their default; items that the text does not say, or that stand elsewhere
    in the JSON; of long fields what the text does not say; items that it says. Of items that which matters least goes
    first: history, facts, retired decisions, active ones, work, rules, at last the goal; of those that the text says,
    work goes before checkpoints and decisions. `left_out` says how many of each. "" where not even route and revision
    have room. Below about a thousand tokens the names of fields take more room than the text has for marks.
    """
    text = _Said(said)
    if part == "brief":
        kept = {key: value for key, value in tree.items() if key not in _NOT_BRIEF}
        kept["checkpoints"] = [one for one in tree["checkpoints"] if text.has(one)]
        kept["facts"] = {
            key: [one for one in value if text.has(one)] if isinstance(value, list) else value
            for key, value in tree["facts"].items()
        }
    elif part is not None:
        kept = {key: tree[key] for key in (*_ALWAYS, *_OF_SECTION[part])}
    else:
        kept = dict(tree)
    whole = _printed(kept)
    return whole if max_tokens is None or _fits(whole, max_tokens) else _within(kept, max_tokens, text)


def _printed(tree: Mapping[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, indent=2, default=str)


def _compact(tree: Mapping[str, Any]) -> str:
    """A tree as JSON without indentation, a line for each of its keys."""
    lines = (
        f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'), default=str)}"
        for key, value in tree.items()
    )
    return "{" + ",\n".join(lines) + "}"


def _fits(text: str, most: int) -> bool:
    from ralf.text import tokens

    return tokens.count(text) <= most


def _words(item: Any) -> str:
    """The words by which an item is known."""
    if isinstance(item, Mapping):
        item = next((item[key] for key in _PROBES if item.get(key)), "")
    return one_line(str(item))


def _in_word(character: str) -> bool:
    return character.isalnum() or character in tuple("_-/")


class _Said:
    """A text on one line, which knows what it says of an item or a field."""

    def __init__(self, text: str) -> None:
        self._text = one_line(text.replace("\n> ", " "))

    def has(self, item: Any) -> bool:
        """Whether an item is said, at least its beginning."""
        words = _words(item)
        probe = words[:_PROBE]
        is_cut = len(words) > len(probe)
        at = self._text.find(probe) if probe else -1
        while at >= 0 and not self._is_whole(at, at + len(probe), is_cut=is_cut):
            at = self._text.find(probe, at + 1)
        return at >= 0

    def _is_whole(self, start: int, end: int, *, is_cut: bool) -> bool:
        """Whether no word goes on beyond a place: `DEC-001` is not said by `DEC-0010`, nor `a.py` by `src/a.py`."""
        before, behind = self._text[max(start - 1, 0) : start], self._text[end : end + 1]
        return not _in_word(before) and (is_cut or not _in_word(behind))

    def as_far_as(self, value: Any) -> Any:
        """A value of which each long text is reduced to the beginning and the end that are said, "" for neither."""
        if isinstance(value, list | tuple):
            return [self.as_far_as(one) for one in value]
        if isinstance(value, Mapping):
            return {key: self.as_far_as(one) for key, one in value.items()}
        if not isinstance(value, str) or len(value) <= _PROBE:
            return value
        forms = one_line(value), prose(value)
        if any(form in self._text for form in forms):
            return value
        form, begins = max(((form, self._common(form)) for form in forms), key=lambda found: found[1])
        ends = min(self._common(form, at_end=True), len(form) - begins)
        parts = form[:begins].rstrip(" …"), form[len(form) - ends :].lstrip(" …")
        return " … ".join(part if len(part) >= _PROBE // 3 else "" for part in parts).strip(" ")

    def _common(self, form: str, *, at_end: bool = False) -> int:
        """How many characters of the beginning, or the end, of a text are said."""
        least, most = 0, len(form)
        while least < most:
            middle = (least + most + 1) // 2
            if (form[-middle:] if at_end else form[:middle]) in self._text:
                least = middle
            else:
                most = middle - 1
        return least


def _within(tree: Mapping[str, Any], most: int, text: _Said) -> str:
    lean = {key: _lean(value) for key, value in tree.items()}
    lean = {key: value for key, value in lean.items() if key in _KEPT or _is_told(key, value)}
    units = list(_units(lean))
    work = lean.get("active_work", {})
    seen = {one_line(str(lean.get("goal", ""))), one_line(str(work.get("last_request", "")))}
    said: list[_Unit] = []
    for unit in reversed(units):
        words = _words(_item(lean, unit)) if unit[1] >= 0 else ""
        if unit[1] < 0 or (text.has(words) and words not in seen):
            said.insert(0, unit)
            seen.add(words)
    said.sort(key=lambda unit: (unit[1] < 0, unit[0][0] in ("checkpoints", "decisions")))
    kept = set(said)
    unsaid = [unit for unit in units if unit not in kept]
    if made := _fewest(lean, [], unsaid, most):
        return made
    if made := _fewest(_as_said(lean, text), unsaid, said, most):
        return made
    bare = _compact({key: tree[key] for key in _ALWAYS} | {"left_out": {"items": len(units)}})
    return bare if _fits(bare, most) else ""


def _fewest(tree: Mapping[str, Any], gone: Sequence[_Unit], units: Sequence[_Unit], most: int) -> str:
    """The tree without some units, and without as few as possible of others, the first ones; "" where all have to go
    and that is not enough.
    """

    def made(count: int) -> str:
        return _compact(_without(tree, [*gone, *units[:count]]))

    least, all_ = 0, len(units)
    while least < all_:
        middle = (least + all_) // 2
        if _fits(made(middle), most):
            all_ = middle
        else:
            least = middle + 1
    found = made(least)
    return found if _fits(found, most) else ""


def _lean(value: Any) -> Any:
    """A value without what items cost and where they came from, and without empty fields and defaults within it."""
    if isinstance(value, list | tuple):
        return [_lean(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    made = {key: _lean(one) for key, one in value.items()}
    return {key: one for key, one in made.items() if _is_told(key, one) and not _is_default(key, one)}


def _is_told(key: str, value: Any) -> bool:
    """Whether a field says anything: 0 and False do."""
    return key not in _BOOKKEEPING and value not in (None, "", [], {})


def _is_default(key: str, value: Any) -> bool:
    known = _DEFAULTS.get(key, ())
    return isinstance(value, str) and (value == known if isinstance(known, str) else value in known)


def _as_said(tree: Mapping[str, Any], text: _Said) -> dict[str, Any]:
    """The tree with long texts as far as the text says them: of a decision often its statement alone."""
    made = {key: value if key in _ALWAYS or key == "history" else text.as_far_as(value) for key, value in tree.items()}
    return {key: value if key in _ALWAYS else _lean(value) for key, value in made.items()}


def _item(tree: Mapping[str, Any], unit: _Unit) -> Any:
    """The item that a unit names."""
    keys, number = unit
    value = tree[keys[0]] if len(keys) == 1 else tree[keys[0]][keys[1]]
    return value.split(_HEADING)[number - 1] if keys == ("history",) else value[number]


def _units(tree: Mapping[str, Any]) -> Iterator[_Unit]:
    """What can go, in the order in which it goes; of each list the oldest item first."""
    yield from ((("history",), number) for number in range(_sections(tree.get("history", "")), 0, -1))
    facts = tree.get("facts", {})
    for key in sorted(facts, key=lambda key: key == "requests"):
        if isinstance(facts[key], list):
            yield from ((("facts", key), number) for number in range(len(facts[key])))
    for key in ("checkpoints", "foreign_notes"):
        yield from (((key,), number) for number in range(len(tree.get(key, ()))))
    ranks = [_rank(item) for item in tree.get("decisions", ())]
    for rank in (0, 1):
        yield from ((("decisions",), number) for number, found in enumerate(ranks) if found == rank)
    work = tree.get("active_work", {})
    for key, value in work.items():
        if isinstance(value, list):
            yield from ((("active_work", key), number) for number in range(len(value)))
    handover = tree.get("handover") or {}
    yield from ((("handover", "kept"), number) for number in reversed(range(len(handover.get("kept", ())))))
    yield from ((("decisions",), number) for number, found in enumerate(ranks) if found > 1)
    yield from (((key,), -1) for key in _LAST if tree.get(key))


def _rank(decision: Mapping[str, Any]) -> int:
    """How long a decision stays: retired 0, active 1, a rule 2."""
    if decision.get("status", "active") != "active":
        return 0
    return 2 if decision.get("pinned") or decision.get("kind") == "rule" else 1


def _without(tree: Mapping[str, Any], units: Sequence[_Unit]) -> dict[str, Any]:
    """The tree without units, and how many of each key they were. A key of which nothing remains goes, too."""
    gone: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for keys, number in units:
        gone[keys].add(number)
    made = dict(tree)
    for keys, numbers in gone.items():
        key, value = keys[0], tree[keys[0]]
        if keys == ("history",):
            made[key] = _HEADING.join(value.split(_HEADING)[: _sections(value) - len(numbers)])
        elif -1 in numbers:
            made.pop(key, None)
            continue
        elif len(keys) == 1:
            made[key] = _others(value, numbers)
        elif key in made:
            rest = _others(value[keys[1]], numbers)
            made[key] = made[key] | {keys[1]: rest} if rest else _except(made[key], keys[1])
        if key in made and not made[key]:
            del made[key]
    left = Counter(keys[0] for keys, _ in units)
    return made | ({"left_out": dict(sorted(left.items()))} if left else {})


def _others(items: Sequence[Any], numbers: set[int]) -> list[Any]:
    """The items that do not have one of these numbers."""
    return [item for number, item in enumerate(items) if number not in numbers]


def _except(tree: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key != name}


def _sections(history: str) -> int:
    return len(history.split(_HEADING)) if history else 0

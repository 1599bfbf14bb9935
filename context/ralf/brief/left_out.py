"""What the brief of a route leaves out, or shortens, at a budget."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ralf.brief.views import render
from ralf.model import RouteContext
from ralf.text.cleaning import FENCE_TOKENS, trimmed

_MOST = 120  # lines that are shown of what falls out

_LONGEST_LINE = 220  # characters of one of these

_LEAST_PART = 12  # characters by which a line is known as a part of another


@dataclass(frozen=True, slots=True)
class Group:
    """What a heading of the brief has at a budget: how many lines are kept whole, shortened, and left out.

    fallen  the first lines that are not kept whole, each with whether it is only shortened
    """

    name: str
    kept: int
    shortened: int
    left_out: int
    fallen: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Brief:
    """A brief at a budget.

    text    as it would be handed over, without its fence
    groups  by heading, what is kept and what falls out
    more    how many lines that fall out, or are shortened, no group shows
    """

    budget: int
    text: str
    groups: tuple[Group, ...]
    more: int

    @property
    def lost(self) -> int:
        """How many lines fall out."""
        return sum(group.left_out for group in self.groups)

    @property
    def shortened(self) -> int:
        """How many lines are shortened."""
        return sum(group.shortened for group in self.groups)


def brief(context: RouteContext, budget: int) -> Brief:
    """The brief of a route for who goes on with it, as hooks hand it over, and what falls out at this budget."""
    section = "resume" if not context.wholly_foreign else None
    text = render(context, max(0, budget - FENCE_TOKENS), section=section, fenced=False)
    kept, whole = _by_heading(text), _by_heading(render(context, section=section, fenced=False))
    groups, left = [], _MOST
    more = 0
    for name, lines in whole.items():
        here = Counter(kept.get(name, ()))
        missing = [line for line in lines if not _took(here, line)]
        rest = list(here.elements())
        fallen = [(_plain(line), _is_shortened(line, rest)) for line in missing]
        shortened = sum(is_shortened for _, is_shortened in fallen)
        counts = len(lines) - len(missing), shortened, len(missing) - shortened
        groups.append(Group(name, *counts, tuple(fallen[:left])))
        more += max(0, len(fallen) - left)
        left = max(0, left - len(fallen))
    return Brief(budget, text, tuple(groups), more)


def _took(here: Counter[str], line: str) -> bool:
    if not here[line]:
        return False
    here[line] -= 1
    return True


def _is_shortened(line: str, rest: list[str]) -> bool:
    """Whether one of the lines that are left of a heading is a part of this line; takes that one out."""
    label = _label(line)
    for number, one in enumerate(rest):
        head = one.removesuffix("[…]").rstrip().removesuffix("…").rstrip()
        tail = one.removeprefix("> …")
        begins = len(head) >= _LEAST_PART and line.startswith(head)
        ends = tail != one and len(tail) >= _LEAST_PART and line.endswith(tail)
        if (label and label == _label(one)) or begins or ends:
            del rest[number]
            return True
    return False


def _label(line: str) -> str:
    """The label of an item's line, which stays whatever is cut from it; "" for a line without one."""
    head = line[:40].removeprefix("- ").partition(":")[0]
    return head if head.startswith(("DEC-", "cp-")) else ""


def _plain(line: str) -> str:
    return trimmed(line.removeprefix("- ").removeprefix("> "), _LONGEST_LINE)


def _by_heading(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(("## ", "### ")):
            name = line.lstrip("# ")
        elif line.strip("> ") and not line.startswith(("# ", "_")):
            found.setdefault(name or "Above all", []).append(line)
    return found

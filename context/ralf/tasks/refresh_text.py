"""What a fresh agent reads first, as text within a hard budget: in one fence what ralf tells it to do, in a second one
what others wrote, as data.

What gives way, the first to go first:

1. the reasons of decisions, and long summaries of tasks far before, which become shorter;
2. the end of the route's brief, down to a third of the room that the task itself leaves;
3. decisions, summaries and coming tasks that find no room in their shares, the farthest first;
4. all of these, then earlier attempts, progress, `verify:`;
5. the end of the task's text; last the commands, which become shorter.

What went is counted at the end, with the command that shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ralf.errors import Damaged
from ralf.tasks import refresh_words as words
from ralf.tasks.refresh_words import CHOSEN, EARLIER, GROUPS, HANDED, LATER, TITLE, YOURS, Piece, Refresh, id_of
from ralf.text.cleaning import FENCE_TOKENS, OWN_OUTPUT, clean, fenced, one_line, prose, trimmed

if TYPE_CHECKING:
    from ralf.model import Decision


class Composed(NamedTuple):
    """The text, and the brief in it."""

    text: str = ""
    brief: str = ""


ORDERS = "from ralf, which runs this plan: who you are, and what to do now"
"""The label of the first fence: nothing of others' words stands in it."""

_CHARACTERS_PER_TOKEN = 4

_BEFORE, _DECIDED, _NEXT = 0.45, 0.35, 0.12
"""Shares of the room beside the brief that each kind gets before any gets more."""

_BRIEF = 0.35
"""Share of the room that the task itself leaves, which the brief gets before all else."""

_LEAST_BRIEF, _MORE_BRIEF = 80, 200
"""Tokens below which a brief says nothing, and from which on it is worth making it anew with what is left."""

_TURNS = (
    ("near", 0), ("far", -1), ("decided", -1), ("after", 0), ("handed", 0), ("decided", 0), ("far", 0), ("files", 0)
)  # fmt: skip
"""In which order what is left is given away: a kind, and the form from which on."""

_UNREAD = {"earlier task", "later task", "route"}
"""What was left out before there was a text."""

_SPARE = 40  # tokens by which the closing line may become longer when more has a place

_LEAST_TEXT = 40  # characters of the task's text


def composed(found: Refresh, max_tokens: int) -> Composed:
    """The text for at most so many o200k_base tokens, and four times as many characters; "" for too few."""
    if found.context is None:  # then it may well fit if each byte were a token, which costs nothing to know
        made = _Composer(found, max_tokens, exact=False)
        text = made.composed()
        if made.is_whole:
            return text
    return _Composer(found, max_tokens, exact=True).composed()


# ---- fitting ----


class _Room:
    """How many tokens and characters are left; every price is an upper bound."""

    def __init__(self, tokens: int, characters: int, *, exact: bool) -> None:
        self.tokens = tokens
        self.characters = characters
        self._exact = exact
        self._known: dict[str, int] = {}

    def price(self, text: str) -> int:
        """The tokens of a text that begins and ends as a piece does."""
        if not self._exact or not text:
            return len(text.encode("utf-8", "replace"))
        if text not in self._known:
            self._known[text] = _count(text)
        return self._known[text]

    def has(self, text: str, most: float | None = None) -> bool:
        """Whether there is room for a text that takes at most so many tokens."""
        if len(text) > self.characters:
            return False
        price = self.price(text)
        return price <= self.tokens and (most is None or price <= most)

    def spend(self, text: str, times: int = 1) -> None:
        """Take the room of a text, or, with -1, give it back."""
        self.tokens -= times * self.price(text)
        self.characters -= times * len(text)


def _count(text: str) -> int:
    from ralf.text import tokens

    try:
        return tokens.count(text)
    except (MemoryError, Damaged):
        return len(text.encode("utf-8", "replace"))


class _Composer:
    """Composes the text once. `is_whole`: nothing was left out, shortened or cut."""

    def __init__(self, found: Refresh, max_tokens: int, *, exact: bool) -> None:
        self.found = found
        self.is_whole = True
        self._exact = exact
        self._max = max(0, max_tokens)
        self._room = _Room(self._max, _CHARACTERS_PER_TOKEN * self._max, exact=exact)
        self._pieces: list[Piece] = []
        self._kept: dict[int, str] = {}
        self._headed: set[str] = set()
        self._brief = ""
        self._is_text_cut = False

    def composed(self) -> Composed:
        ordered = self._orders()
        if not ordered:
            self.is_whole = False
            return Composed()
        return Composed(ordered + self._notes(), self._brief)

    def _orders(self) -> str:
        """What to do, in at most half of the room, else in few words."""
        lines = [*words.orders(self.found)]
        fence = f"{OWN_OUTPUT} 123456789: {ORDERS} -->\n{OWN_OUTPUT} 123456789 ends -->\n"
        for form, most in ((0, self._max / 2), (1, self._max)):
            text = "".join(line[form] for line in lines)
            if self._room.has(fence + text, most):
                self._room.spend(fence)
                self._room.spend(text)
                return fenced(text, label=ORDERS)
            self.is_whole = False
        return ""

    # ---- the notes ----

    def _notes(self) -> str:
        is_short = self._room.tokens // 3 < FENCE_TOKENS
        self._room.spend(fenced("\n", short=is_short).replace("\n\n", "\n"))
        closing = self._closing(self._most_left_out())
        if self._room.price(closing) > self._room.tokens // 4:
            closing = self._short_closing()
        self._room.spend(closing)
        if self._room.tokens <= 0 or self._room.characters <= 0:
            self.is_whole = False
            return ""
        groups = self._others(has_room=self._task())
        self._fill(groups)
        self._brief_again()
        self._room.spend(closing, -1)
        if closing != self._short_closing():  # it takes as much only where all is left out
            closing = self._closing(self._left_out())
            self._room.spend(closing)
            self._room.tokens -= _SPARE
            self._room.characters -= _CHARACTERS_PER_TOKEN * _SPARE
            self._fill(groups)
            self._room.spend(closing, -1)
            self._room.tokens += _SPARE
            self._room.characters += _CHARACTERS_PER_TOKEN * _SPARE
            closing = self._closing(self._left_out())
        left_out = self._left_out()
        if left_out and not self._room.has(closing):
            closing = self._short_closing()
        changed = self._is_text_cut or any(
            self._kept.get(number) != piece.forms[0] for number, piece in enumerate(self._pieces)
        )
        self.is_whole = self.is_whole and not changed and left_out.keys() <= _UNREAD
        text = self._joined() + self._brief
        return fenced(text + (closing if left_out else ""), short=is_short) if text else ""

    def _others(self, *, has_room: bool) -> dict[str, list[int]]:
        """Give each kind beside the task its share, and return the numbers of their pieces."""
        before, handed, after, files = (
            self._told_before(),
            self._told_handover(),
            self._told_after(),
            self._told_files(),
        )
        decided = self._told_decisions("")
        room = self._room.tokens
        wanted = sum(self._room.price(piece.forms[0]) for piece in (*before, *handed, *decided, *after, *files))
        if has_room:
            self._add_brief(max(int(_BRIEF * room), room - wanted))
        if self._brief:
            decided = self._told_decisions(self._brief)
        groups = {
            "near": self._numbered(before[:1]),
            "handed": self._numbered(handed),
            "far": self._numbered(before[1:]),
            "decided": self._numbered(decided),
            "after": self._numbered(after),
            "files": self._numbered(files),
        }
        room = self._room.tokens
        if not has_room:
            return {name: [] for name in groups}
        left = self._share(groups["near"], _BEFORE * room)
        left = self._share(groups["handed"], left, in_a_row=True)
        self._share(groups["far"], left, form=1)
        self._share(groups["decided"], _DECIDED * room, form=-1)
        self._share(groups["after"], _NEXT * room)
        return groups

    def _fill(self, groups: dict[str, list[int]]) -> None:
        """Give what is left to those without a place, and then to longer forms."""
        for name, form in _TURNS:
            self._share(groups[name], self._room.tokens, form=form, in_a_row=name == "handed")

    def _numbered(self, group: Sequence[Piece]) -> list[int]:
        first = len(self._pieces)
        self._pieces += group
        return [*range(first, len(self._pieces))]

    def _share(self, numbers: Iterable[int], most: float, *, form: int = 0, in_a_row: bool = False) -> float:
        """Give each piece, in their order, the longest form from `form` on that there is room for; what is left.

        in_a_row  whether none comes after one that has no room
        """
        for number in numbers:
            had = self._room.tokens
            self._keep(number, most, form)
            most -= had - self._room.tokens
            if in_a_row and number not in self._kept:
                break
        return most

    def _keep(self, number: int, most: float, form: int) -> None:
        piece = self._pieces[number]
        before = self._kept.get(number, "")
        heading = "" if piece.group in self._headed else words.heading(piece.group)
        start = max(0, form + len(piece.forms)) if form < 0 else min(form, len(piece.forms) - 1)
        self._room.spend(before, -1)
        self._room.spend(heading)
        allowed = most + self._room.price(before) - self._room.price(heading)
        made = next((text for text in piece.forms[start:] if self._room.has(text, allowed)), "")
        if len(made) > len(before):
            self._room.spend(made)
            self._kept[number] = made
            self._headed.add(piece.group)
        else:
            self._room.spend(heading, -1)
            self._room.spend(before)

    def _joined(self) -> str:
        parts, headed = [], set[str]()
        order = sorted(self._kept, key=lambda number: (GROUPS.index(self._pieces[number].group), number))
        for number in order:
            group = self._pieces[number].group
            if group not in headed:
                headed.add(group)
                parts.append(words.heading(group))
            parts.append(self._kept[number])
        return "".join(parts)

    # ---- the task ----

    def _task(self) -> bool:
        """What must be known of the task, the most important first, each with all the room that is left; whether there
        was room for all of it.
        """
        self._share(self._numbered([*words.title(self.found)]), self._room.tokens, in_a_row=True)
        self._text()
        if self._is_text_cut:
            return False
        numbers = self._numbered([*words.of_the_task(self.found)])
        self._share(numbers, self._room.tokens, in_a_row=True)
        return all(number in self._kept for number in numbers)

    def _text(self) -> None:
        """The task's text, or as much of its beginning as there is room for."""
        state = self.found.task
        text = clean(state.task.text).strip() if state is not None and not state.is_foreign else ""
        whole = words.quoted(text) if text and len(text) <= self._room.characters else ""
        self._is_text_cut = bool(text) and not (whole and self._room.has(whole))
        if self._is_text_cut:
            low, high = 0, min(len(text), self._room.characters)
            while high - low > _LEAST_TEXT:
                middle = (low + high) // 2
                low, high = (middle, high) if self._room.has(words.quoted(trimmed(text, middle))) else (low, middle)
            whole = words.quoted(trimmed(text, low)) if low >= _LEAST_TEXT else ""
        if whole:
            self._share(self._numbered([Piece((whole,), YOURS)]), self._room.tokens)

    # ---- the brief ----

    def _add_brief(self, most: int) -> None:
        context = self.found.context
        most = min(most, self._room.characters // _CHARACTERS_PER_TOKEN)
        if context is None or context.wholly_foreign or most < _LEAST_BRIEF:
            return
        from ralf.brief.views import render

        text = render(context.without_foreign(), most, section="brief", fenced=False)
        if text and self._room.has(text):
            self._room.spend(text)
            self._brief = text

    def _brief_again(self) -> None:
        """Make the brief anew with what is left, where it was cut."""
        from ralf.brief.record import CUT

        if any(mark in self._brief for mark in CUT) and self._room.tokens >= _MORE_BRIEF:
            before = self._brief
            self._room.spend(before, -1)
            self._brief = ""
            self._add_brief(self._room.tokens)
            if len(self._brief) < len(before):
                self._room.spend(self._brief, -1)
                self._room.spend(before)
                self._brief = before

    # ---- the others ----

    def _told_before(self) -> list[Piece]:
        return [Piece(words.summary_forms(one), EARLIER, "summary") for one in self.found.before]

    def _told_handover(self) -> list[Piece]:
        context, task = self.found.context, self.found.task
        own = context.route if context is not None else task.task.context_route if task is not None else ""
        one = next((one for one in self.found.before if one.handover and one.route != own), None)
        if one is None or one.handover is None:
            return []
        from ralf.brief.wording import handed_over_by, handover_lines

        last = one.handover.last
        by = one_line(handed_over_by(last)).removeprefix("Hand-over, ") if last is not None else ""
        who = f"- from {id_of(one.id)}, {by}\n"
        lines = [*handover_lines(one.handover)]
        lines[:1] = [who + line for line in lines[:1]]
        return [Piece(words.forms_of(line), HANDED, "line of its hand-over") for line in lines]

    def _told_decisions(self, told: str) -> list[Piece]:
        """The decisions that are in force in the routes before, each once, and none that the brief tells."""
        known = one_line(told).casefold()
        seen: set[str] = set()
        found: list[tuple[bool, int, str, Decision]] = []
        for one in self.found.before:
            for item in reversed(one.decisions):
                said = prose(item.decision).casefold()
                if said and said not in seen and said[:TITLE] not in known:
                    seen.add(said)
                    found.append((not (item.pinned or item.kind == "rule"), len(found), one.route, item))
        found.sort(key=lambda each: each[:2])
        return [Piece(words.decision_forms(route, item), CHOSEN, "decision") for _, _, route, item in found]

    def _told_after(self) -> list[Piece]:
        return [Piece(words.forms_of(line), LATER, "coming task") for line in words.coming(self.found)]

    def _told_files(self) -> list[Piece]:
        return [Piece(words.forms_of(line), EARLIER, "") for line in words.files(self.found.before)]

    # ---- what was left out ----

    def _left_out(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, piece in enumerate(self._pieces):
            kept = self._kept.get(number, "")
            if piece.noun and kept != piece.forms[0]:
                name = piece.noun if not kept else _SHORTER.get(piece.noun, piece.noun)
                found[name] = found.get(name, 0) + 1
        more = {
            "text": int(self._is_text_cut),
            "earlier task": self.found.more_before,
            "route": len(self.found.unread),
            "later task": self.found.more_next,
            "brief": int(self._has_no_brief()),
        }
        return found | {name: count for name, count in more.items() if count}

    def _has_no_brief(self) -> bool:
        context = self.found.context
        return not self._brief and context is not None and not context.wholly_foreign

    def _most_left_out(self) -> dict[str, int]:
        nouns = {"text": 1, "brief": 1}
        if self.found.before or self.found.more_before:
            nouns |= dict.fromkeys(("summary", "long summary", "line of its hand-over", "earlier task"), 99_999)
            nouns |= dict.fromkeys(("decision", "reason", "route"), 99_999)
        if self.found.next or self.found.more_next or self.found.ready:
            nouns |= dict.fromkeys(("coming task", "later task"), 99_999)
        return nouns

    def _closing(self, left_out: dict[str, int]) -> str:
        found, ralf = self.found, self.found.command
        task = id_of(found.task.task.id) if found.task is not None else "ID"
        route = id_of(found.task.task.context_route) if found.task is not None else "ROUTE"
        parts = []
        for nouns, how in (
            (("text", "earlier attempt"), f"task show {task}"),
            (("summary", "long summary"), "task show ID"),
            (("earlier task",), "task list --status completed"),
            (("line of its hand-over", "decision", "reason", "route"), "context show ROUTE"),
            (("brief",), f"context show {route} --brief"),
            (("coming task", "later task"), "serialize --draw"),
        ):
            told = [_counted(noun, left_out[noun]) for noun in nouns if left_out.get(noun)]
            if told:
                parts.append(f"{', '.join(told)} (`{ralf} {how}`)")
        return f"_Left out: {'; '.join(parts)}._\n" if parts else ""

    def _short_closing(self) -> str:
        task = id_of(self.found.task.task.id) if self.found.task is not None else "ID"
        return f"_(cut: `{self.found.command} task show {task}`)_\n"


_SHORTER = {"summary": "long summary", "decision": "reason"}
"""What is left out of a piece that is kept in a shorter form."""

_NAMES = {"text": "the end of the task's text", "brief": "the brief of its route"}

_MANY = {
    "summary": "summaries",
    "long summary": "shortened summaries",
    "line of its hand-over": "lines of the hand-over",
    "route": "routes whose decisions were not read",
}

_ONE = {"long summary": "shortened summary", "route": "route whose decisions were not read"}


def _counted(noun: str, count: int) -> str:
    if noun in _NAMES:
        return _NAMES[noun]
    return f"{count} {_ONE.get(noun, noun) if count == 1 else _MANY.get(noun, f'{noun}s')}"

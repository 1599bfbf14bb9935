"""Finds what the agent decided by itself: in short messages about one decision, before edits, and in reports."""

from __future__ import annotations

from collections.abc import Sequence

from ralf.model import Decision
from ralf.prose import Sentence, joined
from ralf.summarizers import choices, designs, failures, grammar, leads, quoted
from ralf.summarizers.messages import DECISION_WORDS, REASON_WORDS, Made, Message, around, clip, join

_SHORT_MESSAGE = 190  # words up to which a message with a decision in it is about that decision only
_MOST = 4  # decisions of one message


def decided(message: Message, before: Message | None = None) -> Made:
    """The decisions in a message of the agent, with their scores; `before`: what it said right before."""
    own = quoted.own([s for s in message.said if s.kind != "heading"])
    said = leads.behind_place(own)
    if not said:
        return []
    edits = message.does == "edits"
    words = sum(len(s.text.split()) for s in said)
    announced, rest = leads.without(said)
    whole = 0
    if words <= _SHORT_MESSAGE + 60 and not leads.says_place(own):  # a step's work is no design
        led = bool(rest) and rest[0] is not said[0] and leads.reacts(said[0].text)
        whole = _states(rest, announced=announced, led=led)
        said = rest if whole and (announced or len(rest) < len(said)) else said  # "the index: B" keeps its subject
        whole = whole or _states(said)
    made: Made = []
    taken: set[int] = set()
    better: dict[int, int] = {}
    again = _done_again(message, said)
    if again is not None:
        return [(grammar.ENOUGH, again, [message])]
    for place, sentence in enumerate(said):
        if sentence.paragraph in taken:
            continue
        grounds = _grounds(said, place)
        if len(said) == 1 and edits and before is not None:
            grounds = _grounds(before.said, len(before.said))  # "First fix — scope it to …:", after what was found
        if failures.failed(sentence.text):
            taken.add(sentence.paragraph)
            made.append((grammar.ENOUGH, _failure(sentence.text, around(said, sentence, REASON_WORDS)), [message]))
            continue
        states = bool(whole) and place == 0
        if sentence.text.endswith(":") and not edits and not states and not choices.chooses(sentence.text):
            continue  # what follows it is not here
        score = max(_score(said, place, edits=edits, grounded=bool(grounds)), whole if place == 0 else 0)
        if score < grammar.ENOUGH:
            made += [(score, Decision(decision=sentence.text), [message])] if score > 0 else []
            continue
        if not states and _best_after(said, place, better, edits=edits) > score - edits:
            continue  # the next sentence says it outright
        taken.add(sentence.paragraph)
        outright = words <= _SHORT_MESSAGE and sentence.kind == "text" and choices.chooses(sentence.text) and not edits
        if states or outright:
            text, reason, options = _whole(said, place)
            taken.update(s.paragraph for s in said[place:])
        else:
            text = clip(sentence.text.rstrip(":"), DECISION_WORDS)
            reason = join([*grounds[-2:], around(said, sentence, REASON_WORDS)], REASON_WORDS)
            options = tuple(grammar.rejected(text))
        made.append((score, Decision(decision=text, rationale=reason, alternatives=options, origin="agent"), [message]))
    enough = [one for one in made if one[0] >= grammar.ENOUGH]
    return [one for one in made if one[0] < grammar.ENOUGH] + sorted(enough, key=lambda one: -one[0])[:_MOST]


def _states(said: Sequence[Sentence], *, announced: bool = False, led: bool = False) -> int:
    """The score of a short message that states how something is to be, as a whole."""
    texts = [s.text for s in said if s.kind == "text"]
    if len(said) == 1 and designs.assigns(said[0].text):
        return grammar.ENOUGH
    if announced and designs.may_follow([s.text for s in said]) and said[0].kind == "text":
        return grammar.ENOUGH + 1
    return designs.states_design(texts, orders=led)


def _done_again(message: Message, said: Sequence[Sentence]) -> Decision | None:
    """What the agent found wrong with what it did before it does it again another way."""
    for place, sentence in enumerate(said if message.does else ()):
        if not failures.redoes(sentence.text):
            continue
        grounds = _grounds(said, place)
        if grounds and failures.went_wrong(grounds[-1]):
            return _failure(joined([grounds[-1], sentence.text.rstrip(":")]), join(grounds[:-1], REASON_WORDS))
    return None


def _score(said: Sequence[Sentence], place: int, *, edits: bool, grounded: bool) -> int:
    sentence = said[place]
    return choices.agent_score(sentence.text, item=sentence.kind == "item", edits=edits, grounded=grounded)


def _best_after(said: Sequence[Sentence], place: int, known: dict[int, int], *, edits: bool) -> int:
    """The best score of the sentences that follow in the same paragraph, 0 if none; `known`: those found before."""
    if place not in known:
        end = place + 1
        while end < len(said) and said[end].paragraph == said[place].paragraph:
            end += 1
        best = 0
        for later in reversed(range(place + 1, end)):
            known[later] = best
            best = max(best, _score(said, later, edits=edits, grounded=bool(_grounds(said, later))))
        known[place] = best
    return known[place]


def _failure(text: str, reason: str) -> Decision:
    text = clip(text, DECISION_WORDS)
    return Decision(kind="failed-approach", decision=text, rationale=reason, origin="agent")


def _grounds(said: Sequence[Sentence], place: int) -> list[str]:
    """The statements right before a sentence, which tell how things are."""
    grounds: list[str] = []
    for sentence in reversed(said[max(0, place - 3) : place]):
        text = sentence.text
        if sentence.kind == "item" and (place == len(said) or sentence.paragraph != said[place].paragraph):
            break
        if len(text.split()) < 4 or grammar.is_question(text) or grammar.looks_around(text) or grammar.is_status(text):
            break
        grounds.insert(0, text)
    return grounds


def _whole(said: Sequence[Sentence], place: int) -> tuple[str, str, tuple[str, ...]]:
    """Decision, reason and rejected options of a short message that is about one decision."""
    rest = [s for s in said[place:] if not grammar.looks_around(s.text) and not s.text.endswith("?")]
    if len(rest) > 1 and choices.is_lead_in(rest[0].text):
        rest = rest[1:]
    if not rest:
        rest = [said[place]]
    options: list[str] = []
    decided: list[str] = []
    reasons: list[str] = []
    section = decided
    for number, sentence in enumerate(rest):
        text = sentence.text
        opens = leads.section(text) if number else ""
        if opens == "rejected":
            section = options
        elif opens == "reason" or (section is decided and (opens or sentence.paragraph != rest[0].paragraph)):
            section = reasons
        section.append(text)
        if section is decided and sum(len(t.split()) for t in decided) >= DECISION_WORDS - 10:
            section = reasons
    before = [s.text for s in said[:place] if grammar.gives_reason(s.text) and not grammar.looks_around(s.text)]
    text = clip(joined(decided) or said[place].text, DECISION_WORDS + 10)
    rejected = [clip(joined(options), REASON_WORDS + 5)] if options else grammar.rejected(text)
    room = REASON_WORDS + 8 if options else 2 * REASON_WORDS
    return text, join([*before[-2:], *reasons], room), tuple(rejected)

"""Finds in a conversation what was decided: choices, standing rules and approaches that failed, with their reasons."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ralf.commands import command_text, is_shell
from ralf.facts import said_in_refusal
from ralf.model import Decision, Source
from ralf.prose import Sentence, joined, sentences
from ralf.summarizers import grammar
from ralf.summarizers.supersession import supersede
from ralf.trim import trimmed
from ralf.transcripts.events import Event

_MOST = 40  # of one segment, whatever it says
_DECISION_WORDS, _REASON_WORDS, _REPLY_WORDS = 90, 80, 70
_LONG_MESSAGE, _SHORT_REQUEST = (
    150,
    60,
)  # words of a person: beyond the first it is pasted text; within the second, kept whole
_SHORT_MESSAGE = 190  # words up to which a message with a decision in it is about that decision only


@dataclass(frozen=True, slots=True)
class Found:
    """The decisions of a segment, oldest first, and how many candidates were left out."""

    decisions: tuple[Decision, ...]
    dropped: int


@dataclass(frozen=True, slots=True)
class _Message:
    who: str  # user or agent
    text: str
    event: Event
    said: tuple[Sentence, ...]
    declined: str = ""  # what the person declined in saying this


def find(events: Sequence[Event], *, session: str = "", known: Sequence[Decision] = ()) -> Found:
    """Find what the events decided; `known` are the route's active decisions, which a new one may supersede."""
    messages = _messages(events)
    found: list[tuple[int, Decision]] = []
    dropped = 0
    for place, message in enumerate(messages):
        made = _asked(messages, place) if message.who == "user" else _said(message)
        for score, decision, sources in made:
            if score < grammar.ENOUGH:
                dropped += 1
                continue
            where = _source(session, sources)
            stamped = replace(decision, timestamp=message.event.timestamp, source=where)
            found.append((score, stamped))
    kept = _best(_distinct(found))
    dropped += len(found) - len(kept)
    return Found(tuple(supersede([decision for _, decision in kept], known)), dropped)


def _messages(events: Sequence[Event]) -> list[_Message]:
    out: list[_Message] = []
    calls: dict[str, Event] = {}
    for event in events:
        text, who, declined = event.text, "agent", ""
        if event.kind == "call":
            calls[event.call_id] = event
            continue
        if event.kind == "user":
            who = "user"
        elif event.kind == "result":
            text, who = said_in_refusal(event), "user"
            declined = _call(calls.get(event.call_id))
        elif event.kind != "assistant":
            continue
        if text.strip():
            out.append(_Message(who, text, event, sentences(text), declined))
    return out


def _call(call: Event | None) -> str:
    """A declined call in few words: a command's first line, or the tool and the file it was to change."""
    if call is None:
        return "the call"
    command = command_text(call.input) if is_shell(call.tool) else ""
    if command:
        line = trimmed(command.split("\n")[0], 160)
        return f"`{line}`" if "`" not in line else line
    path = next((call.input[key] for key in ("file_path", "notebook_path", "path") if key in call.input), "")
    return f"{call.tool} {path}".strip()


def _source(session: str, messages: Sequence[_Message]) -> Source:
    said = "\n".join(message.text for message in messages)
    return Source(
        session,
        min(message.event.start.line for message in messages) + 1,
        max(message.event.end.line for message in messages),
        hashlib.sha256(said.encode("utf-8", "replace")).hexdigest(),
    )


_Made = list[tuple[int, Decision, Sequence[_Message]]]


# ---- what a person said ----


def _asked(messages: Sequence[_Message], place: int) -> _Made:
    message = messages[place]
    said = [s for s in message.said if s.kind != "heading"]
    if not said or len(message.text) > 6000:
        return []
    words = sum(len(s.text.split()) for s in said)
    offered = messages[place - 1] if place and messages[place - 1].who == "agent" else None
    replies = _replies(messages, place)
    reply = _reply(replies)
    agreed = bool(replies) and bool(replies[0].said) and grammar.agrees(replies[0].said[0].text)
    if offered is not None and words <= 60 and not message.declined:
        accepted = _accepted(message, said, offered)
        if accepted is not None:
            own = f"User: {_clip(joined(s.text for s in said), 40)}"
            whole = replace(accepted, rationale=_join([own, accepted.rationale, reply], 130), origin="user")
            return [(grammar.ENOUGH + 1, whole, [offered, message])]
    made: _Made = []
    rules = [s for s in said if grammar.is_rule(s.text) and words <= 400]
    for rule in rules:
        reason = _join([_around(said, rule, 50), reply], _REASON_WORDS)
        pinned = grammar.is_standing(rule.text)
        decision = Decision(kind="rule", pinned=pinned, decision=_clip(rule.text, 80), rationale=reason, origin="user")
        made.append((grammar.ENOUGH + 2, decision, [message]))
    if words > _LONG_MESSAGE or rules:
        return made
    scored = [(grammar.user_score(s.text), s) for s in said]
    best = max(score for score, _ in scored)
    if message.declined:
        plain_question = all(grammar.is_question(s.text) for s in said)
        best = 0 if words < 3 or (plain_question and not agreed and not message.declined.startswith("`")) else best + 3
    elif best:
        answered = offered is not None and any("?" in s.text for s in offered.said[-4:])
        best += int(agreed or answered or (words <= 25 and len(reply.split()) >= 8))
    elif agreed and words >= 8 and any(grammar.suggests(s.text) for _, s in scored):
        best = grammar.ENOUGH
    if best > 0:
        chosen = [s for score, s in scored if score > 0 or grammar.suggests(s.text)] or said
        text = joined(s.text for s in said) if words <= _SHORT_REQUEST else _span(said, chosen, _DECISION_WORDS)
        options = (message.declined,) if message.declined else tuple(grammar.rejected(text))
        context = _before_question(offered) if words < 12 and not message.declined else ""
        rationale = _join([reply, context], 130)
        decision = Decision(decision=text, rationale=rationale, alternatives=options, origin="user")
        made.append((best, decision, [message, *replies[:1]]))
    return made


def _accepted(message: _Message, said: Sequence[Sentence], offered: _Message) -> Decision | None:
    """The choice that an answer such as "yes", "option 2" or "1." makes among what the agent offered."""
    marks = grammar.picked(message.text)
    if marks:
        options = _options(offered.said)
        chosen = [options[m] for m in marks if m in options]
        if chosen:
            others = tuple(_clip(text, 30) for m, text in options.items() if m not in marks)
            recommended = _join([s.text for s in offered.said if grammar.recommends(s.text)], 50)
            return Decision(decision=_clip("; ".join(chosen), 80), rationale=recommended, alternatives=others[:4])
    asks = any("?" in s.text or grammar.recommends(s.text) for s in offered.said[-8:])
    if not grammar.accepts(said[0].text) or not asks:
        return None
    proposed = [s for s in offered.said if grammar.recommends(s.text) and s.kind != "heading" and "?" not in s.text]
    if proposed:
        last = proposed[-1]
        listed = _listed_after(offered.said, last) if last.text.endswith(":") else []
        text = _span(offered.said, [*proposed[-3:], *listed], _DECISION_WORDS)
        return Decision(decision=text, rationale=_around(offered.said, last, 60))
    for sentence in reversed(offered.said):
        offer = grammar.offer(sentence.text)
        if offer:
            return Decision(decision=_clip(offer, 60), rationale=_before_question(offered))
    return None


def _listed_after(said: Sequence[Sentence], sentence: Sentence) -> list[Sentence]:
    listed = []
    for following in said[said.index(sentence) + 1 :]:
        if following.kind != "item" or len(listed) == 6:
            break
        listed.append(following)
    return listed


def _options(said: Sequence[Sentence]) -> dict[str, str]:
    """The last numbered or lettered list of a message: mark to text."""
    found: dict[str, str] = {}
    for sentence in said:
        if sentence.kind == "item" and sentence.mark and sentence.mark != "-":
            if sentence.mark in ("1", "a"):
                found = {}
            found[sentence.mark] = sentence.text
        elif sentence.kind == "item" and not sentence.mark and found:
            last = next(reversed(found))
            found[last] = f"{found[last]} {sentence.text}"
        elif sentence.kind == "heading":
            mark = re.match(r"(?:option |approach )?(\d|[a-z])[.):]\s+(\S.*)", sentence.text, re.I)
            if mark:
                found = {} if mark[1].lower() in ("1", "a") else found
                found[mark[1].lower()] = mark[2]
    return found


def _replies(messages: Sequence[_Message], place: int) -> list[_Message]:
    """What the agent said until the person spoke again."""
    replies = []
    for message in messages[place + 1 :]:
        if message.who == "user":
            break
        replies.append(message)
    return replies


def _reply(replies: Sequence[_Message]) -> str:
    """What the agent made of it: the first sentences that say more than that it is looking around."""
    kept: list[str] = []
    for reply in [*replies[:2], *replies[-1:]]:
        for sentence in reply.said[:12]:
            if "?" in sentence.text and kept:
                break
            if sentence.kind == "heading" or "?" in sentence.text or grammar.looks_around(sentence.text):
                continue
            if not grammar.is_status(sentence.text):
                kept.append(sentence.text)
        if sum(len(text.split()) for text in kept) >= 25:
            break
    text = _join(kept, _REPLY_WORDS)
    return text if len(text.split()) >= 5 else ""


def _before_question(offered: _Message | None) -> str:
    """The last sentences before the question with which a message ends: what the question is about."""
    if offered is None:
        return ""
    told = [s.text for s in offered.said if "?" not in s.text and not grammar.looks_around(s.text)]
    kept: list[str] = []
    room = 60
    for text in reversed(told):
        room -= len(text.split())
        if room < 0 and kept:
            break
        kept.append(text)
    return _join(kept[::-1], 60)


# ---- what the agent said ----


def _said(message: _Message) -> _Made:
    said = [s for s in message.said if s.kind != "heading"]
    if not said:
        return []
    words = sum(len(s.text.split()) for s in said)
    made: _Made = []
    taken: set[int] = set()
    whole = grammar.states_design([s.text for s in said if s.kind == "text"]) if words <= _SHORT_MESSAGE + 60 else 0
    for place, sentence in enumerate(said):
        if sentence.paragraph in taken:
            continue
        failed = grammar.failed(sentence.text)
        score = grammar.ENOUGH if failed else grammar.agent_score(sentence.text, item=sentence.kind == "item")
        if place == 0 and whole:
            score = max(score, whole)
        if score <= 0:
            continue
        taken.add(sentence.paragraph)
        if score < grammar.ENOUGH:
            made.append((score, Decision(decision=sentence.text), [message]))
            continue
        short = words <= _SHORT_MESSAGE
        text, reason, options = _whole(said, place) if short and not failed else _part(said, place)
        if short and not failed:
            taken.update(s.paragraph for s in said[place:])
        kind = "failed-approach" if failed else "decision"
        decision = Decision(kind=kind, decision=text, rationale=reason, alternatives=options, origin="agent")
        made.append((score, decision, [message]))
    return made


def _whole(said: Sequence[Sentence], place: int) -> tuple[str, str, tuple[str, ...]]:
    """Decision, reason and rejected options of a short message that is about one decision."""
    rest = [s for s in said[place:] if not grammar.looks_around(s.text) and not s.text.endswith("?")]
    if len(rest) > 1 and grammar.is_lead_in(rest[0].text):
        rest = rest[1:]
    if not rest:
        rest = [said[place]]
    options: list[str] = []
    decided: list[str] = []
    reasons: list[str] = []
    section = decided
    for number, sentence in enumerate(rest):
        text = sentence.text
        label = grammar.label(text)
        if label == "rejected":
            section = options
        elif label == "reason" or (section is decided and number and sentence.paragraph != rest[0].paragraph):
            section = reasons
        section.append(text)
        if section is decided and sum(len(t.split()) for t in decided) >= 60:
            section = reasons
    before = [s.text for s in said[:place] if grammar.gives_reason(s.text) and not grammar.looks_around(s.text)]
    text = _clip(joined(decided) or said[place].text, _DECISION_WORDS)
    rejected = [_clip(joined(options), 60)] if options else grammar.rejected(text)
    return text, _join([*before[-2:], *reasons], _REASON_WORDS), tuple(rejected)


def _part(said: Sequence[Sentence], place: int) -> tuple[str, str, tuple[str, ...]]:
    """Decision, reason and rejected options of a sentence in a longer message."""
    sentence = said[place]
    text = _clip(sentence.text, _DECISION_WORDS)
    return text, _around(said, sentence, _REASON_WORDS), tuple(grammar.rejected(text))


def _around(said: Sequence[Sentence], sentence: Sentence, words: int) -> str:
    """The sentences next to one that hold its reason."""
    place = said.index(sentence)
    kept: list[str] = []
    if place and grammar.gives_reason(said[place - 1].text) and not grammar.looks_around(said[place - 1].text):
        kept.append(said[place - 1].text)
    for number, following in enumerate(said[place + 1 : place + 5]):
        if "?" in following.text or grammar.looks_around(following.text) or following.kind == "heading":
            break
        near = following.paragraph == sentence.paragraph or following.kind == "item"
        if grammar.gives_reason(following.text) or (near and number < 3):
            kept.append(following.text)
        elif not near:
            break
    return _join(kept, words)


# ---- texts ----


def _clip(text: str, words: int) -> str:
    """At most so many words, with "…" where it was cut, and no half of a pair of backticks left."""
    parts = text.split(" ")
    if len(parts) <= words:
        return text
    cut = " ".join(parts[:words])
    if cut.count("`") % 2:
        cut = cut[: cut.rindex("`")].rstrip()
    return cut.rstrip(" ,;:(") + "…"


def _join(texts: Sequence[str], words: int) -> str:
    """As many of the texts, in order and each once, as fit into so many words."""
    kept: list[str] = []
    room = words
    for text in dict.fromkeys(texts):
        size = len(text.split())
        if not text or room <= 0:
            continue
        kept.append(text if size <= room else _clip(text, room))
        room -= size
    return joined(kept)


def _span(said: Sequence[Sentence], chosen: Sequence[Sentence], words: int) -> str:
    """From the first to the last of the chosen sentences if that is short, else the chosen ones alone."""
    places = [place for place, sentence in enumerate(said) if sentence in chosen]
    between = [s.text for s in said[places[0] : places[-1] + 1] if s.kind != "heading"]
    if sum(len(t.split()) for t in between) <= words:
        return joined(between)
    return _clip(joined(s.text for s in chosen), words)


def _distinct(found: Sequence[tuple[int, Decision]]) -> list[tuple[int, Decision]]:
    """Without those that say what a later one says in the same words."""
    out: list[tuple[int, Decision]] = []
    seen: set[str] = set()
    for score, decision in reversed(found):
        key = " ".join(re.findall(r"\w+", decision.decision.lower()))[:160]
        if key and key not in seen:
            seen.add(key)
            out.append((score, decision))
    return out[::-1]


def _best(found: Sequence[tuple[int, Decision]]) -> list[tuple[int, Decision]]:
    if len(found) <= _MOST:
        return list(found)
    places = sorted(range(len(found)), key=lambda n: (-found[n][0], -n))[:_MOST]
    return [found[n] for n in sorted(places)]

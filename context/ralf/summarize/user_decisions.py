"""Finds what a person decided: by directive, correction, rule, answer to an offer or a tool, or by declining a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, takewhile
from typing import Any

from ralf.model import Decision
from ralf.summarize import agent_decisions, english, lasting, messages, standing
from ralf.summarize.messages import DECISION_WORDS, REASON_WORDS, Made, Message, around, clip, join, room_beside, span
from ralf.text.matcher import AnyOf, content_words
from ralf.text.patterns import regex
from ralf.text.sentences import Sentence, joined, plain, sentences
from ralf.transcripts.events import Event

# ---- what stands around an answer ----

_LISTED = 6

_DID = AnyOf(r"^i(?:'ve| have)? (?:read|looked|checked|ran|opened|searched|fetched|went through|started)\b")


def reply_of(replies: Sequence[Message], answered: str) -> str:
    """What the agent made of it: the sentences of its first messages and its last that give reasons and name things."""
    told: list[tuple[int, int, str]] = []
    for number, reply in enumerate([*replies[:2], *replies[2:][-1:]]):
        if _decides(reply, answered) or messages.says_place(reply.said):
            continue  # a decision of its own, or the work that it led to: not the reason of this one
        for sentence in reply.said[:12]:
            text = sentence.text
            if sentence.kind == "heading" or "?" in text or english.looks_around(text) or english.is_status(text):
                continue
            if _DID.match(text) or len(text.split()) < (3 if "`" in text else 4) or text == answered:
                continue
            score = 2 * english.gives_reason(text) + min(text.count("`") // 2, 2) + 2 * english.prescribes(text)
            score += 2 * (number == 0) + (not told) - (sentence.kind == "item")
            told.append((score, len(told), text))
    return _best(sorted(told, key=lambda one: (-one[0], one[1])), room_beside(answered))


def _best(ranked: Sequence[tuple[float, int, str]], room: int) -> str:
    """Of (score, place, text) of sentences, best first, those that fit into so many words, in their order."""
    spent = accumulate((len(text.split()) for _, _, text in ranked), initial=0)
    kept = [(place, text) for (_, place, text), words in zip(ranked, spent, strict=False) if room - words >= 8]
    return join([text for _, text in sorted(kept)], room)


def offer_before(said_by_all: Sequence[Message], place: int) -> Message | None:
    """What the message at `place` answers: the agent's last one that asks or proposes something, else its last."""
    before = [*takewhile(lambda message: message.who == "agent", reversed(said_by_all[max(0, place - 3) : place]))]
    asking = (m for m in before if any("?" in s.text or agent_decisions.recommends(s.text) for s in m.said[-8:]))
    return next(asking, before[0] if before else None)


def referent(text: str, offered: Message | None) -> str:
    """What "it" or "2 and 3" stands for in an answer: items of the list before it, else what was last said; or ""."""
    if offered is None or not english.says_little(text):
        return ""
    options = options_of(offered.said)
    marks = [mark for mark in re.findall(r"\b\d\b", text) if mark in options]
    if re.search(r"\b(?:all|both)\b", text, re.IGNORECASE) and len(options) > 1:
        marks = list(options)
    if marks:
        return "; ".join(f"{mark}. {clip(options[mark], max(25 // len(marks), 5))}" for mark in marks)
    if not english.leans(text):
        return ""
    offers = [offer for s in offered.said[-4:] if "?" in s.text and (offer := agent_decisions.offer(s.text))]
    if offers and len(content_words(offers[-1])) > 1:
        return offers[-1]
    told = [s.text for s in offered.said if "?" not in s.text and s.kind != "heading"]
    told = [t for t in told if len(t.split()) > 3 and not t.endswith(":") and not english.looks_around(t)]
    return told[-1] if told else ""


def listed_after(said: Sequence[Sentence], sentence: Sentence) -> list[Sentence]:
    """The items of the list that a sentence introduces."""
    behind = said[said.index(sentence) + 1 :][:_LISTED]
    return [*takewhile(lambda following: following.kind == "item", behind)]


def options_of(said: Sequence[Sentence]) -> dict[str, str]:
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
        else:
            named = _NAMED.match(sentence.text)
            if named and (sentence.kind == "heading" or named[1]):
                found = {} if named[2].lower() in ("1", "a") else found
                found[named[2].lower()] = named[3]
    return found


_NAMED = regex(r"(?:(option|approach) )?(\d|[a-z])(?:[.):]|(?<=option \w)|(?<=approach \w))\s+(\S.*)", re.IGNORECASE)


def _decides(reply: Message, answered: str) -> bool:
    """Whether a reply holds a decision of its own, and not how the one that it answers is carried out."""
    found = (
        agent_decisions.agent_decisions(reply) if len(content_words(reply.text) & content_words(answered)) < 2 else ()
    )
    return any(score >= english.ENOUGH for score, _, _ in found)


# ---- answers to an offer ----

_WHY_WORDS = 55  # words: what a person says beside their yes, and the proposal's own reason

_FEW_OFFERED = 3  # content words of an offer that leans on what stands before it

_NEAR_END = 8  # sentences in which an offer, a proposal or a question still waits for the answer


def accepted_decision(
    message: Message, said: Sequence[Sentence], offered: Message, replies: Sequence[Message]
) -> Decision | None:
    """The choice that an answer such as "yes", "option 2" or "the first one" makes of what the agent offered.

    None where the message accepts nothing, or only an errand.
    """
    own = join([s.text for s in said if "?" not in s.text], REASON_WORDS) if len(message.text.split()) >= 4 else ""
    own = f"User: {own}" if len(english.beyond_yes(own).split()) >= 4 else ""
    marks = english.picked(message.text)
    if marks:
        options = options_of(offered.said)
        marks = tuple(list(options)[-1] if mark == "last" else mark for mark in marks if options)
        chosen = [options[mark] for mark in marks if mark in options]
        if chosen:
            others = tuple(clip(text, 15) for mark, text in options.items() if mark not in marks)
            text = clip("; ".join(chosen), DECISION_WORDS)
            question = _question(offered)
            text = f"{text} (asked: {question})" if question else text
            why = join([own, _about(offered.said, text, marks)], _WHY_WORDS)
            return Decision(decision=text, rationale=why, alternatives=others[:4])
    if not english.accepts(said[0].text):
        return None
    waiting = offered.said[-_NEAR_END:]
    offers = [agent_decisions.offer(s.text).split(", or ")[0] for s in waiting if "?" in s.text]
    proposed = [s for s in waiting if _proposes(s)]
    if not offers and not proposed:
        return None
    text = joined(s.text for s in said)
    if english.user_score(text) >= 2 and len(english.beyond_yes(text).split()) >= 4:
        meant = referent(text, offered)
        text = clip(f"{text} ({meant})" if meant else text, DECISION_WORDS)  # more than a yes: their own words
        return Decision(decision=text, rationale=_about(waiting, text))
    offer = next((text for text in reversed(offers) if text), "")
    if not offer and not proposed:
        return None
    weighed = next((s.text for s in waiting if turns_down(s.text) and "?" not in s.text), "")
    advised = _advice(waiting, offer) if weighed else ""
    text = advised or (clip(offer, DECISION_WORDS) if offer else _proposal(offered, proposed))
    meant = referent(text, offered)
    text = f"{text} ({clip(meant, REASON_WORDS)})" if meant and meant not in text else text
    question = _question(offered)
    text = f"{text} (asked: {question})" if question and not offer else text
    why = join([own, _about(waiting, text)], _WHY_WORDS)
    other = clip(weighed, REASON_WORDS) if weighed and weighed not in why and weighed not in text else ""
    return Decision(decision=text, rationale=why, alternatives=(other,) if other else ())


turns_down = AnyOf(
    r"\b(?:feels|is|are|seems|looks|would be|it's) (?:far |way |a bit |just )?(?:too \w+|overkill|redundant|unnecessary"
    r"|pointless|hacky|not (?:worth|needed)|riskier|worse)\b",
)
"""Whether a sentence of an offer turns another way down."""

_GIVES_ADVICE = regex(
    r"(?:so |then )?(?:i (?:think|believe|feel|guess)|i(?:'d| would) (?:say|argue)|in my opinion,?)(?: that)? (?=\w)",
    re.I,
)


def _advice(waiting: Sequence[Sentence], offer: str) -> str:
    """The sentence that recommends what is then offered in few words ("the warning log"); "" where the offer says it
    all.
    """
    words = content_words(offer)
    if len(words) > _FEW_OFFERED or "`" in offer:
        return ""
    told = [s.text for s in waiting if agent_decisions.recommends(s.text) and "?" not in s.text]
    best = next((text for text in reversed(told) if words & content_words(text)), "")
    rest = _GIVES_ADVICE.sub("", best, count=1)
    return clip(rest, DECISION_WORDS) if best and standing.reads_alone(rest) else ""


def _proposal(offered: Message, proposed: Sequence[Sentence]) -> str:
    """What the agent proposed last, with the list that it introduces."""
    last = proposed[-1]
    first = [s for s in proposed[-2:] if s.paragraph == last.paragraph]
    listed = listed_after(offered.said, last) if last.text.endswith(":") else []
    named = _OPTION.search(last.text)  # "I'd go with option 1": what it says
    option = options_of(offered.said).get(named[1].lower(), "") if named else ""
    return clip(option, DECISION_WORDS) or span(offered.said, [*first, *listed], DECISION_WORDS)


_OPTION = regex(r"\boption (\d|[a-e])\b", re.IGNORECASE)


def _question(offered: Message) -> str:
    """What was asked, where options stood below it."""
    asked = [s.text for s in offered.said if s.text.endswith("?") and len(s.text.split()) >= 6]
    return clip(asked[0], 20).rstrip("?") if asked and options_of(offered.said) else ""


def _about(waiting: Sequence[Sentence], chosen: str, marks: Sequence[str] = ()) -> str:
    """The sentence of the offer that says why what was chosen is to be: it gives a reason, of the same things, and
    of no option but those with the `marks`.
    """
    words = content_words(chosen)
    best = (0, 0, "")
    for place, sentence in enumerate(waiting):
        text = sentence.text
        if sentence.kind == "heading" or "?" in text or english.looks_around(text) or text in chosen:
            continue
        named = _OPTION.search(text)
        if not english.gives_reason(text) or (marks and named and named[1].lower() not in marks):
            continue
        shared = len(words & content_words(text))
        worth = 2 * shared + 2 * agent_decisions.recommends(text)
        if worth and (worth, place) > best[:2]:
            best = (worth, place, text)
    asking = next((n for n in reversed(range(1, len(waiting))) if "?" in waiting[n].text), 0)
    before = waiting[asking - 1] if asking else None
    if not best[2] and before is not None and before.kind == "text" and not english.is_question(before.text):
        ground = before.text if before.text not in chosen and not english.looks_around(before.text) else ""
        return clip(ground, REASON_WORDS) if len(words & content_words(ground)) > 1 else ""
    return clip(standing.without_opening(best[2]), REASON_WORDS)


def _proposes(sentence: Sentence) -> bool:
    text = sentence.text
    if sentence.kind == "heading" or "?" in text or english.looks_around(text):
        return False
    return agent_decisions.recommends(text) or english.prescribes(text)


# ---- plans and questions of a tool ----

_APPROVED = regex(r"^#+ *approved plan\b[^\n]*\n", re.IGNORECASE | re.MULTILINE)

_WHY = AnyOf(r"\b(?:context|why|background|problem|motivation|overview|goal|summary|purpose)\b")

_HOW_TO_CHECK = AnyOf(r"\b(?:verif\w+|test(?:s|ing)?|critical files|references?|files)\b")

_ORDERED = AnyOf(r"\W*(?:please |now |then |ok,? )*(?:implement|execute|carry out|follow)\b[^\n]{0,60}\bplan\b")

_LABEL = AnyOf(r"^(?:implementation |the )?plan\s*[:—-]\s*")

_NUMBERED = AnyOf(r"(?:step |phase |task )?\d")

_ASKING = frozenset({"askuserquestion", "askuser", "askquestion", "askfollowupquestion", "requestuserinput"})

PLANNING = frozenset({"exitplanmode", "planmoderespond"})
"""The tools whose answer a person gives. What any other answers, a server of tools included, is a tool's."""

_STEPS, _STEP_WORDS, _CHOICES = 6, 14, 4

_MOST_ASKED, _LONGEST_ANSWER = 16, 20_000  # questions, and options of one; characters of what was answered

_FREE = regex(r"(?<![\"'=:>])[\"'=:>]++\s*+([^\"]{2,400})\"")


def tool_decisions(events: Sequence[Event]) -> Made:
    """The decisions in answered questions and approved plans, with their scores."""
    made: Made = []
    calls: dict[str, Event] = {}
    for event in events:
        if event.kind == "call" and not event.agent:
            calls[event.call_id] = event
        call = calls.get(event.call_id)
        if event.kind != "result" or call is None or event.refused or event.failed:
            continue
        said = [Message("agent", call.text, call, ()), Message("user", event.text, event, ())]
        tool = call.tool.lower().replace("_", "")
        found = _answers(call.input, event.text) if tool in _ASKING else []
        if tool in PLANNING and isinstance(call.input.get("plan", ""), str):
            heading = _APPROVED.search(event.text)
            found = of_plan(event.text[heading.end() :] if heading else call.input.get("plan", ""))
        made += [(english.ENOUGH + 2, decision, said) for decision in found]
    return made


# ---- questions ----


def _mappings(items: object) -> list[dict[str, Any]]:
    return [item for item in items[:_MOST_ASKED] if isinstance(item, dict)] if isinstance(items, list) else []


def _answers(asked: Mapping[str, Any], answer: str) -> list[Decision]:
    """What was chosen of each question's options; a free answer stands as it was given."""
    answer = answer[:_LONGEST_ANSWER]
    asked_of = [one for one in _mappings(asked.get("questions")) if isinstance(one.get("question"), str)]
    places = [answer.find(str(one["question"])) for one in asked_of]
    decisions = []
    for one, place in zip(asked_of, places, strict=True):
        if place < 0:
            continue
        start = place + len(one["question"])
        given = answer[start : min((p for p in places if p > place), default=len(answer))]
        options = {
            str(option.get("label", "")): plain(str(option.get("description", "")))
            for option in _mappings(one.get("options"))
            if option.get("label")
        }
        chosen = [label for label in options if label in given]
        free = _FREE.search(given)
        if not chosen and not free:
            continue
        told = "; ".join(f"{label}: {options[label]}" if options[label] else label for label in chosen)
        text = told or plain(free[1] if free else "")
        rejected = tuple(clip(label, 12) for label in options if label not in chosen)[:4]
        asking = clip(plain(one["question"]), REASON_WORDS)
        decisions.append(
            Decision(decision=clip(text, DECISION_WORDS), rationale=asking, alternatives=rejected, origin="user")
        )
    return decisions


# ---- plans ----


def is_ordered(text: str) -> bool:
    """Whether a message orders a plan to be carried out, as a client does for a person who approved one, and the plan
    follows: headings over lists of changes. Any other plan in a message may be anybody's.
    """
    said = sentences(text) if _ORDERED.match(text) else ()
    return sum(s.kind == "heading" for s in said) >= 2 and sum(s.kind == "item" for s in said) >= 2


def of_plan(text: str) -> list[Decision]:
    """A plan as one decision, its title with its steps, and the choices in it that name what they turn down."""
    said = [s for s in sentences(text) if s.text]
    if len(said) < 2:
        return []
    parts = list(_parts(said))
    title = _LABEL.sub("", next((s.text for s in said if s.kind == "heading"), said[0].text))
    why = [s for heading, part in parts if _WHY(heading) for s in part]
    rest = [(h, part) for h, part in parts if not _WHY(h) and not _HOW_TO_CHECK(h)]
    steps = [step for step in _steps(rest) if step.rstrip(".:") != title.rstrip(".:")]
    whole = f"{title}: {'; '.join(steps)}" if steps else title
    first = next((place for place, s in enumerate(why) if english.gives_reason(s.text)), max(0, len(why) - 2))
    reasons = [s.text for s in why[first:]]
    decisions = [
        Decision(decision=clip(whole, DECISION_WORDS + 10), rationale=join(reasons, REASON_WORDS), origin="user")
    ]
    scored: list[tuple[int, int, str, str]] = []
    for _, part in rest:
        for place, sentence in enumerate(part):
            score = english.agent_score(sentence.text) + agent_decisions.is_imperative(sentence.text)
            if score >= english.ENOUGH and not english.is_question(sentence.text):
                before = [s.text for s in part[max(0, place - 1) : place] if english.gives_reason(s.text)]
                scored.append((score, len(scored), sentence.text, join(before, REASON_WORDS)))
    best = sorted(sorted(scored, key=lambda one: -one[0])[:_CHOICES], key=lambda one: one[1])
    for _, _, sentence_text, reason in best:
        short = clip(sentence_text.rstrip(":"), DECISION_WORDS)
        if not standing.reads_alone(short):
            continue
        options = tuple(english.rejected(short))
        decisions.append(Decision(decision=short, rationale=reason, alternatives=options, origin="user"))
    return decisions


def _parts(said: Sequence[Sentence]) -> Iterator[tuple[str, list[Sentence]]]:
    """The sentences of a plan under their headings."""
    heading = ""
    for is_heading, run in groupby(said, lambda sentence: sentence.kind == "heading"):
        part = [*run]
        if is_heading:
            heading = part[-1].text
        else:
            yield heading, part


def _steps(parts: Sequence[tuple[str, list[Sentence]]]) -> list[str]:
    """The steps of a plan: its numbered items, else its headings with numbers, else its items."""
    items = [s for _, part in parts for s in part if s.kind == "item" and s.mark]
    numbered = [s.text for s in items if s.mark.isdigit()]
    headed = [f"{heading.rstrip(':')}: {part[0].text}" for heading, part in parts if _NUMBERED.match(heading)]
    steps = numbered or headed or [s.text for s in items]
    return [clip(text.rstrip(":."), _STEP_WORDS) for text in steps[:_STEPS]]


# ---- messages ----

_LONG_MESSAGE, _SHORT_REQUEST = 150, 60  # words: beyond the first only rules are told; within the second, kept whole

_MOST_RULES = 10  # of one message: they are pinned, and the file is capped

_MEANT = 25  # words that tell what "it" or "all 4" stands for

_SHORT_ANSWER = 60  # words within which a message may be an answer to an offer


def user_decisions(said_by_all: Sequence[Message], place: int) -> Made:
    """The decisions in the message at `place`, which a person wrote, with their scores and where they stand."""
    message = said_by_all[place]
    said = [s for s in message.said if s.kind != "heading"]
    words = sum(len(s.text.split()) for s in sentences(message.text) if s.kind != "heading")  # pasted ones included
    if is_ordered(message.text):
        return [(english.ENOUGH + 2, decision, [message]) for decision in of_plan(message.text)]
    if not said:
        return []
    offered = offer_before(said_by_all, place)
    replies = messages.replies_to(said_by_all, place)
    if offered is not None and words <= _SHORT_ANSWER and not message.declined:
        decision = accepted_decision(message, said, offered, replies)
        if decision is not None:
            rules = _rules(message, said[1:], replies)  # "yes. and never …"
            first: Made = [(english.ENOUGH + 1, replace(decision, origin="user"), [offered, message])]
            return [*first, *rules, *_beside_yes(message, said[1:], [one[1].decision for one in (*first, *rules)])]
    made = _rules(message, message.said, replies)
    if words <= _LONG_MESSAGE and not made:
        made = _own_words(message, said, offered, replies) or _conceded(message, said, replies)
    return made


def _beside_yes(message: Message, said: Sequence[Sentence], told: Sequence[str]) -> Made:
    """What else a person orders behind their yes: "Fine. Keep it in one module"."""
    made: Made = []
    for sentence in said:
        text = sentence.text
        plain = not (english.asks(text) or english.is_errand_request(text) or english.leans(text))
        if plain and english.user_score(text) >= 2 and not any(text in other for other in told):
            meant = "" if standing.reads_alone(text) else f" ({clip(told[0], _MEANT)})"
            decision = Decision(decision=clip(f"{text.rstrip('.')}{meant}", DECISION_WORDS), origin="user")
            made.append((english.ENOUGH, decision, [message]))
    return made


def _rules(message: Message, said: Sequence[Sentence], replies: Sequence[Message]) -> Made:
    own = [s for s in said if not messages.reports_others(s.text)]
    if sum(len(s.text.split()) for s in said if s.kind != "heading") > _LONG_MESSAGE:
        own = lasting.parts(own)
        rules = lasting.laid_down(own)
    else:
        outright = lasting.outright(own)
        plain = [s for s in own if s.kind != "heading" and english.is_rule(lasting.unquoted(s.text))]
        told = [s for s in own if s in outright or s in plain]
        rules = [(s, s in outright or english.is_standing(s.text)) for s in told[:_MOST_RULES]]
        rules += [(s, pinned and not english.is_for_now(s.text)) for s, pinned in _orders_behind(own, rules)]
    made: Made = []
    for sentence, pinned in rules:
        reason = around(own, sentence, REASON_WORDS, but=_is_order)
        text = clip(sentence.text, DECISION_WORDS)
        decision = Decision(
            kind="rule" if pinned else "decision", pinned=pinned, decision=text, rationale=reason, origin="user"
        )
        made.append((english.ENOUGH + 2, decision, [message]))
    return made


def _is_order(text: str) -> bool:
    return english.is_order(text) or standing.bearing(text) in ("once", "change")


def _orders_behind(said: Sequence[Sentence], rules: Sequence[tuple[Sentence, bool]]) -> list[tuple[Sentence, bool]]:
    """The orders behind a rule in its paragraph, each with whether that one lasts: no reason for it, but more to do."""
    lasts, found = dict(rules), []
    before: Sentence | None = None
    for sentence in said:
        if sentence in lasts:
            before = sentence
        elif before and sentence.paragraph == before.paragraph and english.is_order(sentence.text):
            found.append((sentence, lasts[before]))
    return found


# What a person prefers, whatever the work at hand is.
_PREFERS = AnyOf(
    r"\bi (?:personally |generally |usually |strongly |really |much |always |still )*prefer\b(?! not to\b)",
    r"\bmy (?:own |personal |general |strong )?preference (?:is|would be)\b",
    r"\bi(?:'d| would)? (?:generally |usually |strongly |really |always )*favou?r\b",
    r"\bi (?:generally |usually |really |always )*like\b[^.!?\n]{3,80}\b(?:better|more) than\b",
)


def _own_words(message: Message, said: Sequence[Sentence], offered: Message | None, replies: Sequence[Message]) -> Made:
    """A directive, a correction, a suggestion that was taken up, or a statement that the agent took as settled."""
    first = replies[0].said[0].text if replies and replies[0].said else ""
    agreed = agent_decisions.agrees(first)
    acted = bool(message.does) or any(reply.does for reply in replies[:3])
    words = sum(len(s.text.split()) for s in said)
    said = said[next((n + 1 for n in reversed(range(len(said))) if english.withdraws(said[n].text)), 0) :]
    telling = [s for s in said if not (english.asks(s.text) or english.is_errand(s.text))]
    scores = {s: english.user_score(s.text) for s in telling}
    best = max(scores.values(), default=0)
    suggested = [s for s in telling if english.suggests(s.text)]
    preferred = [s for s in telling if _PREFERS(s.text)]
    chosen = [s for s in telling if scores[s] > 0 or s in suggested or s in preferred]
    if message.declined:
        doubtful = not best and any(english.doubts(s.text) for s in telling)  # "lol, I guess"
        if not telling or words < 3 or doubtful:
            return []
        best, chosen = best + 3, chosen or telling
    else:
        if best:
            answered = offered is not None and any("?" in s.text for s in offered.said[-4:])
            best += int(agreed or answered or acted) + int(answered and words < 12 and best < 2)
        if (suggested and (agreed or acted)) or preferred:
            best = max(best, english.ENOUGH)
        if (
            best < english.ENOUGH
            and agent_decisions.affirms(first)
            and (stated := [s for s in telling if english.states(s.text)])
        ):
            best, chosen = english.ENOUGH, stated
    if best <= 0 or not chosen:
        return []
    if words > _SHORT_REQUEST and len({s.paragraph for s in chosen}) > 1 and not message.declined:
        return _by_paragraph(message, chosen, scores, best, replies)
    text = (
        joined(s.text for s in telling) if words <= _SHORT_REQUEST and telling else span(said, chosen, DECISION_WORDS)
    )
    meant = clip(referent(text, offered), _MEANT)
    if not meant and english.leans(text) and not english.says_something(text):
        return []
    text = clip(f"{text} ({meant})" if meant else text, DECISION_WORDS + 10)
    if message.declined:
        text = f"{text} (said in declining {message.declined})"
    reasons = [s.text for s in said if english.gives_reason(s.text) and not english.asks(s.text) and s.text not in text]
    reason, options = join(reasons, REASON_WORDS), tuple(english.rejected(text))
    decision = Decision(decision=text, rationale=reason, alternatives=options, origin="user")
    return [(best, decision, [message, *replies[:1]])]


def _by_paragraph(
    message: Message, chosen: Sequence[Sentence], scores: Mapping[Sentence, int], best: int, replies: Sequence[Message]
) -> Made:
    """The decisions of a longer message, one for each paragraph that has any."""
    made: Made = []
    for _, run in groupby(chosen, lambda sentence: sentence.paragraph):
        part = [*run]
        text = clip(joined(s.text for s in part), DECISION_WORDS)
        most = max(scores[s] for s in part)
        score = best if most == max(scores.values()) else most + 1
        decision = Decision(decision=text, alternatives=tuple(english.rejected(text)), origin="user")
        made.append((score, decision, [message, *replies[:1]]))
    return made


def _conceded(message: Message, said: Sequence[Sentence], replies: Sequence[Message]) -> Made:
    """What the agent gives way to when a person objects or asks why."""
    if not replies or not replies[0].said or not agent_decisions.concedes(replies[0].said[0].text):
        return []
    settled = [s for s in replies[0].said[:8] if s.kind == "text" and english.prescribes(s.text) and "?" not in s.text]
    settled = [s for s in settled if not s.text.endswith(":") or listed_after(replies[0].said, s)]
    if not settled:
        return []
    listed = listed_after(replies[0].said, settled[0]) if settled[0].text.endswith(":") else []
    reason = join(
        [f"User: {clip(joined(s.text for s in said), REASON_WORDS // 2)}", around(replies[0].said, settled[0], 30)], 45
    )
    decision = Decision(
        decision=clip(joined(s.text for s in [settled[0], *listed]), DECISION_WORDS), rationale=reason, origin="user"
    )
    return [(english.ENOUGH, decision, [message, replies[0]])]

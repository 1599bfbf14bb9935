"""Settles what was found in a message: what is in force, what was done and asks for nothing more, what is neither."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace

from ralf.facts import git
from ralf.facts.commands import changes_file, command_text, is_shell
from ralf.model import Decision
from ralf.summarize import agent_decisions, english, standing
from ralf.summarize.messages import DECISION_WORDS, Made, Message, clip, join, replies_to
from ralf.summarize.user_decisions import PLANNING, offer_before, options_of, reply_of, turns_down
from ralf.text.cleaning import one_line
from ralf.text.matcher import content_words
from ralf.text.patterns import regex
from ralf.text.sentences import joined, split
from ralf.transcripts.events import Event

_FEW = 16  # words of a choice that needs its file's name to be read alone

_WAITS = 70  # words of what speaks for an order that waits, and of what it was said to do

_REFUSES = regex(r"(?:no|nope|nah|don't|do not|not now|not yet)\b", re.I)

_MARKS = regex(r"(?<![\w.])#?\d\b")

_FILE = regex(r"\w\.[A-Za-z]{1,5}\b")

_MADE_SO = " (made so)"
"""What is said of a choice that was carried out, and holds."""

_LONG = 35  # words of what a person says, of which only what binds is told first

_TELLING = 8  # words from which what a person tells beside an order explains it

_REMARKS = 60  # words of what a person says beside what they order

_ANSWER, _FIRST = 30, 8  # words of that; sentences of its answer

_CAME = 70  # words of what came of something that is done

_SHORT_ORDER = 8  # words of an order that speaks of what was said right before it

_RIGHT_BEFORE = 12  # lines between an order and the part that carries it out

_WAITING, _MOST_ON_OFFER = 10, 5  # sentences of what was answered, and of those that are kept


def settled(made: Made, told: Sequence[Message], place: int, earlier: Made) -> Made:
    """The decisions that were found in the message at `place`, in words that can be read alone, each with its status.

    What is over once it was carried out is `done` where the agent carried it out, with what it reported of it. What
    cannot be read alone is not in force: it is kept as `done` where it was answered, and else not at all.
    """
    message = told[place]
    replies = replies_to(told, place) if message.who == "user" else []
    answers = place and told[place - 1].who == "user" and told[place - 1] in [s for one in earlier for s in one[2]]
    out: Made = []
    for score, decision, sources in made:
        if score < english.ENOUGH or decision.status != "active" or decision.kind == "rule":
            out.append((score, decision, sources))
            continue
        if message.who == "user":
            offered = offer_before(told, place)
            accepted = any(one is offered for one in sources)
            one = _of_user(decision, message, replies, offered, accepted=accepted)
        else:
            last = told[place - 1] if place and told[place - 1].who == "agent" else None
            one = None if answers and _is_item(decision, message) else _of_agent(decision, message, last)
        if one is not None:
            out.append((score, one, sources))
    return out


def followed_up(earlier: Made, own: Made, told: Sequence[Message], place: int) -> Made:
    """What was found before the message at `place`, in which a person accepts an offer: what they had put forward
    themselves, and the agent answered with that offer, is told by what they accepted.
    """
    asking = next((n for n in reversed(range(place)) if told[n].who == "user"), None)
    if asking is None or not any(any(one in told[asking + 1 : place] for one in sources) for _, _, sources in own):
        return earlier
    agreed = next((one.decision for score, one, _ in own if score >= english.ENOUGH), "")
    out: Made = []
    for score, decision, sources in earlier:
        is_asked = any("?" in s.text for s in told[asking].said) and sources[0] is told[asking]
        if is_asked and decision.status == "active" and decision.kind == "decision" and agreed:
            decision = replace(
                decision, status="done", rationale=join([f"agreed: {agreed}", decision.rationale], _CAME)
            )
        out.append((score, decision, sources))
    return out


def carried_out(known: Sequence[Decision], events: Sequence[Event], session: str) -> list[Decision]:
    """Those of the known decisions that the events carry out: an order with which the part before them ended, and that
    the agent did before the person spoke again.
    """
    does: set[str] = set()
    for event in events:
        if event.kind == "user":
            break
        if event.kind == "call" and not event.agent:
            does.add("edits" if changes_file(event.tool, event.input) else "calls")
    first = events[0].start.line if events else 0
    return [replace(one, status="done") for one in known if does and _waits(one, session, first, does)]


def plans_carried_out(made: Made, events: Sequence[Event]) -> Made:
    """What was found, the decisions of a plan as done where a commit came after it, and the person spoke again."""
    commits: list[int] = []
    asked = max((event.start.line for event in events if event.kind == "user"), default=-1)
    calls: dict[str, str] = {}
    for event in events:
        if event.kind == "call" and is_shell(event.tool) and not event.agent:
            calls[event.call_id] = command_text(event.input)
        elif event.kind == "result" and not event.failed and git.commits(calls.get(event.call_id, ""), event.text):
            commits.append(event.start.line)
    out: Made = []
    for score, decision, sources in made:
        planned = decision.origin == "user" and any(
            one.event.tool.lower().replace("_", "") in PLANNING for one in sources
        )
        line = max(one.event.start.line for one in sources)
        is_over = planned and any(line < commit < asked for commit in commits)
        out.append((score, replace(decision, status="done") if is_over else decision, sources))
    return out


def _waits(decision: Decision, session: str, first: int, does: Set[str]) -> bool:
    place = decision.source
    if decision.origin != "user" or decision.kind != "decision" or place is None or place.session != session:
        return False
    binds = {standing.bearing(sentence) for sentence in standing.sentences_of(decision.decision)}
    over = {"change", "once"} if "edits" in does else {"once"}
    return 0 <= first - place.last_line <= _RIGHT_BEFORE and bool(binds & over) and binds <= {*over, "said"}


# ---- of a person ----


def _of_user(
    decision: Decision, message: Message, replies: Sequence[Message], offered: Message | None, *, accepted: bool
) -> Decision | None:
    text = standing.stated(decision.decision)
    binds = {sentence: standing.bearing(sentence) for sentence in standing.sentences_of(text)}
    if any(map(standing.is_remark, binds)):
        binds = {sentence: "change" if bears == "states" else bears for sentence, bears in binds.items()}
    report = standing.outcome([[s.text for s in reply.said] for reply in replies], decision.decision)
    does = {message.does, *(reply.does for reply in replies)}
    asks = {"lasting"} | (set() if message.declined else {"states"})
    changed = report or "edits" in does or ("calls" in does and english.is_errand_request(text))
    weighed = accepted and (
        bool(decision.alternatives) or turns_down(decision.rationale)
    )  # a choice that was weighed holds when it was carried out, too
    asks |= set() if changed and not weighed else {"change"}
    asks |= set() if report or does & {"edits", "calls"} else {"once"}
    if asks & {*binds.values()} and not (message.declined_edit and "edits" in does):
        is_long = len(text.split()) > _LONG and not accepted
        kept = asks - {"states"} if is_long and "lasting" in binds.values() else asks  # a remark tells of an order
        ordered = [sentence for sentence, bears in binds.items() if bears in kept | {"change"}]
        told = joined([one for one in ordered if not standing.approves(one)] or ordered)
        refused = _offered(offered) if _REFUSES.match(text) else ""
        meant = f"refused: {refused}" if refused else understood(replies, told)
        if not meant and len(told.split()) <= _SHORT_ORDER and not _MARKS.search(told):
            meant = _last_statement(offered)
        ways = [(told, told), (text, text)]
        if meant:
            ways += [(f"{one.rstrip('.')} ({meant})", meant) for one in (told, text) if "(" not in one]
        for words, telling in ((standing.without_joint(one), telling) for one, telling in ways):
            if standing.reads_alone(telling) or (decision.alternatives and telling == text):
                beside = [one for one, bears in binds.items() if bears == "states" or (bears == "said" and _tells(one))]
                beside = [one for one in beside if not standing.approves(one)]
                remarks = [one for one in beside if standing.without_joint(one) not in words]
                why = join([decision.rationale, *remarks], _REMARKS)
                decision = replace(decision, rationale=why) if remarks else decision
                if weighed and "edits" in does and "change" in binds.values():
                    return replace(decision, decision=f"{words.rstrip('.')}{_MADE_SO}")
                waits = accepted and not asks & {"lasting", "states"} & {*binds.values()}
                why = (
                    join([decision.rationale, _on_offer(offered, words, of_it=True)], _WAITS)
                    if waits
                    else decision.rationale
                )
                return replace(decision, decision=words, rationale=why)
    if not replies and not message.does:
        return None
    asides = [s.text for s in message.said if "?" in s.text and s.text not in decision.decision]
    aside = f"User: {joined(asides[:3])}" if asides else ""
    answer = reply_of(replies, decision.decision)
    on_offer = _on_offer(offered, decision.decision)
    came = join([aside, decision.rationale, "" if report in answer else report, answer, on_offer], _CAME)
    return replace(decision, rationale=came, status="done")


def _tells(text: str) -> bool:
    return len(text.split()) >= _TELLING and not english.is_question(text)


def _offered(offered: Message | None) -> str:
    """What the agent offered to do in its last question, of which an answer's "it" speaks; "" for none."""
    asked = [s.text for s in offered.said[-4:] if english.is_question(s.text)] if offered else []
    return next((found for text in reversed(asked) if (found := agent_decisions.offer(text))), "")


def _last_statement(offered: Message | None) -> str:
    """What a person's "it" may stand for, where the agent did not say: the last thing that it put forward."""
    said = [s.text for s in offered.said if s.kind != "heading" and "?" not in s.text] if offered else []
    told = [s for s in said if agent_decisions.recommends(s) or english.prescribes(s)] or said
    return clip(standing.without_opening(told[-1]).rstrip(":."), _ANSWER) if told else ""


def _on_offer(offered: Message | None, chosen: str, *, of_it: bool = False) -> str:
    """Of the last sentences of what a person answered, those that give reasons and name things; `of_it`: the same."""
    told = [s.text for s in (offered.said[-_WAITING:] if offered else ()) if s.kind != "heading" and "?" not in s.text]
    about = content_words(chosen)
    told = [text for text in told if text not in chosen and not english.looks_around(text)]
    told = [text for text in told if not of_it or about & content_words(text) or english.gives_reason(text)]
    worth = {text: 2 * english.gives_reason(text) + min(text.count("`") // 2, 2) for text in told}
    best = sorted(told, key=lambda text: -worth[text])[:_MOST_ON_OFFER]
    return joined(text for text in told if text in best)


def understood(replies: Sequence[Message], text: str) -> str:
    """What the agent said in its answer that it took a person's words to mean: of its first sentences that tell how
    things are to be, the one that has most to do with them; "" for none.
    """
    about, best, found = content_words(text), 0, ""
    for number, sentence in enumerate(replies[0].said[:_FIRST] if replies else ()):
        told = standing.without_opening(sentence.text).rstrip(":.")
        bare = standing.unannounced(told) == told and not english.looks_around(told) and not english.is_status(told)
        if sentence.kind == "heading" or "?" in told or not bare or len(told.split()) < 4 or standing.did(told):
            continue
        if number and _is_choice(told):
            continue  # one of its own
        shared = len(about & content_words(told))
        agrees = not number and agent_decisions.agrees(sentence.text)
        worth = agrees + 2 * shared + min(told.count("`") // 2, 2) + english.gives_reason(told) - number // 3
        if (shared or agrees) and worth > best:
            best, found = worth, told
    return clip(found, _ANSWER)


# ---- of the agent ----


def _of_agent(decision: Decision, message: Message, before: Message | None) -> Decision | None:
    if decision.kind != "decision":
        said = split(decision.decision)
        own = [s for s in said[1:] if not english.looks_around(s)]
        told = [standing.without_opening(said[0]), *(_done_instead(standing.without_opening(s)) for s in own)]
        return replace(decision, decision=joined(told))
    if standing.is_report(decision.decision) or standing.is_report(message.text):
        return None
    if standing.notes_only(decision.decision):
        return replace(decision, status="done")
    said = [s for s in split(decision.decision) if not english.looks_around(s) or english.chooses(s)]
    if not said or (message.does == "edits" and standing.tells_defect(said[0])):
        return None
    bare = [standing.without_opening(s) for s in said]
    told = [standing.unannounced(standing.unlabelled(s)) for s in said]
    text, announced = joined(told), told != bare
    asked = _asks_at_end(message, decision) and not standing.finds(text)
    if not announced and (standing.praises(text) or (asked and not _is_choice(text))):
        return None
    if announced and message.touched and len(text.split()) <= _FEW and not _FILE.search(text):
        text = f"{text.rstrip('.')} (in `{message.touched}`)"
    acted = message.does == "edits" or (announced and message.does == "calls")
    over = standing.finds(text) or standing.takes_side(text) or (acted and standing.bearing(text) in ("change", "once"))
    if announced:
        over = over or "lasting" not in {standing.bearing(s) for s, own in zip(told, bare, strict=True) if s != own}
    elif acted and not _is_choice(text) and english.prescribes(text):
        over = True  # "should be x": and then it was made so
    alone = _alone(text, decision, message, before)
    put = any(standing.proposes(s) for s in told) and not any(english.chooses(s) for s in told)
    if (asked or put) and message.does != "edits":
        return replace(decision, decision=alone or text, status="proposed")
    if not over and not alone and not acted:
        return None
    if over or not alone:
        return replace(decision, decision=text, status="done") if acted or not announced else None
    return replace(decision, decision=alone)


def _done_instead(text: str) -> str:
    """What an agent announced after a failure, as what was done: it asks for nothing any more."""
    order = standing.unannounced(text)
    return f"Done instead: {order[:1].lower()}{order[1:]}" if order != text else text


def _is_choice(text: str) -> bool:
    return english.chooses(text) or english.contrasts(text)


def _asks_at_end(message: Message, decision: Decision) -> bool:
    """Whether a message ends with a question: what stands before it is a proposal, which its answer decides."""
    asked = [s.text for s in message.said[-2:] if english.is_question(s.text) and s.text not in decision.decision]
    about = content_words(decision.decision)
    return bool(asked) and (bool(options_of(message.said)) or any(len(about & content_words(q)) > 1 for q in asked))


def _is_item(decision: Decision, message: Message) -> bool:
    """Whether it is an item of a list in its message: in an answer, it only follows from what the person said."""
    return any(s.kind == "item" and decision.decision.startswith(s.text.rstrip(":")) for s in message.said)


_CODE = regex(r"`[^`\n]{2,80}`")


def _alone(text: str, decision: Decision, message: Message, last: Message | None) -> str:
    """A text that can be read alone, with the sentence before it in its message, or the thing that the agent named in
    its `last` message, where it needs that; "" for none.
    """
    if standing.reads_alone(text):
        return text
    if standing.lacks_subject(text):
        return _named_before(text, last)
    said = [s for s in message.said if s.kind != "heading"]
    place = next((n for n, s in enumerate(said) if decision.decision.startswith(s.text.rstrip(":"))), 0)
    if not place:
        return ""
    before = standing.without_opening(said[place - 1].text)
    if "?" in before or english.looks_around(before) or english.is_status(before):
        return ""
    whole = clip(one_line(joined([before, text])), DECISION_WORDS)
    if standing.lacks_subject(whole):
        return _named_before(whole, last)
    return whole if standing.reads_alone(whole) else ""


def _named_before(text: str, last: Message | None) -> str:
    """A text without a subject, with the one thing that the agent named in its last message; "" where it named none, or
    several.
    """
    named = dict.fromkeys(_CODE.findall(last.text)) if last is not None else {}
    return f"{next(iter(named))}: {text[:1].lower()}{text[1:]}" if len(named) == 1 else ""

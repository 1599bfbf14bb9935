"""A conversation as messages and exchanges, and as sentences: its own ones, lead-ins, what belongs together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, Literal

from ralf.facts import pasted
from ralf.facts.commands import OLD_KEYS, changes_file, command_text, is_shell, named_in
from ralf.facts.git import commits
from ralf.model import SHA256_DIGITS, Decision, Source
from ralf.summarize import english
from ralf.summarize.deeds import deeds
from ralf.text.cleaning import trimmed
from ralf.text.matcher import AnyOf, content_words
from ralf.text.patterns import regex
from ralf.text.sentences import Sentence, joined, sentences
from ralf.text.tables import tables_as_items
from ralf.transcripts.events import Event

# ---- messages ----

DECISION_WORDS, REASON_WORDS = 60, 40
"""How long a decision and its reason may be: the file is capped, and each takes its part of it."""

_BOTH = 85

_SHORT = 45  # words of a message that says one thing


def room_beside(text: str) -> int:
    """The words that the reason of a decision may have: more for one that says little by itself ("yes, do that")."""
    return max(REASON_WORDS - 5, min(_BOTH - len(text.split()), 70))


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said at once.

    who       user or agent
    declined  the call that a person declined in saying it
    does      what the agent did before anybody spoke again: "edits" files, "calls" other tools, or nothing
    touched   the name of the first file that it edited then
    """

    who: str
    text: str
    event: Event
    said: tuple[Sentence, ...]
    declined: str = ""
    does: str = ""
    touched: str = ""

    @property
    def declined_edit(self) -> bool:
        """Whether the call that the person declined was to change a file."""
        return bool(self.declined) and not self.declined.startswith("`")


Made = list[tuple[int, Decision, Sequence[Message]]]
"""Scores, decisions and the messages in which they stand."""


def messages_in(events: Sequence[Event]) -> list[Message]:
    """What people and the agent said, in order."""
    out: list[Message] = []
    calls: dict[str, Event] = {}
    for event in events:
        text, who, declined = event.text, "agent", ""
        if event.kind == "call":
            calls[event.call_id] = event
            if out and out[-1].does != "edits" and not event.agent:
                edits = changes_file(event.tool, event.input)
                touched = _path(event).rpartition("/")[2] if edits else ""
                out[-1] = replace(out[-1], does="edits" if edits else "calls", touched=touched)
            continue
        if event.kind == "user":
            who = "user"
            declined = _call(calls.get(event.call_id)) if event.call_id else ""
        elif event.kind != "assistant":
            continue
        if text.strip():
            said = sentences(pasted.own(text)) if who == "user" else whole_lists(sentences(text))
            out.append(Message(who, text, event, said, declined))
    return out


_DENIES = AnyOf(
    r"\b(?:no|not|never|none|neither|nothing|without|lacks?|lacking|missing|nor|cannot)\b|n't\b",
)

_SUPPOSES = AnyOf(
    r"\b(?:either|if|unless|would|could|might|may|should|instead|whether|options?|alternatives?|scenarios?|suggestions?)\b",
)

_MOST_ITEMS = 8


def whole_lists(said: Sequence[Sentence], *, supposed: bool = False) -> tuple[Sentence, ...]:
    """The sentences, where a list stands below a sentence that denies it ("there is no test that:") as one with it: by
    themselves its items say the opposite. `supposed`: so where that sentence only supposes something, too.
    """
    found: list[Sentence] = []
    heads = False  # the list below belongs to the last one that was found
    items = 0
    for sentence in said:
        if heads and sentence.kind == "item":
            items += 1
            if items <= _MOST_ITEMS:
                joint = " " if items == 1 else " / " if sentence.mark else " "
                last = found[-1]
                found[-1] = replace(last, text=f"{last.text.rstrip('.')}{joint}{sentence.text}")
            continue
        text = sentence.text
        opens = text.endswith(":") and (sentence.kind != "heading" or supposed)
        heads = opens and (_DENIES(text) or (supposed and _SUPPOSES(text)))
        if heads and sentence.kind == "heading":
            sentence = replace(sentence, kind="text")
        items = 0
        found.append(sentence)
    return tuple(found)


def _call(call: Event | None) -> str:
    """A declined call in few words: a command's first line, or the tool and the file it was to change."""
    if call is None:
        return "the call"
    command = command_text(call.input) if is_shell(call.tool) else ""
    if command:
        line = trimmed(command.split("\n")[0], 160)
        return f"`{line}`" if "`" not in line else line
    return f"{call.tool} {_path(call).rpartition('/')[2]}".strip()


def _path(call: Event) -> str:
    """The file that a call names; "" for none."""
    named = (call.input[key] for key in ("file_path", "notebook_path", "path") if key in call.input)
    return next((path for path in named if isinstance(path, str)), "")


_UNANSWERED = 100  # messages of a person in a row, after which none is a reply to the first


def replies_to(said_by_all: Sequence[Message], place: int) -> list[Message]:
    """What the agent said next, until the person spoke again; nothing where it left that much unanswered."""
    ahead = range(place + 1, len(said_by_all))
    begins = next((n for n in ahead[:_UNANSWERED] if said_by_all[n].who == "agent"), len(said_by_all))
    ends = next((n for n in range(begins, len(said_by_all)) if said_by_all[n].who != "agent"), None)
    return list(said_by_all[begins:ends])


def source(session: str, said: Sequence[Message]) -> Source:
    """Where messages stand in their session, with the hash of their words."""
    text = "\n".join(message.text for message in said)
    return Source(
        session,
        min(message.event.start.line for message in said) + 1,
        max(message.event.end.line for message in said),
        hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:SHA256_DIGITS],
    )


def whole_of(message: Message) -> str:
    """A short message of statements on one line; "" for a longer one, and for one that asks or tells what it is about
    to look at, or at which step it is.
    """
    words = sum(len(sentence.text.split()) for sentence in message.said)
    asks = not 4 <= words <= _SHORT or message.declined or says_place(message.said)
    if asks or any(english.is_question(s.text) or english.looks_around(s.text) for s in message.said):
        return ""
    return joined(sentence.text for sentence in message.said)


def around(
    said: Sequence[Sentence], sentence: Sentence, words: int, *, but: Callable[[str], bool] = lambda _: False
) -> str:
    """The sentences next to one that hold its reason, up to the first behind it of which `but` says that it is none."""
    place = said.index(sentence)
    before = [s.text for s in said[max(0, place - 1) : place]]
    kept = [text for text in before if english.gives_reason(text) and not english.looks_around(text)]
    for number, following in enumerate(said[place + 1 : place + 5]):
        text = following.text
        if "?" in text or english.looks_around(text) or following.kind == "heading" or but(text):
            break
        near = following.paragraph == sentence.paragraph or (following.kind == "item" and sentence.kind != "item")
        if english.gives_reason(following.text) or (near and number < 3):
            kept.append(following.text)
        elif not near:
            break
    return join(kept, words)


def clip(text: str, words: int) -> str:
    """At most so many words, with "…" where it was cut, and no half of a pair of backticks left."""
    parts = text.split(" ")
    if len(parts) <= words:
        return text
    cut = " ".join(parts[:words])
    if cut.count("`") % 2:
        cut = cut[: cut.rindex("`")].rstrip()
    return cut.rstrip(" ,;:(") + "…"


def join(texts: Sequence[str], words: int) -> str:
    """As many of the texts, in order and each once, as fit into so many words."""
    kept: list[str] = []
    for text in filter(None, dict.fromkeys(texts)):
        size = len(text.split())
        if words > 0:
            kept.append(text if size <= words else clip(text, words))
        words -= size
    return joined(kept)


def span(said: Sequence[Sentence], chosen: Sequence[Sentence], words: int) -> str:
    """From the first to the last of the chosen sentences if that is short, else the chosen ones alone."""
    places = [place for place, sentence in enumerate(said) if sentence in chosen]
    between = [s.text for s in said[places[0] : places[-1] + 1] if s.kind != "heading"]
    if sum(len(t.split()) for t in between) <= words:
        return joined(between)
    return clip(joined(s.text for s in chosen), words)


# ---- quotations ----

_SOURCE = (
    r"(?:page|site|website|readme|file|docs?|documentation|document|output|logs?|issue|ticket|comment|article"
    r"|post|e-?mail"
    r"|message|result|response|tool|thread|snippet|notes?|author|text|instructions?|changelog|description|header"
    r"|banner)"
)

_SAYS = (
    r"(?:says?|said|states?|stated|reads?|claims?|tells?|told|instructs?|asks?|wants?|wrote|writes|contains?"
    r"|includes?"
    r"|mentions?|suggests?|recommends?|directs?|orders?|demands?)"
)

_REPORTS_SOURCE = regex(
    r"^(?:and |but |so |also,? |here )?(?:the|this|that|its|their|a|an|one)\b[^.:;\"]{0,60}?"
    rf"\b{_SOURCE}\b[^.:;\"]{{0,40}}?\b{_SAYS}\b(?: (?:me|us|you|agents?|readers?))?(?: to (?:me|us))?"
    r"\s*(?P<how>:|,? ?[\"'`\u201c\u2018]|that\b)"
    r"|^according to [^,:]{1,60}(?P<by>[,:])",
    re.IGNORECASE,
)

_REPORTED = regex(
    r"^(?i:\W{0,9}(?:(?:and|but|so|also|then|now|well|apparently|btw|by the way|yesterday|today)\W{1,9})*)"
    r"(?:(?i:he|she|they|someone|somebody|people|everyone"
    r"|(?:my|our|the|their|his|her|some|one|a|an|another|this|that|these|der|die|das|eine?"
    r"|mein\w*|unser\w*|les?|la|une?|mon|ma|notre|el|los|mi|nuestr[oa])(?: [\w.'\u2019-]+){1,4}?)"
    r"|(?!(?:I|We|You|Never|Always|Do|Don|Please|If|When|What|Who|Ich|Wir|Je|Nous"
    r"|Ne)\b)[A-Z][\w.'\u2019-]+(?: [A-Z][\w.]+)?) "
    r"(?:also |just |always |still |once )?(?:says?|said|told (?:me|us|everyone|them)|tells|claims?|claimed|insists?"
    r"|insisted|thinks?|thought|argues?|argued|suggests?|suggested|recommends?|recommended|wrote|writes|wants?|wanted"
    r"|asks?|asked|announced|reminded|used to say|believes?|meinte?|sagte?|behauptete?|empfiehlt|empfahl"
    r"|schrieb|conseille|disait|recomienda|decía|möchte|schreibt|dit|veut|écrit|dice"
    r"|quiere|escribe)\b",
)

_CONCLUDES = regex(r"[,;.] (?:so|therefore|hence|thus|which is why)\b,? ?(?:i|we|let|i'll|we'll)\b", re.IGNORECASE)


def reports_others(text: str) -> bool:
    """Whether a person's sentence tells what somebody else says, wants or said, and not what they want themselves."""
    return bool(_REPORTED.match(text))


def own_sentences(said: Sequence[Sentence]) -> list[Sentence]:
    """The sentences without those that tell what a source says; what follows a colon goes to the paragraph's end."""
    kept: list[Sentence] = []
    quoting: set[int] = set()
    for sentence in said:
        if sentence.paragraph in quoting:
            continue
        told = _REPORTS_SOURCE.match(sentence.text)
        if told is None or _CONCLUDES.search(sentence.text, told.end()):
            kept.append(sentence)
        elif told["how"] != "that":
            behind = (other for other in said if other.paragraph > sentence.paragraph)
            below = takewhile(lambda other: other.kind == "item", behind)
            quoting.update((sentence.paragraph, *(item.paragraph for item in below)))
    return kept


# ---- lead-ins ----

_MOST_WORDS = 10

_CLAUSE = regex(r"([^:`]{2,70}):\s+(?=\S)")

_DECIDES = AnyOf(
    r"\b(?:decid|decision|settl|conclu|verdict|(?<!-)commit(?:ted|ting)? (?:to|on)|resolv|resolution|choice|choos"
    r"|chose|pick|opt(?:ed|ing)?\b|agree|design|direction|approach|way (?:forward|to go)|policy|convention|landed"
    r"|go with|going with|went with|going ahead|final (?:answer|call|word)|my (?:call|take|mind|pick)|the plan"
    r"|what (?:we|i)(?:'re|'ll|'m| are| will| am)? (?:do|doing|use|build))\w*"
)

_REPORTS = AnyOf(
    r"\b(?:issue|problem|bug|cause|result|output|error|status|summary|finding|found|fail\w*|tests?|diff|logs?|fix\w*"
    r"|changes?|update[sd]?|question|example|steps?|todo|theory|hypothesis|option|conflict\w*|reason|because|why"
    r"|insight|difference|risk|concern|caveat|note that|symptom|review|comment\w*|suggestion|alternativ\w*)s?\b"
)

_CONCRETE = regex(r"[`/\d_]|\w\.\w|[a-z][A-Z]|\w\(\)")

_REACTS = AnyOf(
    r"\b(?:it|that|this|there|these|those|he|she|they|is|are|was|were|\w+ed|either|or|yes|yeah|yep|no|nope|right"
    r"|sure|likely|probably|same)\b|!|'s\b|\.\.\.|…"
)

_OTHERS = AnyOf(
    r"\b(?:alternativ\w*|options?|candidates?|contenders?|competitors?|reject\w*|discard\w*|declin\w*|dismiss\w*"
    r"|turned down|rul(?:ed|ing) out|consider\w*|weigh\w*|look(?:ed)? (?:at|into)|instead|rather than"
    r"|los(?:t|e|es|er|ing)|beat|beaten|runner|second (?:best|place|choice)|second-best"
    r"|not (?:taken|chosen|picked|done|adopted|used|this)|left out"
    r"|pass(?:ed)? (?:on|over|up)|(?:could|might) (?:also |just )?have|others?|against|on the table|road|versus"
    r"|did(?:n't| not)|thrown out|set aside|shelved|in the running|tempting|thought about)\b"
)

_GROUNDS = AnyOf(
    r"\b(?:reason\w*|why|because|rationale|motivat\w*|grounds?|since|background|justif\w*|arguments?|benefits?|due"
    r"|what (?:tipped|speaks|spoke|made|decided|drove|drives|convinced)|the point|context|so that|what for)\b"
)

_LABEL_REASON = AnyOf(
    r"^(?:the |our |my |main )*(?:reasons?|rationale|why|because|motivation|grounds?|reasoning)\b(?: is| was"
    r"| being)?\s*[:,—-]?"
)

_LABEL_REJECTED = AnyOf(
    r"^(?:we |i )?(?:also )?(?:rejected|ruled out|discarded|dropped|passed on|decided against|turned down"
    r"|considered|looked at"
    r"|thought about|weighed|explored|evaluated|not chosen|not taken|declined)\b",
    r"^(?:the |an |one |another |other )*(?:rejected |discarded |considered )?(?:alternatives?|other options?"
    r"|option that lost)\b",
    r"^(?:instead of|rather than|as opposed to|over)\b[^.]{0,3}[:,]",
)

# "Step 3 of 10:", "Phase 2 is done."
_PLACE = AnyOf(
    r"(?:now )?(?:step|phase|stage|part|task|milestone|iteration|round) #?\d+(?: ?(?:of|/) ?\d+)?"
    r"(?:,? (?:is |was )?(?:now )?(?:done|complete|completed|finished))?(?: ?[.:,]| [-\u2013\u2014]|$) ?",
)


def lead_in_section(text: str) -> str:
    """What a sentence opens: "rejected" options, the "reason", "more" of what its lead-in does not name, or ""."""
    if _LABEL_REJECTED(text):
        return "rejected"
    clause = _CLAUSE.match(text)
    head = clause[1] if clause else text
    if len(head.split()) > _MOST_WORDS or _CONCRETE.search(head):
        return "reason" if _LABEL_REASON(text) else ""
    if (clause or len(head.split()) < _MOST_WORDS - 1) and _OTHERS(head):
        return "rejected"
    if _LABEL_REASON(text) or ((clause or english.is_question(head)) and _GROUNDS(head)):
        return "reason"
    return "more" if clause and is_lead_in(head) else ""


def without_lead_in(said: Sequence[Sentence]) -> tuple[bool, list[Sentence]]:
    """The sentences of a message without its lead-in, and whether that announces a decision."""
    rest = list(said[1:])
    clause = _CLAUSE.match(said[0].text) if said else None
    if clause is not None and is_lead_in(clause[1]):
        return announces(clause[1]), [replace(said[0], text=said[0].text[clause.end() :]), *rest]
    if rest and rest[0].kind == "text" and is_lead_in(said[0].text):
        return announces(said[0].text), rest
    return False, list(said)


def says_place(said: Sequence[Sentence]) -> bool:
    """Whether a message begins by saying at which step of its plan the agent is: what follows is that step's work."""
    return bool(said) and bool(_PLACE.match(said[0].text))


def behind_place(said: Sequence[Sentence]) -> list[Sentence]:
    """The sentences of such a message without that; of any other, all."""
    place = _PLACE.match(said[0].text) if said else None
    text = said[0].text[place.end() :] if place else ""
    return [*([replace(said[0], text=text)] if text else []), *said[bool(place) :]]


def is_lead_in(text: str) -> bool:
    """Whether a clause has no content of its own: short, it names nothing, and reports nothing."""
    if len(text.split()) > _MOST_WORDS or _CONCRETE.search(text) or _REPORTS(text):
        return False
    if english.is_question(text) or english.looks_around(text) or english.is_status(text):
        return False
    return announces(text) or (_says_little(text) and not english.narrates(text))


def reacts(text: str) -> bool:
    """Whether a lead-in speaks of what was just seen ("Caught it."): what follows may be what was seen."""
    return bool(_REACTS(text.split(":")[0]))


def announces(text: str) -> bool:
    """Whether a clause says that something is decided, and not what."""
    return _DECIDES(text) and not _REPORTS(text) and _says_little(_DECIDES.sub("", text))


def _says_little(text: str) -> bool:
    """Whether a clause, whose first word is no name, has at most two words that say what it is about."""
    return len(content_words(text[:1].lower() + text[1:])) <= 2


# ---- exchanges ----

LONGEST = 16_000
"""Characters of one text that are read."""

Voice = Literal["said", "wrote", "reported", "thought", "noted"]
"""How a statement was made: said in the conversation, written for people (a plan, a comment, a document, a commit
message), reported by a sub-agent, thought, or noted down in a document that is the transcript itself.
"""

_PROSE_KEYS = ("plan", "body", "comment", "message", "description", "summary", "text")

_DOCUMENT = AnyOf(r"\.(?:md|mdx|rst|txt|adoc|org)$")

_FILE_KEYS = ("file_path", "path", "filePath", "target_file")

_CONTENT_KEYS = ("content", "new_string", "file_text", "new_str")

_HEREDOC = regex(r"<<-?[ \t]{0,8}(['\"]?)([A-Za-z_]\w{0,60})\1")

_MOST_HEREDOCS = 4

_PUBLISHES = regex(r"\bgit\b[^\n|]{0,40}\b(?:commit|tag|notes)\b|\b(?:gh|glab|hub|jira|linear)\b")

_MESSAGE = regex(r"\s-m\s+(?:\"((?:[^\"\\$]|\\.){20,})\"|'([^']{20,})')")

_LEAST = 40  # characters from which an argument is prose

_SUBAGENT = AnyOf(r"(?:^|_)(?:task|agent|subagent|spawn_agent|delegate)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One text, cut into sentences."""

    voice: Voice
    event: Event
    said: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a person asked for, "" at a segment's beginning, and what the agent stated and did until the next time.

    edited   names of the files that its tools changed, each once
    commits  "64274e0f Extract shared helper", as git reported them
    deeds    what they did outside the files: "commented on pull request #91: …"
    """

    request: str
    statements: list[Statement]
    edited: dict[str, None] = field(default_factory=dict)
    commits: dict[str, None] = field(default_factory=dict)
    deeds: dict[str, None] = field(default_factory=dict)

    @property
    def spoken(self) -> list[Statement]:
        """What was said in the conversation, message by message."""
        return [statement for statement in self.statements if statement.voice == "said"]


def exchanges(events: Sequence[Event]) -> list[Exchange]:
    """The conversation of a segment, in order."""
    out: list[Exchange] = []
    calls: dict[str, Event] = {}
    for event in events:
        if event.kind == "user" and event.text.strip():
            out.append(Exchange(event.text, []))
            continue
        if event.kind == "call":
            calls[event.call_id] = event
        elif event.kind == "result" and event.call_id in calls and not event.failed:
            out = out or [Exchange("", [])]
            _did(calls.pop(event.call_id), event, out[-1])
        for voice, text in _texts(event):
            text = tables_as_items(text[:LONGEST]) if voice == "said" else text[:LONGEST]
            if said := whole_lists(sentences(text), supposed=voice in ("said", "thought")):
                out = out or [Exchange("", [])]
                out[-1].statements.append(Statement(voice, event, said))
    return out


def _did(call: Event, result: Event, exchange: Exchange) -> None:
    """Note what an answered call changed, committed or did for people."""
    exchange.deeds.update(dict.fromkeys(deeds(call, result)))
    if is_shell(call.tool):
        made = commits(command_text(call.input), result.text)
        exchange.commits.update((f"{digest} {message}", None) for digest, message in made)
    elif changes_file(call.tool, call.input) and (name := PurePosixPath(named_in(call.input)).name):
        exchange.edited[name] = None


def _texts(event: Event) -> Iterator[tuple[Voice, str]]:
    if event.kind == "assistant":
        yield "said", event.text
    elif event.kind == "thinking":
        yield "thought", event.text
    elif event.kind == "note":
        if "decision" not in event.input and event.input.get("aside") is not True:  # what it decides is listed
            yield "noted", event.text
    elif event.agent:
        return  # a sub-agent's own; its report is the answer to the call that started it
    elif event.kind == "call":
        for text in _written(event.tool, event.input):
            yield "wrote", text
    elif event.kind == "result" and not event.failed and _SUBAGENT(event.tool):
        yield "reported", event.text


def _written(tool: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """The prose in a call's arguments: what the agent meant for people, not for a program."""
    if is_shell(tool):
        command = command_text(arguments)
        if _PUBLISHES.search(command):
            yield from _heredocs(command)
            yield from (match[1] or match[2] for match in _MESSAGE.finditer(command))
        return
    keys: tuple[str, ...] = _PROSE_KEYS
    if any(_DOCUMENT(str(arguments.get(key, ""))) for key in _FILE_KEYS):
        keys = _CONTENT_KEYS
    elif any(key in arguments for key in (*_FILE_KEYS, "pattern", "todos", "prompt")):
        return
    old = next((text for key in OLD_KEYS if isinstance(text := arguments.get(key), str)), "")
    known = {line.strip() for line in old.splitlines()}
    for text in map(arguments.get, keys):
        if isinstance(text, str) and len(text) >= _LEAST:
            yield "\n".join(line for line in text.splitlines() if line.strip() not in known) if known else text


def _heredocs(command: str) -> Iterator[str]:
    """The bodies of a command's first here-documents."""
    at = 0
    for _ in range(_MOST_HEREDOCS):
        match = _HEREDOC.search(command, at)
        at = command.find("\n", match.end()) if match is not None else -1
        if match is None or at < 0:
            return
        end = re.compile(rf"\n[ \t]*+{match[2]}\b").search(command, at)
        at += 1
        if end is not None:
            yield command[at : end.start()]

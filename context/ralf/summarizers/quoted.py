"""What an agent tells of a page, a file or a tool is not what it decided: its own sentences are what is left.

A guard, no proof: words that are repeated as if they were one's own are one's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ralf.prose import Sentence

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
_TOLD = re.compile(
    r"^(?:and |but |so |also,? |here )?(?:the|this|that|its|their|a|an|one)\b[^.:;\"]{0,60}?"
    rf"\b{_SOURCE}\b[^.:;\"]{{0,40}}?\b{_SAYS}\b(?: (?:me|us|you|agents?|readers?))?(?: to (?:me|us))?"
    r"\s*(?P<how>:|,? ?[\"'`\u201c\u2018]|that\b)"
    r"|^according to [^,:]{1,60}(?P<by>[,:])",
    re.IGNORECASE,
)
_REPORTED = re.compile(
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
_CONCLUDES = re.compile(r"[,;.] (?:so|therefore|hence|thus|which is why)\b,? ?(?:i|we|let|i'll|we'll)\b", re.IGNORECASE)


def reports(text: str) -> bool:
    """Whether a person's sentence tells what somebody else says, wants or said, and not what they want themselves."""
    return bool(_REPORTED.match(text))


def own(said: Sequence[Sentence]) -> list[Sentence]:
    """The sentences without those that tell what a source says; what follows a colon goes to the paragraph's end."""
    kept: list[Sentence] = []
    quoting: set[int] = set()
    for sentence in said:
        if sentence.paragraph in quoting:
            continue
        told = _TOLD.match(sentence.text)
        if told is None or _CONCLUDES.search(sentence.text, told.end()):
            kept.append(sentence)
        elif told["how"] != "that":
            quoting.add(sentence.paragraph)
            quoting.update(_items_below(said, sentence))
    return kept


def _items_below(said: Sequence[Sentence], lead: Sentence) -> list[int]:
    """The paragraphs of the items that stand right below a sentence."""
    below = []
    for sentence in said:
        if sentence.paragraph > lead.paragraph:
            if sentence.kind != "item":
                break
            below.append(sentence.paragraph)
    return below

"""Tells by what two texts are about whether the newer one puts another thing in the place of what the older one chose.

The verb does not matter much: "swapped A for B in the session store", "A is gone from the session store, B takes over".
What counts is the shape. Both speak of the same subject, a phrase of two words or a name in code; the newer names the
thing that the older one chose for it, turns away from that, and brings another one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from ralf.summarizers.grammar import any_of, content_words, is_question

_I = re.IGNORECASE
_MOST_WORDS, _MOST_NAMED = 32, 14  # words, and words that name something: a longer text speaks of more than one choice
_MOST_CHOSEN = 4  # words that name what was chosen
_TOKEN = re.compile(r"`[^`\s]+`|[A-Za-z0-9_+#]+(?:[-./][A-Za-z0-9_+#]+)*")
_REPLACED = re.compile(
    r"\b(?:instead of|no longer|rather than|away from|moves? from|moved from|switch(?:ed|ing)? from|dropping"
    r"|dropped|drop"
    r"|replac(?:e|es|ed|ing)|abandon(?:ed|ing)?|revert(?:ed|ing)?|undo|scrap|back out|remov(?:e|ed|ing)"
    r"|(?<!did )(?<!does )(?<!do )(?<!can )(?<!could )(?<!has )(?<!have )(?<!had )(?<!will )(?<!would )not)\s+"
    r"(?:the |our |using |use )?([\w.+#/`-]+(?: [\w.+#/`-]+){0,3})",
    _I,
)
_PLAIN = frozenset(
    "about above across after against among aren back base be become before begin behind belong below beneath"
    " best between bring build built can carry change come couldn day didn do does doesn don done end fit for"
    " found give go gone good got hadn hasn hav have haven having here him hold i in into isn it its job keep kept"
    " last like live load long look made make mean month more much next one ones onto our own per place point"
    " power put ran relie rely rest rid ride run sake see serv serve set shouldn simplicity since sit some spot"
    " stand start stay still store stuff take taken them there they thing though through time today too took turn"
    " turned under until up upon use used user uses using very via want was wasn way we week well went were weren"
    " what when where which while who with within won work would wouldn yesterday you".split()
)
"""Words that name neither a subject nor a thing that could be chosen for it."""
_NOUNS = frozenset("change job load place point power run store work".split())
"""Of these, those that may be part of a name."""
_TURNS_AWAY = any_of(
    # what is done to the old thing
    r"\b(?:abandon|ax|ban|cut|deprecat|discard|displac|ditch|drop|dump|eject|eliminat|exchang|kick|migrat|outgrow"
    r"|outgrew|outgrown|phas|purg|rip|replac|retir|revers|scrap|scratch|shed|substitut|succeed|supersed|supplant|swap"
    r"|switch|trad|upgrad|usurp|vacat|veto|withdraw|withdrew|yank)[npt]?(?:e|ed|es|s|ing)?\b",
    r"\b(?:mov|shift|chang|convert|turn|port|transition|cut)\w* (?:\w+ ){0,6}?(?:over|from|to|away|into|off)\b",
    r"\b(?:rid of|take(?:s|n)? (?:over|out)|took (?:over|out)|takes? the place"
    r"|in (?:the |its |his )?(?:place|stead|favou?r)|gives? way|gave way|makes? way|step(?:s|ped)? (?:in|down)"
    r"|pull(?:s|ed)? out|thr(?:ow|ew|own)s? out|instead|rather)\b",
    # it is no longer so
    r"\b(?:not|never|no|none|nothing|cannot|without|wrong|mistake|regret\w*|gone|out|over|past|history"
    r"|former\w*|previous\w*|original\w*|initial\w*|earlier|once|until|anymore|any more|any longer|longer"
    r"|had|ran|was|were|used to)\b|n't\b",
    # it did not do
    r"\b(?:fail(?:s|ed|ing|ure)?|broken?|break(?:s|ing)?|struggl\w+|suffer\w*|trouble\w*|problem\w*|painful\w*|slow(?:er|ly)?"
    r"|limit(?:s|ed|ing|ations?)|insufficien\w+|inadequa\w+|unsuit\w+|unfit|collaps\w+|crash(?:es|ed|ing)|chok(?:es|ed|ing)"
    r"|buckl\w+|fell|falls?)\b",
)
_FROM_NOW = any_of(
    r"\b(?:now|from (?:now|here|today) on|today|as of|after all|going forward|henceforth|on (?:reflection|second)"
    r"|reconsider\w*|rethink|rethought|revis\w+|better|new|chang\w+|successor|replacement)\b",
)
_NARRATES = re.compile(
    r"(?:and |so |ok(?:ay)?,? )*(?:now|next|first|then|let me)\b[ ,]+"
    r"(?:i\b|i'll|let|(?!(?:the|our|we|a|an|it|its|this|that)\b)(?-i:[a-z])\w+ )",
    _I,
)
_REASON = re.compile(r"\b(?:because|since|so that|as it|to avoid|in order to)\b|(?<=\w)[.;] ", _I)
_CLAUSE_ENDS = re.compile(r"[,;:.!\u2013\u2014] ")
_STAYS = r"(?:keep\w*|kept|stay\w*|stick\w*|stuck|remain\w*|still|continu\w*|retain\w*|leav\w*|left)"
_JOINS = r"(?:and|plus|alongside|together with|as well as|next to|beside|on top of)"


@lru_cache(maxsize=1024)
def may_replace(text: str) -> bool:
    """Whether a text can replace anything: short, no question and no narration, it turns away from something."""
    if len(text.split()) > _MOST_WORDS or is_question(text) or _NARRATES.match(text):
        return False
    return bool(_TURNS_AWAY.found(text) or _FROM_NOW.found(text))


def replaces(new: str, old: str) -> bool:
    """Whether `new` puts another thing in the place of what `old` chose for the same subject."""
    if not may_replace(new):
        return False
    old = _choice(old)
    subjects = phrases(new) & phrases(old)
    if not subjects:
        return False
    after, before = _all_words(new), _all_words(old)
    plain = _plain_words(new) | _plain_words(old)
    if max(len(after - plain), len(before - plain)) > _MOST_NAMED:
        return False
    brought = frozenset(word for word in after - before - plain if not _turns(word))
    if not brought:
        return False
    if any(_other_phrase(word, new, old) for word in after & before):
        return False
    denied = frozenset[str]().union(*replaced_terms(old))  # what it turned away from it did not choose
    turned = frozenset[str]().union(*replaced_terms(new))
    if turned and turned <= denied:  # nor does the new one, and that is all that it says against
        return False
    for subject in subjects:
        chosen = before.difference(subject, denied) - plain
        turned_from = chosen & after
        if (
            0 < len(turned_from) <= _MOST_CHOSEN
            and len(turned_from) * 3 >= len(chosen)
            and _turns_from(new, turned_from, brought)
        ):
            return True
    return False


@lru_cache(maxsize=2048)
def _choice(text: str) -> str:
    """A decision without its reason; "" where it is long, or a question."""
    text = _REASON.split(text)[0]
    return "" if len(text.split()) > _MOST_WORDS or is_question(text) else text


@lru_cache(maxsize=1024)
def replaced_terms(text: str) -> tuple[frozenset[str], ...]:
    """What a sentence says it turns away from: for each mention, its first content word and those that follow."""
    return tuple(words for match in _REPLACED.finditer(text) if (words := content_words(match[1])))


def _turns_from(text: str, old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether a text turns away from the words of `old`, and not from those of `new`."""
    mine, others = ("|".join(rf"{re.escape(word)}\w*" for word in sorted(words)) for words in (old, new))
    if re.search(rf"\b{_STAYS}\W+(?:\w+\W+){{0,3}}?(?:{mine})|\b(?:{mine})\W+(?:\w+\W+){{0,2}}?{_STAYS}\b", text, _I):
        return False
    terms = replaced_terms(text)
    if any(term & old for term in terms):
        return True
    if any(term <= new for term in terms):
        return False
    if not _TURNS_AWAY.found(text):  # "now" alone: the old thing stands apart from it
        clauses = [clause for clause in _CLAUSE_ENDS.split(text) if _FROM_NOW.found(clause)]
        if any(content_words(clause) & old for clause in clauses):
            return False
    return not re.search(rf"\b(?:{mine})`?,? {_JOINS} (?:an? |the )?`?(?:{others})", text, _I)  # one more beside it


@lru_cache(maxsize=2048)
def phrases(text: str) -> frozenset[tuple[str, str]]:
    """Words of a text that stand next to each other and name something together."""
    return frozenset(
        (one, two)
        for (place, one, plain), (next_to, two, as_plain) in pairwise(_words(text))
        if next_to == place + 1
        and not (plain and as_plain)
        and (not plain or one in _NOUNS)
        and (not as_plain or two in _NOUNS)
        and not _turns(one)
        and not _turns(two)
    )


@lru_cache(maxsize=8192)
def _turns(word: str) -> bool:
    return bool(_TURNS_AWAY.fullmatch(word) or _FROM_NOW.fullmatch(word))


def _other_phrase(word: str, new: str, old: str) -> bool:
    """Whether a word is part of one name in one text and of another in the other: "session store", "session key"."""
    for place in (0, 1):
        after, before = ({pair for pair in phrases(text) if pair[place] == word} for text in (new, old))
        if after and before and not after & before and not (place and is_name(word, old)):
            return True
    return False


def is_name(word: str, text: str) -> bool:
    """Whether a word is written like a name of its own, so that what stands before it is no part of it."""
    found = re.search(rf"`?\b{re.escape(word)}", text, _I)
    return found is not None and not (found.group().isalpha() and found.group().islower())


@lru_cache(maxsize=2048)
def _words(text: str) -> tuple[tuple[int, str, bool], ...]:
    """The content words of a text: place, word, whether it names nothing. A sign between two words parts them."""
    found = []
    place = end = 0
    for match in _TOKEN.finditer(text):
        between = text[end : match.start()]
        place += 1 if between.isspace() else 2
        token = match.group()
        opens = not end or any(sign in between for sign in ".!?:;")
        named = token[0] == "`" or any(sign.isupper() or sign.isdigit() for sign in token[opens:])
        words = content_words(f"x {token}") - {"x"}
        found += [(place, word, word in _PLAIN and not named) for word in sorted(words)]
        end = match.end()
    return tuple(found)


@lru_cache(maxsize=2048)
def _all_words(text: str) -> frozenset[str]:
    return frozenset(word for _, word, _ in _words(text))


@lru_cache(maxsize=2048)
def _plain_words(text: str) -> frozenset[str]:
    return frozenset(word for _, word, plain in _words(text) if plain)


@lru_cache(maxsize=1024)
def affirmed(text: str) -> frozenset[str]:
    """The words of a decision without those of what it turns away from."""
    words = content_words(text)
    return words.difference(*replaced_terms(text)) or words


FEWEST_ALIKE = 3
"""Words that two have in common at the least, where they are alike."""


def alike(words: frozenset[str], before: frozenset[str]) -> bool:
    """Whether two sets of words, or of what stands for words, are nearly the same, or one within the other."""
    least = min(len(words), len(before))
    return least >= FEWEST_ALIKE and least - len(words & before) <= least // 7

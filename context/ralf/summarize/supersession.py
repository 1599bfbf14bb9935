"""Links decisions over time: what is said again is one record, what is replaced or taken back is marked."""

from __future__ import annotations

import re
from bisect import bisect, insort
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from ralf.model import MOST_SOURCES, Decision, Tombstone
from ralf.route.cap import cover
from ralf.summarize.english import is_question, leans
from ralf.summarize.opposing import keys, opposes
from ralf.text.cleaning import one_line
from ralf.text.matcher import AnyOf, affirmed, alike, content_words, replaced_terms, takes_back, turned_from
from ralf.text.patterns import regex

# ---- one thing in the place of another ----

_MOST_WORDS, _MOST_NAMED = 32, 14  # words, and words that name something: a longer text speaks of more than one choice

_MOST_CHOSEN = 4  # words that name what was chosen

_TOKEN = regex(r"`[^`\s]+`|[A-Za-z0-9_+#]+(?:[-./][A-Za-z0-9_+#]+)*")

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

_TURNS_AWAY = AnyOf(
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
    r"\b(?:fail(?:s|ed|ing|ure)?|broken?|break(?:s|ing)?|struggl\w+|suffer\w*|trouble\w*|problem\w*|painful\w*"
    r"|slow(?:er|ly)?"
    r"|limit(?:s|ed|ing|ations?)|insufficien\w+|inadequa\w+|unsuit\w+|unfit|collaps\w+|crash(?:es|ed|ing)|chok(?:es"
    r"|ed|ing)"
    r"|buckl\w+|fell|falls?)\b",
)

_FROM_NOW = AnyOf(
    r"\b(?:now|from (?:now|here|today) on|today|as of|after all|going forward|henceforth|on (?:reflection|second)"
    r"|reconsider\w*|rethink|rethought|revis\w+|better|new|chang\w+|successor|replacement)\b",
)

_NARRATES = regex(
    r"(?:and |so |ok(?:ay)?,? )*(?:now|next|first|then|let me)\b[ ,]+"
    r"(?:i\b|i'll|let|(?!(?:the|our|we|a|an|it|its|this|that)\b)(?-i:[a-z])\w+ )",
    re.I,
)

_REASON = regex(r"\b(?:because|since|so that|as it|to avoid|in order to)\b|(?<=\w)[.;] ", re.I)

_CLAUSE_ENDS = regex(r"[,;:.!\u2013\u2014] ")

_STAYS = r"(?:keep\w*|kept|stay\w*|stick\w*|stuck|remain\w*|still|continu\w*|retain\w*|leav\w*|left)"

_JOINS = r"(?:and|plus|alongside|together with|as well as|next to|beside|on top of)"


@lru_cache(maxsize=1024)
def may_replace(text: str) -> bool:
    """Whether a text can replace anything: short, no question and no narration, it turns away from something."""
    if len(text.split()) > _MOST_WORDS or is_question(text) or _NARRATES.match(text):
        return False
    return bool(_TURNS_AWAY(text) or _FROM_NOW(text))


def replaces(new: str, old: str) -> bool:
    """Whether `new` puts another thing in the place of what `old` chose for the same subject."""
    old = _choice(old)
    subjects = phrases(new) & phrases(old) if may_replace(new) else frozenset()
    if not subjects:
        return False
    after, before = _all_words(new), _all_words(old)
    plain = _plain_words(new) | _plain_words(old)
    if max(len(after - plain), len(before - plain)) > _MOST_NAMED:
        return False
    brought = frozenset(word for word in after - before - plain if not _turns(word))
    if not brought or any(_other_phrase(word, new, old) for word in after & before):
        return False
    denied = frozenset[str]().union(*replaced_terms(old))  # what it turned away from it did not choose
    turned = frozenset[str]().union(*replaced_terms(new))
    if turned and turned <= denied:  # nor does the new one, and that is all that it says against
        return False
    chosen = (before.difference(subject, denied) - plain for subject in subjects)
    return any(
        0 < len(words & after) <= _MOST_CHOSEN
        and len(words & after) * 3 >= len(words)
        and _turns_from(new, words & after, brought)
        for words in chosen
    )


@lru_cache(maxsize=2048)
def _choice(text: str) -> str:
    """A decision without its reason; "" where it is long, or a question."""
    text = _REASON.split(text)[0]
    return "" if len(text.split()) > _MOST_WORDS or is_question(text) else text


def _turns_from(text: str, old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether a text turns away from the words of `old`, and not from those of `new`."""
    mine, others = ("|".join(rf"{re.escape(word)}\w*" for word in sorted(words)) for words in (old, new))
    if re.search(rf"\b{_STAYS}\W+(?:\w+\W+){{0,3}}?(?:{mine})|\b(?:{mine})\W+(?:\w+\W+){{0,2}}?{_STAYS}\b", text, re.I):
        return False
    terms = replaced_terms(text)
    if any(term & old or term <= new for term in terms):
        return any(term & old for term in terms)
    now = () if _TURNS_AWAY(text) else filter(_FROM_NOW, _CLAUSE_ENDS.split(text))
    if any(content_words(clause) & old for clause in now):  # "now" alone: the old thing stands apart from it
        return False
    return not re.search(rf"\b(?:{mine})`?,? {_JOINS} (?:an? |the )?`?(?:{others})", text, re.I)  # one more beside it


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
    found = re.search(rf"`?\b{re.escape(word)}", text, re.I)
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


# ---- linking ----

_changes = AnyOf(
    r"\b(?:instead|no longer|now|moves?|moved|switch\w*|drop\w*|replac\w+|abandon\w*|revert\w*|changed? (?:our"
    r"|my) minds?"
    r"|on (?:reflection|second thou?ghts?)|after all|back to|from here on|from now on|scrap|undo|roll(?:ed|ing)? back"
    r"|actually|change of (?:plan|mind)|turn(?:s|ed) out)\b",
    remembers=2048,
)
"""Whether a decision says that it changes something."""

_PUTS_INSTEAD = AnyOf(r"\b(?:instead|use|go with|switch|replace|rather|back to|we now|now we)\b")

_REFERENT = regex(r" \((?:[^()]|\([^()]*\))*\)$")  # what "that" stands for: `user_decisions` puts it behind the words

_OPEN = ("active", "done", "proposed")  # what was carried out can be replaced, too

_NEAR = 60  # lines of a transcript: some turns

_FAR = 150  # lines: as far back as that may lie what "let's go back" takes back

_SLOT = 9  # content words: in more, one other word is no other choice

_MANY = 8  # content words, of which three quarters make two sentences that follow each other the same

_FEW_CHOSEN = 3  # words of a choice of which one is enough to tell that it is denied

_COMMON = 60  # open decisions: a word that more of them have tells the newest of them apart, and no more

_MOST_ALIKE = 20  # open decisions that are looked at for an opposing choice: those that share most with a new one

_BY_SUBJECT = 30  # the score from which a decision replaces another by what both are about, whatever the verb


def linked(
    found: Sequence[Decision],
    known: Sequence[Decision] = (),
    said: Sequence[Decision] = (),
    dropped: Sequence[Tombstone] = (),
) -> list[Decision]:
    """The found decisions, oldest first, linked to each other and to the route's `known` active ones.

    said     short messages as a whole: each counts only where it puts another thing in the place of what was decided;
             an agent's, which mostly reports, only where it says so
    dropped  tombstones: what lies under them is not found, and what only repeats it is not either

    A decision that was said before is no new one: its source goes to the one that it repeats, which, where that is a
    known one, stands in the list again under its label. What is replaced or taken back is marked so if it was found
    here too; it is named by its label, or as `#n`, the nth of the list, until the route gives it one.
    """
    pool = _Pool([one for one in known if one.id])
    tombstoned: list[Decision] = []
    replacing_lines: dict[int, frozenset[str]] = {}  # of messages that replace something as a whole: their words
    candidates = sorted(
        [*((1, one) for one in found), *((0, one) for one in said)], key=lambda one: (_line(one[1]), one[0])
    )
    for listed, new in candidates:
        says = listed or new.origin == "user" or may_replace(new.decision)
        if not says or content_words(new.decision) <= replacing_lines.get(_line(new), frozenset()):
            continue  # or a part of it
        if cover(dropped, new):
            tombstoned.append(new)
            continue
        opposed = pool.opposed(new) if listed or new.origin == "user" else frozenset()
        like = pool.like(new, opposed)
        score, place = max(((_replaced_by(new, pool[n], n in opposed), n) for n in like), default=(0, 0))
        if not listed:
            if score < _BY_SUBJECT:
                continue
            replacing_lines[_line(new)] = content_words(new.decision)
        elif score < _BY_SUBJECT:
            again = next((n for n in reversed(like) if _restates(new, pool[n])), None)
            if again is not None and pool.is_found(again):
                pool.put(again, _merged(pool[again], new))
                continue
            words = content_words(new.decision)
            if any(_related(words, one, _words_of(one)) and _restates(new, one) for one in tombstoned):
                continue
            if again is not None:
                pool.retell(again, _merged(pool[again], new))
                continue
        if not score:
            pool.add(new)
            continue
        old, label = pool[place], pool.label()
        if pool.is_found(place):
            pool.put(place, replace(old, status=_status(new, score), superseded_by=label))
            old = replace(old, id=old.id or pool.label(place))
        elif _status(new, score) == "reversed":
            pool.retell(place, replace(old, status="reversed", superseded_by=pool.label(1 + len(pool))))
        pool.add(replace(new, supersedes=old.id))
    return pool.found()


class _Pool:
    """The decisions that a new one may have to do with: the known ones, oldest first, then those that are found."""

    def __init__(self, known: Sequence[Decision]) -> None:
        self._all: list[Decision] = []
        self._words: list[frozenset[str]] = []  # of each, with its reason
        self._by_word: dict[str, list[int]] = {}
        self._by_key: dict[str, list[int]] = {}  # of what it speaks
        self._by_line: dict[str, list[tuple[int, int]]] = {}  # of each session
        self._retold: set[int] = set()
        self._known = len(known)
        for one in known:
            self.add(one)

    def __getitem__(self, place: int) -> Decision:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)

    def found(self) -> list[Decision]:
        """Those that are not known, and known ones that were told again."""
        return self._all[self._known :]

    def is_found(self, place: int) -> bool:
        """Whether the one at a place is none of the known ones."""
        return place >= self._known

    def label(self, place: int | None = None) -> str:
        """`#n` for the nth that is found: at a place, or the next one."""
        return f"#{(len(self) if place is None else place) - self._known + 1}"

    def add(self, decision: Decision) -> None:
        """One more is found."""
        self._all.append(decision)
        self._words.append(_words_of(decision))
        self._note(len(self) - 1, self._words[-1])
        for key in keys(decision.decision):
            self._by_key.setdefault(key, []).append(len(self) - 1)
        if decision.source is not None:
            insort(self._by_line.setdefault(decision.source.session, []), (decision.source.first_line, len(self) - 1))

    def put(self, place: int, decision: Decision) -> None:
        """Say another thing of the one at a place, or more."""
        added = content_words(decision.rationale) - content_words(self._all[place].rationale)
        self._note(place, added - content_words(decision.decision))
        self._all[place] = decision
        self._words[place] = _words_of(decision)

    def retell(self, place: int, decision: Decision) -> None:
        """A known one stands among the found ones from now on."""
        self._retold.add(place)
        self.add(decision)

    def _note(self, place: int, words: frozenset[str]) -> None:
        for word in words:
            self._by_word.setdefault(word, []).append(place)

    def opposed(self, new: Decision) -> Set[int]:
        """Where open ones stand against which a new one chooses, of those that have most to do with it."""
        shared: Counter[int] = Counter()
        for key in keys(new.decision):
            shared.update(self._by_key.get(key, ())[-_COMMON:])
        alike = sorted(shared, key=lambda n: (-shared[n], -n))[:_MOST_ALIKE]
        return {
            n
            for n in alike
            if n not in self._retold and self[n].status in _OPEN and opposes(new.decision, self[n].decision, len(self))
        }

    def like(self, new: Decision, opposed: Set[int]) -> list[int]:
        """Where open ones stand that are related to a new one, in order."""
        places = set(opposed)
        words = content_words(_REFERENT.sub("", new.decision) if _only_takes_back(new) else new.decision)
        for word in words:
            places.update(self._by_word.get(word, ())[-_COMMON:])
        if new.source is not None:
            lines, line = self._by_line.get(new.source.session, []), new.source.first_line
            first = line - (_FAR if _only_takes_back(new) else _NEAR)
            places.update(n for _, n in lines[bisect(lines, (first, -1)) : bisect(lines, (line, -1))])
        return [
            n
            for n in sorted(places - self._retold)
            if n in opposed
            or (
                self[n].status in _OPEN
                and (_related(words, self[n], self._words[n]) or _denies_choice(new.decision, self[n].decision))
            )
        ]


def _line(decision: Decision) -> int:
    return decision.source.first_line if decision.source is not None else 0


def _words_of(decision: Decision) -> frozenset[str]:
    return content_words(decision.decision) | content_words(decision.rationale)


def _related(words: frozenset[str], old: Decision, before: frozenset[str]) -> bool:
    """Whether the words of a new decision and the older one, all of whose words are `before`, have enough in common to
    be compared at all; "undo that" has none of its own.
    """
    if len(words) <= 2:
        return True
    shared = len(words & before)
    return shared >= 2 or (shared == 1 and len(content_words(old.decision)) <= 3)


def _behind(new: Decision, old: Decision) -> int | None:
    """How many lines behind the older one a decision stands in its session; None where it stands in another."""
    if new.source is None or old.source is None or new.source.session != old.source.session:
        return None
    return new.source.first_line - old.source.first_line


def _only_takes_back(new: Decision) -> bool:
    """Whether a decision takes something back, and does not say what: "I concede, let's go back"."""
    said = _REFERENT.sub("", new.decision)
    return takes_back(said) and len(content_words(said)) <= 2


def _near(new: Decision, old: Decision) -> bool:
    return 0 < (_behind(new, old) or 0) <= _NEAR


def _status(new: Decision, score: int) -> str:
    if score >= _BY_SUBJECT or _PUTS_INSTEAD(new.decision):
        return "superseded"
    return "reversed" if takes_back(new.decision) else "superseded"


# ---- the same again ----


def _restates(new: Decision, old: Decision) -> bool:
    """Whether a decision says nothing that the older one does not: the same words, or one within the other."""
    if (new.kind == "failed-approach") != (old.kind == "failed-approach"):
        return False
    words, before = (affirmed(_REFERENT.sub("", one.decision)) for one in (new, old))
    least, shared = min(len(words), len(before)), len(words & before)
    follows = least >= _MANY and shared * 4 >= least * 3 and new.origin == old.origin and _near(new, old)
    if follows or alike(words, before):
        return not takes_back(new.decision) or takes_back(old.decision)
    if len(words) >= 2 and words <= before and _near(new, old) and leans(new.decision):
        return not takes_back(new.decision)  # "let's do this as a separate one"
    # What the agent made of a person's words stands beside them already.
    if new.origin != "agent" or len(words) < 3 or (len(before) >= 4 and shared < 2):
        return False
    return one_line(new.decision.lower()).rstrip(".:") in one_line(old.rationale.lower())


def _merged(old: Decision, new: Decision) -> Decision:
    further = old.further_sources
    if new.source is not None and new.source not in (old.source, *further):
        further = (*further, new.source)[: MOST_SOURCES - 1]
    if old.status == "proposed" != new.status:
        old = replace(old, status=new.status, origin=new.origin)
    return replace(
        old,
        pinned=old.pinned or new.pinned,
        rationale=old.rationale or new.rationale,
        alternatives=old.alternatives or new.alternatives,
        further_sources=further,
    )


# ---- another instead ----


@lru_cache(maxsize=2048)
def _chosen(text: str) -> frozenset[str]:
    """The words of a decision without its reason."""
    return content_words(_REASON.split(text)[0])


def _names(words: frozenset[str], text: str) -> bool:
    """Whether one of the words is the name of a thing; a number is none."""
    return any(not word.isdigit() and is_name(word, text) for word in words)


def _denies_choice(new: str, old: str) -> bool:
    """Whether a text turns away from the very thing that the older one chose: "replacing last write wins with …"."""
    choice = _choice(old) or " ".join(old.split()[:_MOST_WORDS])
    chosen = content_words(choice).difference(*turned_from(choice), *replaced_terms(choice))
    plain = _plain_words(new) | _plain_words(old)
    for term in turned_from(new):
        words = term - plain
        if words and words <= chosen and (len(words) > 1 or _names(words, old) or len(chosen - plain) <= _FEW_CHOSEN):
            return True
    return False


def _replaced_by(new: Decision, old: Decision, opposed: bool) -> int:
    """How clearly a decision puts itself in the place of the older one, which it may oppose; 0 where it does not."""
    if "failed-approach" in (new.kind, old.kind) or (old.kind == "rule" and new.origin != "user"):
        return 0
    before, words, chosen = content_words(old.decision), content_words(new.decision), affirmed(old.decision)
    if _behind(new, old) != 0 and (opposed or replaces(new.decision, old.decision)):
        return _BY_SUBJECT + 10 * len(before & words) // max(len(before), 1)
    if new.origin == "user" and _only_takes_back(new):
        behind = _behind(new, old) or 0  # "undo that": what was decided right before, by the person at best
        return int(0 < behind <= _FAR) * (1 + (old.origin == "user")) + len(before & words)
    if _behind(new, old) != 0 and _denies_choice(new.decision, old.decision):
        return _BY_SUBJECT
    if not _changes(new.decision):
        return 0
    shared = before & words
    named = any(len(term & chosen) * 2 >= len(term) for term in replaced_terms(new.decision))
    one_subject = bool(phrases(new.decision) & phrases(old.decision)) and len(shared) >= 3
    if named and (
        (one_subject and len(shared) * 2 >= min(len(before), len(words))) or (len(before) <= 2 and before <= words)
    ):
        return 20 + len(shared)
    # Not named: the same said of the same thing, with another name in one place.
    before, words = _chosen(old.decision), _chosen(new.decision)
    other, instead = before - words, words - before
    if not (_names(other, old.decision) and _names(instead, new.decision)):
        return 0
    alike = len(before & words) >= 2 and 1 <= len(other) <= 2 and 1 <= len(instead) <= 3
    return 10 + len(before & words) if alike and max(len(before), len(words)) <= _SLOT else 0

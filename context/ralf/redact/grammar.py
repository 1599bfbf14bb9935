"""Secrets that something before them calls so: one grammar of names, of what joins them with a value, and of values.

`DB_PASSWORD=…`, `"api_key": "…"` at any depth of escaping, `Пароль: …`, `set -x TOKEN …`, a sentence. A name tells a
kind; what joins it with a value tells how strong the value must be to be that kind of secret: LEAST.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ralf.redact import values
from ralf.redact.engine import Hit, Place, Text
from ralf.redact.names import LONGEST_NAME, kind_of, stems_of
from ralf.redact.table import expression, rows, words
from ralf.redact.values import ID, is_coined, is_identifier, is_passphrase, is_phrase, strength
from ralf.text.patterns import regex

LEAST: dict[str, list[int]] = {
    join: [getattr(values, word.upper()) for word in least.split()] for join, least, _ in rows("joins")
}
"""How strong a value must be by what joins it with its name: as a password, as another secret, and behind a name that
says little."""

_PIN = regex(r"[0-9]{4,8}\Z")
_YEAR = regex(r"(?:19|20)[0-9]{2}\Z")
_OF_WALLET = regex(r"0x[0-9a-fA-F]{40}\Z")  # the address of a wallet or a contract, which is public
_SHORT_HASH = regex(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,12}\Z")  # as git abbreviates one
_LONGEST_PIN = 32  # characters: a longer one is a digest that is pinned
_JUDGED = 96  # characters of a value by which it is judged


@lru_cache(4096)
def is_secret(value: str, kind: str, join: str) -> bool:
    """Whether a value is a secret that a name of a kind is joined with."""
    if kind == "pin" and (_PIN.match(value) or join in ("near", "said", "code")):
        year = join == "said" and _YEAR.match(value)
        return join not in ("near", "code") and _PIN.match(value) is not None and not year
    if _OF_WALLET.match(value) or (kind == "pin" and len(value) > _LONGEST_PIN):
        return False
    password = kind in ("password", "pin")
    level = strength(value[:_JUDGED])
    if level < LEAST[join][0 if password else 2 if kind == "weak" else 1]:
        return False
    if level >= ID or (password and join not in ("code", "near")):
        return kind != "weak" or not is_identifier(value)
    words = kind == "token" and is_passphrase(value) and not value[-1].isdigit()  # a scope, a topic, a class of styles
    return (not _is_short(value) and not words) or is_coined(value)  # names of code stand there, too


def _is_short(value: str) -> bool:
    """Whether a value is a name of code, or as short as one."""
    return (is_identifier(value) or is_passphrase(value)) and not is_passphrase(value, least=len("four"))


# ---- what joins a name with its value ----

_BETWEEN: dict[str, str] = {}
for _join, _form in rows("between"):
    _BETWEEN[_join] = f"{_BETWEEN[_join]}|{_form}" if _join in _BETWEEN else _form

_AFTER = regex(
    expression(
        r"(?:[^\W\x00-\x7f]|%n){0,8}?(?P<closed>(?:%o|%t){0,3}+)[\])}]?+"  # the end of a name, and what closes it
        r"(?:[ ]?\([^()\n\"']{1,30}\)(?=[ ]?[:=|])|[ ]?\uff08[^\uff08\uff09\n]{1,30}\uff09)?"
        rf"(?:{'|'.join(f'(?P<{join}>{form})' for join, form in _BETWEEN.items())})"
        r"(?:(?P<call>(?:new |\[\])?[a-z_][a-z0-9_.:]{0,40}\(\s{0,40}(?:default[ ]?=[ ]?)?(?=\\*[\"'`]))?+"
        r"(?:\[(?=\\*[\"']))?"
        r"(?:\(\s{1,40}(?=[\"'])|\[\[|[\"']{2}(?=[\"'])|<<[-~]?[\"']?[a-z_]{2,20}[\"']?\r?\n[ \t]{0,20})?"
        r"(?:(?:&[a-z0-9_-]{1,30}|!!?(?:str|binary|unsafe))[ ])?"  # YAML's &a and !!str
        r"(?:(?:[a-z]{1,2}[0-9]?|r?#{1,3}|[@$]{1,2}|<<)(?=[\"'])|[\"'](?=\\+[\"'])|'(?=\"))?"  # r"…", @"…", "\"…\""
        r"(?:<!\[cdata\[|<value>|%i{1,2}[\u00a0\u202f ]?)?(?P<open>%o)?+"
        r"(?:(?:bearer|basic|token|apikey|negotiate|ssws|digest)(?:%l|%20|\+)++|key=(?=a)"
        r"|(?:(?<=ization:[ ])|(?<=ization[\"'][:,][ ][\"']))[a-z][a-z_-]{1,20}[ ](?=\S{16}))?+)"
    )
)
"""Matches what stands between a name and its value, in lower case."""

_LINE_BEGINS = regex(expression(r"%m[ \t]*+(?:[-*>$#\u2022]{1,4}[ ]|\w{1,20} / )?+[\"'`*_ ]*+[\w.-]{0,60}\Z"))
_PROMPT = regex(r"[ \t]*(?:>{1,3}|\(i?pdb\)|in \[[0-9]{1,6}\]:|irb[^\n>]{0,40}>|[a-z]{1,10}>)[^\n]*\Z")
_SETS = regex(r"\b(?:set|setx|setenv|env|arg|export)\s(?:--?[a-z-]{1,20}\s(?:\S{1,40}\s)?){0,3}[\w./:-]{0,60}\Z")
_LOOKS_UP = regex(r"(?:\bget|[._]get|env|pop|item|lookup|find|read|fetch|input|prompt|param|column|field|getpass)\(\Z")

# ---- values ----

_BARE = regex(r"(?:[^\s\"'`\\<>|]++|(?<=\w)'(?=\w)|\\(?![nrtu\"'`\\\r\n])|\\u(?!00[0-3])[0-9a-fA-F]{4})+")
_TO_ITS_END = regex(
    r"[A-Za-z][a-z]{2,19}(?: [A-Za-z][a-z]{2,19}){3,24}(?=[\"'}]|</|\]\]>|[ \t]*(?:\r?\n|\Z))"
)  # a pass phrase
_CUT = regex(
    r"[\u00a0\u202f\u300d\u201d\u00bb\uff09\u3011\uff0c\u3002\u3001\uff1b\uff01\uff1f]|\]\]>|&(?:amp|quot|gt|lt);"
    r"|[;,](?=\s|\Z|[\w .-]{1,40}[=:])|&(?=[\w.-]{1,40}=|\Z)|(?<![)\]},;:.*_])[)\]},;:.*_]+\Z"
)
_CUT_IN_ADDRESS = regex(r"[,;&)\]}]")
_WITHOUT_SPACES = regex("[\u0e00-\u0e7f\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Matches a letter of a script that writes words without blanks."""

_BRACKETS = "(\u00ab\u300c\u201c\u201e\uff08\u3010"
_LONGEST, _LONGEST_BARE = 2048, 512


def _quoted_end(text: str, start: int, quote: str) -> int | None:
    """Where the quotation that `quote` opened ends; None where its line does not close it."""
    mark = quote.lstrip("\\")
    place, limit = start, min(len(text), start + _LONGEST)
    while (found := text.find(mark, place, limit)) >= 0:
        end = start + len(text[start:found].rstrip("\\"))
        if found - end <= len(quote) - len(mark):
            return end if "\n" not in text[start:end] else None
        place = found + len(mark)
    return None


def _bare_end(text: str, start: int, cuts: re.Pattern[str], *, said: bool) -> int:
    """Where a value without quotes ends; `start` where there is none."""
    end, bare = start, _BARE.match(text, start, start + _LONGEST_BARE)
    while bare is not None and bare.end() < start + _LONGEST:
        end, bare = (
            bare.end(),
            _BARE.match(text, bare.end(), start + _LONGEST) if bare.end() == end + _LONGEST_BARE else None,
        )
    cut = cuts.search(text, start, end)
    end = cut.start() if cut is not None else end
    other = _WITHOUT_SPACES.search(text, start, end) if said else None  # a sentence goes on
    return other.start() if other is not None else end


def _ends_line(text: str, end: int) -> bool:
    return end >= len(text) or text[end] in "\r\n" or text.startswith(("\\n", "\\r", "</", " #"), end)


# ---- names and their values ----

_IN_NAMES = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_REST = regex(r"[a-z0-9\u00c0-\u058f_-]{0,40}+")  # of a name, with the ending of a case
_IN_WORDS = "abcdefghijklmnopqrstuvwxyz0123456789"
_RUN, _MOST_IN_A_RUN = regex(r"[^\s\"'`]{0,4096}+"), 4  # characters without a blank, and the names that are tried there
_IN_PATH = regex(r"\w:\Z")
_SECOND = regex(r"[^\s/]{1,80}[ ]/[ ](?=[^\s/])")
_NO_BEGINNING = (" ", '"', '\\"')  # of a value in quotes
_SORTS = regex(r"=(?:lambda |[a-z_.]{1,60}[,)])")  # key=lambda item: …
_LONGEST_BEFORE, _SENTENCE, _MOST_WORDS, _MOST_NEAR = 100, 160, 11, 8


def find(text: Text, stems: Sequence[re.Match[str]]) -> Iterator[Hit]:
    """The secrets of a text that a name before them tells, in no order; they may overlap."""
    raw, low = text.raw, text.low
    read = run = tries = 0
    said: dict[str, int] = {}  # how far the words were judged, by kind
    for stem in stems:
        start = stem.start()
        if start < read or (stem[0].endswith("key") and _SORTS.match(low, stem.end())):
            continue
        if start >= run:
            run, tries = _RUN.match(low, start).end(), 0  # type: ignore[union-attr]  # it matches anything
        elif (tries := tries + 1) >= _MOST_IN_A_RUN:
            read = run
            continue
        name, place = _name(low, stem)
        kind = _kind(low, name, stem[0], place)
        if not kind or len(name) >= LONGEST_NAME:
            continue
        begin = place - len(name.rpartition(" ")[2])
        if low.endswith("::", 0, begin) or (low.startswith(":", place) and _IN_PATH.search(low, begin - 2, begin)):
            continue  # of a path, colons join the parts: a type, a resource's address
        if (found := _joined(raw, low, start, place, kind, name)) is not None:
            places = [found]
        elif kind != "weak" and (name != "pass" or low.startswith(" is ", place)):  # which Python has for doing nothing
            behind = list(_told_behind(raw, max(place, said.get(kind, 0)), place + _SENTENCE))
            said[kind] = max(said.get(kind, 0), behind[-1][1] if behind else 0)
            told = [*_told_before(raw, low, start), *behind, *_told_below(raw, place - len(name), place)]
            places = [word[:2] for word in told if _is_told(raw, *word, kind)]
        else:
            continue
        for secret in places:
            yield Hit(*secret, "key" if kind == "weak" else kind)
            read = max(read, secret[1])


def _name(low: str, stem: re.Match[str]) -> tuple[str, int]:
    """The name around a stem, with the word before it where it stands alone, and where it ends."""
    start = stem.start()
    before = low[max(0, start - LONGEST_NAME) : start]
    begun = before[len(before.rstrip(_IN_NAMES)) :]
    end = _REST.match(low, stem.end()).end()  # type: ignore[union-attr]  # it matches anything
    apart = before[: len(before) - len(begun)]
    word = ""
    if apart[-1:] in (" ", "/") and not begun.startswith("-"):
        word = apart[len(apart[:-1].rstrip(_IN_WORDS)) :] if apart[-2:-1] in _IN_WORDS else ""
    return f"{word}{begun}{low[start:end]}", end


def _kind(low: str, name: str, stem: str, place: int) -> str:
    """What a name that ends at a place calls its value; one before `=` says so without the word before it."""
    kind = kind_of(name, stem)
    if kind or " " not in name or not low.startswith("=", place):
        return kind
    alone = kind_of(name.rpartition(" ")[2], stem)
    return alone if alone == "password" else ""


def _joined(raw: str, low: str, first: int, place: int, kind: str, name: str) -> Place | None:
    """The value that a name is joined with, if it is a secret."""
    after = _AFTER.match(low, place)
    if after is None or after.end() >= len(raw):
        return None
    join, start = next(one for one in _BETWEEN if after[one] is not None), after.end()
    if low.startswith("/", first - 1) and (second := _SECOND.match(raw, start)):  # login/password: bob / …
        start = second.end()
    end = _quoted_end(raw, start, raw[slice(*after.span("open"))]) if after["open"] else None
    quoted = end is not None
    if end is None:
        phrase = _TO_ITS_END.match(raw, start) if kind == "password" and join in ("assign", "pair", "markup") else None
        if phrase is not None and is_phrase(phrase[0]):
            return phrase.span()
        cuts = _CUT_IN_ADDRESS if first > len(name) and raw[place - len(name) - 1] in "?&#" else _CUT
        end = _bare_end(raw, start, cuts, said=join == "near")
    value = raw[start:end]
    again = (
        len(name) > len("api_password") and name.rpartition(" ")[2] in value.lower()
    )  # a branch, and what it is pushed to
    tag = ':"' in value  # of a field in Go: `json:"password"`
    if value.startswith(("[REDACTED:", *_NO_BEGINNING)) or again or tag or not is_secret(value, kind, "env"):
        return None
    join = _refined(raw, low, first, after, join, end, quoted=quoted, name=name)
    return (start, end) if join and is_secret(value, kind, join) else None


def _refined(
    raw: str, low: str, first: int, after: re.Match[str], join: str, end: int, *, quoted: bool, name: str
) -> str:
    """What joins a name with a value, as LEAST calls it: by what encloses the value; "" where nothing does."""
    start, sign = after.end(), after[join]
    begin = max(low.rfind("\n", max(0, first - _LONGEST_BEFORE), first) + 1, first - _LONGEST_BEFORE, 0)
    begins, ends = _LINE_BEGINS.match(low, begin, first) is not None, _ends_line(raw, end)
    opener = low[max(0, first - LONGEST_NAME) : first].rstrip(f"{_IN_NAMES}:")
    listing = raw.startswith(("  ", "\t"), end) or "=" in raw[start:end].rstrip("=")
    option = name[:1] == "-" and "`" not in after["closed"] and ("  " not in sign or "\n" in sign)
    env = sign.endswith("=") and not raw[start - 1].isspace() and (ends or raw[after.start() - 1].isupper())
    variable = after["open"] and (any(map(name.__contains__, "_-")) or opener.endswith("{"))
    tagged = sign.startswith("<") or opener.endswith(("<", 'name="', "name='", 'key="'))
    rules = (
        (after["call"], "" if _LOOKS_UP.search(after["call"] or "") else "argument"),
        (join in ("assign", "pair"), "quoted" if quoted else "env" if env else "line" if ends else "code"),
        (join in ("near", "list") and listing and not quoted, ""),
        (join == "near" and raw[start - 1] == "(" and _SHORT_HASH.match(raw[start:end]), ""),
        (join == "near" and (option or _SETS.search(low, begin, first)), "flag"),
        (join == "near" and "\n" in sign, ""),
        (join == "near" and (quoted or raw[start - 1] in _BRACKETS or (ends and begins)), "cell"),
        (join == "list" and not (after["closed"] or begins or variable), ""),
        (join == "markup", "" if not tagged else "quoted" if raw.startswith("</", end) or quoted else "code"),
        (join == "cell" and not (begins or low[begin:first].lstrip().startswith("|")), ""),
        (join == "shown", "quoted" if _PROMPT.match(low, begin, first) else ""),
    )
    return next((refined for holds, refined in rules if holds), join)


# ---- what is said of a value, and not joined with it ----

_WORD = regex(
    expression(
        r"(?:%o|%t){0,3},?[ ](?:[\"'`\u00ab\u201c\u201e]([^\n\"'`\u00bb\u201d\u201c]{4,100})[\"'`\u00bb\u201d\u201c]"
        r"|(?!\[?(?:[a-z_]{2,30}|[A-Z_]{2,30})=[^=])((?:[^\s\"'`<>(){}\[\]|\\\u00ab]{1,200}+|(?<=[^\W\d])'(?=[^\W\d])){1,9}+))"
        r"|([\u0e00-\ud7af]{1,20})[\"'(\u300c\u201c\uff08]?(?:([!-~]{6,64})|(?=[ ]))"
    )
)
"""Matches a word of a sentence: in quotes, without, or behind the letters of a script without blanks."""

_BELOW = regex(
    r"(?:(?:(?!\",)[^\n:=]){0,80}+(?:\n[^\n:=]{0,20}+)?:(?:[ \t]+|(?=\r?\n))|[*_`\"\u00bb ]{0,4}+(?=\r?\n)"
    r"|[^\n?]{0,80}+\?(?=\r?\n))"
    r"(?:\r?\n[\s>]{0,8}+)?(?:\[[0-9:]{4,8}\][ ]\w{1,30}:[ ]|\w{1,30}[ ]\[[0-9:]{4,8}\][: ]{0,2})?"
    r"(?!(?:[\w./-]{1,80}:[0-9]{1,6}[:-])?[A-Za-z_]{2,30}=)(\S{4,200}+)[ \t]*+(?:\r?\n|\Z)"
)
"""Matches what stands alone below the line of a name, or ends that line behind a colon."""

_IN_BASE64 = regex(r"[A-Za-z0-9+/]{8,}[ \t]*(?:\r?\n|\Z)")  # a name within it is none

_BASE64_BEFORE = regex(r"(?:[ \t]*[0-9]{1,6}[\t|:\u2192])?[+ ]?[A-Za-z0-9+/]{24,}")

_OF_CODE = ("(", '["', "['")

_COPULAS = frozenset(words("copulas"))
"""What says in a sentence that its one side is the other."""

_WRAPS = "\"'`*_()[]<>,;:.!?\u00ab\u00bb\u300c\u300d\u201c\u201d\u201e"


Told = tuple[int, int, str]
"""Where a word stands near a name, and what joins them."""


_ADDRESS = regex(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+\Z")


def _is_public(value: str) -> bool:
    """Whether a value looks like what stands in sentences, too: a name of code, an id."""
    return (
        strength(value) == ID
        or _SHORT_HASH.match(value) is not None
        or _ADDRESS.match(value.rstrip("?!*")) is not None
        or "</" in value
        or "://" in value
        or (is_identifier(value) and not is_passphrase(value, least=len("four")) and not is_coined(value))
    )


def _is_told(raw: str, start: int, end: int, join: str, kind: str) -> bool:
    """Whether a word near a name is a secret of its kind, as it is no word, no id and no name of anything."""
    value = raw[start:end]
    return is_secret(value, kind, join) and (join != "near" or not _is_public(value))


def _told_before(raw: str, low: str, place: int) -> Iterator[Told]:
    """What a text calls a secret behind it: `… is the deploy token`."""
    line = low.rfind("\n", max(0, place - 2 * _SENTENCE), place) + 1
    behind = low[max(line, place - LONGEST_NAME, 0) : place].split(" ")
    for number in range(len(behind) - 2, max(0, len(behind) - _MOST_WORDS), -1):
        if behind[number] in _COPULAS:
            end = place - sum(map(len, behind[number:])) - len(behind) + number
            word = raw[max(line, end - 200, 0) : end].split()[-1:]
            if word and len(word[0]) >= len("01234567") and not any(sign in word[0] for sign in _OF_CODE):
                yield *_stripped(raw, end - len(word[0]), end), "near"


def _told_below(raw: str, first: int, place: int) -> Iterator[Told]:
    """What stands alone below the line of a name, or ends it; below the head of a table, a row does."""
    line = raw.rfind("\n", max(0, first - _SENTENCE), first) + 1
    in_base64 = _IN_BASE64.match(raw, place) or _BASE64_BEFORE.fullmatch(raw, line, first)
    in_head = raw[max(0, first - 1) : first] in (",", ";", "|", "\t") or in_base64
    if (below := _BELOW.match(raw, place)) is not None and not in_head:
        yield *_stripped(raw, *below.span(1)), "below"


def _told_behind(raw: str, place: int, limit: int) -> Iterator[Told]:
    """The words of the sentence behind a name."""
    join = "near"
    for number in range(_MOST_WORDS):
        word = _WORD.match(raw, place, limit)
        if word is None or (join == "near" and number >= _MOST_NEAR):
            break
        place = word.end()
        if word[3]:
            join = "said" if word[3][-1] in _COPULAS else "near"
        if word[1] and join == "said":
            yield *word.span(1), "cell"
        elif word[3] != word[0] and not raw.startswith(("[", "(", "=", "  ", "\t"), place):
            yield *_stripped(raw, *word.span(word.lastindex or 0)), join
        if word[0].endswith((".", "?", "!", "\u3002")):
            break
        join = "said" if word[0].endswith(":") or (word[2] or word[3] or "").lower() in _COPULAS else "near"


def _stripped(raw: str, start: int, end: int) -> Place:
    """A word without the signs around it and the letters of a script without blanks."""
    word = raw[start:end].strip(_WRAPS)
    if _WITHOUT_SPACES.search(word):
        word = next((part for part in _WITHOUT_SPACES.split(word) if len(part) >= len("012345")), "")
    first = raw.index(word, start)
    end = first + len(word)
    if first == start and raw[end : end + 2].strip() in ("!", "?", "*"):  # of a password, or of the sentence
        end += 1
    return first, end


# ---- what answers a question for a secret ----

_ASKS = regex(
    r"[?\uff1f\u061f]|\b(?:give|send|paste|provide|enter|type|need|tell|share|generate|create|make|choose|set)\b"
    r"|\u6559\u3048|\u304f\u3060\u3055\u3044|\u8bf7"  # tell me, please, in Japanese and Chinese
)
_ANSWER = regex(r"[^\s\"'`]{6,200}")
_LONGEST_ANSWER, _ASKED = 160, 200  # characters


def answered(question: str, answer: str) -> Iterator[Hit]:
    """The secrets of a short message that follows a question for one."""
    low = question[-_ASKED:].lower()
    if len(answer) > _LONGEST_ANSWER or not _ASKS.search(low):
        return
    for stem in stems_of(low):
        kind = kind_of(_name(low, stem)[0], stem[0])
        if kind and kind != "weak" and answer.strip().count(" ") in (0, 3, 4, 5) and _is_whole(answer.strip(), kind):
            yield Hit(answer.index(answer.strip()), len(answer.rstrip()), kind)
        for word in _ANSWER.finditer(answer) if kind and kind != "weak" else ():
            place = _stripped(answer, *word.span())
            if _is_told(answer, *place, "near", kind):
                yield Hit(*place, kind)


def _is_whole(answer: str, kind: str) -> bool:
    """Whether a message is a secret and nothing else: a phrase, or what may be a key where one was asked for."""
    if kind == "pin":
        return _PIN.match(answer) is not None
    return is_phrase(answer) if " " in answer else kind != "password" and strength(answer) == ID

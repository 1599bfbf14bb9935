"""Secrets that are known by a name: what stands before them calls them so.

`DB_PASSWORD=…`, `"api_key": "…"` at any depth of escaping, `Authorization: Bearer …`, `set -x TOKEN …`, a row.
A name is found by a stem; then one expression reads what joins it with its value, and how it joins them says how much
the value itself has to tell: after `=` a chosen word is one, in a sentence only what no sentence has.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Sequence

from ralf.redact.engine import Hit, Text
from ralf.redact.names import ASKED_ONCE, BEFORE_KEY, LONGEST_NAME, PASSWORDS, kind_of
from ralf.redact.table import words
from ralf.redact.values import (
    HASH,
    NOTHING,
    PLAUSIBLE,
    RANDOM,
    SHORTEST,
    TOLD,
    UUID,
    is_chosen,
    is_code,
    is_compound,
    is_credential,
    is_expression,
    is_foreign,
    is_foreign_word,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_random,
    strength,
)
from ralf.text.frozen import NamedTuple
from ralf.text.patterns import regex

MARGIN = r"(?:[+-](?=\s)|[ \t]*+[0-9]{1,6}[→\t|:])?+"
"""Matches what a diff or a listing puts before a line, as a regular expression."""

WRAP = rf"(?:\\\r?\n{MARGIN}|\\+n{MARGIN})"
"""Matches the end of a command's line that goes on, as a regular expression."""

_IN_NAMES = string.ascii_lowercase + string.digits + "_.-"

_SPACE = rf"(?:[ \t]|{WRAP})"

_QUOTE = r"\\*+(?:[\"'`]|u0022|u0027|&quot;)"

# ---- what joins a name with its value ----

_ATTRIBUTES = r"(?:[ ]{1,4}(?:type|id|class|description|sensitive)=[\"']?[\w. -]{0,40}[\"']?){0,3}+"

_OF_BLOCK = r"(?:(?:type|description|sensitive)[ ]*=[^\n]{0,80}\n\s{0,20}){0,3}"

_PAIR = (  # NAME, and its value under a name of its own: `- name: X`, `value: …`; name="X" value="…"; X --value …
    rf",?(?:\s|\\+n)*+(?:(?:[+-](?=\s)|[0-9]{{1,6}}[→\t|:])\s*+)?+{_ATTRIBUTES}[ ]{{0,4}}-?[ ]*"
    r"\\*[\"']?(?:parameter|plain|string|default)?(?:value|content)\\*[\"']?\s*[:=]\s*"
    r"|[ ]?[:=][ ]?\{\s{0,20}\\*[\"']?(?:value|current|default|plaintext)\\*[\"']?[ ]?[:=][ ]?"  # NAME: { value: …
    r"|:\r?\n(?:[ \t]{1,20}(?:type|description|noecho|sensitive):[^\n]{0,80}\n){0,3}[ \t]{1,20}"
    r"(?:value|default|current):[ ]"
    r"|,[^\n\"'(),]{0,40}\bdefault=(?=[\"'])"  # add_argument("--NAME", default=…)
    rf"|[ ]{{0,4}}\{{\s{{0,20}}{_OF_BLOCK}default[ ]*=[ ]*"  # variable "NAME" { default = … }
    r"|(?:;[^\n]{0,80})?\r?\n(?:[\w-]{1,30}:[^\n]{0,100}\n){0,2}\r?\n(?<=\n)(?=[^\n]{1,200}\r?\n--)"  # a part of a form
    r"|\s{1,4}--?(?:value|body|data|text|string|secret-string)[ =]"
)

_SIGN = (
    r"(?:\{[ ]?get;[ \w;]{0,30}\}[ ]?)?+[?.+:]{0,3}+={1,3}+>?|[|?]{2}=|-> ?|\uff1a|\u306f\s?(?=[\u300c\u201c])|\u662f"
    r"|:(?![:/])(?:\*\*)?|\u2192|<-(?=[ ]?[\"'])|(?:\[[0-9]{0,4}\])[ ]=|(?:as[ ])?[a-z]{3,20}[ ]=(?=[ ][\"'])"
    r"|,(?=[ ]?(?:<<)?\\*[\"'])|,(?=[^\s,]{16})|>(?=[^\s<>]|\s{1,40}[^\s<]|<!\[cdata\[)|><value>"
)

_TYPE = rf"{_SPACE}*+[&a-z_*\[][a-z0-9_<>|., &'\[\]*]{{0,40}}?{_SPACE}=(?=[ ])"  # token: str = …

_BLOCK = r"[|>][+-]?[ \t]*\r?\n[ \t]+"  # YAML's

_CELL = r"\|[ ]{0,80}(?=[^\s|])|</[a-z]{1,12}>\s{0,20}(?:<[a-z]{1,12}>){1,3}"

_SAID = (
    r"(?:(?:for|of|on|f\u00fcr|von|pour|de|du|para|del|di|per|do|da|voor|dla|\u043e\u0442|\u0434\u043b\u044f|\u043a)"
    r"[ ](?:[\w.@-]{1,40}[ ]){1,2})?"
    r"(?:is|was|are|to|as|ist|lautet|war|est|es|\u00e8|\u00e9|jest|\u00e4r|\u044d\u0442\u043e|-|\u2013|\u2014)"
    r"(?:[ ]now)?:?[ ]+"
)

_CALL = r"(?:new |\[\])?[a-z_][a-z0-9_.:]{0,40}\(\s{0,40}(?:default[ ]?=[ ]?)?(?=\\*[\"'`])"

_STRING = r"(?:(?:[a-z]{1,2}[0-9]?|r?#{1,3}|[@$]{1,2}|<<)(?=[\"'])|[\"'](?=\\+[\"'])|'(?=\"))"  # r"…", @"…", "\"…\""

_SCHEME = rf"(?:bearer|basic|token|apikey|negotiate|ssws|digest)(?:{_SPACE}|%20|\+)++|key=(?=a)"

_OPENS = (
    r"(?:\(\s{1,40}(?=[\"'])|\[\[|[\"']{2}(?=[\"'])|<<[-~]?[\"']?[a-z_]{2,20}[\"']?\r?\n[ \t]{0,20})?"
    rf"(?:(?:&[a-z0-9_-]{{1,30}}|!!?(?:str|binary|unsafe))[ ])?(?:{_STRING})?"
    r"(?:<!\[cdata\[|[\u300c\u201c\u00ab])?"  # YAML's &a and !!str
)

_AFTER = regex(
    rf"([a-z0-9_-]{{0,40}}+)(?:[ ]api)?(?P<closed>(?:{_QUOTE}|\*\*){{0,2}}+)[\])}}]?+"
    rf"(?:(?P<pair>{_PAIR})"
    rf"|{_SPACE}*+(?:(?P<sign>{_SIGN})(?:{_TYPE})?(?:\*\*)?{_SPACE}*+"
    rf"(?:\r?\n[ \t]{{2,}}+(?=[\"'])|(?<=>)\s{{1,40}}+)?(?P<block>{_BLOCK})?+"
    r"|(?P<either>[|?]{2}|or(?=[ ]))[ ]?(?=\\*[\"'`])"  # process.env.NAME || '…'
    r"|(?P<handed>[({](?=\\*[\"'`]))"  # builder.NAME('…'), NAME{"…"}
    r"|(?P<shown>\r?\n(?:out\[[0-9]{1,6}\]:[ ]|=>[ ])?(?=[\"']))"  # what a prompt answers
    rf"|(?P<cell>{_CELL})|(?P<said>{_SAID}))"
    rf"|(?P<flag>{_SPACE}++\s*+|\s++))"
    rf"(?P<call>{_CALL})?+(?:\[(?=\\*[\"']))?{_OPENS}(?P<open>{_QUOTE})?+(?P<scheme>{_SCHEME})?+"
)
"""Matches the rest of a name, what joins it with a value, and what opens that; in lower case."""

_BARE = regex(r"(?:[^\s\"'`\\<>|]++|(?<=\w)'(?=\w)|\\(?![nrtu\"'`\\\r\n])|\\u(?!00[0-3])[0-9a-fA-F]{4})+")

_CONSTANT = regex(r"-?[0-9]+\Z")  # ERROR_WRONG_PASSWORD = 1323

_BRACED = regex(r"\{[A-Za-z0-9+/]{16,}={0,2}\}")  # Jenkins'

_PHRASE = regex(r"[a-z]{3,20}(?: [a-z]{3,20}){3,24}(?=[\"'}]|</|\]\]>|[ \t]*(?:\r?\n|\Z))")  # to its end

_CUT = regex(
    r"[\u300d\u201d\u00bb]|\]\]>|[;,](?=\s|\Z|[\w .-]{1,40}=)|&(?=[\w.-]{1,40}=|\Z)"
    r"|(?<![)\]},;:])[)\]},;:]+\Z|&(?:amp|quot|gt|lt);"
)

_COOKIE = regex(r"\s{0,4}[\\\"'`]{0,4}[\w.%-]{1,80}=([^\n\"'`\\]{8,4096})")

_SET_COOKIE = regex(r"\s{0,4}[\\\"'`]{0,4}[\w.%-]{1,80}=([^;\n\"'`\\]{8,4096})")

_HEX = regex(r"[0-9a-f]+\Z|[0-9A-Z]+\Z")  # as fingerprints are

_BASE64 = regex(r"[A-Za-z0-9+/]+=*\Z")

_LONGEST, _LONGEST_BARE, _SHORTEST_CONTAINER = 2048, 512, 100

_LONG = 16  # characters of a value that hardly anything calls a secret

_JUDGED = 96  # characters of a value by which it is judged

_MOST_IN_A_RUN = 2

_LONGEST_BEFORE = 100

_SETS = regex(
    r"\b(?:set|setx|setenv|env|arg|export)\s(?:--?[a-z-]{1,20}\s(?:\S{1,40}\s)?){0,3}[\w./:-]{0,60}\Z"
)  # aws configure set NAME VALUE

_LINE_BEGINS = regex(rf"{MARGIN}[ \t]*(?:[-*>$#][ ]|\w{{1,20}} / )?[\w.-]{{0,60}}\Z")

_LOOKS_UP = regex(r"(?:\bget|[._]get|env|pop|item|lookup|find|read|fetch|input|prompt|param|column|field|getpass)\(\Z")

_ONLY = regex(r"[^\s]{1,512}+(?:[ \t]*+(?:[\r\n]|\Z)|[ ]#)")

_ASKS = regex(r"[ \t]*(?:>{1,3}|\(i?pdb\)|in \[[0-9]{1,6}\]:|irb[^\n>]{0,40}>|[a-z]{1,10}>)[^\n]*\Z")
"""Matches a line up to a name behind a prompt, which answers with its value."""

_REST = regex(r"[a-z0-9_-]{0,40}+")  # of a name

_SORTS = regex(r"=(?:lambda |[a-z_.]{1,60}[,)])")  # key=lambda item: …

_TOLD = regex(
    r"(?:(?:the|a|an|my|our|your|new)[ ]){1,2}(?:[\w.-]{1,40}[ ]){0,3}[\w-]{0,40}\Z"
)  # behind " is " or " as "

_OF_PAGES = regex(rf"\b(?:{'|'.join(words('open-tokens'))})[ ]\Z")  # the next page token

_ANNOUNCING = PASSWORDS - {"pass", "pwd", "pw"}

_ANNOUNCED = regex(r"[^\n:]{0,80}(?:\n[^\n:]{0,20})?:[ \t]*(?:\r?\n\s{0,8})?(\S{6,200})[ \t]*(?:\r?\n|\Z)")

# ---- names ----


def find(text: Text, stems: Sequence[re.Match[str]]) -> Iterator[Hit]:
    """The secrets of a text that a name before them tells, in no order; they may overlap."""
    raw, low = text.raw, text.low
    read = run = tries = 0  # a run of characters without a quote or space is looked into a few times only
    for stem in stems:
        if stem.start() < read:
            continue
        place = stem.end()
        if stem.start() < run and (tries := tries + 1) > _MOST_IN_A_RUN:
            read = run
            continue
        before = low[max(0, stem.start() - LONGEST_NAME) : stem.start()]
        begun = before[len(before.rstrip(_IN_NAMES)) :]
        if " is " in before or " as " in before:
            yield from _told_before(raw, stem.start())
        announces = stem[0] in _ANNOUNCING
        if not announces and _opens_nothing(low, place, begun, stem[0]):
            continue
        after = _AFTER.match(low, place)
        name = begun + stem[0] + after[1] if after else ""
        trust = _trust(low, after, name, stem.start(), before) if after and after.end() < len(raw) else None
        kind = (
            "" if not after or not trust else _kind_of_key(before, after) if name == "key" else kind_of(name, stem[0])
        )
        hit, end = _value(raw, after, kind, name, trust) if after and trust and kind else (None, 0)
        if hit is not None:
            yield hit
            read = max(read, hit.end)
            continue
        if announces and trust != "assigned" and (trust is not None or not after or after.end() >= len(raw)):
            yield from _announced(raw, low, place)
        if kind and stem.start() >= run:
            run, tries = end, 0


def _opens_nothing(low: str, place: int, begun: str, stem: str) -> bool:
    """Whether a name alone tells that it names no secret, whatever follows: most names do, and this is found fast."""
    rest = _REST.match(low, place)
    name = begun + stem + (rest[0] if rest else "")
    return _SORTS.match(low, place) is not None if name == "key" else not kind_of(name, stem)


def _told_before(text: str, place: int) -> Iterator[Hit]:
    """What a text calls a secret behind it: `… is the deploy token`."""
    first = max(0, place - LONGEST_NAME)
    joined = max(text.rfind(" is ", first, place), text.rfind(" as ", first, place))
    if joined < 0 or _TOLD.match(text, joined + len(" is "), place) is None:
        return
    word = text[max(0, joined - 200) : joined].rsplit(None, 1)[-1:]
    value = word[0].strip("\"'`<>()[],;") if word else ""
    if len(value) >= SHORTEST and strength(value) >= TOLD:
        start = text.rfind(value, 0, joined)
        yield Hit(start, start + len(value), "token")


def _announced(text: str, low: str, place: int) -> Iterator[Hit]:
    """What stands alone at the end of the line that a password is announced in, or below it."""
    found = _ANNOUNCED.match(low, place)
    if found is not None:
        value = text[slice(*found.span(1))].strip("\"'`")
        if is_mixed(value) or is_random(value) or is_foreign(value):
            yield Hit(*found.span(1), "password")


def _kind_of_key(before: str, after: re.Match[str]) -> str:
    """What the word `key` calls its value: it is the word before it that tells, if any."""
    if BEFORE_KEY.search(before):
        return "key"
    declared = after["sign"] == "=" and after["open"]  # const KEY = '…'
    if before[-1:] == " " and before[-2:-1].isalnum() and not declared:  # the cache key, a sort key
        return ""
    if after["sign"] == "=" and "<" in before:  # <li key="…">
        return ""
    return "weak" if after["sign"] in (":", "=") or after["flag"] else ""


# ---- how a name and what follows it are joined ----


def _trust(low: str, after: re.Match[str], name: str, start: int, before: str) -> str | None:
    """How a name is joined with what follows: "assigned", "option", "cell", "said", "line", "near"; "" where it is not;
    None where the name is a part of something else: a type, a path, an element of a list.
    """
    sign = after["sign"] or ""
    opener = before.rstrip(_IN_NAMES)
    if (
        (sign == "," and not after["closed"] and not _begins_list(low, start, after, opener))
        or (sign.startswith(">") and not opener.rstrip(":").endswith(("<", 'name="', "name='", 'key="')))
        or before.endswith(("checksum/", "digest/", "hash/"))
        or (name.startswith("token") and _OF_PAGES.search(before))
        or _is_part_of_path(low, after, start - (len(before) - len(opener)))
    ):
        return None
    if after["call"] and _LOOKS_UP.search(after["call"]):
        return ""
    if sign or after["pair"] or after["either"] or after["handed"]:
        return "assigned"
    if after["shown"]:
        return "assigned" if _is_behind(_ASKS.match, low, start) else ""
    if after["cell"] or after["said"]:
        return "cell" if after["cell"] else "said"
    if after["flag"] and ("\n" in after["flag"] or "\\" in after["flag"]) and not name.startswith("-"):
        return ""
    line = low[max(0, start - _LONGEST_BEFORE) : start]
    if name.startswith("-") or (any(word in line for word in ("set", "env", "arg", "export")) and _SETS.search(line)):
        return "option"
    if _is_behind(_LINE_BEGINS.match, low, start) and _ONLY.match(low, after.end()):
        return "line"
    return "near" if name != "pass" or after["open"] else ""


def _is_behind(match: Callable[[str, int, int], object], low: str, place: int) -> bool:
    """Return whether a pattern matches the part of a line before a name, which is short."""
    line = low.rfind("\n", max(0, place - _LONGEST_BEFORE), place) + 1
    return (line > 0 or place < _LONGEST_BEFORE) and match(low, line, place) is not None


def _begins_list(low: str, place: int, after: re.Match[str], opener: str) -> bool:
    """Whether a name begins its line, or a tuple of two: `{db_password, "…"}`."""
    return _is_behind(_LINE_BEGINS.match, low, place) or (after["open"] is not None and opener.endswith("{"))


def _is_part_of_path(low: str, after: re.Match[str], start: int) -> bool:
    """Whether a name is one of several that colons join: a type `A::Key`, an `arn:aws:secretsmanager:…`."""
    joined = after["sign"] == ":" and after.end() == after.end("sign") and not after["closed"]
    return low.endswith("::" if not joined else ":", 0, start)


# ---- values ----


def _value(text: str, after: re.Match[str], kind: str, name: str, trust: str) -> tuple[Hit | None, int]:
    """The value behind a name if it is a secret, and how far the text was read."""
    start = after.end()
    if kind == "cookie":
        form = _SET_COOKIE if name.startswith("set") else _COOKIE
        found = form.match(text, after.end("sign")) if after["sign"] else None
        if found is None or is_placeholder(found[1]):
            return None, found.end() if found is not None else start
        return Hit(*found.span(1), kind), found.end()
    quote = text[after.start("open") : after.end("open")] if after["open"] else ""
    end = _quoted_end(text, start, quote) if quote else None
    quoted, env = end is not None, False
    if end is None:
        bare = _BARE.match(text, start, start + _LONGEST_BARE)
        if bare is None:
            return None, start
        read = end = bare.end()
        if kind != "password" and end - start < len("01234567"):
            return None, read
        phrase = _PHRASE.match(text, start) if kind == "password" and trust == "assigned" else None
        if phrase is not None and is_phrase(phrase[0]):
            return Hit(start, phrase.end(), kind), phrase.end()
        cut = _CUT.search(text, start, end)
        # a line of an `.env` file or a shell's assignment: NAME=value, in capitals, without spaces
        env = after["sign"] == "=" and text[start - 1] == "=" and text[after.start() - 1].isupper()
        if cut is not None and not (
            env and _ends_line(text, end) and cut[0] in ";,&" and "=" not in text[cut.end() : end]  # `a=1;b=2` are two
        ):
            end = cut.start()
    else:
        read = end
    if kind == "password" and (braced := _BRACED.match(text, start, start + _LONGEST)):
        return Hit(*braced.span(), kind), braced.end()
    if (
        (not quoted and not env and text[after.start() - 1].isupper() and _CONSTANT.match(text, start, end))
        or (name == "pwd" and text.startswith(("/", "~"), start))  # the folder that a shell is in
        or text.startswith(("[REDACTED:", "(", "{"), start)
        or text.startswith(("(", "["), end)
    ):
        return None, read
    call = any(map(after.group, ("call", "either", "handed")))
    if not _is_secret(
        text, start, end, Shown(kind, name, trust, quoted, env, after["sign"] or "", call, bool(after["scheme"]))
    ):
        return None, read
    if end - start == _LONGEST_BARE and not quoted and (rest := _BARE.match(text, end)):
        end = rest.end()
    return Hit(start, end, "key" if kind == "weak" else kind), end


class Shown(NamedTuple):
    """How a value stands behind its name.

    kind    what the name calls it
    name    the name
    trust   how they are joined
    quoted  it stands in quotes
    env     in a line of an `.env` file
    sign    what assigns it, "" where nothing does
    call    it is the argument of a call, or stands there only where nothing else does: `NAME || '…'`
    scheme  the scheme of a header stands before it
    """

    kind: str
    name: str = ""
    trust: str = "cell"
    quoted: bool = False
    env: bool = False
    sign: str = ""
    call: bool = False
    scheme: bool = False


def is_in_cell(value: str, kind: str) -> bool:
    """Whether a cell of a table is a secret, whose column or row has a name of that kind."""
    return _is_secret(value + " ", 0, len(value), Shown(kind)) and not (kind == "weak" and len(value) < SHORTEST)


def _is_secret(text: str, start: int, end: int, shown: Shown) -> bool:
    value = text[start : min(end, start + _JUDGED)]
    kind, level = shown.kind, strength(value)
    if kind == "container":
        return end - start >= _SHORTEST_CONTAINER and _BASE64.match(value) is not None and is_random(value)
    if (
        (level == NOTHING and kind != "password")
        or (not shown.quoted and ((kind != "password" and is_code(value)) or (not shown.env and is_expression(value))))
        or (shown.call and " " in value and not is_phrase(value))  # getpass("Password 2: ")
        or (kind == "token" and UUID.match(value) and ASKED_ONCE.search(shown.name))
    ):
        return False
    if shown.trust == "near" and _HEX.match(value) and text.startswith(("  ", "\t"), end):
        return False  # a digest in a listing of names
    ends = shown.quoted or shown.env or shown.trust == "option" or _ends_line(text, end) or text[end] in "\"'"
    # in a list only the name of an option, a header or a variable is likely to name what follows it
    in_list = shown.sign == "," and not any(sign in shown.name for sign in "-_.")
    if kind == "password" and (level < RANDOM or (in_list and len(value) < _LONG)):
        return _is_password(text, value, start, end, shown)
    if kind == "weak" or in_list:
        hashed = (
            HASH.search(value)
            or (shown.trust == "near" and _HEX.match(value))
            or (shown.name == "key" and UUID.match(value))
        )
        return (
            level == RANDOM
            and len(value) >= _LONG
            and not (kind == "weak" and ((shown.sign == "," and not shown.quoted) or hashed))
        )
    if level == RANDOM and kind == "key" and shown.trust == "near" and _HEX.match(value):  # of a key that is shared
        return False
    if level == RANDOM:
        sure = shown.quoted or shown.env or shown.trust != "assigned" or is_random(value) or not value.isalnum()
        return sure or value.isalpha()
    if kind == "authorization":
        apart = shown.scheme or shown.env or shown.trust == "option" or (shown.quoted and shown.sign == ":")
        return is_credential(value) or (apart and level == TOLD and not is_phrase(value))
    if level < TOLD or shown.sign in ("==", "===") or not ends or shown.call or is_phrase(value):
        return False
    if kind == "key":
        return shown.env or shown.trust == "option" or shown.quoted or shown.sign == ":"
    plain = is_compound(value)
    return (
        kind in ("token", "secret", "creds")
        and shown.trust in ("assigned", "option", "cell", "line")
        and (not plain or (not shown.quoted and shown.sign in (":", "=")))
    )


def _is_password(text: str, value: str, start: int, end: int, shown: Shown) -> bool:
    """Whether what a name calls a password is one: the less the two are joined, the more the value has to tell."""
    level = strength(value)
    told = is_mixed(value) or is_foreign(value) or level == RANDOM
    if (
        is_foreign_word(value)
        and not shown.quoted
        and (shown.trust in ("said", "near") or (shown.trust == "assigned" and not _ends_line(text, end)))
    ):
        return False
    if shown.name == "pwd" or shown.sign in ("==", "==="):
        return told
    if shown.trust in ("said", "near"):
        return told or (shown.quoted and level >= TOLD)
    if shown.trust in ("cell", "line") or shown.call or shown.sign == ",":
        return level >= TOLD
    if shown.env:
        return level >= PLAUSIBLE and not value.startswith(("/", "$"))
    if shown.quoted:
        return is_chosen(value, bare=False)
    ends = _ends_line(text, end) and (shown.sign != ":" or text[start - 1].isspace())
    return level >= TOLD or (is_chosen(value, bare=True) and (shown.trust == "option" or shown.sign == "=" or ends))


def _ends_line(text: str, end: int) -> bool:
    return end >= len(text) or text[end] in "\r\n" or text.startswith(("\\n", "\\r", "</", " #"), end)


def _quoted_end(text: str, start: int, quote: str) -> int | None:
    """Where the quotation that `quote` opened ends; None where its line does not close it."""
    mark = quote.lstrip("\\")
    depth = len(quote) - len(mark)
    place, limit = start, min(len(text), start + _LONGEST)
    while (found := text.find(mark, place, limit)) >= 0:
        slashes = 0
        while found - slashes > start and text[found - slashes - 1] == "\\":
            slashes += 1
        if slashes <= depth:
            end = found - slashes
            return end if "\n" not in text[start:end] else None
        place = found + len(mark)
    return None

"""Secrets that are known by a name: what stands before them calls them so.

`DB_PASSWORD=…`, `"api_key": "…"` at any depth of escaping, `Authorization: Bearer …`, `set -x TOKEN …`, a row.
A name is found by a stem; then one expression reads what joins it with its value, and how it joins them says how much
the value itself has to tell: after `=` a chosen word is one, in a sentence only what no sentence has.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ralf.redact import contexts
from ralf.redact.contexts import MARGIN, WRAP
from ralf.redact.engine import Hit, Text
from ralf.redact.values import (
    APART,
    ASKED_ONCE,
    BEFORE_KEY,
    LONGEST_NAME,
    OPEN_STEM,
    OPEN_STEMS,
    PASSWORDS,
    SHORTEST,
    STEM,
    UUID,
    is_chosen,
    is_code,
    is_compound,
    is_credential,
    is_foreign,
    is_label,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_random,
    is_title,
    is_unspeakable,
    is_unspoken,
    kind_of,
    kind_of_title,
)
from ralf.text.patterns import regex

_IN_NAMES = string.ascii_lowercase + string.digits + "_.-"

_SPACE = rf"(?:[ \t]|{WRAP})"

_QUOTE = r"\\*+(?:[\"'`]|u0022|u0027|&quot;)"

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

_OR = r"[|?]{2}|or(?=[ ])"  # process.env.NAME || '…'

_HANDED = r"[({](?=\\*[\"'`])"  # builder.NAME('…'), NAME{"…"}

_SHOWN = r"\r?\n(?:out\[[0-9]{1,6}\]:[ ]|=>[ ])?(?=[\"'])"  # what a prompt answers

_CALL = r"(?:new )?[a-z_][a-z0-9_.:]{0,40}\(\s{0,40}(?:default[ ]?=[ ]?)?(?=\\*[\"'`])"

_STRING = r"(?:(?:[a-z]{1,2}[0-9]?|r?#{1,3}|[@$]{1,2}|<<)(?=[\"'])|[\"'](?=\\+[\"'])|'(?=\"))"  # r"…", @"…", "\"…\""

_SCHEME = rf"(?:bearer|basic|token|apikey|negotiate|ssws|digest)(?:{_SPACE}|%20|\+)++|key=(?=a)"

_OPENS = (
    r"(?:\(\s{1,40}(?=[\"'])|\[\[|[\"']{2}(?=[\"'])|<<[-~]?[\"']?[a-z_]{2,20}[\"']?\r?\n[ \t]{0,20})?"
    rf"(?:[&!][a-z0-9!_-]{{1,30}}[ ])?(?:{_STRING})?(?:<!\[cdata\[|[\u300c\u201c\u00ab])?"  # YAML's &a and !!str
)

_AFTER = regex(
    rf"([a-z0-9_-]{{0,40}}+)(?P<closed>(?:{_QUOTE}|\*\*){{0,2}}+)[\])}}]?+"
    rf"(?:(?P<pair>{_PAIR})"
    rf"|{_SPACE}*+(?:(?P<sign>{_SIGN})(?:{_TYPE})?{_SPACE}*+"
    rf"(?:\r?\n[ \t]{{2,}}+(?=[\"'])|(?<=>)\s{{1,40}}+)?(?P<block>{_BLOCK})?+"
    rf"|(?P<either>{_OR})[ ]?(?=\\*[\"'`])|(?P<handed>{_HANDED})|(?P<shown>{_SHOWN})"
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

_LONGEST = 2048

_LONGEST_BARE = 512

_BASE64 = regex(r"[A-Za-z0-9+/]+=*\Z")

_SHORTEST_CONTAINER = 100

_HASH = regex(r"(?<![0-9A-Za-z])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9A-Za-z])")

_NAMES_NEXT = regex(r"[-_.]")

_LONG = 16  # characters of a value that hardly anything calls a secret

_JUDGED = 96  # characters of a value by which it is judged

_MOST_IN_A_RUN = 2

_REMOTE, _COMMIT = regex(r"(?:[\w.-]{1,40}/)?"), regex(r"(?:[0-9a-f]{7,12})?")

_SETS = regex(
    r"\b(?:set|setx|setenv|env|arg|export)\s(?:--?[a-z-]{1,20}\s(?:\S{1,40}\s)?){0,3}[\w./:-]{0,60}\Z"
)  # aws configure set NAME VALUE

_PLAIN_NAMES = regex(
    r"(?:[a-z0-9_.-]{0,40}[_.-])?(?:password|passwd|passphrase|passcode|passwort|pwd|pw|psk|requirepass|masterauth)\Z"
)

_LINE_BEGINS = regex(rf"{MARGIN}[ \t]*(?:[-*>$#][ ])?[\w.-]{{0,60}}\Z")


def find(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """The secrets of a text that what stands before them tells, in no order; they may overlap.

    there  those of `values.WORDS` that stand in the text
    """
    if not there:  # none of the rules finds anything without one
        return
    raw, low = text.raw, text.low
    stems = list(_stem(frozenset(there)).finditer(low))
    if stems:
        yield from _assigned(raw, low, stems)
        yield from contexts.find_in_tables(raw, [stem.start() for stem in stems], kind_of_title, _is_in_cell)
    if "bearer" in there:
        values = (found for found in _BEARER.finditer(raw) if is_random(found[1]) or is_unspoken(found[1]))
        yield from (Hit(*found.span(1), "bearer") for found in values)
    if "://" in raw or "?" in raw:
        yield from _in_queries(raw)
    if "secret" in there and "kind" in raw and "Secret" in raw:
        yield from contexts.find_in_manifests(raw)
    if "passw" in there and ("machine" in low or "login" in low):
        yield from (Hit(*found.span(1), "netrc") for found in _NETRC.finditer(raw) if not is_placeholder(found[1]))


_FEW = 3  # stems: one of few is found faster than one of all


@lru_cache(256)
def _stem(there: frozenset[str]) -> re.Pattern[str]:
    """Finds the stems of names in a text in which these of WORDS stand."""
    if not APART.isdisjoint(there):
        return STEM
    open_stems = [stem for stem in OPEN_STEMS if stem in there]
    return re.compile("|".join(open_stems)) if 0 < len(open_stems) <= _FEW else OPEN_STEM


_BEARER = regex(r"[Bb]earer(?:[ ]|%20)+([A-Za-z0-9._~+/-]{12,}+=*)")

_NETRC = regex(r"\blogin\s{1,20}\S{1,100}\s{1,20}(?:(?:[0-9]{1,6}[→\t|:]|[+-])\s{0,20})?password\s{1,20}(\S{1,200})")

_QUERY = regex(
    r"(?:[?&]|&amp;|\\u0026)(?i:(?:[a-z0-9_-]{0,40}(?:token|secret|passw(?:or)?d|auth|signature|apikey|session|key)|code|sig|key|sid|pwd|pass|"
    r"jwt|otp|hmac|credential))=((?:[^\s\"'`<>&;#\\]|(?<=\w)'(?=\w)){6,2048}+)"
)


def _in_queries(text: str) -> Iterator[Hit]:
    """The parameters of URLs and forms whose name calls them secrets."""
    for found in _QUERY.finditer(text):
        value = found[1].rstrip(").,]}")
        if is_random(value) or is_unspoken(value) or is_unspeakable(value) or is_mixed(value) or is_foreign(value):
            yield Hit(found.start(1), found.start(1) + len(value), "query")


# ---- names ----


def _assigned(text: str, low: str, stems: Sequence[re.Match[str]]) -> Iterator[Hit]:
    read = run = tries = 0  # a run of characters without a quote or space is looked into a few times only
    for stem in stems:
        if stem.start() < read:
            continue
        place = stem.end()
        if stem.start() < run and (tries := tries + 1) > _MOST_IN_A_RUN:
            read = run
            continue
        before = low[max(0, stem.start() - LONGEST_NAME) : stem.start()]
        if " is " in before or " as " in before:
            yield from _told_before(text, stem.start())
        if _opens_nothing(low, place, before, stem[0]):
            continue
        after = _AFTER.match(low, place)
        if after is None or after.end() >= len(text):
            yield from _announced(text, low, place, stem[0])
            continue
        begun = before[len(before.rstrip(_IN_NAMES)) :]
        name, sign = begun + stem[0] + after[1], after["sign"] or ""
        kind = _kind_of_key(before, after) if name == "key" else kind_of(name, stem[0])
        if (
            not kind
            or (sign == "," and not after["closed"] and not _begins_list(low, stem.start(), before, after))
            or (sign.startswith(">") and not _opens_tag(before))
            or _is_part_of_path(low, after, stem.start() - len(begun))
            or _is_branch(low, after)
        ):
            continue
        trust = _trust(low, after, name, stem.start())
        if not trust:
            yield from _announced(text, low, place, stem[0])
            continue
        hit, end = _value(text, after, kind, name, trust)
        if hit is not None:
            yield hit
            read = max(read, hit.end)
            continue
        if trust != "assigned":
            yield from _announced(text, low, place, stem[0])
        if stem.start() >= run:
            run, tries = end, 0


_REST = regex(r"[a-z0-9_-]{0,40}+")  # of a name

_SORTS = regex(r"=(?:lambda |[a-z_.]{1,60}[,)])")  # key=lambda item: …


def _opens_nothing(low: str, place: int, before: str, stem: str) -> bool:
    """Whether a name alone tells that it names no secret, whatever follows: most names do, and this is found fast."""
    if stem in _ANNOUNCING:
        return False
    rest = _REST.match(low, place)
    name = before[len(before.rstrip(_IN_NAMES)) :] + stem + (rest[0] if rest else "")
    return _SORTS.match(low, place) is not None if name == "key" else not kind_of(name, stem)


_TOLD = regex(
    r"(?:(?:the|a|an|my|our|your|new)[ ]){1,2}(?:[\w.-]{1,40}[ ]){0,3}[\w-]{0,40}\Z"
)  # behind " is " or " as "

_LONGEST_TOLD = 200


def _told_before(text: str, place: int) -> Iterator[Hit]:
    """What a text calls a secret behind it: `… is the deploy token`."""
    first = max(0, place - LONGEST_NAME)
    joined = max(text.rfind(" is ", first, place), text.rfind(" as ", first, place))
    if joined < 0 or _TOLD.match(text, joined + len(" is "), place) is None:
        return
    word = text[max(0, joined - _LONGEST_TOLD) : joined].rsplit(None, 1)[-1:]
    value = word[0].strip("\"'`<>()[],;") if word else ""
    if len(value) >= SHORTEST and (is_random(value) or is_unspoken(value)):
        start = text.rfind(value, 0, joined)
        yield Hit(start, start + len(value), "token")


_ANNOUNCING = frozenset(PASSWORDS) - {"pass", "pwd", "pw"}

_ANNOUNCED = regex(r"[^\n:]{0,80}:[ \t]*(?:\r?\n\s{0,8})?(\S{6,200})[ \t]*(?:\r?\n|\Z)")


def _announced(text: str, low: str, place: int, stem: str) -> Iterator[Hit]:
    """What stands alone at the end of the line that a password is announced in, or below it."""
    if stem not in _ANNOUNCING:
        return
    found = _ANNOUNCED.match(low, place)
    if found is not None:
        start, end = found.span(1)
        value = text[start:end].strip("\"'`")
        if is_mixed(value) or is_random(value) or is_foreign(value):
            yield Hit(start, end, "password")


def _is_branch(low: str, after: re.Match[str]) -> bool:
    """Whether git tells where a branch went: `add-token -> add-token`, `add-token -> origin/add-token`; at the border
    of two results a commit may stand right behind it.
    """
    if not (after["sign"] or "").startswith("->"):
        return False
    branch = low[max(0, after.start("sign") - LONGEST_NAME) : after.start("sign")].split()[-1:]
    there = low[after.end() : after.end() + 2 * LONGEST_NAME].split(maxsplit=1)[:1]
    if not branch or not there:
        return False
    remote, found, rest = there[0].partition(branch[0])
    return bool(found and _REMOTE.fullmatch(remote) and _COMMIT.fullmatch(rest))


def _is_part_of_path(low: str, after: re.Match[str], start: int) -> bool:
    """Whether a name is one of several that colons join: a type `A::Key`, an `arn:aws:secretsmanager:…`."""
    joined = after["sign"] == ":" and after.end() == after.end("sign") and not after["closed"]
    return low.endswith("::" if not joined else ":", 0, start)


def _kind_of_key(before: str, after: re.Match[str]) -> str:
    """What the word `key` calls its value: it is the word before it that tells, if any."""
    if BEFORE_KEY.search(before):
        return "key"
    if before[-1:] == " " and before[-2:-1].isalnum():  # the cache key, a sort key
        return ""
    return "weak" if after["sign"] == ":" or (after["sign"] == "=" and after["open"]) else ""


def _is_behind(match: Callable[[str, int, int], object], low: str, place: int) -> bool:
    """Return whether a pattern matches the part of a line before a name, which is short."""
    line = low.rfind("\n", max(0, place - _LONGEST_BEFORE), place) + 1
    return (line > 0 or place < _LONGEST_BEFORE) and match(low, line, place) is not None


def _begins_list(low: str, place: int, before: str, after: re.Match[str]) -> bool:
    """Whether a name begins its line, or a tuple of two: `{db_password, "…"}`."""
    return _is_behind(_LINE_BEGINS.match, low, place) or (
        after["open"] is not None and before.rstrip(_IN_NAMES).endswith("{")
    )


def _opens_tag(before: str) -> bool:
    """Whether what stands before a stem opens a tag that has this name, or an attribute that gives it."""
    return before.rstrip(_IN_NAMES + ":").endswith(("<", 'name="', "name='", 'key="'))


_ASKS = regex(r"[ \t]*(?:>{1,3}|\(i?pdb\)|in \[[0-9]{1,6}\]:|irb[^\n>]{0,40}>|[a-z]{1,10}>)[^\n]*\Z")
"""Matches a line up to a name behind a prompt, which answers with its value."""


def _trust(low: str, after: re.Match[str], name: str, start: int) -> str:
    """How a name is joined with what follows: "assigned", "option", "cell", "said", "line"; "" where it is not."""
    if after["call"] and _LOOKS_UP.search(after["call"]):
        return ""
    if after["sign"] or after["pair"] or after["either"] or after["handed"]:
        return "assigned"
    if after["shown"]:
        return "assigned" if _is_behind(_ASKS.match, low, start) else ""
    if after["cell"]:
        return "cell"
    if after["said"]:
        return "said"
    if after["flag"] and "\n" in after["flag"] and not name.startswith("-"):
        return ""
    if name.startswith("-") or _is_set(low, start):
        return "option"
    if _is_behind(_LINE_BEGINS.match, low, start) and _ONLY.match(low, after.end()):
        return "line"
    if _PLAIN_NAMES.match(name) or (after["open"] and name != "pass"):
        return "said"
    return ""


def _is_set(low: str, place: int) -> bool:
    """Whether a command before a name sets it to what follows."""
    before = low[max(0, place - _LONGEST_BEFORE) : place]
    return any(word in before for word in ("set", "env", "arg", "export")) and _SETS.search(before) is not None


_LONGEST_BEFORE = 100

_LOOKS_UP = regex(r"(?:\bget|[._]get|env|pop|item|lookup|find|read|fetch|input|prompt|param|column|field|getpass)\(\Z")

_ONLY = regex(r"[^\s]{1,512}+(?:[ \t]*+(?:[\r\n]|\Z)|[ ]#)")


def _value(text: str, after: re.Match[str], kind: str, name: str, trust: str) -> tuple[Hit | None, int]:
    """The value behind a name if it is a secret, and how far the text was read."""
    start = after.end()
    quote = text[after.start("open") : after.end("open")] if after["open"] else ""
    if kind == "cookie":
        found = (
            (_SET_COOKIE if name.startswith("set") else _COOKIE).match(text, after.end("sign"))
            if after["sign"]
            else None
        )
        if found is None or is_placeholder(found[1]):
            return None, found.end() if found is not None else start
        return Hit(*found.span(1), kind), found.end()
    end = _quoted_end(text, start, quote) if quote else None
    quoted = end is not None
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
        read, env = end, False
    if kind == "password" and (braced := _BRACED.match(text, start, start + _LONGEST)):
        return Hit(*braced.span(), kind), braced.end()
    if not quoted and not env and text[after.start() - 1].isupper() and _CONSTANT.match(text, start, end):
        return None, read
    if name == "pwd" and text.startswith(("/", "~"), start):  # the folder that a shell is in
        return None, read
    if text.startswith(("[REDACTED:", "(", "{"), start) or text.startswith(("(", "["), end):
        return None, read
    call = any(map(after.group, ("call", "either", "handed")))
    shown = _Shown(kind, name, trust, quoted, env, after["sign"] or "", call, bool(after["scheme"]))
    if not _is_secret(text, start, end, shown):
        return None, read
    if end - start == _LONGEST_BARE and not quoted and (rest := _BARE.match(text, end)):
        end = rest.end()
    return Hit(start, end, "key" if kind == "weak" else kind), end


def _is_in_cell(value: str, kind: str) -> bool:
    shown = _Shown(kind, "", "cell", quoted=False, env=False, sign="", call=False, scheme=False)
    return _is_secret(value + " ", 0, len(value), shown) and not (kind == "weak" and len(value) < SHORTEST)


class _Shown(NamedTuple):
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
    name: str
    trust: str
    quoted: bool
    env: bool
    sign: str
    call: bool
    scheme: bool


def _is_secret(text: str, start: int, end: int, shown: _Shown) -> bool:
    value = text[start : min(end, start + _JUDGED)]
    kind = shown.kind
    if kind != "password" and not shown.quoted and is_code(value):
        return False
    if shown.call and " " in value and not is_phrase(value):  # getpass("Password 2: ")
        return False
    if kind == "container":
        return end - start >= _SHORTEST_CONTAINER and _BASE64.match(value) is not None and is_random(value)
    if kind == "token" and UUID.fullmatch(value) and ASKED_ONCE.search(shown.name):
        return False
    # in a list only the name of an option, a header or a variable is likely to name what follows it
    if (kind == "weak" or (shown.sign == "," and not _NAMES_NEXT.search(shown.name))) and len(value) < _LONG:
        return kind == "password" and _is_password(text, value, start, end, shown)
    if kind == "weak" and (
        (shown.sign == "," and not shown.quoted)
        or _HASH.search(value)
        or (shown.name == "key" and UUID.fullmatch(value))
    ):
        return False
    if is_random(value) or is_unspeakable(value):
        return not (kind == "authorization" and value.startswith("http"))
    if is_unspoken(value) and (shown.quoted or shown.env or shown.trust != "assigned"):
        return True
    if kind == "weak" or shown.sign in ("==", "==="):
        return kind == "password" and shown.quoted and (is_mixed(value) or is_foreign(value))
    if kind == "password":
        return _is_password(text, value, start, end, shown)
    told = is_mixed(value) or is_foreign(value)
    if kind == "authorization":
        apart = shown.scheme or shown.env or shown.trust == "option" or (shown.quoted and shown.sign == ":")
        return is_credential(value) or (apart and (told or is_compound(value)))
    ends = shown.quoted or shown.env or shown.trust == "option" or _ends_line(text, end) or text[end] in "\"'"
    if (
        kind not in ("token", "secret", "creds")
        or not ends
        or shown.call
        or shown.trust not in ("assigned", "option", "cell")
    ):
        return False
    return told or (is_compound(value) and not shown.quoted and shown.sign in (":", "="))


def _is_password(text: str, value: str, start: int, end: int, shown: _Shown) -> bool:
    """Whether what a name calls a password is one: the less the two are joined, the more the value has to tell."""
    told = is_mixed(value) or is_foreign(value)
    if shown.name == "pwd":
        return told
    if shown.trust == "said":
        return told or (shown.quoted and (is_phrase(value) or is_compound(value)))
    told = told or is_phrase(value) or is_compound(value)
    if shown.trust in ("cell", "line") or shown.call or shown.sign == ",":
        return told
    if shown.env:
        return len(value) >= len("abcd") and not is_placeholder(value) and not value.startswith(("/", "$"))
    if shown.quoted:
        return is_chosen(value, bare=False) and not value.endswith("()") and not is_title(value)
    if is_label(value):
        return False
    ends = _ends_line(text, end) and (shown.sign != ":" or text[start - 1].isspace())
    return told or (is_chosen(value, bare=True) and (shown.trust == "option" or shown.sign == "=" or ends))


def _ends_line(text: str, end: int) -> bool:
    return end >= len(text) or text[end] in "\r\n" or text.startswith(("\\n", "\\r", "</", " #"), end)


def _quoted_end(text: str, start: int, quote: str) -> int | None:
    """Where the quotation that `quote` opened ends; None where its line does not close it."""
    mark = quote.lstrip("\\")
    depth = len(quote) - len(mark)
    place = start
    limit = min(len(text), start + _LONGEST)
    while (found := text.find(mark, place, limit)) >= 0:
        slashes = 0
        while found - slashes > start and text[found - slashes - 1] == "\\":
            slashes += 1
        if slashes <= depth:
            end = found - slashes
            return end if "\n" not in text[start:end] else None
        place = found + len(mark)
    return None


_COOKIE = regex(r"\s{0,4}[\\\"'`]{0,4}[\w.%-]{1,80}=([^\n\"'`\\]{8,4096})")

_SET_COOKIE = regex(r"\s{0,4}[\\\"'`]{0,4}[\w.%-]{1,80}=([^;\n\"'`\\]{8,4096})")

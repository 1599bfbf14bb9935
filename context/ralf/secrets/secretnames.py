"""Secrets that are known by what stands before them: assignments, headers, Kubernetes' secrets.

`DB_PASSWORD=…`, `"api_key": "…"` at any depth of escaping, `Authorization: Bearer …`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from ralf.secrets.secretformats import Hit, any_of
from ralf.secrets.secretvalues import (
    SHORTEST,
    is_chosen,
    is_credential,
    is_placeholder,
    is_random,
    is_unspeakable,
    is_unspoken,
)

_STEM = re.compile(
    any_of(
        "passw passphrase pwd pass secret token key auth credential cookie bearer signature dockerconfigjson".split()
    )
)
_IN_NAMES = string.ascii_lowercase + string.digits + "_.-"
_LONGEST_START = 60
_MARGIN = r"(?:[+-](?=\s)|[ \t]*+[0-9]{1,6}[→\t|:])?+"  # what a diff or a listing puts before a line
WRAP = rf"(?:\\\r?\n{_MARGIN}|\\+n{_MARGIN})"
"""Matches the end of a command's line that goes on, as a regular expression."""

_SPACE = rf"(?:[ \t]|{WRAP})"
_QUOTE = r"\\*+(?:[\"'`]|u0022|u0027|&quot;)"
_AFTER = re.compile(
    r"([a-z0-9_-]{0,40}+)"
    rf"(?P<closed>{_QUOTE})?+[\])]?+"
    rf"(?:{_SPACE}*+(?P<sign>={{1,3}}+>?|:=|:(?!:)|,(?=[ ]?\\*[\"'])|>(?=[^\s<>]))"
    rf"(?:{_SPACE}*+[&a-z_][a-z0-9_<>|., &\[\]]{{0,40}}?{_SPACE}=(?=[ ]))?{_SPACE}*+(?:\r?\n[ \t]{{2,}}+(?=[\"']))?"
    rf"|(?P<pair>,?(?:\s|\\+n)*+(?:(?:[+-](?=\s)|[0-9]{{1,6}}[→\t|:])\s*+)?+"
    rf"-?[ ]*\\*[\"']?value\\*[\"']?\s*[:=]\s*)"
    rf"|(?P<flag>{_SPACE}++\s*+|\s++))"
    r"(?:[rbuf]{1,2}(?=[\"']))?"
    rf"(?P<open>{_QUOTE})?+(?:(?:bearer|basic|token|apikey|negotiate|ssws|digest)(?:{_SPACE}|%20|\+)++)?+"
)
_BARE = re.compile(r"(?:[^\s\"'`\\<>|]++|\\(?![nrtu\"'`\\\r\n]))+")
_CUT = re.compile(r"[;&,](?=[\s\w]|\Z)|[)\]},;]+\Z|&(?:amp|quot|gt|lt);")
_LONGEST = 2048
_LONGEST_BARE = 512
_JUDGED = 96  # characters of a value by which it is judged
_MOST_IN_A_RUN = 2
_KEYS = (
    "api access secret private auth encrypt encryption decrypt decryption "
    "sign signing master account shared service app application client "
    "license storage consumer webhook deploy crypt admin server hmac jwt ssh session subscription write integration "
    "project license aws azure gcp openai anthropic stripe twilio sendgrid datadog cloudflare mailgun rollbar dd"
).split()
_KEY = re.compile(rf"(?:{'|'.join(dict.fromkeys(_KEYS))})[_.-]?key\Z")
_KEY_OF_NOTHING = re.compile(r"(?<![a-z0-9_.-])key(?![a-z0-9_-])")  # as in `sorted(found, key=…)`
_NO_SECRET = re.compile(
    r"(?:_|-|\.|(?<=[a-z0-9]))(?:ids?|names?|types?|urls?|uris?|paths?|files?|dirs?|counts?|limits?|sizes?|len|length|"
    r"fields?|headers?|params?|prefix|suffix|class|expiry|expires|expires_?(?:in|at)|ttl|hash|hashes|digest|regex|"
    r"pattern|prompt|label|ref|refs|arn|version|status|env|method|format|kind|list|map|index|policy|rules?|usage|"
    r"fingerprint|sha256|checksum|created|updated|enabled|required|strength|min|max|budget|cost|s)\Z"
)
_SETS = re.compile(r"\bset\s+[a-z0-9_./:-]{0,60}\Z")  # aws configure set NAME VALUE
_PASSWORDS = ("passw", "passphrase", "pwd", "pass")


def find(text: str) -> Iterator[Hit]:
    """The secrets of a text that what stands before them tells, in no order; they may overlap."""
    low = text.lower()
    if len(low) != len(text):  # a few letters become two
        low = "".join(character.lower() if len(character.lower()) == 1 else character for character in text)
    first = _STEM.search(low)
    if first is None:  # none of the rules finds anything without one
        return
    yield from _assigned(text, low, first.start())
    if "earer" in text:
        yield from _checked(text, _BEARER, "bearer")
    if "kind" in text and "Secret" in text:
        yield from _kubernetes(text)
    if "password" in low and ("machine" in low or "login" in low):
        yield from (Hit(*found.span(1), "netrc") for found in _NETRC.finditer(text) if not is_placeholder(found[1]))


def is_name(name: str) -> bool:
    """Whether a name may be that of a secret."""
    return _STEM.search(name.lower()) is not None


_BEARER = re.compile(r"[Bb]earer(?:[ ]|%20)+([A-Za-z0-9._~+/-]{12,}+=*)")
_NETRC = re.compile(
    r"\blogin\s{1,20}\S{1,100}\s{1,20}(?:(?:[0-9]{1,6}[→\t|:]|[+-])\s{0,20})?password\s{1,20}(\S{1,200})"
)


def _checked(text: str, pattern: re.Pattern[str], kind: str) -> Iterator[Hit]:
    for found in pattern.finditer(text):
        if is_random(found[1]) or is_unspoken(found[1]):
            yield Hit(*found.span(1), kind)


# ---- names ----


def _assigned(text: str, low: str, place: int) -> Iterator[Hit]:
    run = tries = 0  # a run of characters without a quote or space is looked into a few times only
    while stem := _STEM.search(low, place):
        place = stem.end()
        if stem.start() < run and (tries := tries + 1) > _MOST_IN_A_RUN:
            place = run
            continue
        if _KEY_OF_NOTHING.match(low, stem.start()):
            continue
        after = _AFTER.match(low, place)
        if after is None:
            continue
        before = low[max(0, stem.start() - _LONGEST_START) : stem.start()]
        name = before[len(before.rstrip(_IN_NAMES)) :] + stem[0] + after[1]
        kind = _kind(name, stem[0])
        if not kind or after.end() >= len(text):
            continue
        option = bool(after["flag"])
        if option and not name.startswith("-") and not _SETS.search(low, max(0, stem.start() - 80), stem.start()):
            continue
        if after["sign"] == "," and not after["closed"]:
            continue
        hit, end = _value(text, after, kind, name, option=option)
        if hit is not None:
            yield hit
            place = max(place, hit.end)
        elif stem.start() >= run:
            run, tries = end, 0


@lru_cache(1024)
def _kind(name: str, stem: str) -> str:
    """What a name calls its value; "" where that is no secret."""
    plain = name.strip("-._")
    if stem == "key":
        return "key" if _KEY.search(plain) else ""
    if stem == "auth":
        return "authorization" if plain.endswith(("auth", "authorization", "authcode", "auth_code")) else ""
    if stem == "pass" and not re.search(r"(?:^|[_.-]|[a-z](?=pass\Z))pass\Z", plain):
        return ""
    if stem == "cookie":
        return "cookie" if plain in ("cookie", "set-cookie") else ""
    if stem == "signature":
        return "signature" if plain.endswith(("x-amz-signature", "x-goog-signature")) else ""
    if stem == "dockerconfigjson":
        return "dockerconfig"
    if plain in ("pwd", "oldpwd") or _NO_SECRET.search(plain):
        return ""
    return "password" if stem in _PASSWORDS else "secret" if stem in ("credential", "bearer") else stem


def _value(text: str, after: re.Match[str], kind: str, name: str, *, option: bool) -> tuple[Hit | None, int]:
    """The value behind a name if it is a secret, and how far the text was read."""
    start = after.end()
    quote = text[after.start("open") : after.end("open")] if after["open"] else ""
    if kind == "cookie":
        found = (_SET_COOKIE if name.startswith("set") else _COOKIE).match(text, after.end("sign"))
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
        if kind != "password" and end - start < SHORTEST:
            return None, read
        cut = _CUT.search(text, start, end)
        env = after["sign"] == "=" and _is_env(text, after, start)
        if cut is not None and not (
            env and _ends_line(text, end) and cut[0] in ";,&" and not _more(text, cut.end(), end)
        ):
            end = cut.start()
    else:
        read, env = end, False
    if text.startswith(("[REDACTED:", "(", "{"), start) or text.startswith(("(", "["), end):
        return None, read
    if not _is_secret(text, kind, start, end, quoted=quoted, env=env, option=option, sign=after["sign"] or ""):
        return None, read
    if end - start == _LONGEST_BARE and not quoted and (rest := _BARE.match(text, end)):
        end = rest.end()
    return Hit(start, end, kind), end


def _is_secret(text: str, kind: str, start: int, end: int, *, quoted: bool, env: bool, option: bool, sign: str) -> bool:
    value = text[start : min(end, start + _JUDGED)]
    if is_random(value) or (is_unspoken(value) and (quoted or env or option)) or is_unspeakable(value):
        return not (kind == "authorization" and value.startswith("http"))
    if kind == "authorization":
        return is_credential(value)
    if kind != "password" or sign in (",", "==", "==="):
        return False
    if env:
        return len(value) >= len("abcd") and not is_placeholder(value) and not value.startswith(("/", "$"))
    if quoted:
        return is_chosen(value, bare=False)
    ends = _ends_line(text, end) and (sign != ":" or text[start - 1].isspace())
    return is_chosen(value, bare=True) and (option or sign == "=" or ends)


def _is_env(text: str, after: re.Match[str], start: int) -> bool:
    """Whether this is a line of an `.env` file or a shell's assignment: NAME=value, in capitals, without spaces."""
    return text[start - 1] == "=" and text[after.start() - 1].isupper()


def _ends_line(text: str, end: int) -> bool:
    return end >= len(text) or text[end] in "\r\n" or text.startswith(("\\n", "\\r", "</", " #"), end)


def _more(text: str, start: int, end: int) -> bool:
    """Whether another assignment begins there: `a=1;b=2`."""
    return "=" in text[start:end]


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


_COOKIE = re.compile(r"\s{0,4}[\\\"'`]{0,4}[\w.%-]{1,80}=([^\n\"'`\\]{8,4096})")
_SET_COOKIE = re.compile(r"\s{0,4}[\\\"'`]{0,4}[\w.%-]{1,80}=([^;\n\"'`\\]{8,4096})")


# ---- Kubernetes ----

_SECRET = re.compile(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")
_DOCUMENT = re.compile(r"^---[ \t]*$|\\+n---\\+n", re.M)
_DATA = re.compile(r"(?:string)?[dD]ata[\"\\]*:(?=\s|\\|\{)")
_YAML_ENTRY = re.compile(
    r"[ \t]*(?:\r?\n|\\+n)(?:[ \t]*[0-9]{1,6}[→\t|:])?([+-]?[ \t]+)[\"']?[\w.-]{1,100}[\"']?:[ ]*"
    r"[\"']?([^\s\"'\\|>]{4,}+)?[\"']?"
)
_JSON_ENTRY = re.compile(r"(?:\s|\\+n|[{,])*+\\*\"[\w.-]{1,100}\\*\"\s*:\s*\\*\"([^\"\\]{4,}+)\\*\"")


def _kubernetes(text: str) -> Iterator[Hit]:
    """What stands under `data:` and `stringData:` of a manifest of kind Secret, as YAML or JSON."""
    borders = [0, *(found.end() for found in _DOCUMENT.finditer(text)), len(text)]
    for start, end in pairwise(borders):
        if _SECRET.search(text, start, end) is None:
            continue
        for data in _DATA.finditer(text, start, end):
            place = data.end()
            json = text[place : place + 3].lstrip().startswith("{")
            indent = None
            while entry := (_JSON_ENTRY if json else _YAML_ENTRY).match(text, place, end):
                if not json and (indent := indent or entry[1]) != entry[1]:
                    break
                last = 1 if json else 2
                if entry[last] is not None and not is_placeholder(entry[last]):
                    yield Hit(*entry.span(last), "kubernetes-secret")
                place = entry.end()

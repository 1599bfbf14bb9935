"""Whether a value can be a secret: made at random, chosen by a person, or only a placeholder, a variable, a word."""

from __future__ import annotations

import re
from collections import Counter
from math import log2

_PLACEHOLDER = re.compile(
    r"[<{\[(]|\$[({A-Za-z_]|%[({A-Za-z]?s?\b|%\(|@[A-Z]"  # <key>, {key}, ${KEY}, $(cat key), %s
    r"|(?:none|null|nil|undefined|true|false|todo|tbd)\b|(?:process|os|env|self|this)\."
    r"|(?:sha[0-9]{1,3}|md5)[-:]|(?:arn|vault|ref|file|env):|your|insert|replace|changeme|change[-_]|placeholder|redact"
    r"|(?:my|the|some|a|an|dummy|fake|sample|test|super)[-_ ]?(?:[a-z]{3,10}[-_ ])?"
    r"(?:password|passwd|passphrase|secret|token|key|apikey|value|string|credentials?)(?![A-Za-z])",
    re.I,
)
_WORDS = frozenset(
    "password passwd passphrase pass pwd secret token key apikey api_key username user login email string str text "
    "bytes secretstr int integer bool boolean object any optional required hidden input field yes no on off default "
    "empty bearer basic digest oauth jwt refresh access session cookie plain prompt stdin auto never always".split()
)
_SAME = re.compile(r"(.)\1*\Z", re.S)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_]*)*\Z")
_CALL = re.compile(r"[A-Za-z_$][\w.$:]*[(\[]")
_WORDS_ONLY = re.compile(r"[a-z:;,._=-]*\Z")
_PART = re.compile(r"[^A-Za-z0-9]+")
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_VOWEL = re.compile("[aeiouy]", re.I)
_UNSPEAKABLE = re.compile("[b-df-hj-np-tv-xz]{5}", re.I)
_DIGITS = re.compile("[0-9]+")
_RARE = frozenset(
    letters[0] + second
    for letters in (
        "aehjoqz bdfghkmnpqtvwxz cbgjnqvwxz dhjkqvwxz ejz fbdghjkmnpqvwxyz gbdfjkpqvwxyz hbcdfghjknpvwxz ihijquy "
        "jbcdfghijklmnpqrstuvwxyz kbdfghjkmqruvxyz lghjkmqrwxz mfghjknqtvwxyz njqwxz ohjqyz pbfgjmnqvxz "
        "qabcdefghijkmnopqrstvwxyz rhjqwxz sjqvxz tjkqxz uhjkoquvwxyz vbcdfghjklmnpqrstuvwxyz wbcdfgjklmpqtuvwxyz "
        "xabdfghjklmnoqruvwxyz ybfghjkoqruvwxyz zbcdfghjklmopqrsuvwxyz"
    ).split()
    for second in letters[1:]
)
"""Pairs of letters that hardly stand in a word or name: 3 of 100 pairs there, 46 of 100 of random ones. Each word here
is a letter, and those that rarely follow it."""
_MOST_RARE = 0.18  # of the pairs in a word or name
_DISTINCT = 5  # a secret has at least as many characters that differ
_BITS = 2.6  # of entropy for each character of a value made at random; hexadecimal ones of 16 have 2.9 and more
SHORTEST = 12
"""Characters of a value that is one by how it looks alone."""

_SHORTEST_CHOSEN = 4


def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one: `<your-key>`, `${KEY}`, `xxxx`, `changeme`."""
    return (
        is_sample(value)
        or value.lower().strip("'\"") in _WORDS
        or _PLACEHOLDER.match(value) is not None
        or any(mark in value.lower() for mark in ("****", "...", "…", "[redacted"))
    )


def is_sample(token: str) -> bool:
    """Whether a token of the right shape is one of documentation: AKIAIOSFODNN7EXAMPLE, ghp_xxxxxxxx."""
    low = token.lower()
    if len(set(low)) < _DISTINCT and (len(token) > len("12345678") or _SAME.match(low)):
        return True
    return "example" in low or "xxxxx" in low


def is_random(value: str) -> bool:
    """Whether a value looks as if it was made at random: long, of letters and digits mixed, no words, no path."""
    size = len(value)
    if (
        size < SHORTEST
        or value.isdigit()
        or _WORDS_ONLY.match(value)
        or is_placeholder(value)
        or value.startswith("http")
    ):
        return False
    counts = Counter(value)
    if -sum(many / size * log2(many / size) for many in counts.values()) < _BITS:
        return False
    return _wild(value) * 2 >= size


def _wild(value: str) -> int:
    """How many characters stand in parts that are neither words nor numbers."""
    wild = 0
    for part in _PART.split(value):
        pieces = _HUMP.findall(part)
        most = 3.5 if part.isalpha() else 4.5  # letters to a piece: words have more
        short = len(pieces) * most > len(part) >= SHORTEST or len(pieces) * 4 > len(part) + 3
        if short or sum(map(len, filter(_no_word, pieces))) * 2 > len(part) > len("short"):
            wild += len(part)
    return wild + sum(not character.isalnum() for character in value) * bool(wild)


def _no_word(piece: str) -> bool:
    return len(piece) > len("word") and (_UNSPEAKABLE.search(piece) is not None or not _VOWEL.search(piece))


def is_gibberish(value: str) -> bool:
    """Whether letters follow on one another as in no word or name; for what is likely to be a secret."""
    low = value.lower()
    pairs = [low[place : place + 2] for place in range(len(low) - 1)]
    rare = sum(pair in _RARE for pair in pairs)
    return rare > 1 and rare >= _MOST_RARE * sum(map(str.isalpha, pairs))


def is_unspeakable(value: str) -> bool:
    """Whether a value is long and its letters stand as in no word; for what is known to be a secret."""
    return len(value) >= len("0123456789abcdef") and not is_placeholder(value) and is_gibberish(value)


def is_chosen(value: str, *, bare: bool) -> bool:
    """Whether a value that is called a password may be one that a person chose.

    bare  it stands without quotes, where code has names and prose has words
    """
    if len(value) < _SHORTEST_CHOSEN or is_placeholder(value):
        return False
    if " " in value.strip():
        return any(map(str.isdigit, value)) and not value.endswith((".", ":", "?", "!"))
    if not bare:
        return True
    if _CALL.match(value) or (_NAME.match(value) and not any(map(str.isdigit, value))):
        return False
    return not value.endswith(("(", "()", ",", ";", ")")) and any(not character.isalpha() for character in value)


def is_unspoken(value: str) -> bool:
    """Whether a value without separators mixes letters and digits as no word does; for what is known to be a secret."""
    if len(value) < len("0123456789abcdef") or is_placeholder(value) or not value.isalnum():
        return False
    return len(_DIGITS.findall(value)) > 1 and any(map(str.isalpha, value))


def is_credential(value: str) -> bool:
    """Whether what stands where only a credential can is one, and no variable or placeholder: of letters of both cases
    and a digit.
    """
    if len(value) < len("0123456789abcdef0123") or is_placeholder(value) or _NAME.match(value):
        return False
    return value.upper() != value != value.lower() and _DIGITS.search(value) is not None

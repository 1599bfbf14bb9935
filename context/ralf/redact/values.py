"""How much a value tells of itself: that it is none, a word, chosen by a person, or made at random.

`strength` is the one judgment; all that finds secrets by what stands around them asks for a least strength.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from math import log2

from ralf.redact.names import is_name
from ralf.redact.table import expression, rows, words
from ralf.text.patterns import regex

NOTHING, WORD, CHOSEN, MIXED, ID, RANDOM = range(6)
"""The classes of values: a placeholder, a reference or code; a plain word, a number or an identifier; what a person may
have chosen; letters with digits or signs as no word has; random, but as ids and hashes are; made at random."""

_SHORTEST, _LONG, _DISTINCT = 12, 16, 5  # characters of what looks random, alone and by a name; and how many differ
_BITS = 2.6  # of entropy for each character of a value made at random; hexadecimal ones of 16 have 2.9 and more


def _class(name: str) -> re.Pattern[str]:
    """Matches the values that the table has of a class."""
    return regex("|".join(expression(row[1]) for row in rows("values") if row[0] == name), re.I)


_NOTHING = _class("nothing")
_LABEL = _class("label")
_WORD = _class("word")
_IDENTIFIER = _class("identifier")
_NUMBERED = _class("numbered")
_UUID = _class("uuid")
_ID = _class("id")
_PASSPHRASE = _class("passphrase")


def entropy(text: str) -> float:
    """Shannon's entropy of a text, in bits for each character."""
    size = len(text)
    return -sum(many / size * log2(many / size) for many in Counter(text).values())


# ---- what only stands for a value, or is a word ----

_PLACEHOLDERS = frozenset(words("placeholders"))
_NAMED_PLACE = regex(r"\[[A-Z][A-Z_-]{2,20}\]")
_STEP = regex(r"\.|->|::|\?\.")
_PATH = regex(r"[A-Za-z_$][A-Za-z0-9_]*+(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_]*+)*+\Z")
_CALLEE = regex(r"([A-Za-z_$][\w.$:]*+(?:(?:->|\?\.)[\w.$:]++)*+)[(\[]")
_OF_SECRETS = regex(
    r"passw|secret|token|credential|cookie|(?<![a-z])(?:creds?|auth|keys?|login|user|session|account|certs?)(?![a-z])",
    re.I,
)
_JOINED = regex(r"[a-z0-9]+(?:[-_.][a-z0-9]+)+\Z")
_SPOKEN = regex(
    expression(
        r"(?:[^\W\d_]|%n)++(?:[\s,.:!?\u2026'\u2019()-]++(?:[^\W\d_]|%n)++)*+[\s,.:!?\u2026\u3002\uff1f\uff01]*+\Z"
    )
)


_ALPHABET = regex("abcdefghijkl|ABCDEFGHIJKL")


def is_sample(token: str) -> bool:
    """Whether a token of the right shape is one of documentation: AKIAIOSFODNN7EXAMPLE, ghp_xxxxxxxx."""
    low, distinct = token.lower(), len(set(token.lower()))
    repeats = distinct < _DISTINCT and (len(token) > len("12345678") or distinct < 2)
    return repeats or any(mark in low for mark in ("example", "xxxxx")) or _ALPHABET.search(token) is not None


@lru_cache(2048)
def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one, `<your-key>`, `xxxx`, or refers to one: `${KEY}`, `op://vault/item/field`."""
    low = value.lower()
    marked = any(mark in low for mark in ("****", "...", "…", "[redacted")) or _NAMED_PLACE.search(value) is not None
    return marked or is_sample(value) or low.strip("'\":_") in _PLACEHOLDERS or bool(_NOTHING.match(value))


def is_expression(value: str) -> bool:
    """Whether a value is what code reads it from: a path of names, `import.meta.env.API_KEY_2`, a call, `a.b(…)`."""
    if call := _CALLEE.match(value):
        spoken = any(len(hump) >= len("call") and VOWEL.search(hump) for hump in HUMP.findall(call[1]))
        named = "::" in call[1] or (call[1].islower() and (call[1].isalpha() or "_" in call[1]))
        return spoken or named or _WORD.match(call[1]) is not None
    names = _STEP.split(value)
    if len(names) < len("a.b") or _PATH.match(value) is None or is_passphrase(value):
        return False
    return not wild_characters(value) and not any(map(is_gibberish, names))


def is_identifier(value: str) -> bool:
    """Whether a value is a name of code, `user_id2`, or an id as services write them: a UUID."""
    return any(form.match(value) for form in (_IDENTIFIER, _NUMBERED, _UUID))


def _is_label(value: str) -> bool:
    """Whether a value names a secret, and is none: `app-tls-secret-7f9c4`, `Mot de passe oublié ?`, `JWTToken`."""
    if _JOINED.match(value):
        return _OF_SECRETS.search(value) is not None
    if value and max(value) >= "\u0e00" and is_name(value):  # a sentence of a script without blanks
        return True
    return _LABEL.match(value) is not None or (_SPOKEN.match(value) is not None and is_name(value))


def _is_word(value: str) -> bool:
    """Whether a value stands in code and prose: a term, `sha256`, a number, a file, a name, `build-linux-x64`."""
    parts = _PART.split(value) if _JOINED.match(value) else [value]
    word = all(part.isalpha() or _WORD.match(part) for part in parts)
    return word or (_IDENTIFIER.match(value) is not None and not is_gibberish(value))


# ---- made at random ----

_RARE = frozenset(letters[0] + second for letters in words("rare-pairs") for second in letters[1:])
"""Pairs of letters that hardly stand in a word or name: 3 of 100 pairs there, 46 of 100 of random ones. Each word of
the table is a letter, and those that rarely follow it."""
_CONSONANTS = regex(r"(?i)[b-df-hj-np-tv-xz](?=[b-df-hj-np-tv-xz]{2})")
_PASSWORD_SIGNS = frozenset("!@#%^?+&$~")  # which passwords have, and words of code and prose have not


def odds(text: str) -> int:
    """By how many bits it is likelier that a text was made at random than that it is a word of prose or code.

    Each pair of neighbours counts by how often it stands in both: digits beside letters, capitals behind small letters,
    rare pairs of letters and consonants in a row speak for chance.
    """
    bits = 2 * len(_CONSONANTS.findall(text))
    for one, other in pairwise(text):
        if not (one.isalnum() and other.isalnum()):
            bits += 2 if one in _PASSWORD_SIGNS or other in _PASSWORD_SIGNS else -1
        elif one.isdigit() or other.isdigit():
            bits += 5 if one.isdigit() != other.isdigit() else 1
        elif one.islower() and other.isupper():
            bits += 5
        elif (one + other).lower() in _RARE:
            bits += 4
        else:
            bits -= 3 if one.islower() else 2 if other.isupper() else -2
    return bits


_WORDS_ONLY = regex(r"[a-z:;,._=-]*\Z")
_PART = regex(r"[^A-Za-z0-9]+")

HUMP = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

VOWEL = regex("[aeiouy]", re.I)
_UNSPEAKABLE = regex("[b-df-hj-np-tv-xz]{5}", re.I)
_MOST_RARE = 0.18  # of the pairs in a word or name

_BASE64 = regex(r"(?:[A-Za-z0-9+/]{4}){2,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")

_LOGIN = regex(rb"[!-9;-~]{1,100}:[!-~]{2,}\Z")


@lru_cache(4096)
def is_random(value: str) -> bool:
    """Whether a value looks as if it was made at random: long, of letters and digits mixed, no words, no path."""
    size = len(value)
    if size < _SHORTEST or value.isdigit() or value.startswith("http") or _WORDS_ONLY.match(value):
        return False
    return not is_placeholder(value) and entropy(value) >= _BITS and wild_characters(value) * 2 >= size


def wild_characters(value: str) -> int:
    """How many characters stand in parts that are neither words nor numbers."""
    wild = 0
    for part in _PART.split(value):
        pieces = HUMP.findall(part)
        most = 3.5 if part.isalpha() else 4.5  # letters to a piece: words have more
        short = len(pieces) * most > len(part) >= _SHORTEST or len(pieces) * 4 > len(part) + 3
        if short or sum(map(len, filter(_no_word, pieces))) * 2 > len(part) > len("short"):
            wild += len(part)
    return wild + sum(not character.isalnum() for character in value) * bool(wild)


def _no_word(piece: str) -> bool:
    return len(piece) > len("word") and (_UNSPEAKABLE.search(piece) is not None or not VOWEL.search(piece))


def is_gibberish(value: str) -> bool:
    """Whether letters follow on one another as in no word or name; for what is likely to be a secret."""
    low = value.lower()
    pairs = [low[place : place + 2] for place in range(len(low) - 1)]
    rare = sum(pair in _RARE for pair in pairs)
    return rare > 1 and rare >= _MOST_RARE * sum(map(str.isalpha, pairs))


def is_basic(value: str) -> bool:
    """Whether a value is the base64 of a user and a password, as basic authorization has it."""
    try:
        return _BASE64.match(value) is not None and _LOGIN.match(b64decode(value)) is not None
    except Error:
        return False


def _is_made(value: str) -> bool:
    """Whether a value that something calls a secret was made at random."""
    if is_random(value) or is_basic(value):
        return True
    mixes = value.isalnum() and len(re.findall("[0-9]+", value)) > 1 and any(map(str.isalpha, value))
    return len(value) >= _LONG and (mixes or is_gibberish(value))


# ---- chosen by a person ----

_SIGNS = regex(r"[!@#$%^&*?+=]")
_ENGLISH = regex(expression(r"(?:%{english-endings})\Z"))
_STOPWORDS, _OF_CODE = frozenset(words("stopwords")), frozenset(words("code"))
_JOINT = regex(r"[-._]|(?<=[a-z])(?=[A-Z])")
_LEET = str.maketrans("013457@$", "oieastas")
_ENDING_SIGNS = "!?*#$%&@+=_"
_NUMBERED_END = regex(r"(?:[-._]?([0-9]{2,4})[a-z]?|[-_]([0-9]))[!?*#$%&@+=_]{0,3}\Z")
_WALK = regex(r"(?i)[!@#]?(?:qwert|asdf|zxcv|yxcv|qaz|wsx|1q2w|1qaz|poiu|lkjh)\S{2,}")  # over a keyboard
_NO_CHOICE = _OF_CODE | _STOPWORDS | frozenset(words("products"))
_ESCAPED = regex(r"\\u(?!00[0-7])([0-9a-fA-F]{4})")
_ASKS = regex("请|請|入力|输入|输入|введите|입력")


def _is_of_code(word: str, no_choice: Collection[str] = _NO_CHOICE) -> bool:
    """Whether a word is one of code, or ends as its names do, so that nobody makes a password of it."""
    return word.lower() in no_choice or _ENGLISH.match(word.lower()) is not None


def is_passphrase(value: str, *, least: int = 3) -> bool:
    """Whether a value is words that one sign joins as those who choose a password do, and none of them is of code.

    least  how many words it has
    """
    parts = _PART.split(value.rstrip("0123456789"))
    if len(parts) < least or not _PASSPHRASE.match(value) or _OF_SECRETS.search(value):
        return False
    of_code = sum(_is_of_code(part, _OF_CODE) for part in parts)
    return of_code <= (len(parts) + value[-2:].isdigit()) // len("ab") and not _STOPWORDS.intersection(parts)


@lru_cache(2048)
def is_coined(value: str) -> bool:
    """Whether a value is words as a person makes a password of them, `blue_heron_77`, `thimbl3.Spruce42`, `Bandit22`:
    none is one of code, it ends with digits or has digits for letters, and a single one begins with a capital.
    """
    end = _NUMBERED_END.search(value)
    plain, last = (value[: end.start()], end[1] or end[2]) if end is not None else (value.rstrip(_ENDING_SIGNS), "")
    read = plain.translate(_LEET)
    parts = _JOINT.split(read)
    if not all(part.isalpha() and len(part) > len("it") for part in parts) or _OF_SECRETS.search(read):
        return False
    if len(parts) == 1 and not (len(read) > len("word") and read.istitle()):
        return False
    most = len(parts) // 2 if len(last) >= len("42") else 0
    return (read != plain or last != "") and sum(map(_is_of_code, parts)) <= most


def is_phrase(value: str) -> bool:
    """Whether a value is a pass phrase: four plain words or more, and no sentence."""
    parts = value.split(" ")
    titles = value.istitle() and not any(map(_is_of_code, parts))
    plain = (value.islower() or titles) and all(part.isalpha() and len(part) > len("it") for part in parts)
    return plain and len("four") <= len(parts) <= 25 and not _STOPWORDS.intersection(parts)


def _is_outside(value: str) -> bool:
    """Whether a value is as a path, an option, a user or a colour is, and has no sign that these have not."""
    begins = value.startswith(("/", "./", "~", "http", "-", "@", "#"))
    return (begins or "/" in value) and not _SIGNS.search(value, int(begins))


@lru_cache(2048)
def is_mixed(value: str) -> bool:
    """Whether a word mixes letters with digits or signs as a person's password does, and as no word of code or prose;
    for what something calls a password.
    """
    if len(value) < len("hunter2") or _is_outside(value) or value[:-1].isalpha():
        return False
    if is_placeholder(value) or _is_label(value) or is_expression(value):
        return False
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    if is_passphrase(value) or _is_word(value):
        return is_passphrase(value)
    varied = digits > 1 or len(value) > digits + letters or (value.upper() != value != value.lower())
    return digits > 0 and len(value) - digits >= len("abc") and letters > 1 and varied


def _is_foreign(value: str) -> bool:
    """Whether a word has letters or pictures of no Latin alphabet, or of a Latin one with marks beside digits."""
    value = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
    told = sum(character >= "\u0370" and (character.isalpha() or character >= "\U0001f000") for character in value)
    letters = any(character > "\x7f" and character.isalpha() for character in value)
    digits = letters and any(map(str.isdigit, value))
    if told >= len("123456") or (told and digits):
        return not is_name(value) and not _ASKS.search(value)
    return digits


def _is_chosen(value: str) -> bool:
    """Whether a person may have chosen a value: words put together, or more than letters, as no name in code has it."""
    if value.isdigit():
        return False
    if value.isascii() and value.isalpha():
        return value.islower() and len(value) >= _SHORTEST and not (_ENGLISH.search(value) or _OF_SECRETS.search(value))
    if _is_foreign(value):
        return True
    if value.rstrip("!?").isalpha() or _is_outside(value) or _is_word(value):
        return False
    if value.endswith(("(", ")", ",", ";")) or (_PATH.match(value) and not any(map(str.isdigit, value))):
        return False
    return len(value) >= len("tiger7") and sum(map(str.isalpha, value)) > 1


@lru_cache(4096)
def strength(value: str) -> int:
    """The class of a value, NOTHING to RANDOM; for what something else calls a secret."""
    value = value.strip()
    if is_placeholder(value) or _is_label(value):
        return NOTHING
    if " " in value:
        mixed = not (value.endswith((".", ":", "?", "!")) or is_name(value)) and any(map(is_mixed, value.split()))
        return MIXED if mixed or is_phrase(value) else NOTHING
    if is_coined(value) or _WALK.match(value):
        return MIXED
    if is_expression(value) or len(value) < len("abcd"):
        return NOTHING
    if not value.isascii() and any(map(str.isdigit, value)) and _is_foreign(value):
        return MIXED
    if (made := _is_made(value)) or is_mixed(value):
        return ID if _ID.match(value) or _UUID.match(value) else RANDOM if made else MIXED
    return CHOSEN if _is_chosen(value) else WORD

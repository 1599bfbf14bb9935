"""Whether a value can be a secret: made at random, chosen by a person, or only a placeholder, a reference, a word."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from math import log2

from ralf.redact.names import STEM
from ralf.redact.table import words
from ralf.text.patterns import regex

NOTHING, PLAUSIBLE, TOLD, RANDOM = range(4)
"""How much a value tells: that it is none, nothing, that a person chose it, that it was made at random."""

SHORTEST = 12
"""Characters of a value that is one by how it looks alone."""

_SAME = regex(r"(.)\1*\Z", re.S)

_DISTINCT = 5  # a secret has at least as many characters that differ

_BITS = 2.6  # of entropy for each character of a value made at random; hexadecimal ones of 16 have 2.9 and more


def entropy(text: str) -> float:
    """Shannon's entropy of a text, in bits for each character."""
    size = len(text)
    return -sum(many / size * log2(many / size) for many in Counter(text).values())


def is_sample(token: str) -> bool:
    """Whether a token of the right shape is one of documentation: AKIAIOSFODNN7EXAMPLE, ghp_xxxxxxxx."""
    low = token.lower()
    repeats = len(set(low)) < _DISTINCT and (len(token) > len("12345678") or _SAME.match(low) is not None)
    return repeats or "example" in low or "xxxxx" in low


# ---- what only stands for a value, or is none ----

_PLACEHOLDER = regex(
    r"[<{\[(]|\$(?:[({A-Za-z_]|[0-9@*#]\Z)|%[({A-Za-z]?s?\b|%\(|@[A-Z]|\*{3}|![A-Za-z]+\Z|![A-Z]"
    # <key>, ${KEY}, %s, !Ref
    r"|(?:none|null|nil|undefined|true|false|todo|tbd)\b|(?:process|os|env|self|this|config|secrets?|settings)\."
    r"|(?:var|local|data|module|each|random_\w{1,30}|tls_\w{1,30}|aws_\w{1,60}|google_\w{1,60}|azurerm_\w{1,60})\.\w"
    r"|(?:sha[0-9]{1,3}|md5)[-:]|(?:arn|vault|ref|file|env|gsm|ssm|gcp|aws|azure|keyvault|secret|op|enc)[:\[(]|//"
    r"|(?:op|vault|ref\+[a-z]+|aws-?[a-z]+|gcp-?[a-z]+|g?sm|secrets?|keyring|doppler|infisical|bws)://|@[a-z.]+\(|your|insert|replace|changeme|change[-_]|placeholder|redact"
    r"|[\^~<>=]*v?[0-9]+(?:\.[0-9x*]+)+(?:(?:[-+.]|a|b|rc|m?s)[a-z0-9.]{0,20})?(?:[\s,;]|\Z)"  # a version
    r"|(?:workspace|npm|link|portal|catalog):"  # of a package
    r"|/[\^\[(\\]|\^[^\s]*\$\Z"  # a regular expression
    r"|hk(?:lm|cu|cr|ey_[a-z_]{4,20})[\\:]|[a-z]:\\"  # a key of the registry, a path
    r"|pk[_-](?:live|test)_|age1[02-9ac-hj-np-z]{20}"  # a public key
    r"|(?:aes|des|rsa|ecdsa|hmac|sha|chacha)[-_]?[0-9]{1,4}(?:[-_][a-z0-9]{2,8}){0,3}\Z"  # an algorithm
    r"|data:|ivborw0kggo|/9j/4aa|r0lgod|phn2zy"  # an image
    r"|-----begin (?:[a-z]{2,4} )?(?:public|cert)|[12][0-9]{3}-[01][0-9]-[0-3][0-9]"
    r"|projects/[\w-]{1,40}/secrets/|ssh-(?:rsa|ed25519) |AAAA[BCE]3NzaC1"
    r"|(?:my|the|some|a|an|dummy|fake|sample|test|super)[-_ ]?(?:[a-z]{3,10}[-_ ])?"
    r"(?:password|passwd|passphrase|secret|token|key|apikey|value|string|credentials?)(?![A-Za-z])",
    re.I,
)

_WORDS = frozenset(words("placeholders"))

_NAME = regex(r"[A-Za-z_$][A-Za-z0-9_]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_]*)*\Z")

_CALL = regex(r"[A-Za-z_$][\w.$:]*[(\[]")

_STEP, _STEPS = regex(r"\.|->|::|\?\."), 3

_CLASS = regex(
    r"[A-Za-z_][\w.]*(?:Key|Token|Auth|Password|Secret|Credential|Cookie)s?(?:Types?|Mixin|Grant|Class|Model)?[:|]?\Z"
)

_LABEL = regex(r"[a-z0-9]+(?:[-_.][a-z0-9]+)+\Z")

_TITLE = regex(r"[A-Z]+(?:_[A-Z]+)+\Z|[a-z]+(?:[-_.][a-z]+)+\Z|[a-z]+(?:[A-Z][a-z]+)+\Z")

_OF_SECRETS = regex(
    r"passw|secret|token|credential|cookie|(?<![a-z])(?:creds?|auth|keys?|login|user|session|account|certs?)(?![a-z])",
    re.I,
)

_SPOKEN = regex(r"[^\W\d_]++(?:[\s,.:!?\u2026'\u2019()-]++[^\W\d_]++)*+[\s,.:!?\u2026\u3002\uff1f\uff01]*+\Z")


@lru_cache(2048)
def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one, `<your-key>`, `xxxx`, or refers to one: `${KEY}`, `op://vault/item/field`."""
    low = value.lower()
    return (
        is_sample(value)
        or low.strip("'\"") in _WORDS
        or _PLACEHOLDER.match(value) is not None
        or any(mark in low for mark in ("****", "...", "…", "[redacted"))
    )


def is_code(value: str) -> bool:
    """Whether a value is the name of a class, `X25519PrivateKey`, or a call or an index that begins."""
    return _CLASS.match(value) is not None or _CALL.match(value) is not None


def is_expression(value: str) -> bool:
    """Whether a value is what code reads it from: a path of names, `import.meta.env.API_KEY_2`, a call, `a.b(…)`."""
    if _CALL.match(value):
        return True
    names = _STEP.split(value)
    return (
        len(names) >= _STEPS
        and _NAME.match(value) is not None
        and not wild_characters(value)
        and not any(map(is_gibberish, names))
    )


def is_label(value: str) -> bool:
    """Whether a value names a secret, and is none: `app-tls-secret-7f9c4`, `Mot de passe oublié ?`, `パスワード`."""
    if _LABEL.match(value):
        return _OF_SECRETS.search(value) is not None
    return _SPOKEN.match(value) is not None and STEM.search(value.lower()) is not None


# ---- made at random ----

_WORDS_ONLY = regex(r"[a-z:;,._=-]*\Z")

_PART = regex(r"[^A-Za-z0-9]+")

HUMP = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

VOWEL = regex("[aeiouy]", re.I)

_UNSPEAKABLE = regex("[b-df-hj-np-tv-xz]{5}", re.I)

_DIGITS = regex("[0-9]+")

_RARE = frozenset(letters[0] + second for letters in words("rare-pairs") for second in letters[1:])
"""Pairs of letters that hardly stand in a word or name: 3 of 100 pairs there, 46 of 100 of random ones. Each word here
is a letter, and those that rarely follow it."""

_MOST_RARE = 0.18  # of the pairs in a word or name

HASH = regex(r"(?<![0-9A-Za-z])(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9A-F]{40})(?![0-9A-Za-z])")

UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.I)


@lru_cache(4096)
def is_random(value: str) -> bool:
    """Whether a value looks as if it was made at random: long, of letters and digits mixed, no words, no path."""
    size = len(value)
    if (
        size < SHORTEST
        or value.isdigit()
        or value.startswith("http")
        or _WORDS_ONLY.match(value)
        or is_placeholder(value)
    ):
        return False
    return entropy(value) >= _BITS and wild_characters(value) * 2 >= size


def wild_characters(value: str) -> int:
    """How many characters stand in parts that are neither words nor numbers."""
    wild = 0
    for part in _PART.split(value):
        pieces = HUMP.findall(part)
        most = 3.5 if part.isalpha() else 4.5  # letters to a piece: words have more
        short = len(pieces) * most > len(part) >= SHORTEST or len(pieces) * 4 > len(part) + 3
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


def is_unspoken(value: str) -> bool:
    """Whether a long value without separators mixes letters and digits as no word does."""
    mixes = value.isalnum() and len(_DIGITS.findall(value)) > 1 and any(map(str.isalpha, value))
    return mixes and len(value) >= len("0123456789abcdef") and not is_placeholder(value)


# ---- chosen by a person ----

_TECHNICAL = regex(  # words with a number that stand in code and prose: sha256, base64, int32, oauth2, v2
    r"(?:sha|md|aes|des|hs|rs|es|ps|rsa|ecdsa|ed|curve|x|p|secp|base|utf|latin|oauth|http|tls|ssl|rfc|iso|pbkdf|win|"
    r"u?int|i|u|f|float|bytes|varchar|char|str|string|python|py|node|java|v|version|step|test|line|page|part|phase|"
    r"user|task|issue|bug|case|item|token|key|secret|password|field|arg|param|level|type|table|column|row|figure|"
    r"vs|log|ipv|auth|web|neo|es|ec|s|k|q|h|l|r|t|m)[-_./ ]?[0-9]+[a-z]?(?:[-_./][a-z0-9]+)*\Z",
    re.I,
)

_NUMBER = regex(r"[#$€£+-]?[0-9][0-9.,:/%T_+-]*(?:[A-Za-z]{1,3}|bytes|chars)?\Z|0x[0-9a-f]{1,8}\Z", re.I)

_FILE = regex(r"[\w.+-]{1,80}\.[a-z][a-z0-9]{1,4}(?::[0-9]{1,5})?\Z")

_IDENTIFIER = regex(
    r"[A-Za-z]+[0-9]{0,2}(?:[_.][A-Za-z]*[0-9]{0,2})+\Z|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+[0-9]{0,2}\Z"
    r"|[a-z]+(?:\.[a-z0-9]+)+\Z|[a-z]+[0-9]+[a-z]?_[a-z]+\Z"
)


def is_identifier(value: str) -> bool:
    """Whether a value is a name of code, `user_id2`, or an id as services write them: a UUID."""
    return _IDENTIFIER.match(value) is not None or _NUMBERED.match(value) is not None or UUID.match(value) is not None


_NUMBERED = regex(r"(?:[A-Za-z]{1,20}[-/])*[A-Z]?[a-z]{4,20}[0-9]{1,2}\Z")


def is_technical(value: str) -> bool:
    """Whether a value is a term of the field: `AES-256`, `sha256`."""
    return _TECHNICAL.match(value) is not None


def is_term(value: str) -> bool:
    """Whether a value is a term of the field, `AES-256`, or words in lower case that signs join: `build-linux-x64`."""
    return is_technical(value) or _LABEL.match(value) is not None


_SIGNS = regex(r"[!@#$%^&*?+=]")

_ENGLISH = regex(rf"(?:{'|'.join(words('english-endings'))})\Z")

_LONG_WORD = 12

_PHRASE = range(4, 26)  # words of a pass phrase

_STOPWORDS = frozenset(words("stopwords"))

_ESCAPED = regex(r"\\u(?!00[0-7])([0-9a-fA-F]{4})")


@lru_cache(2048)
def is_mixed(value: str) -> bool:
    """Whether a word mixes letters with digits or signs as a person's password does, and as no word of code or prose;
    for what something calls a password.
    """
    if len(value) < len("hunter2") or is_placeholder(value) or is_label(value):
        return False
    if value.startswith(("/", "./", "~", "http", "-", "@", "#")) or value[:-1].isalpha():
        return False
    if any(form.match(value) for form in (_TECHNICAL, _NUMBER, _CALL, _FILE, _IDENTIFIER)):
        return False
    digits, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    if not digits or letters < len("abc") or ("/" in value and not _SIGNS.search(value)):
        return False
    return digits >= len("12") or len(value) > digits + letters or (value.upper() != value != value.lower())


@lru_cache(2048)
def is_foreign(value: str) -> bool:
    """Whether a word has letters or pictures of no Latin alphabet, or of a Latin one with marks beside digits."""
    if _ESCAPED.search(value):
        value = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
        return any(map(str.isdigit, value)) or len(value) >= len("123456")
    if value.isascii() or len(value) < len("1234") or any(map(str.isspace, value)) or is_placeholder(value):
        return False
    told = sum(character >= "\u0370" and (character.isalpha() or character >= "\U0001f000") for character in value)
    digits = any(map(str.isdigit, value))
    if told >= len("123456") or (told and digits):
        return STEM.search(value) is None and not _ASKS.search(value)
    return digits and any(character.isalpha() and not character.isascii() for character in value)


_LETTERS = regex("[^\\W\\d_]+\\Z")


def is_foreign_word(value: str) -> bool:
    """Whether a value has only letters, some of no Latin alphabet: as a password it looks like a word of prose."""
    return not value.isascii() and not any(map(str.isdigit, value)) and not any(map(_SIGNS.match, value))


_ASKS = regex("请|請|入力|输入|输入|введите|입력")


def is_phrase(value: str) -> bool:
    """Whether a value is a pass phrase: four plain words or more, and no sentence."""
    words = value.split(" ")
    return (
        len(words) in _PHRASE
        and all(word.isalpha() and word.islower() and len(word) > len("it") for word in words)
        and not _STOPWORDS.intersection(words)
        and not is_placeholder(value)
    )


def is_compound(value: str) -> bool:
    """Whether a value is words in lower case, put together without a space, as no word of prose or code is."""
    plain = value.isascii() and value.isalpha() and value.islower() and len(value) >= _LONG_WORD
    return plain and not (is_placeholder(value) or _ENGLISH.search(value) or _OF_SECRETS.search(value))


@lru_cache(4096)
def strength(value: str) -> int:
    """How much a value tells of itself, NOTHING to RANDOM; for what something else calls a secret."""
    if is_placeholder(value) or is_label(value):
        return NOTHING
    if is_random(value) or is_unspoken(value) or (len(value) > len("0123456789abcde") and is_gibberish(value)):
        return RANDOM
    if is_mixed(value) or is_foreign(value) or is_phrase(value) or is_compound(value):
        return TOLD
    return PLAUSIBLE if len(value) >= len("abcd") and " " not in value.strip() else NOTHING


def is_chosen(value: str, *, bare: bool) -> bool:
    """Whether a value that is called a password may be one that a person chose.

    bare  it stands without quotes, where code has names and prose has words
    """
    if " " in value.strip():
        return is_phrase(value) or (not value.endswith((".", ":", "?", "!")) and any(map(is_mixed, value.split())))
    if strength(value) == NOTHING or (_TITLE.match(value) and _OF_SECRETS.search(value)):
        return False
    if not bare:
        return not value.endswith("()")
    if _CALL.match(value) or (_NAME.match(value) and not any(map(str.isdigit, value))):
        return False
    return not value.endswith(("(", "()", ",", ";", ")")) and any(not character.isalpha() for character in value)


def is_credential(value: str) -> bool:
    """Whether what stands where only a credential can is one: of letters of both cases and a digit, and no variable."""
    both = value.upper() != value != value.lower()
    return (
        both
        and len(value) > 19
        and not is_placeholder(value)
        and not _NAME.match(value)
        and bool(_DIGITS.search(value))
    )

"""What a name calls its value: the kind of a secret, or nothing.

A name tells the kind by its stem (`DB_PASSWORD`, `githubToken`, `contraseña`) and by what follows that: a `token_count`
is no token, and a `primary_key` opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ralf.redact.table import rows, words
from ralf.text.patterns import regex


def any_of(words: Iterable[str]) -> str:
    """A regular expression that matches the first of some words, as `a|b|c` does, but looks at each beginning once."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(its)})" for first, its in rests.items())


LONGEST_NAME = 60

_STEMS = (
    "passw passphrase passcode pwd pass secret token key auth credential creds cookie bearer signature dockerconfigjson"
).split()
"""Stems that stand anywhere in a name."""

_SHORT = "pw psk otp dsn totp mnemonic salt pepper".split()
"""Stems that are names of their own only."""

_CONTAINERS = "p12 pfx pkcs12 keystore keytab jks".split()
"""Names of files that hold keys, where what they hold stands in the text as base64."""


# what secrets are called in the languages that most people write; English is in the stems
def _called(column: int) -> frozenset[str]:
    """The words of a column, those of several parts also as a key of a file has them: `clave_api`."""
    words = [word for row in rows("languages") for word in row[column].split(", ") if word]
    return frozenset(word.replace(" ", sign) for word in words for sign in " _-")


_PASSWORDS, _FOREIGN_SECRETS, PINS = _called(1), _called(2), _called(3) | {"pin"}

FOREIGN = _PASSWORDS | _FOREIGN_SECRETS | PINS

PASSWORDS = frozenset(("passw", "passphrase", "passcode", "pwd", "pass", "pw", "psk", *_PASSWORDS))
"""Stems of what a person may have chosen."""

_OWN = (*_SHORT, *_CONTAINERS, *sorted(FOREIGN, key=lambda word: (-len(word), word)))

STEM = regex(rf"(?<![a-zà-ÿ])(?:{any_of(_OWN)})(?![a-zà-ÿ])|{any_of(_STEMS)}|pw(?![a-z])")

_ALONE = frozenset(_OWN)

_ENDS_VARY = 6  # letters of a word behind which the ending of a case stands, too: `salasanasi`

_NAMING = frozenset((*_STEMS, *_OWN))

WORDS = tuple(_NAMING)
"""The words, in lower case, without one of which no name of a secret stands in a text."""

_KEYS = words("secret-keys")

_KEY = regex(
    rf"(?:{'|'.join(_KEYS)})[_. -]?keys?(?:[_-]?(?:data|value|b64|base64|hex|pem|[0-9]{{1,2}}))?\Z"
    r"|(?:api|access|private|secret)[_.-]?key[_.-]?(?:secret|password|token)\Z"
)

_OPEN_KEYS = words("open-keys")

_OPEN_KEY = regex(
    rf"(?:public|publishable|primary|foreign|object|partition|cache|sort)[_.-]?keys?\Z|(?:^|[_.-])(?:{'|'.join(_OPEN_KEYS)})[_.-]?keys?\Z"
    r"|key[_.-]?(?:id|pair|name|path|file|code|up|down|word|board|frame|size|len|type|ring|hash|note|cloak)"
)
"""Keys that open nothing."""

_ANY_KEY = regex(r"[a-z0-9][_.-]?keys?\Z")

BEFORE_KEY = regex(rf"(?:{'|'.join(_KEYS)})[ ]\Z")

_OPEN_TOKEN = regex(rf"(?:{'|'.join(words('open-tokens'))})[_.-]?tokens?\Z|token[_.-]?i[sz]")
"""Tokens that open nothing: of paging, of parsers, of a design, of what is counted."""

ASKED_ONCE = regex(r"(?:client|request|action|operation|transaction)[_.-]?token\Z")
"""Names of tokens that, where they are a UUID, only tell one request from another."""

_NO_SECRET = regex(rf"(?:_|-|\.|(?<=[a-z0-9]))(?:{'|'.join(words('no-secret'))})\Z")
"""What ends a name that tells something of a secret, and not the secret."""

_NO_PASS = regex(r"(?:by|com|over|sur|tres|under|tag|hall|en|im|tryb)pass\Z")

_PASS = regex(r"(?:^|[_.-]|[a-z](?=pass\Z))pass\Z")


@lru_cache(1024)
def _stems(there: frozenset[str]) -> re.Pattern[str]:
    """Finds those of the names' words that stand in a text: plain words, and few of them, are found fast."""
    return re.compile("|".join(sorted(map(re.escape, there), key=len, reverse=True)))


def stems_of(low: str, there: Collection[str]) -> Iterator[re.Match[str]]:
    """Where the names of secrets have their stems in a text in lower case, in which these words stand."""
    words = _NAMING.intersection(there)
    for found in _stems(words).finditer(low) if words else ():
        if found[0] in _ALONE:
            before, behind = low[found.start() - 1 : found.start()], low[found.end() : found.end() + 1]
            if (before.isalpha() and before < "\u0250" and found[0] != "pw") or (
                behind.isalpha() and behind < "\u0250" and not (found[0] in _PASSWORDS and len(found[0]) >= _ENDS_VARY)
            ):
                continue
        yield found


def is_name(name: str) -> bool:
    """Whether a name may be that of a secret."""
    return STEM.search(name.lower()) is not None


def kind_of_title(title: str) -> str:
    """What a title, or a name as it is written, calls its value: the kind of a secret, "" where that is none."""
    low = "_".join(title.strip(" `*\"'").lower().split())
    stems = list(STEM.finditer(low.replace("_", " ") if not low.isascii() else low))
    return (
        kind_of(low.replace(" ", "_") if low.isascii() else low, stems[-1][0])
        if stems and len(low) <= LONGEST_NAME
        else ""
    )


@lru_cache(4096)
def kind_of(name: str, stem: str) -> str:
    """What a name with a stem calls its value: the kind of a secret, "" where that is none.

    "weak" is the kind of names that say little: what they name is a secret only where it looks random.
    """
    plain = name.strip("-._")
    if stem in PINS:
        return "pin"
    if stem in _FOREIGN_SECRETS:
        return "secret"
    if stem == "key":
        if _KEY.search(plain):
            return "key"
        return "weak" if _ANY_KEY.search(plain) and not _OPEN_KEY.search(plain) else ""
    if stem == "auth":
        if plain == "masterauth":
            return "password"
        if plain.endswith(("auth", "authorization")):
            return "authorization"
        return "token" if plain.endswith(("authcode", "auth_code")) else ""
    if stem == "pass" and (not _PASS.search(plain) or _NO_PASS.search(plain)):
        return ""
    if stem == "cookie":
        return "cookie" if plain in ("cookie", "set-cookie") else "weak" if plain.endswith("_cookie") else ""
    if stem == "signature":
        return "signature" if plain.endswith(("x-amz-signature", "x-goog-signature")) else ""
    if stem == "dockerconfigjson":
        return "dockerconfig"
    if stem in _CONTAINERS:
        return "container"
    if _NO_SECRET.search(plain):
        return ""
    if stem in ("dsn", "otp", "totp", "mnemonic", "salt", "pepper"):
        return "weak"
    if plain in ("oldpwd", "cwd") or (stem == "token" and _OPEN_TOKEN.search(plain)):
        return ""
    if stem in PASSWORDS or stem.endswith("pw"):
        return "password"
    return "secret" if stem in ("credential", "bearer") or plain.startswith("secretar") else stem

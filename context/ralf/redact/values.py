"""Whether a value can be a secret, and what a name calls its value."""

from __future__ import annotations

import re
from functools import lru_cache

from ralf.redact.engine import any_of, entropy, is_sample
from ralf.text.patterns import regex

# ---- names ----

# A name tells the kind by its stem (`DB_PASSWORD`, `githubToken`, `contraseña`) and by what follows that:
# a `token_count` is no token, and a `primary_key` opens nothing.


OPEN_STEMS = (
    "passw passphrase passcode pwd pass secret token key auth credential creds cookie bearer signature dockerconfigjson"
).split()
"""Stems that stand anywhere in a name."""

_SHORT_STEMS = "pw psk otp dsn totp mnemonic".split()
"""Stems that are names of their own only."""

_CONTAINERS = "p12 pfx pkcs12 keystore keytab".split()
"""Names of files that hold keys, where what they hold stands in the text as base64."""

_FOREIGN_STEMS = (
    "mot de passe", "contraseña", "contrasena", "clave", "kennwort", "parola", "senha", "wachtwoord", "hasło", "heslo",
    "lösenord", "salasana", "şifre", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호", "كلمة المرور", "סיסמה",
)  # fmt: skip
"""What a password is called elsewhere."""

_OWN_NAMES = (*_SHORT_STEMS, *_CONTAINERS, *_FOREIGN_STEMS)

OPEN_STEM = regex(any_of(OPEN_STEMS))

STEM = regex(rf"{OPEN_STEM.pattern}|(?:pw|(?<![a-z])(?:{'|'.join(_OWN_NAMES)}))(?![a-z])")

APART = frozenset(_OWN_NAMES)
"""Words of which one stands in a text where a stem is found that OPEN_STEM does not find."""

_IN_QUERIES = ("sig=", "code=", "sid=", "jwt=", "hmac=")

WORDS = (*OPEN_STEMS, *_OWN_NAMES, *_IN_QUERIES)
"""The words, in lower case, without one of which `assignments` finds nothing."""

PASSWORDS = ("passw", "passphrase", "passcode", "pwd", "pass", "pw", "psk", *_FOREIGN_STEMS)
"""Stems of what a person may have chosen."""

LONGEST_NAME = 60

_KEYS = (
    "api access secret private auth encrypt encryption decrypt decryption "
    "sign signing master account shared service app application client "
    "license storage consumer webhook deploy crypt admin server hmac jwt ssh session subscription write integration "
    "project license aws azure gcp openai anthropic stripe twilio sendgrid datadog cloudflare mailgun rollbar dd "
    "fernet cosmos preshared product recovery registry user customer team org live test prod host function"
).split()

_KEY = regex(rf"(?:{'|'.join(dict.fromkeys(_KEYS))})[_. -]?keys?(?:[_-]?(?:data|value|b64|base64|[0-9]{{1,2}}))?\Z")

_OPEN_KEYS = (
    "option pub public primary foreign sort sorting cache caching partition range hash group idempotency i18n "
    "translation lookup dedup row column object map dict json s3 storage index unique natural composite shard routing "
    "ordering order react item trace event message resource translate label config setting hot short shortcut tag "
    "header attribute dest source src target session_state field query param parent child left right join search "
    "filter metric log data value host known_host ssh_host context"
).split()

_OPEN_KEY = regex(
    rf"(?:public|primary|foreign|object|partition|cache|sort)[_.-]?keys?\Z|(?:^|[_.-])(?:{'|'.join(_OPEN_KEYS)})[_.-]?keys?\Z"
    r"|key[_.-]?(?:id|pair|name|path|file|code|up|down|word|board|frame|size|len|type|ring|hash)"
)
"""Keys that open nothing."""

_OPEN_TOKENS = (
    "next page continuation pagination start starting idempotency idempotent sync cursor resume marker paging "
    "change lock update forward backward client_request clientrequest work_unit workunit input output "
    "limit parse syntax punctuation"
).split()

_OPEN_TOKEN = regex(rf"(?:{'|'.join(_OPEN_TOKENS)})[_.-]?tokens?\Z")
"""Tokens that open nothing: of paging, of parsers, of what is asked once."""

ASKED_ONCE = regex(r"(?:client|request|action|operation|transaction)[_.-]?token\Z")
"""Names of tokens that, where they are a UUID, only tell one request from another."""

_ANY_KEY = regex(r"[a-z0-9][_.-]?keys?\Z")

BEFORE_KEY = regex(rf"(?:{'|'.join(dict.fromkeys(_KEYS))})[ ]\Z")

_NO_SECRETS = (
    "ids? names? types? urls? uris? paths? files? dirs? counts? limits? sizes? len length fields? headers? params? "
    "prefix suffix class expiry expires expires_?(?:in|at) ttl hash hashes digest regex pattern prompt label ref refs "
    "arn version status env method format kind list map index policy rules? usage fingerprint sha256 checksum created "
    "updated enabled used sources? stdin fd manager date time changed required strength min max budget cost"
).split()

_NO_SECRET = regex(rf"(?:_|-|\.|(?<=[a-z0-9]))(?:{'|'.join(_NO_SECRETS)})\Z")
"""What ends a name that tells something of a secret, and not the secret."""


def is_name(name: str) -> bool:
    """Whether a name may be that of a secret."""
    return STEM.search(name.lower()) is not None


def kind_of_title(title: str) -> str:
    """What the title of a column calls what stands below it: the kind of a secret, "" where that is none."""
    low = "_".join(title.strip(" `*\"'").lower().split())
    stems = list(STEM.finditer(low))
    return kind_of(low, stems[-1][0]) if stems and len(low) <= LONGEST_NAME else ""


@lru_cache(4096)
def kind_of(name: str, stem: str) -> str:
    """What a name with a stem calls its value: the kind of a secret, "" where that is none.

    "weak" is the kind of names that say little: what they name is a secret only where it looks random.
    """
    plain = name.strip("-._")
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
    if stem == "pass" and not re.search(r"(?:^|[_.-]|[a-z](?=pass\Z))pass\Z", plain):
        return ""
    if stem == "cookie":
        return "cookie" if plain in ("cookie", "set-cookie") else ""
    if stem == "signature":
        return "signature" if plain.endswith(("x-amz-signature", "x-goog-signature")) else ""
    if stem == "dockerconfigjson":
        return "dockerconfig"
    if stem in _CONTAINERS:
        return "container"
    if stem in ("dsn", "otp", "totp", "mnemonic"):
        return "weak"
    if plain in ("oldpwd", "cwd") or _NO_SECRET.search(plain) or (stem == "token" and _OPEN_TOKEN.search(plain)):
        return ""
    return (
        "password"
        if stem in PASSWORDS or stem.endswith("pw")
        else "secret"
        if stem in ("credential", "bearer")
        else stem
    )


# ---- values: made at random, chosen by a person, or only a placeholder, a variable, a word ----


_PLACEHOLDER = regex(
    r"[<{\[(]|\$[({A-Za-z_]|%[({A-Za-z]?s?\b|%\(|@[A-Z]"  # <key>, {key}, ${KEY}, $(cat key), %s
    r"|(?:none|null|nil|undefined|true|false|todo|tbd)\b|(?:process|os|env|self|this)\."
    r"|(?:sha[0-9]{1,3}|md5)[-:]|(?:arn|vault|ref|file|env):|//|your|insert|replace|changeme|change[-_]|placeholder|redact"
    r"|[\^~<>=]*v?[0-9]+(?:\.[0-9x*]+)+(?:[-+.][a-z0-9.]{1,20})?(?:[\s,;]|\Z)"  # a version
    r"|data:|ivborw0kggo|/9j/4aa|r0lgod|phn2zy"  # an image
    r"|-----begin (?:[a-z]{2,4} )?(?:public|cert)|[12][0-9]{3}-[01][0-9]-[0-3][0-9]"
    r"|(?:my|the|some|a|an|dummy|fake|sample|test|super)[-_ ]?(?:[a-z]{3,10}[-_ ])?"
    r"(?:password|passwd|passphrase|secret|token|key|apikey|value|string|credentials?)(?![A-Za-z])",
    re.I,
)

_WORDS = frozenset(
    "password passwd passphrase pass pwd secret token key apikey api_key username user login email string str text "
    "bytes secretstr int integer bool boolean object any optional required hidden input field yes no on off default "
    "empty bearer basic digest oauth jwt refresh access session cookie plain prompt stdin auto never always".split()
)

_NAME = regex(r"[A-Za-z_$][A-Za-z0-9_]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_]*)*\Z")

_CALL = regex(r"[A-Za-z_$][\w.$:]*[(\[]")

_WORDS_ONLY = regex(r"[a-z:;,._=-]*\Z")

_PART = regex(r"[^A-Za-z0-9]+")

_HUMP = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

_VOWEL = regex("[aeiouy]", re.I)

_UNSPEAKABLE = regex("[b-df-hj-np-tv-xz]{5}", re.I)

_DIGITS = regex("[0-9]+")

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

_BITS = 2.6  # of entropy for each character of a value made at random; hexadecimal ones of 16 have 2.9 and more

SHORTEST = 12
"""Characters of a value that is one by how it looks alone."""

_SHORTEST_CHOSEN = 4


@lru_cache(2048)
def is_placeholder(value: str) -> bool:
    """Whether a value only stands for one: `<your-key>`, `${KEY}`, `xxxx`, `changeme`."""
    return (
        is_sample(value)
        or value.lower().strip("'\"") in _WORDS
        or _PLACEHOLDER.match(value) is not None
        or any(mark in value.lower() for mark in ("****", "...", "…", "[redacted"))
    )


@lru_cache(2048)
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
    return entropy(value) >= _BITS and wild_characters(value) * 2 >= size


def wild_characters(value: str) -> int:
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


@lru_cache(2048)
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
        return is_phrase(value) or (any(map(str.isdigit, value)) and not value.endswith((".", ":", "?", "!")))
    if not bare:
        return True
    if _CALL.match(value) or (_NAME.match(value) and not any(map(str.isdigit, value))):
        return False
    return not value.endswith(("(", "()", ",", ";", ")")) and any(not character.isalpha() for character in value)


_TECHNICAL = regex(  # words with a number that stand in code and prose: sha256, base64, int32, oauth2, v2
    r"(?:sha|md|aes|des|hs|rs|es|ps|rsa|ecdsa|ed|curve|x|p|secp|base|utf|latin|oauth|http|tls|ssl|rfc|iso|pbkdf|win|"
    r"u?int|i|u|f|float|bytes|varchar|char|str|string|python|py|node|java|v|version|step|test|line|page|part|phase|"
    r"user|task|issue|bug|case|item|token|key|secret|password|field|arg|param|level|type|table|column|row|figure|"
    r"vs|log|ipv|auth|web|neo|es|ec|s|k|q|h|l|r|t|m)[-_./ ]?[0-9]+[a-z]?(?:[-_./][a-z0-9]+)*\Z",
    re.I,
)

_NUMBER = regex(r"[#$€£+-]?[0-9][0-9.,:/%T_+-]*(?:[A-Za-z]{1,3}|bytes|chars)?\Z|0x[0-9a-f]{1,8}\Z", re.I)

_LABEL = regex(r"[a-z0-9]+(?:[-_.][a-z0-9]+)+\Z")

_OF_SECRETS = regex(
    r"passw|secret|token|credential|cookie|(?<![a-z])(?:creds?|auth|keys?|login|user|session|account|certs?)(?![a-z])",
    re.I,
)

_ENGLISH = regex(
    r"(?:tions?|sions?|ments?|ness|able|ible|ing|ity|ally|ately|ized|ised|ated|ators?|ance|ence|parser|handler|manager|"
    r"encoder|builder|provider|object|factory|string|name|value|text|type|data|info|field|param|parameters?|file|code|"
    r"hash|path|list|input|output|result|response|request|function|method|class|config|settings|options)\Z"
)

_LONG_WORD = 12

_FEWEST_WORDS, _MOST_WORDS = 4, 25  # of a pass phrase

_STOPWORDS = frozenset(
    "a an and are as at be by can do does enter for from has have if in is it its must need new no not of on or please "
    "set should that the their this to use using was when will with you your".split()
)

_FILE = regex(r"[\w.+-]{1,80}\.[a-z][a-z0-9]{1,4}\Z")

_IDENTIFIER = regex(r"[A-Za-z]+[0-9]{0,2}(?:[_.][A-Za-z]*[0-9]{0,2})+\Z|[A-Z]?[a-z]+(?:[A-Z][a-z]+)+[0-9]{0,2}\Z")

_SIGNS = regex(r"[!@#$%^&*?+=]")

UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)


@lru_cache(2048)
def is_mixed(value: str) -> bool:
    """Whether a word mixes letters with digits or signs as a person's password does, and as no word of code or prose;
    for what something calls a password.
    """
    if len(value) < len("hunter2") or is_placeholder(value) or is_label(value):
        return False
    if value.startswith(("/", "./", "~", "http", "-", "@", "#")):
        return False
    if any(form.match(value) for form in (_TECHNICAL, _NUMBER, _CALL, _FILE, _IDENTIFIER)):
        return False
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    signs = len(value) - digits - letters
    is_numbered_name = value[:-1].isalpha()
    if not digits or letters < len("abc") or ("/" in value and not _SIGNS.search(value)) or is_numbered_name:
        return False
    return digits >= len("12") or signs > 0 or (value.upper() != value != value.lower())


def is_label(value: str) -> bool:
    """Whether a value is the name of a thing: joined words and numbers in lower case, one of them a word of secrets."""
    return _LABEL.match(value) is not None and _OF_SECRETS.search(value) is not None


@lru_cache(2048)
def is_foreign(value: str) -> bool:
    """Whether a word has letters or pictures of no Latin alphabet, or of a Latin one with marks beside digits."""
    if _ESCAPED.search(value):
        value = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
        return any(map(str.isdigit, value)) or len(value) >= len("123456")
    if value.isascii() or len(value) < len("1234") or any(map(str.isspace, value)) or is_placeholder(value):
        return False
    told = sum(character >= "\u0370" and (character.isalpha() or character >= "\U0001f000") for character in value)
    if told >= len("123456") or (told and any(map(str.isdigit, value))):
        return not _FOREIGN_LABEL.search(value)
    return any(character.isalpha() and not character.isascii() for character in value) and any(map(str.isdigit, value))


_ESCAPED = regex(r"\\u(?!00[0-7])([0-9a-fA-F]{4})")

_CLASS = regex(
    r"[A-Za-z_][\w.]*(?:Key|Token|Auth|Password|Secret|Credential|Cookie)s?(?:Types?|Mixin|Grant|Class|Model)?[:|]?\Z"
)

_TITLE = regex(r"[A-Z]+(?:_[A-Z]+)+\Z|[a-z]+(?:[-_.][a-z]+)+\Z|[a-z]+(?:[A-Z][a-z]+)+\Z")


def is_code(value: str) -> bool:
    """Whether a value is the name of a class, `X25519PrivateKey`, or a call or an index that begins."""
    return _CLASS.match(value) is not None or _CALL.match(value) is not None


def is_title(value: str) -> bool:
    """Whether a value names a secret, `USER_PASSWORD_AUTH`, and is none."""
    return _TITLE.match(value) is not None and _OF_SECRETS.search(value) is not None


_FOREIGN_LABEL = regex("密码|密碼|口令|パスワード|비밀번호|парол|سر|مرور|请|請|入力|输入")


@lru_cache(2048)
def is_compound(value: str) -> bool:
    """Whether a value is words in lower case, put together without a space, as no word of prose or code is."""
    return (
        len(value) >= _LONG_WORD
        and value.isascii()
        and value.isalpha()
        and value.islower()
        and not is_placeholder(value)
        and not _ENGLISH.search(value)
        and not _OF_SECRETS.search(value)
    )


def is_phrase(value: str) -> bool:
    """Whether a value is a pass phrase: four plain words or more, and no sentence."""
    words = value.split(" ")
    return (
        _FEWEST_WORDS <= len(words) <= _MOST_WORDS
        and all(word.isalpha() and word.islower() and len(word) > len("it") for word in words)
        and not _STOPWORDS.intersection(words)
        and not is_placeholder(value)
    )


@lru_cache(2048)
def is_unspoken(value: str) -> bool:
    """Whether a value without separators mixes letters and digits as no word does; for what is known to be a secret."""
    return (
        len(value) >= len("0123456789abcdef")
        and not is_placeholder(value)
        and value.isalnum()
        and len(_DIGITS.findall(value)) > 1
        and any(map(str.isalpha, value))
    )


@lru_cache(2048)
def is_credential(value: str) -> bool:
    """Whether what stands where only a credential can is one, and no variable or placeholder: of letters of both cases
    and a digit.
    """
    return (
        len(value) >= len("0123456789abcdef0123")
        and not is_placeholder(value)
        and not _NAME.match(value)
        and value.upper() != value != value.lower()
        and _DIGITS.search(value) is not None
    )

"""What a name calls its value: a password, a token, a key, or nothing that has to be kept apart.

A name tells it by its stem (`DB_PASSWORD`, `githubToken`, `contraseña`) and by what follows that: a `token_count` is no
token, a `primary_key` opens nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ralf.secrets.secretformats import any_of

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
OPEN_STEM = re.compile(any_of(OPEN_STEMS))
STEM = re.compile(rf"{OPEN_STEM.pattern}|(?:pw|(?<![a-z])(?:{'|'.join(_OWN_NAMES)}))(?![a-z])")
APART = frozenset(_OWN_NAMES)
"""Words of which one stands in a text where a stem is found that OPEN_STEM does not find."""
_IN_QUERIES = ("sig=", "code=", "sid=", "jwt=", "hmac=")
WORDS = (*OPEN_STEMS, *_OWN_NAMES, *_IN_QUERIES)
"""The words, in lower case, without one of which `secretassignments` finds nothing."""
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
_KEY = re.compile(
    rf"(?:{'|'.join(dict.fromkeys(_KEYS))})[_. -]?keys?(?:[_-]?(?:data|value|b64|base64|[0-9]{{1,2}}))?\Z"
)
_OPEN_KEYS = (
    "option pub public primary foreign sort sorting cache caching partition range hash group idempotency i18n "
    "translation lookup dedup row column object map dict json s3 storage index unique natural composite shard routing "
    "ordering order react item trace event message resource translate label config setting hot short shortcut tag "
    "header attribute dest source src target session_state field query param parent child left right join search "
    "filter metric log data value host known_host ssh_host context"
).split()
_OPEN_KEY = re.compile(
    rf"(?:public|primary|foreign|object|partition|cache|sort)[_.-]?keys?\Z|(?:^|[_.-])(?:{'|'.join(_OPEN_KEYS)})[_.-]?keys?\Z"
    r"|key[_.-]?(?:id|pair|name|path|file|code|up|down|word|board|frame|size|len|type|ring|hash)"
)
"""Keys that open nothing."""
_OPEN_TOKENS = (
    "next page continuation pagination start starting idempotency idempotent sync cursor resume marker paging "
    "change lock update forward backward client_request clientrequest work_unit workunit input output "
    "limit parse syntax punctuation"
).split()
_OPEN_TOKEN = re.compile(rf"(?:{'|'.join(_OPEN_TOKENS)})[_.-]?tokens?\Z")
"""Tokens that open nothing: of paging, of parsers, of what is asked once."""
ASKED_ONCE = re.compile(r"(?:client|request|action|operation|transaction)[_.-]?token\Z")
"""Names of tokens that, where they are a UUID, only tell one request from another."""
_ANY_KEY = re.compile(r"[a-z0-9][_.-]?keys?\Z")
BEFORE_KEY = re.compile(rf"(?:{'|'.join(dict.fromkeys(_KEYS))})[ ]\Z")
_NO_SECRETS = (
    "ids? names? types? urls? uris? paths? files? dirs? counts? limits? sizes? len length fields? headers? params? "
    "prefix suffix class expiry expires expires_?(?:in|at) ttl hash hashes digest regex pattern prompt label ref refs "
    "arn version status env method format kind list map index policy rules? usage fingerprint sha256 checksum created "
    "updated enabled used sources? stdin fd manager date time changed required strength min max budget cost"
).split()
_NO_SECRET = re.compile(rf"(?:_|-|\.|(?<=[a-z0-9]))(?:{'|'.join(_NO_SECRETS)})\Z")
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

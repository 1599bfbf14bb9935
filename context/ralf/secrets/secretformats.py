"""Secrets that are known by their own shape: vendors' tokens, private keys, hashes of passwords, passwords in URLs.

Each rule begins with a literal, is tried only where that stands, and reads each character a bounded number of times.
The formats are those that the vendors describe.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from ralf.secrets import privatekeys
from ralf.secrets.secretvalues import is_placeholder, is_random, is_sample


class Hit(NamedTuple):
    """A secret in a text: where it stands, and its kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Format:
    """One vendor's token.

    kind      what the marker calls it
    literals  one of them stands at its beginning
    follows   what follows it, as a regular expression
    check     what a token must satisfy beyond that
    alone     no word, hyphen or underscore stands before it: what reads to the end of a word and may then fail
    """

    kind: str
    literals: tuple[str, ...]
    follows: str
    check: Callable[[str], bool] | None
    alone: bool

    @cached_property
    def start(self) -> re.Pattern[str]:
        """Finds the literals. Compiled at first need, like `body`: formats are many, and a text has few."""
        return re.compile("|".join(map(re.escape, self.literals)))

    @cached_property
    def body(self) -> re.Pattern[str]:
        """Matches what follows one."""
        return re.compile(self.follows)


def _format(
    kind: str, literals: str, follows: str, check: Callable[[str], bool] | None = None, *, alone: bool = False
) -> Format:
    return Format(kind, tuple(literals.split()), follows, check, alone)


def any_of(words: Iterable[str]) -> str:
    """A regular expression that matches the first of some words, as `a|b|c` does, but looks at each beginning once."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(its)})" for first, its in rests.items())


def _digit(token: str) -> bool:
    return any(character.isdigit() for character in token)


def _mixed(token: str) -> bool:
    return token.upper() != token != token.lower()


def _mixed_digit(token: str) -> bool:
    return _digit(token) and _mixed(token)


_A, _W, _HEX = "[A-Za-z0-9]", "[A-Za-z0-9_-]", "[0-9a-f]"
_END = "(?![A-Za-z0-9])"

FORMATS: tuple[Format, ...] = (
    _format("aws-key-id", "AKIA ASIA ABIA ACCA", f"[A-Z2-7]{{16}}{_END}"),
    _format("google-key", "AIza", f"{_W}{{35}}"),
    _format("google-token", "ya29. 1//0", f"{_W}{{20,}}+", _digit),
    _format("google-secret", "GOCSPX-", f"{_W}{{24,}}+"),
    _format("azure-key", "AccountKey= SharedAccessKey=", "[A-Za-z0-9+/]{40,90}={0,2}"),
    _format("azure-signature", "?sig= &sig= &amp;sig= \\u0026sig=", "[A-Za-z0-9%+/]{40,}+=?"),
    _format("github", "ghp_ gho_ ghu_ ghs_ ghr_", f"{_A}{{36,}}+"),
    _format("github", "github_pat_", f"{_A}{{22}}_{_A}{{59}}"),
    _format(
        "gitlab",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- glffct- gloas- GR1348941",
        r"[A-Za-z0-9_.-]{20,}+",
    ),
    _format("bitbucket", "ATBB", f"{_A}{{24,}}+", _mixed),
    _format("atlassian", "ATATT3x ATCTT3x", r"[A-Za-z0-9_=-]{60,}+"),
    _format("npm", "npm_", f"{_A}{{36}}"),
    _format("pypi", "pypi-AgEI pypi-AgEN", f"{_W}{{50,}}+"),
    _format("docker", "dckr_pat_ dckr_oat_", f"{_W}{{20,}}+"),
    _format("anthropic", "sk-ant-", f"{_W}{{20,}}+"),
    _format("openai", "sk-proj- sk-svcacct- sk-admin- sk-None-", f"{_W}{{20,}}+"),
    _format("openrouter", "sk-or-v1-", f"{_HEX}{{40,}}+"),
    _format("langfuse", "sk-lf-", f"{_HEX}{{8}}-[0-9a-f-]{{27}}"),
    _format("openai", "sk-", f"{_A}{{20,}}+", _digit),
    _format("hugging-face", "hf_ api_org_", f"{_A}{{30,}}+", _mixed),
    _format("groq", "gsk_", f"{_A}{{40,}}+", _digit),
    _format("xai", "xai-", f"{_A}{{60,}}+", _digit),
    _format("perplexity", "pplx-", f"{_A}{{40,}}+", _digit),
    _format("nvidia", "nvapi-", f"{_W}{{40,}}+", _digit),
    _format("tavily", "tvly-", f"{_W}{{24,}}+", _digit),
    _format("langsmith", "lsv2_pt_ lsv2_sk_", f"{_HEX}{{32}}_{_HEX}{{10}}"),
    _format("pinecone", "pcsk_", "[A-Za-z0-9_]{40,}+", _digit),
    _format("replicate", "r8_", f"{_A}{{37}}"),
    _format(
        "slack",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxc- xoxd- xoxe.xoxp- xoxe.xoxb- xapp-",
        r"[A-Za-z0-9%-]{10,}+",
        _digit,
    ),
    _format(
        "slack-webhook",
        "hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/",
        r"[A-Za-z0-9_/]{30,}+",
        _digit,
    ),
    _format(
        "discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", rf"[0-9]{{16,20}}/{_W}{{50,}}+"
    ),
    _format("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", f"{_A}{{16,}}+"),
    _format("stripe-webhook", "whsec_", "[A-Za-z0-9+/]{24,}+={0,2}"),
    _format("twilio", "SK", f"{_HEX}{{32}}{_END}"),
    _format("sendgrid", "SG.", rf"{_W}{{16,32}}\.{_W}{{32,64}}"),
    _format("mailgun", "key-", f"{_HEX}{{32}}{_END}"),
    _format("brevo", "xkeysib- xsmtpsib-", f"{_HEX}{{64}}-{_A}{{16}}"),
    _format("shopify", "shpat_ shpca_ shppa_ shpss_ shpua_", "[0-9a-fA-F]{32}"),
    _format("digitalocean", "dop_v1_ doo_v1_ dor_v1_", f"{_HEX}{{64}}"),
    _format("heroku", "HRKU-", f"{_W}{{30,}}+"),
    _format("cloudflare", "cfk_ cfut_ cfat_", f"{_A}{{40,}}+"),
    _format("cloudflare", "v1.0-", f"{_HEX}{{24}}-{_HEX}{{100,}}+"),
    _format("new-relic", "NRAK- NRII- NRIQ- NRSP- NRRA-", f"{_W}{{24,}}+"),
    _format("sentry", "sntrys_", r"[A-Za-z0-9+/=_-]{40,}+"),
    _format("sentry", "sntryu_ sntryi_ sntrya_", f"{_HEX}{{60,}}+"),
    _format("linear", "lin_api_ lin_oauth_ lin_wh_", f"{_A}{{32,}}+"),
    _format("notion", "secret_", f"{_A}{{40,}}+", _digit),
    _format("notion", "ntn_", f"{_A}{{40,}}+"),
    _format("vault", "hvs. hvb. hvr.", f"{_W}{{20,}}+"),
    _format("vault", "s.", f"{_A}{{24}}(?![A-Za-z0-9_(.])", _mixed_digit),
    _format("doppler", "dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.", r"(?:[a-z0-9_-]{1,40}\.)?[A-Za-z0-9]{40,}+"),
    _format("databricks", "dapi", f"{_HEX}{{32}}(?:-[0-9]{{1,2}})?{_END}"),
    _format("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{30,}+"),
    _format("postman", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{34}}"),
    _format("grafana", "glsa_", f"{_A}{{32}}_{_HEX}{{8}}"),
    _format("grafana", "glc_", r"[A-Za-z0-9+/=]{32,}+"),
    _format("figma", "figd_ figo_", f"{_W}{{40,}}+"),
    _format("airtable", "pat", rf"{_A}{{14}}\.{_HEX}{{64}}"),
    _format("age", "AGE-SECRET-KEY-1", "[A-Z0-9]{58}"),
    _format("square", "EAAA sq0atp- sq0csp-", f"{_W}{{22,}}+", _mixed_digit),
    _format("facebook", "EAA", f"{_A}{{80,}}+", _mixed_digit),
    _format("fly", "fm1r_ fm1a_ fm2_ fo1_", r"[A-Za-z0-9+/=_-]{40,}+"),
    _format("supabase", "sbp_ sb_secret_", f"{_W}{{20,}}+", _digit),
    _format("netlify", "nfp_", f"{_A}{{36}}"),
    _format("pulumi", "pul-", f"{_HEX}{{40}}{_END}"),
    _format("rubygems", "rubygems_", f"{_HEX}{{48}}"),
    _format("crates", "cio", f"{_A}{{32}}{_END}", _mixed_digit),
    _format("nuget", "oy2", f"[a-z0-9]{{43}}{_END}", _digit),
    _format("sonar", "sqp_ squ_ sqa_", f"{_HEX}{{40}}"),
    _format("artifactory", "AKCp cmVmdGtuOj", f"{_A}{{50,}}+"),
    _format("one-password", "ops_eyJ", r"[A-Za-z0-9+/=_-]{60,}+"),
    _format("circleci", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{30,}+"),
    _format("buildkite", "bkua_", f"{_HEX}{{40}}"),
    _format(
        "jwt",
        "eyJ",
        rf"{_W}{{8,}}+\.(?:eyJ{_W}{{4,}}+(?:\.{_W}*+)?|{_W}*+\.{_W}{{10,}}+\.{_W}{{10,}}+\.{_W}{{16,}}+)",
        alone=True,
    ),
    _format("password-hash", "$2a$ $2b$ $2y$", r"[0-9]{2}\$[./A-Za-z0-9]{53}"),
    _format("password-hash", "$apr1$ $1$ $5$ $6$ $y$ $7$", r"[./A-Za-z0-9=,$]{24,}+"),
    _format(
        "password-hash",
        "$argon2id$ $argon2i$ $argon2d$ $scrypt$ $pbkdf2-sha256$ $pbkdf2-sha512$",
        r"[./A-Za-z0-9+=,$-]{30,}+",
    ),
    _format("password-hash", "{SHA} {SSHA} {SSHA256} {SSHA512}", r"[A-Za-z0-9+/]{26,}+={0,2}"),
)


_AWS = next(one for one in FORMATS if one.kind == "aws-key-id")
_OF_LITERAL = {literal: one for one in FORMATS for literal in one.literals}
_LITERALS: dict[str, list[str]] = {}  # by the first sign in them, which many runs do not have
for _literal in _OF_LITERAL:
    _LITERALS.setdefault("".join(re.findall(r"[^A-Za-z0-9]", _literal)[:1]), []).append(_literal)
_ANY_LITERAL = re.compile(any_of(_OF_LITERAL))  # one look for all of them, for few runs have one

_MARKED: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("telegram", ":AA", re.compile(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])")),
    ("terraform", ".atlasv1.", re.compile(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{30,}+")),
    ("azure-secret", "Q~", re.compile(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,40}")),
    ("mailchimp", "-us", re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])")),
    ("new-relic", "NRAL", re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{36}NRAL(?![0-9A-Za-z])")),
)
"""Tokens whose literal does not stand at their beginning: the kind, the literal, the token."""

_IN_TOKENS = string.ascii_letters + string.digits + "_+/=.:$%{}?&~\\-"
_SHORTEST = 18  # no token is shorter, and most text has no such run
_LONGEST_REMEMBERED = 128
_RUN = re.compile(rf"[{re.escape(_IN_TOKENS)}]{{{_SHORTEST},}}")
_DISCORD_END = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
_DISCORD = re.compile(r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}")
_ESCAPED = re.compile(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}|\\x[0-9a-fA-F]{2}|\[[0-9;]{0,6}m)\Z")
_LONGEST_ESCAPE = 8
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_NEAR = 200  # characters behind a key's id in which its secret is looked for


def find(text: str, border: int | None = None) -> Iterator[Hit]:
    """The secrets of a text that their own shape tells, in no order; they may overlap.

    border  where two texts meet, each of which was looked at: only what goes over it has to be found
    """
    runs = _RUN.findall(text) if border is None else _run_over(text, border)
    if runs:
        there = set(chain.from_iterable(map(_literals, runs)))
        if there:
            for one in dict.fromkeys(one for literal, one in _OF_LITERAL.items() if literal in there):
                yield from _of_format(text, one)
        joined = "\n".join(runs)
        for kind, literal, pattern in _MARKED:
            if literal in joined:
                yield from (Hit(*found.span(), kind) for found in pattern.finditer(text))
        if _DISCORD_END.search(joined):
            yield from (Hit(*found.span(), "discord") for found in _DISCORD.finditer(text) if _mixed_digit(found[0]))
    for start, end in privatekeys.find(text):
        yield Hit(start, end, "private-key")
    if "://" in text:
        yield from _in_urls(text)


def _literals(run: str) -> Sequence[str]:
    """The formats' literals that stand in a run."""
    return _remembered(run) if len(run) <= _LONGEST_REMEMBERED else _looked_up(run)


def _looked_up(run: str) -> Sequence[str]:
    if not _ANY_LITERAL.search(run):
        return ()
    return [literal for sign, its in _LITERALS.items() if sign in run for literal in its if literal in run]


_remembered = lru_cache(1024)(_looked_up)  # most runs are names and paths, which come again and again


def _run_over(text: str, border: int) -> list[str]:
    """What a token can be made of that stands on both sides of a border; all, where a key's id before it tells more."""
    if _AWS.start.search(text, 0, border):
        return [text]
    start = len(text[:border].rstrip(_IN_TOKENS))
    end = len(text) - len(text[border:].lstrip(_IN_TOKENS))
    return [text[start:end]] if end - start >= _SHORTEST else []


def _of_format(text: str, one: Format) -> Iterator[Hit]:
    place = 0
    while begun := one.start.search(text, place):
        start, place = begun.span()
        if not _begins(text, start, alone=one.alone):
            continue
        found = one.body.match(text, place)
        if found is None:
            continue
        place = found.end()
        token = text[start:place]
        if (one.check is None or one.check(token)) and not is_sample(token):
            yield Hit(start, place, one.kind)
            if one is _AWS:
                secret = _AWS_SECRET.search(text, place, place + _NEAR)
                if secret is not None and _mixed(secret[0]):
                    yield Hit(*secret.span(), "aws-secret")


def _begins(text: str, start: int, *, alone: bool) -> bool:
    """Whether a word begins at `start`: also one behind an escape, whose last character is a letter or digit."""
    before = text[start - 1 : start]
    if not before.isalnum() and not (alone and before in ("_", "-") and before):
        return True
    return _ESCAPED.search(text, max(0, start - _LONGEST_ESCAPE), start) is not None


# ---- URLs ----

_USER = re.compile(r"://([^\s:/@?#\"'`<>\\]{0,100}):([^\s\"'`<>/\\]{1,256})@(?=[A-Za-z0-9\[{$.-])")
_TOKEN_USER = re.compile(r"://([A-Za-z0-9_~.%+=-]{16,256})@")


def _in_urls(text: str) -> Iterator[Hit]:
    place = 0
    while (place := text.find("://", place)) >= 0:
        found = _USER.match(text, place) or _TOKEN_USER.match(text, place)
        place += 3
        if found is None:
            continue
        last = found.lastindex or 1
        value = found[last]
        if (last == 2 or is_random(value)) and not is_placeholder(value):
            yield Hit(*found.span(last), "url-password" if last == 2 else "url-token")

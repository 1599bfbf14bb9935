"""Secrets that are known by their own shape: vendors' tokens, hashes, passwords in URLs, and private keys."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable, Collection, Iterator
from functools import cached_property

from ralf.redact.engine import Hit, Text, by_word, is_sample, pattern
from ralf.redact.values import is_foreign, is_mixed, is_placeholder, is_random
from ralf.text.frozen import dataclass
from ralf.text.patterns import regex

# ---- private keys: in armour, whole or in part, and as base64 of that ----


_KIND = r"(?:[A-Za-z0-9]{2,12} ){0,3}(?:PRIVATE KEY(?: BLOCK)?|SECRET KEY|(?:Static|STATIC) (?:key|KEY)(?: V[0-9])?)"

_BEGIN = regex(rf"-----BEGIN {_KIND}-----|-{{4,5}} ?BEGIN SSH2 ENCRYPTED PRIVATE KEY ?-{{4,5}}")

_KEY_END = regex(rf"-----END {_KIND}-----|-{{4,5}} ?END SSH2 ENCRYPTED PRIVATE KEY ?-{{4,5}}")

_FRAME = r"(?:\s|\\+[nrt]|\\+u000[aAdD]|[\"'`,+>|│→:]|(?:^|(?<=n))-(?!-)|(?<=[ \n])[0-9]{1,6}(?=[\t→:|]))"

_BODY = regex(rf"(?:{_FRAME}*+(?:[A-Za-z0-9+/=]{{16,}}+|[A-Za-z-]{{4,24}}: [^\n\\]{{1,80}}+))*+", re.M)

_TAIL = regex(rf"{_FRAME}*+(?:=?[A-Za-z0-9+/=]{{1,100}}+)?{_FRAME}*+", re.M)

_REST_OF_LINE = regex(rf"[A-Za-z0-9+/=]{{1,76}}+(?={_FRAME}++(?:[A-Za-z0-9+/=]{{16}}|-----END))")

_SECRET_LINE = regex("[A-Za-z0-9+/=]{16}")

_LONGEST_KEY = 32 << 10

_LONGEST_PREFIX = 200

_MOSTLY = 0.6  # of what stands between the beginning and the end of a key is its lines

_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

_IN_BASE64 = "LS0tLS1CRUdJTi"  # -----BEGIN

_WRAPPED = regex(
    r"[A-Za-z0-9+/]{60,}+(?:(?:\r?\n|\\+n)[ \t]*+[A-Za-z0-9+/]{16,}+)*+"
    r"(?:(?:\r?\n|\\+n)[ \t]*+[A-Za-z0-9+/]{1,76}+(?==|\s|\Z))?={0,2}"
)

_TRAILER = regex(r"(?:(?<=\\)[nr]|[ \t\r\"',+\\]){1,40}\Z")

_DIGITS, _SPACES = regex("[0-9]+"), regex(r"[ \t]+")

PRIVATE_KEY_WORDS = ("private key", "secret key", "static key", "private-lines: ", _IN_BASE64.lower())
"""The words, in lower case, without one of which a text holds no private key."""


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where the private keys of a text begin and end; one whose beginning or end was cut off, as far as it goes."""
    if "KEY" in text or "Static key" in text:
        yield from _in_armour(text)
    if _IN_BASE64 in text:
        yield from _in_base64(text)
    if "Private-Lines: " in text:
        yield from _putty(text)


def _in_armour(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    begun, ended = _BEGIN.search(text), _KEY_END.search(text)
    while True:
        if begun is not None and begun.start() < place:  # each is looked for only behind what was read
            begun = _BEGIN.search(text, place)
        if ended is not None and ended.start() < place:
            ended = _KEY_END.search(text, place)
        if ended is not None and (begun is None or ended.start() < begun.start()):
            start = _start_of_key(text, place, ended.start())
            if start is not None:
                yield start, ended.end()
            place = ended.end()
        elif begun is not None:
            place = max(begun.start() + 1, _end_of(text, begun, ended))
            if _SECRET_LINE.search(text, begun.end(), place):
                yield begun.start(), place
        else:
            return


def _end_of(text: str, begun: re.Match[str], ended: re.Match[str] | None) -> int:
    """Where the key ends that begins there: at its end, where little but its lines stands before that."""
    end = end_of_key(text, begun.end())
    if ended is not None and end < ended.start() < begun.end() + _LONGEST_KEY:
        between = text[begun.end() : ended.start()]
        lines = sum(map(len, _LINES.findall(between)))
        prefixes = len(_prefix(text, begun.start())) * between.count("\n")
        if lines >= _MOSTLY * (len(between) - prefixes) and not _BEGIN.search(between):
            return ended.end()
    return max(end, _end_behind_prefixes(text, begun))


_LINES = regex("[A-Za-z0-9+/=]{16,}+")


def _prefix(text: str, place: int) -> str:
    """What stands before a place in its line."""
    first = max(0, place - _LONGEST_PREFIX)
    return text[max(first, text.rfind("\n", first, place) + 1) : place]


def _of_line(line: str) -> tuple[str, str]:
    """A line's prefix, its numbers apart, and the base64 that it ends with."""
    plain = _TRAILER.sub("", line)
    prefix = plain.rstrip(_BASE64)
    return _shape(prefix), plain[len(prefix) :]


def _shape(prefix: str) -> str:
    """A prefix, its numbers and spaces apart, which differ from line to line."""
    return _SPACES.sub(" ", _DIGITS.sub("0", prefix))


def _end_behind_prefixes(text: str, begun: re.Match[str]) -> int:
    """Where the lines end that begin as the line of the armour does: a log's, a search's, a container's."""
    prefix = _shape(_prefix(text, begun.start()))
    place = text.find("\n", begun.end(), begun.end() + 8)
    if not prefix.strip() or place < 0:
        return begun.start()
    end = begun.start()
    while place < begun.end() + _LONGEST_KEY:
        stop = text.find("\n", place + 1)
        stop = stop if stop >= 0 else len(text)
        before, line = _of_line(text[place + 1 : min(stop, place + 1 + 2 * _LONGEST_PREFIX)])
        if not line or before != prefix:
            break
        end = place = stop
        if stop == len(text):
            break
    return end


def _in_base64(text: str) -> Iterator[tuple[int, int]]:
    """The base64 of a key in armour, also over several lines."""
    place = 0
    while (place := text.find(_IN_BASE64, place)) >= 0:
        found = _WRAPPED.match(text, place)
        if found is None:
            place += 1
            continue
        if b"PRIVATE KEY" in a2b_base64(found[0][:60] + "===="[: -60 % 4]):
            yield found.span()
        place = found.end()


def end_of_key(text: str, start: int, *, within: bool = False) -> int:
    """Where the lines of a key end that begin at `start`, its last line included; `start` where there are none.

    within  the text goes on within a line of the key, of which little may be left
    """
    line = _REST_OF_LINE.match(text, start) if within else None
    body = _BODY.match(text, line.end() if line is not None else start, start + _LONGEST_KEY)
    end = body.end() if body is not None else start
    rest = _TAIL.match(text, end, end + 200)
    closed = _KEY_END.match(text, rest.end()) if rest is not None else None
    if closed is not None:
        return closed.end()
    return len(text) if rest is not None and end > start and rest.end() == len(text) else end  # its last line, cut


def _start_of_key(text: str, after: int, end: int) -> int | None:
    """Where the lines of a key begin whose end alone is there."""
    starts = [_start_behind_prefixes(text, after, end), _start_of_lines(text, after, end)]
    return min((start for start in starts if start is not None), default=None)


def _start_of_lines(text: str, after: int, end: int) -> int | None:
    start = place = end
    while place > max(after, end - _LONGEST_KEY):
        line = text.rfind("\n", after, place)
        words = text[max(line + 1, after) : place].replace("\\n", " ").split()
        parts = [part for word in words if (part := word.strip("\"'`,+"))]
        if not all(map(_LINE_OF_KEY.fullmatch, parts[-2:])):
            break
        start = max(line + 1, after) if parts else start
        place = line
    return start if start < end else None


def _start_behind_prefixes(text: str, after: int, end: int) -> int | None:
    """Where the lines begin that begin as the line of the end does."""
    before = _prefix(text, end)
    prefix = _shape(before)
    if not prefix.strip():
        return None
    start = end
    place = end - len(before)  # where a line begins
    while place > max(after, end - _LONGEST_KEY):
        first = text.rfind("\n", after, place - 1) + 1 or after
        shape, line = _of_line(text[max(first, place - 2 * _LONGEST_PREFIX) : place - 1])
        if shape != prefix or not line:
            break
        start = place = first
    return start if start < end else None


_LINE_OF_KEY = regex(r"[A-Za-z0-9+/=]{16,}|=?[A-Za-z0-9+/=]{1,76}|[0-9]{1,6}[→|:]?")


def _putty(text: str) -> Iterator[tuple[int, int]]:
    for found in re.finditer(r"Private-Lines: [0-9]{1,4}\s{1,4}((?:[A-Za-z0-9+/=]{4,}+\s{0,4}+){1,400}+)", text):
        yield found.span(1)


# ---- tokens of vendors, hashes of passwords ----

# Each rule begins with a literal, is tried only where that stands, and reads each character a bounded number of times.
# `engine` has more rules of vendors, which need RE2; these run everywhere, and where both find a token, these name it.


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
    def starts(self) -> dict[str, re.Pattern[str]]:
        """By literal in lower case, what finds it; at once with what follows it where that is short, for syllables are
        among them. One literal is found several times as fast as one of two.
        """
        ahead = "" if any(sign in self.follows for sign in (",}", "*", "+)")) else f"(?={self.follows})"
        return {literal.lower(): re.compile(re.escape(literal) + ahead) for literal in self.literals}


def _format(
    kind: str, literals: str, follows: str, check: Callable[[str], bool] | None = None, *, alone: bool = False
) -> Format:
    return Format(kind, tuple(literals.split()), follows, check, alone)


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
    _format("aws-session", "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", "[A-Za-z0-9+/%_-]{100,}+={0,2}"),
    _format("azure-key", "AccountKey= SharedAccessKey=", "[A-Za-z0-9+/]{40,90}={0,2}"),
    _format("azure-signature", "?sig= &sig= &amp;sig= \\u0026sig=", "[A-Za-z0-9%+/_-]{40,}+=?"),
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
    _format("twilio", "SK", f"[0-9a-fA-F]{{32}}{_END}", _digit),
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
    _format("vault", "s.", f"{_A}{{24}}(?![A-Za-z0-9_(.])", lambda token: _digit(token) and is_random(token[2:])),
    _format("defined-networking", "dnkey-", "[A-Za-z0-9=_-]{20,}+", _digit),
    _format("lob", "live_ test_", f"{_HEX}{{35}}{_END}", _digit),
    _format("gocardless", "live_", "[A-Za-z0-9_=-]{40}(?![A-Za-z0-9_=-])", lambda token: is_random(token[5:])),
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
    _format("amazon-bedrock", "ABSK", "[A-Za-z0-9+/]{60,}+={0,2}", _mixed_digit),
    _format("resend", "re_", f"{_A}{{8,10}}_{_A}{{20,30}}{_END}", _mixed_digit),
    _format("jina", "jina_", f"{_W}{{40,}}+", _digit),
    _format("cerebras", "csk-", f"{_A}{{40,}}+", _digit),
    _format("voyage", "pa-", f"{_W}{{40,}}+", _mixed_digit),
    _format("firecrawl", "fc-", f"{_HEX}{{32}}{_END}"),
    _format("posthog", "phx_ phs_ pha_", f"{_A}{{30,}}+", _digit),
    _format("contentful", "CFPAT-", f"{_W}{{40,}}+"),
    _format("tailscale", "tskey-", "[A-Za-z0-9-]{24,}+", _digit),
    _format("vercel", "vcp_ vci_ vca_ vcr_ vck_", f"{_A}{{24,}}+", _digit),
    _format("neon", "napi_", f"{_A}{{40,}}+", _digit),
    _format("render", "rnd_", f"{_A}{{28,}}+", _mixed_digit),
    _format("nostr", "nsec1", f"[a-z0-9]{{58}}{_END}", _digit),
    _format("dropbox", "sl.u. sl.B", f"{_W}{{60,}}+", _digit),
    _format("typeform", "tfp_", "[A-Za-z0-9_-]{40,}+", _digit),
    _format("stripe", "sk_org_live_ sk_org_test_", f"{_A}{{16,}}+"),
    _format("k3s", "K10", f"{_HEX}{{64}}::[a-z:]{{2,40}}{_HEX}{{32}}"),
    _format("swarm", "SWMTKN-1-", "[a-z0-9-]{60,}+"),
    _format("django", "django-insecure-", r"[a-z0-9!@#$%^&*(_=+)-]{30,60}+"),
    _format("laravel", "base64:", "[A-Za-z0-9+/]{43}="),
    _format("firebase", "APA91b", f"{_W}{{100,}}+"),
    _format("password-hash", "pbkdf2_sha256$ pbkdf2_sha1$ argon2$", r"[./A-Za-z0-9+=,$-]{30,}+"),
    _format("password-hash", "SCRAM-SHA-256$ SCRAM-SHA-1$", r"[./A-Za-z0-9+=:$-]{60,}+"),
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

_BY_WORD = by_word(FORMATS, lambda one: map(str.lower, one.literals))

_MARKED: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("telegram", ":AA", regex(r"(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])")),
    ("terraform", ".atlasv1.", regex(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{30,}+")),
    ("azure-secret", "Q~", regex(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,40}")),
    ("mailchimp", "-us", regex(r"(?<![0-9A-Za-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])")),
    ("password-hash", ":::", regex(r"(?<=:)[0-9a-fA-F]{32}(?=:::)")),
    ("password-hash", "*", regex(r"\*[0-9A-F]{40}(?![0-9A-Za-z])")),
    ("cookie", "\ttrue\t", regex(r"\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\t\n]{1,100}\t([^\s]{8,4096}+)")),
    ("digest", "response=", regex(r"\bresponse=\\?\"([0-9a-f]{32,64})\\?\"")),
    ("new-relic", "NRAL", regex(r"(?<![0-9A-Za-z])[0-9a-f]{36}NRAL(?![0-9A-Za-z])")),
)
"""Tokens whose literal does not stand at their beginning: the kind, the literal, the token or what its group holds."""

_KEYPAIR = regex(r"\[(?:[0-9]{1,3},[ ]?){63}[0-9]{1,3}\]")

_NUMBERS = 64  # bytes of a key pair

_DISCORD_START = regex(r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{22,27}\Z")

_DISCORD_END = regex(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}")

_ESCAPED = regex(r"(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}|\\x[0-9a-fA-F]{2}|\[[0-9;]{0,6}m)\Z")

_LONGEST_ESCAPE = 8

_AWS_SECRET = regex(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")

_NEAR = 200  # characters behind a key's id in which its secret is looked for

_OF_KEYS = frozenset(PRIVATE_KEY_WORDS)

FORMAT_WORDS = (*_BY_WORD, *(literal.lower() for _, literal, _ in _MARKED), *PRIVATE_KEY_WORDS, "://")
"""The words, in lower case, without one of which no rule finds anything, but for two that have none: Discord's tokens
and key pairs as lists of numbers."""


def find_formats(text: Text, there: Collection[str]) -> Iterator[Hit]:
    """The secrets of a text that their own shape tells, in no order; they may overlap.

    there  those of WORDS that stand in the text
    """
    if text.raw.count(".") > 1:
        yield from _of_discord(text.raw)
    if len(text.raw) > 2 * _NUMBERS and text.raw.count(",") >= _NUMBERS - 1:
        yield from (Hit(*found.span(), "keypair") for found in _KEYPAIR.finditer(text.raw))
    if not there:
        return
    for word in there:
        for one in _BY_WORD.get(word, ()):
            yield from _of_format(text.raw, one, one.starts[word])
    for kind, literal, finds in _MARKED:
        if literal.lower() in there:
            yield from (Hit(*found.span(found.lastindex or 0), kind) for found in finds.finditer(text.raw))
    if not _OF_KEYS.isdisjoint(there):
        yield from (Hit(*place, "private-key") for place in find_private_keys(text.raw))
    if "://" in there:
        yield from _in_urls(text.raw)


def _of_discord(text: str) -> Iterator[Hit]:
    """Discord's tokens, which have no literal: what stands around their dots is looked at."""
    for end in _DISCORD_END.finditer(text):
        start = _DISCORD_START.search(text, max(0, end.start() - 29), end.start())
        if start is not None and _mixed_digit(text[start.start() : end.end()]):
            yield Hit(start.start(), end.end(), "discord")


def _of_format(text: str, one: Format, begins: re.Pattern[str]) -> Iterator[Hit]:
    place = 0
    while begun := begins.search(text, place):
        start, place = begun.span()
        if text[start].isalnum() and not _begins(text, start, alone=one.alone):
            continue
        found = pattern(one.follows).match(text, place)
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
    if before.isalnum() and not any(sign in text[max(0, start - _LONGEST_ESCAPE) : start] for sign in "\\%["):
        return False
    if not before.isalnum() and not (alone and before in ("_", "-") and before):
        return True
    return _ESCAPED.search(text, max(0, start - _LONGEST_ESCAPE), start) is not None


# ---- URLs ----

_IN_PATH = regex(
    r"/[\w-]{0,20}(?:reset|verify|verification|confirm|invite|invitation|magic|activate|unsubscribe|sso|share)[\w-]{0,20}/([A-Za-z0-9_~-]{20,256}+)"
)

_USER = regex(r"://([^\s:/@?#\"'`<>\\]{0,100}):((?:[^\s\"'`<>/\\]|(?<=\w)'(?=\w)){1,256})@(?=[A-Za-z0-9\[{$.-])")

_TOKEN_USER = regex(r"://((?:[^\s\"'`<>/\\:@?#]|(?<=\w)'(?=\w)){8,256})@(?=[A-Za-z0-9])")


def _in_urls(text: str) -> Iterator[Hit]:
    yield from (Hit(*found.span(1), "url-token") for found in _IN_PATH.finditer(text) if is_random(found[1]))
    place = 0
    while (place := text.find("://", place)) >= 0:
        found = _USER.match(text, place) or _TOKEN_USER.match(text, place)
        place += 3
        if found is None:
            continue
        last = found.lastindex or 1
        value = found[last]
        if (last == 2 or is_random(value) or is_mixed(value) or is_foreign(value)) and not is_placeholder(value):
            yield Hit(*found.span(last), "url-password" if last == 2 else "url-token")

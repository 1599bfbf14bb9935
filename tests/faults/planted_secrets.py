"""Plants secrets of each kind in sessions, makes checkpoints of them with a model, and looks for what is left of them.

The secrets are made from what their vendors say of their formats, not from our rules. They stand in messages, results
as JSON, commands, diffs, files that were read, and across the borders of two results, of two segments, and of what two
checkpoints saw of one session. Then every byte of the store and of what the model was sent is searched, compressed or
not, escaped or not, for any 12 characters in a row of a secret (the whole of one that is shorter).

    python -m tests.faults.planted_secrets --rounds 100000
"""

from __future__ import annotations

import base64
import json
import random
import string
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import storekit
from tests.faults import rig

import ralf
from kit.claude_log import ClaudeLog

RUN = 12
"""So many characters of a secret in a row are a find."""

BATCH = 250
"""Secrets in one session."""

MOST_CHANGED = 0.005
"""The share of harmless lines that redaction may change."""

_ALNUM = string.ascii_letters + string.digits
_URL_SAFE = _ALNUM + "_-"
_BASE64 = _ALNUM + "+/"
_HEX = "0123456789abcdef"
_PASSWORD = _ALNUM + "!@#%^*_-+=.?"


@dataclass(frozen=True, slots=True)
class Plant:
    """A secret, and the text in which it stands.

    kind   what it is
    text   what is planted, on one line or several
    parts  what must not be found
    form   where it was planted
    """

    kind: str
    text: str
    parts: tuple[str, ...]
    form: str = ""


# ---- the secrets ----


def _of(alphabet: str, size: int) -> Callable[[random.Random], str]:
    return lambda dice: "".join(dice.choices(alphabet, k=size))


def _b64(size: int) -> Callable[[random.Random], str]:
    return lambda dice: base64.b64encode(dice.randbytes(size)).decode()


def _uuid(dice: random.Random) -> str:
    digits = _of(_HEX, 32)(dice)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _password(dice: random.Random) -> str:
    """As a password manager makes them: of every class, and beginning with a letter."""
    some = [dice.choice(string.ascii_lowercase), dice.choice(string.ascii_uppercase), dice.choice(string.digits)]
    some += [dice.choice("!@#%^*_-+.?"), *dice.choices(_PASSWORD, k=dice.randint(6, 14))]
    dice.shuffle(some)
    return dice.choice(string.ascii_letters) + "".join(some)


def _plain_password(dice: random.Random) -> str:
    """Of letters and digits, as those in URLs and commands are."""
    return dice.choice(string.ascii_letters) + _of(_ALNUM, dice.randint(11, 20))(dice) + dice.choice(string.digits)


def _token(prefix: str, body: Callable[[random.Random], str]) -> Callable[[random.Random], tuple[str, str]]:
    """A token by its own shape: how it is written, and the part of it that is secret."""

    def made(dice: random.Random) -> tuple[str, str]:
        secret = body(dice)
        return prefix + secret, secret

    return made


def _jwt(dice: random.Random) -> tuple[str, str]:
    def part(tree: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(tree).encode()).decode().rstrip("=")

    secret = part({"sub": _of(_HEX, 24)(dice), "iat": dice.randrange(10**9)}) + "." + _of(_URL_SAFE, 43)(dice)
    return part({"alg": "HS256", "typ": "JWT"}) + "." + secret, secret.split(".")[1]


def _mixed(*parts: str | Callable[[random.Random], str]) -> Callable[[random.Random], tuple[str, str]]:
    """A token of fixed and of secret parts; the longest part is looked for."""

    def made(dice: random.Random) -> tuple[str, str]:
        made_of = [part if isinstance(part, str) else part(dice) for part in parts]
        secret = max((text for part, text in zip(parts, made_of, strict=True) if not isinstance(part, str)), key=len)
        return "".join(made_of), secret

    return made


TOKENS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "aws key id": _token("AKIA", _of(string.ascii_uppercase + "234567", 16)),
    "google api key": _token("AIza", _of(_URL_SAFE, 35)),
    "google oauth secret": _token("GOCSPX-", _of(_URL_SAFE, 28)),
    "azure storage": _mixed("DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", _b64(64), ";EndpointSuffix=c"),
    "azure client secret": _mixed(_of(_ALNUM, 3), "8Q~", _of(_ALNUM + "_-.~", 33), _of(_ALNUM, 1)),
    "azure service bus": _mixed("SharedAccessKeyName=Root;SharedAccessKey=", _b64(32)),
    "github classic": _token("ghp_", _of(_ALNUM, 36)),
    "github oauth": _token("gho_", _of(_ALNUM, 36)),
    "github user": _token("ghu_", _of(_ALNUM, 36)),
    "github server": _token("ghs_", _of(_ALNUM, 36)),
    "github refresh": _token("ghr_", _of(_ALNUM, 76)),
    "github fine-grained": _mixed("github_pat_", _of(_ALNUM, 22), "_", _of(_ALNUM, 59)),
    "gitlab": _token("glpat-", _of(_URL_SAFE, 20)),
    "bitbucket": _token("ATBB", _of(_ALNUM, 32)),
    "npm": _token("npm_", _of(_ALNUM, 36)),
    "pypi": _token("pypi-AgEIcHlwaS5vcmc", _of(_URL_SAFE, 140)),
    "docker hub": _token("dckr_pat_", _of(_URL_SAFE, 27)),
    "openai project": _token("sk-proj-", _of(_URL_SAFE, 120)),
    "openai": _mixed("sk-", _of(_ALNUM, 20), "T3BlbkFJ", _of(_ALNUM, 20)),
    "anthropic": _token("sk-ant-api03-", _of(_URL_SAFE, 95)),
    "hugging face": _token("hf_", _of(string.ascii_letters, 34)),
    "groq": _token("gsk_", _of(_ALNUM, 52)),
    "replicate": _token("r8_", _of(_ALNUM, 37)),
    "slack bot": _mixed("xoxb-", _of(string.digits, 12), "-", _of(string.digits, 13), "-", _of(_ALNUM, 24)),
    "slack webhook": _mixed("https://hooks.slack.com/services/T", _of(string.digits, 8), "/B0A/", _of(_ALNUM, 24)),
    "discord bot": _mixed("M", _of(_ALNUM, 25), ".", _of(_ALNUM, 6), ".", _of(_URL_SAFE, 38)),
    "telegram": _mixed(_of("123456789", 10), ":AA", _of(_URL_SAFE, 33)),
    "stripe": _token("sk_live_", _of(_ALNUM, 24)),
    "stripe restricted": _token("rk_live_", _of(_ALNUM, 99)),
    "twilio": _token("SK", _of(_HEX, 32)),
    "sendgrid": _mixed("SG.", _of(_URL_SAFE, 22), ".", _of(_URL_SAFE, 43)),
    "mailgun": _token("key-", _of(_HEX, 32)),
    "shopify": _token("shpat_", _of(_HEX, 32)),
    "digitalocean": _token("dop_v1_", _of(_HEX, 64)),
    "heroku": _token("HRKU-AA", _of(_URL_SAFE, 58)),
    "cloudflare": _token("cfut_", _of(_ALNUM, 48)),
    "new relic": _token("NRAK-", _of(string.ascii_uppercase + string.digits, 27)),
    "sentry": _token("sntryu_", _of(_HEX, 64)),
    "linear": _token("lin_api_", _of(_ALNUM, 40)),
    "notion": _token("ntn_", _of(_ALNUM, 46)),
    "atlassian": _token("ATATT3xFfGF0", _of(_URL_SAFE, 170)),
    "vault": _token("hvs.", _of(_URL_SAFE, 90)),
    "terraform cloud": _mixed(_of(_ALNUM, 14), ".atlasv1.", _of(_ALNUM, 67)),
    "doppler": _token("dp.pt.", _of(_ALNUM, 43)),
    "databricks": _token("dapi", _of(_HEX, 32)),
    "jwt": _jwt,
}
"""Secrets that their own shape tells, so that they may stand anywhere."""


def _armour(label: str) -> Callable[[random.Random], Plant]:
    def made(dice: random.Random) -> Plant:
        body = _b64(dice.choice((300, 600)))(dice)
        lines = [body[place : place + 64] for place in range(0, len(body), 64)]
        head = "Version: GnuPG v2\n\n" if "PGP" in label else ""
        text = f"-----BEGIN {label}-----\n{head}" + "\n".join(lines) + f"\n-----END {label}-----"
        return Plant(label.lower(), text, tuple(lines[:-1]))

    return made


def _named(
    kind: str, name: str, value: Callable[[random.Random], str], *forms: str
) -> Callable[[random.Random], Plant]:
    """A secret that only its name tells, written in one of the ways in which such are written."""

    def made(dice: random.Random) -> Plant:
        secret = value(dice)
        form = dice.choice(forms)
        camel = "".join(part.capitalize() for part in name.lower().split("_"))
        said = form.format(name=name, low=name.lower(), camel=camel[:1].lower() + camel[1:], secret=secret)
        return Plant(kind, said, (secret,))

    return made


_ENV = ("{name}={secret}", "export {name}={secret}", '{name}="{secret}"', "+{name}={secret}", "-{name}={secret}")
_YAML = ("{low}: {secret}", "  {low}: '{secret}'", "- name: {name}\n  value: {secret}")
_CODE = ('{low} = "{secret}"', "const {camel} = '{secret}';", '"{camel}": "{secret}",', '{low}: str = "{secret}"')
_ANY = (*_ENV, *_YAML, *_CODE)


def _written(kind: str, form: str, secret: Callable[[random.Random], str]) -> Callable[[random.Random], Plant]:
    def made(dice: random.Random) -> Plant:
        value = secret(dice)
        return Plant(kind, form.replace("SECRET", value), (value,))

    return made


def _kubernetes(dice: random.Random) -> Plant:
    one, other = (base64.b64encode(_password(dice).encode()).decode() for _ in range(2))
    if dice.random() < 0.5:
        text = f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  user: {one}\n  pass: {other}\n"
    else:
        text = f"apiVersion: v1\ndata:\n  first: {one}\n  second: {other}\nkind: Secret\nmetadata:\n  name: db\n"
    return Plant("kubernetes", text, (one, other))


def _basic(dice: random.Random) -> str:
    return base64.b64encode(f"ci:{_password(dice)}".encode()).decode()


CONTEXTS: tuple[Callable[[random.Random], Plant], ...] = (
    *map(_armour, ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK")),
    _named("aws secret", "AWS_SECRET_ACCESS_KEY", _of(_BASE64, 40), *_ANY, "aws configure set {low} {secret}"),
    _named("datadog", "DD_API_KEY", _of(_HEX, 32), *_ANY),
    _named("heroku by name", "HEROKU_API_KEY", _uuid, *_ANY),
    _named("cloudflare by name", "CLOUDFLARE_API_TOKEN", _of(_URL_SAFE, 40), *_ANY),
    _named("twilio by name", "TWILIO_AUTH_TOKEN", _of(_HEX, 32), *_ANY),
    _named("client secret", "CLIENT_SECRET", _of(_URL_SAFE, 43), *_ANY),
    _named("session secret", "SESSION_SECRET", _b64(32), *_ANY),
    _named("password", "DB_PASSWORD", _plain_password, *_ANY),
    _named("password of signs", "ADMIN_PASSWORD", _password, *_ENV[:3], *_CODE),
    _named("encryption key", "ENCRYPTION_KEY", _b64(32), *_ANY),
    _named("signing key", "JWT_SIGNING_KEY", _of(_HEX, 64), *_ANY),
    _written("bearer", "Authorization: Bearer SECRET", _of(_URL_SAFE, 40)),
    _written(
        "bearer in a command",
        "curl -H 'Authorization: Bearer SECRET' \\\n  https://api.tide.dev/v1",
        _of(_URL_SAFE, 32),
    ),
    _written("basic", "Authorization: Basic SECRET", _basic),
    _written("header", "X-Api-Key: SECRET", _of(_ALNUM, 32)),
    _written("cookie", "Cookie: theme=dark; sid=SECRET; lang=en", _of(_URL_SAFE, 44)),
    _written("set-cookie", "Set-Cookie: sid=SECRET; Path=/; HttpOnly", _of(_URL_SAFE, 44)),
    _written("postgres", "postgresql://app:SECRET@db.tide.dev:5432/tide", _plain_password),
    _written("mongodb", "mongodb+srv://app:SECRET@c0.tide.dev/?w=1", _plain_password),
    _written("redis", "redis://:SECRET@cache:6379/0", _plain_password),
    _written("url", "git clone https://ci:SECRET@git.tide.dev/a/b.git", _of(_ALNUM, 24)),
    _written("url token", "https://SECRET@git.tide.dev/a/b.git", _of(_ALNUM, 40)),
    _written("query", "GET /v1/tides?access_token=SECRET&page=2", _of(_ALNUM, 40)),
    _written("curl -u", "curl -s -u ci:SECRET https://api.tide.dev", _plain_password),
    _written("wrapped curl -u", "curl -s \\\n  -u ci:SECRET \\\n  https://api.tide.dev", _plain_password),
    _written("--password", "deploy --user ci --password SECRET --force", _plain_password),
    _written("wrapped --password", "deploy --user ci \\\n  --password \\\n  SECRET", _plain_password),
    _written("--api-key=", "tool sync --api-key=SECRET --all", _of(_ALNUM, 32)),
    _written("mysql -p", "mysql -h db -u root -pSECRET tide < dump.sql", _plain_password),
    _written("PGPASSWORD", "PGPASSWORD=SECRET psql -h db -U app tide", _plain_password),
    _written("sshpass", "sshpass -p SECRET ssh ci@host", _plain_password),
    _written("docker login", "docker login -u ci -p SECRET registry.tide.dev", _plain_password),
    _written("password-stdin", "echo SECRET | docker login -u ci --password-stdin", _plain_password),
    _written("docker config", '{"auths":{"registry.tide.dev":{"auth":"SECRET"}}}', _basic),
    _written("npmrc", "//registry.tide.dev/:_authToken=SECRET", _uuid),
    _written("netrc", "machine api.tide.dev\n  login ci\n  password SECRET\n", _plain_password),
    _written("htpasswd", "ci:$apr1$SECRET", lambda dice: _of(_ALNUM, 8)(dice) + "$" + _of(_ALNUM, 22)(dice)),
    _written("bcrypt", "ci:$2y$10$SECRET", _of(_ALNUM, 53)),
    _written("connection string", "Server=db;Database=tide;User Id=sa;Password=SECRET;Encrypt=yes", _plain_password),
    _written("xml", "<server><username>ci</username><password>SECRET</password></server>", _plain_password),
    _written("properties", "spring.datasource.password=SECRET", _plain_password),
    _kubernetes,
)
"""Secrets with what tells them: a name, a header, a command."""

KINDS = len(TOKENS) + len(CONTEXTS)

_AROUND = (
    "the key is {}",
    "I set it to `{}` for now.",
    "KEY_FOR_CI={}",
    'header("X-Thing", "{}")',
    "+  value: {}",
    "> {} <",
    "($ echo {})",
)


def plants(dice: random.Random, many: int) -> Iterator[Plant]:
    """So many secrets, each kind as often as any other."""
    makers: list[Callable[[random.Random], Plant]] = [*map(_free, TOKENS), *CONTEXTS]
    for number in range(many):
        yield makers[number % len(makers)](dice)


def _free(kind: str) -> Callable[[random.Random], Plant]:
    def made(dice: random.Random) -> Plant:
        text, secret = TOKENS[kind](dice)
        return Plant(kind, dice.choice(_AROUND).format(text), (secret,))

    return made


# ---- the sessions ----

FORMS = (
    "message",
    "answer",
    "output",
    "json",
    "json in json",
    "command",
    "diff",
    "file",
    "written",
    "cut",
    "cut in three",
)


class Session(ClaudeLog):
    """A session's log in the making."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(Path(), "planted", Path("/srv/tide"))
        self._dice = dice
        self.lines: list[str] = []
        self.borders: list[int] = []
        """After how many lines a secret is under way."""

    def add(self, *records: Mapping[str, Any]) -> None:
        """Append records to the lines, some as ASCII."""
        self.lines += [json.dumps(record, ensure_ascii=self._dice.random() < 0.5) for record in records]

    def plant(self, plant: Plant, form: str) -> None:
        """Let the secret stand in the session in this form."""
        text = plant.text
        if form == "message":
            self.says(f"Please look at this, I got it from the console today:\n{text}\nthen go on.")
        elif form == "answer":
            self.answers(f"I found this in the settings:\n\n{text}\n\nIt is used.")
        elif form == "command":
            self.runs(text, "ok")
        elif form == "written":
            self.calls("Write", {"file_path": "/srv/tide/notes.txt", "content": f"# notes\n{text}\n"}, "written")
        elif form in ("cut", "cut in three"):
            self._cut(text, 2 if form == "cut" else 3)
        else:
            self.runs("cat settings", self._shown(text, form))

    def _shown(self, text: str, form: str) -> str:
        lines = text.split("\n")
        if form == "json":
            return json.dumps({"status": 200, "body": text, "rest": [1, 2]}, indent=self._dice.choice((None, 2)))
        if form == "json in json":
            return json.dumps({"content": [{"type": "text", "text": json.dumps({"body": text, "page": 1})}]})
        if form == "diff":
            return "@@ -1,2 +1,9 @@\n context\n" + "\n".join(f"+{line}" for line in lines) + "\n more context"
        if form == "file":
            return "\n".join(f"{number:6}→{line}" for number, line in enumerate(["# settings", *lines, "# end"], 1))
        return f"reading settings …\n{text}\ndone in 0.2 s"

    def _cut(self, text: str, parts: int) -> None:
        """A command that goes on prints it in pieces, each a result of its own."""
        whole = f"log of the deployment\n{text}\nall done"
        first = whole.index(text)
        places = sorted(self._dice.sample(range(first + 1, first + len(text)), parts - 1))
        for number, (start, end) in enumerate(zip([0, *places], [*places, len(whole)], strict=True)):
            if number:
                self.borders.append(len(self.lines))
            self.calls("Bash", {"command": "deploy" if not number else "", "shell": 3}, whole[start:end])


# ---- one batch ----

_MODEL = """
import json, sys
with open(sys.argv[1], "a") as file:
    file.write(sys.stdin.read())
told = "The key is " + sys.argv[2]
lists = {name: [told] for name in ("done", "next", "open", "facts")}
print(json.dumps({"now": "Deploy with " + sys.argv[2], "why": told, **lists,
                  "decisions": [{"text": told}], "avoid": [{"what": told, "why": told}]}))
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What was left of a secret, and in which file."""

    plant: Plant
    run: str
    where: str


def sown(dice: random.Random, many: int = BATCH) -> tuple[Session, list[Plant]]:
    """A session with so many secrets, and these."""
    session, planted = Session(dice), []
    for plant in plants(dice, many):
        form = dice.choice(FORMS)
        session.plant(plant, form)
        planted.append(Plant(plant.kind, plant.text, plant.parts, form))
    return session, planted


def batch(seed: int, many: int = BATCH, *, folder: Path, model: bool = True) -> list[Found]:
    """Plant so many secrets in one session, checkpoint it in two calls, and tell what is left of them."""
    dice = random.Random(seed)  # repeatable
    session, planted = sown(dice, many)
    answered = TOKENS["github classic"](dice)[0]
    planted.append(Plant("a model's answer", answered, (answered[4:],), "answer of the model"))
    context = folder / ".autonomous" / "context"
    context.mkdir(parents=True)
    prompts = folder / "prompts"
    prompts.touch()
    if model:
        command = [sys.executable, "-I", "-c", _MODEL, str(prompts), answered]
        local = context / "config.local.yaml"
        told = {"summarizer": "command", "command": command}
        local.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in told.items()))
        storekit.allow(local)
    transcript = folder.with_suffix(".jsonl")
    border = dice.choice(session.borders) if session.borders else len(session.lines) // 2
    for end in (border, len(session.lines)):
        transcript.write_text("\n".join(session.lines[:end]) + "\n", encoding="utf-8")
        ralf.checkpoint(
            "planted", transcript, root=folder, segment_tokens=6_000, summarizer="command" if model else "extractive"
        )
    for plant in planted[:3]:
        ralf.record_decision("planted", f"Deploy so: {plant.text}", rationale=plant.text, root=folder)
    edited = context / "routes" / "planted.md"
    edited.write_text(edited.read_text().replace("---\n\n#", f"---\n\nKept by hand: {planted[3].text}\n\n#", 1))
    ralf.record_decision("planted", "We keep the tide table in one file.", root=folder)
    ralf.search("settings of the deployment", root=folder)
    if model:
        local.write_text("")  # it names the command, which holds the answer
    return left(planted, folder)


def left(planted: Sequence[Plant], folder: Path) -> list[Found]:
    """What any file of a folder holds of any secret."""
    runs: dict[str, Plant] = {}
    short: dict[str, Plant] = {}
    for plant in planted:
        for part in plant.parts:
            if len(part) < RUN:
                short[part] = plant
            for place in range(len(part) - RUN + 1):
                runs[part[place : place + RUN]] = plant
    found: dict[str, Found] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for text in _readings(path.read_bytes()):
            for place in range(len(text) - RUN + 1):
                if (run := text[place : place + RUN]) in runs:
                    found.setdefault(runs[run].parts[0], Found(runs[run], run, str(path.relative_to(folder))))
            for part, plant in short.items():
                if part in text:
                    found.setdefault(part, Found(plant, part, str(path.relative_to(folder))))
    return list(found.values())


def _readings(content: bytes) -> Iterator[str]:
    """A file's text: as it stands, or unpacked; and without JSON's escapes, once and twice."""
    with suppress(zlib.error):
        content = zlib.decompress(content)
    text = content.decode("utf-8", "replace")
    yield text
    for _ in range(2):
        if "\\" not in text:
            return
        text = text.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", "\n").replace("\\/", "/")
        yield text


# ---- what is no secret ----


def harmless(dice: random.Random, many: int) -> Iterator[str]:
    """Lines with ids and hashes, and lines of foreign code and prose: none of them holds a secret."""
    made = (
        lambda: f"commit {_of(_HEX, 40)(dice)}",
        lambda: f"{_of(_HEX, 7)(dice)} Carry the tide table over to the new reader",
        lambda: f'"integrity": "sha512-{_b64(64)(dice)}",',
        lambda: f'"resolved": "https://registry.npmjs.org/x/-/x-1.2.3.tgz#{_of(_HEX, 40)(dice)}",',
        lambda: f'    {{file = "x-1.2.3-py3-none-any.whl", hash = "sha256:{_of(_HEX, 64)(dice)}"}},',
        lambda: f'"sessionId": "{_uuid(dice)}", "uuid": "{_uuid(dice)}"',
        lambda: f"{_of(_HEX, 32)(dice)}  dist/tide-1.0.tar.gz",
        lambda: f"digest: sha256:{_of(_HEX, 64)(dice)} size: 1234",
        lambda: f"index {_of(_HEX, 7)(dice)}..{_of(_HEX, 7)(dice)} 100644",
        lambda: f"request_id={_uuid(dice)} trace={_of(_HEX, 32)(dice)} tokens=1834",
        lambda: f"github.com/x/y v1.2.3 h1:{_b64(32)(dice)}",
        lambda: f"data:image/png;base64,{_b64(90)(dice)}",
        lambda: f"cache key: build-{_of(_HEX, 40)(dice)}",
        lambda: f"toolu_{_of(_ALNUM, 24)(dice)} call_{_of(_ALNUM, 24)(dice)} msg_{_of(_ALNUM, 24)(dice)}",
        lambda: f'ETag: "{_of(_HEX, 32)(dice)}"',
        lambda: f"/nix/store/{_of(string.ascii_lowercase + string.digits, 32)(dice)}-glibc-2.38/lib/libc.so.6",
    )
    for number in range(many // 2):
        yield made[number % len(made)]()
    library = Path(random.__file__).parent
    lines: list[str] = []
    for path in dice.sample(sorted(library.glob("*.py")), 40):
        lines += [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    yield from dice.sample(lines, min(len(lines), many - many // 2))


def false_hits(seed: int, many: int) -> list[str]:
    """Those of so many harmless lines that redaction changes."""
    from ralf.redact.redactor import Redactor

    redactor, dice = Redactor(b"k" * 32), random.Random(seed)  # repeatable
    return [line for line in harmless(dice, many) if redactor.text(line) != line]


def run(size: rig.Rounds, seed: int, _: Sequence[str] = ()) -> rig.Found:
    """Plant so many secrets, and look for them; and look at more harmless lines than secrets."""
    found = rig.Found(rounds=size.rounds)
    for number in range(size.first, size.first + -(-size.rounds // BATCH)):
        with rig.store() as folder:
            for one in batch(seed * 1_000_003 + number, folder=folder / "project"):
                plant = one.plant
                found.note("left", f"{plant.kind} ({plant.form}) in {one.where}: {one.run!r} of {plant.text[:100]!r}")
    many = max(20_000, size.rounds)
    wrong = false_hits(seed, many)
    if len(wrong) > many * MOST_CHANGED:
        found.note("changed", repr(wrong[:20]), len(wrong))
    found.figures[f"of {many:,} harmless lines changed"] = f"{len(wrong)} ({len(wrong) / many:.3%})"
    return found


if __name__ == "__main__":
    raise SystemExit(rig.command("planted_secrets", rig.Rounds(2_000), run))

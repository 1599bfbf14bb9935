"""A secret of a session is nowhere in what ralf keeps or hands over; what only looks like one stays."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import random
import string
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from promises.user import Session, User

LETTERS = string.ascii_letters + string.digits


def made(seed: int, length: int, letters: str = LETTERS) -> str:
    """The same random letters in every run; put together here, so that no scanner finds a token in this file."""
    dice = random.Random(seed)  # noqa: S311  # protects nothing
    return "".join(dice.choice(letters) for _ in range(length))


def secrets(seed: int) -> dict[str, str]:
    """Names of variables, and secrets of many vendors in them."""
    digits, upper = string.digits, string.ascii_uppercase
    claims = ({"alg": "HS256", "typ": "JWT"}, {"sub": made(seed, 12), "iat": 1516239022})
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in claims]
    armour = "RSA PRIVATE " + "KEY"
    lines = "\n".join(made(seed + 20 + line, 64, LETTERS + "+/") for line in range(12))
    return {
        "GITHUB_TOKEN": "gh" + "p_" + made(seed + 1, 36),
        "AWS_ID": "AK" + "IA" + made(seed + 2, 16, upper + "234567"),
        "ANTHROPIC_API_KEY": "sk-" + "ant-api03-" + made(seed + 3, 93) + "AA",
        "SLACK": "xo" + "xb-" + "-".join((made(seed + 4, 12, digits), made(seed + 5, 13, digits), made(seed + 6, 24))),
        "MAPS": "AI" + "za" + made(seed + 7, 35),
        "STRIPE": "sk_" + "live_" + made(seed + 8, 24),
        "GITLAB": "gl" + "pat-" + made(seed + 9, 20),
        "REGISTRY": "np" + "m_" + made(seed + 10, 36),
        "BEARER": ".".join([*coded, made(seed + 11, 43)]),
        "DB_PASSWORD": made(seed + 12, 10) + "!" + made(seed + 13, 6),
        "DEPLOY": f"-----BEGIN {armour}-----\n{lines}\n-----END {armour}-----",
    }


HARMLESS = {
    "commit": made(20, 40, "0123456789abcdef"),
    "uuid": "-".join(made(21 + n, length, "0123456789abcdef") for n, length in enumerate((8, 4, 4, 4, 12))),
    "integrity": "sha512-" + made(30, 86, LETTERS + "+/") + "==",
    "path": "src/harbour/api_key_rotation_policy.py",
    "sort key": "sort_key=station_identifier_ascending",
}
PLACES: dict[str, Callable[[Session, str, str], None]] = {
    "said": lambda session, name, value: session.says(f"Use {name}={value} for it."),
    "typed": lambda session, name, value: session.runs(f"export {name}={value}"),
    "printed": lambda session, name, value: session.runs("cat .env", f"DEBUG=1\n{name}={value}\n", failed=True),
    "written": lambda session, name, value: session.calls(
        "Write", {"file_path": str(session.user.project / ".env"), "content": f"{name}={value}\n"}, "written"
    ),
    "answered": lambda session, name, value: session.answers(f"I have put {name}={value} into the file."),
}


def unpacked(content: bytes) -> Iterator[bytes]:
    """Bytes, and what they are once unpacked, by each way in which bytes are packed, twice over."""
    yield content
    for unpack in content and (
        gzip.decompress,
        zlib.decompress,
        bz2.decompress,
        lzma.decompress,
        lambda b: zlib.decompress(b, -15),
    ):
        with suppress(OSError, EOFError, zlib.error, lzma.LZMAError, ValueError):
            yield from unpacked(unpack(content))
    if content.startswith(b"PK"):
        with suppress(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from unpacked(archive.read(name))


def kept(user: User) -> bytes:
    """All bytes of the store and of the user's own folder, unpacked, as text and as JSON has them."""
    packed = [content for _, content in user.store_bytes()]
    packed += [path.read_bytes() for path in (user.home / ".config").rglob("*") if path.is_file()]
    return b"\n".join(part for content in packed for part in unpacked(content)).replace(b"\\n", b"\n")


@pytest.mark.ci
def test_secrets_of_a_session_are_in_no_file_brief_or_search_hit(user: User) -> None:
    session = user.session()
    session.says("Move the tide table from CSV to SQLite.")
    planted = {}
    for number, (place, put) in enumerate(PLACES.items()):
        for name, value in secrets(1_000 * number).items():
            put(session, name, value)
            planted[place, name] = [value[n : n + 12] for n in range(12, len(value) - 11, 12)] or [value]
    session.answers("WORD-THAT-STAYS")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    shown = [user.does("show", "harbour", *more).out for more in ((), ("--json",), ("--max-tokens", 8_000))]
    shown += [user.ralf("search", words).out for words in ("export", "env file", "GITHUB_TOKEN")]
    shown.append(user.session().starts("--load-context harbour"))
    everything = kept(user) + "\n".join(shown).encode()
    assert b"WORD-THAT-STAYS" in everything
    assert [where for where, parts in planted.items() if any(part.encode() in everything for part in parts)] == []


@pytest.mark.ci
def test_a_secret_that_answers_a_question_or_fills_a_form_is_in_no_file(user: User) -> None:
    session, answer, password = user.session(), made(40, 18), made(41, 18)
    question = "What is the API token?"
    asked = {"question": question, "header": "x", "options": [{"label": "none", "description": ""}]}
    printed = f'User has answered your questions: "{question}"="{answer}".'
    session.says("Please set up the mail")
    session.calls("AskUserQuestion", {"questions": [asked]}, printed, toolUseResult={"answers": {question: answer}})
    session.calls("mcp__browser__type", {"element": "Password field", "ref": "e3", "text": password}, "ok")
    session.calls("mcp__browser__fill", {"fields": [{"name": "Password", "value": password}]}, "ok")
    user.does("checkpoint", "mail", "--transcript", session.log)
    assert question in user.does("show", "mail").out
    assert not [secret for secret in (answer, password) if secret.encode() in kept(user)]


@pytest.mark.ci
def test_ids_hashes_and_paths_that_look_like_secrets_stay(user: User) -> None:
    session = user.session()
    session.says("Look at these: " + ", ".join(HARMLESS.values()))
    session.runs("git log -1", "\n".join(f"{name} {value}" for name, value in HARMLESS.items()))
    session.answers("Seen.")
    user.does("checkpoint", "harbour", "--transcript", session.log)
    assert [name for name, value in HARMLESS.items() if value not in user.does("show", "harbour").out] == []
    assert [name for name, value in HARMLESS.items() if value.encode() not in kept(user)] == []

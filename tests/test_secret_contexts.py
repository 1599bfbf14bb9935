"""A secret is told by what stands around it: a name and what joins it, a command, a table, an announcement."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from re import _parser as parser  # type: ignore[attr-defined]  # no other module parses expressions
from typing import Any

import pytest

from ralf.redact import commands, rules, table
from ralf.redact.marks import MARKER
from ralf.redact.redactor import Redactor
from ralf.transcripts.events import START, Event

REDACTOR = Redactor(b"k" * 32)
CHOSEN, RANDOM = "Winter2031!", "q7Rt2bVx9MpL4sKd8WzY3nCf"
BODY = "\n".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7{n:012d}" for n in range(6))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\nabcd3f==\n-----END RSA PRIVATE KEY-----"


# ---- the table of cases ----


def unescaped(text: str) -> str:
    """A field of the table, whose lines and tabs are written as JSON writes them."""
    return re.sub(r"\\([ntr\\])", lambda found: {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}[found[1]], text)


def cases(what: str) -> Iterator[tuple[str, str]]:
    """The cases of a kind: the secret, and the text with it."""
    for line in (Path(__file__).parent / "data" / "secret-cases.tsv").read_text(encoding="utf-8").split("\n"):
        if line.startswith(f"{what}\t"):
            secret, text = map(unescaped, line.split("\t")[1:])
            yield secret, text.replace("SECRET", secret) if secret else text


def ended(text: str) -> str:
    """What is left of a result that ends with a text."""
    (shown,), _ = REDACTOR.events([Event("result", f"log\n{text}", START, START)])
    return shown.text.removeprefix("log\n")


@pytest.mark.parametrize(("secret", "text"), [*cases("found")])
def test_a_secret_is_found_by_what_stands_around_it(secret: str, text: str) -> None:
    shown = REDACTOR.text(text)
    assert secret not in shown and MARKER.search(shown)


@pytest.mark.parametrize(("_", "text"), [*cases("stays")])
def test_what_is_no_secret_stays(_: str, text: str) -> None:
    assert REDACTOR.text(text) == text


@pytest.mark.parametrize(("_", "text"), [*cases("end")])
def test_what_is_no_secret_stays_at_an_end_after_which_anything_may_come(_: str, text: str) -> None:
    assert ended(text) == text


@pytest.mark.parametrize(("_", "text"), [*cases("cut")])
def test_a_secret_that_needs_more_text_is_one_at_an_end_that_anything_may_follow(_: str, text: str) -> None:
    assert MARKER.search(ended(text))


@pytest.mark.parametrize(
    "value",
    [
        "天地玄黄宇宙洪荒",
        "\u0431\u043e\u0440\u043e\u0434\u0430\u0039",
        "Überwald47!",
        "copper🔑284",
        "tulipharborfalcon",
        "tulip-harbor-falcon-marble",
        "Tulip.Harbor.Falcon27",
    ],
)
@pytest.mark.parametrize("text", ["DB_PASSWORD={}", "db_password: {}", '"db_password": "{}"', "| db_password | {} |"])
def test_a_password_of_another_alphabet_or_of_joined_words_is_found(text: str, value: str) -> None:
    assert value not in REDACTOR.text(text.format(value))


# ---- private keys ----


@pytest.mark.parametrize(
    "line",
    ["deploy/id_rsa:{}", "deploy/id_rsa:12:{}", "app-1  | {}", "2031-01-01T00:00:07Z {}", "    {}", "+{}", "'{}\\n' +"],
)
def test_a_private_key_is_found_behind_whatever_stands_before_its_lines(line: str) -> None:
    whole = "\n".join(line.format(each) for each in KEY.split("\n"))
    begun = "\n".join(whole.split("\n")[:4])
    ended = "\n".join(whole.split("\n")[-4:])
    for text in (whole, f"before\n{whole}\nbehind", begun + "\n", ended):
        shown = REDACTOR.text(text)
        assert not any(each in shown for each in BODY.split("\n")), shown
    assert REDACTOR.text(f"before\n{whole}\nbehind").endswith("\nbehind")


def test_a_private_key_is_found_in_a_page_and_in_base64() -> None:
    coded = base64.b64encode(KEY.encode()).decode()
    wrapped = "\n".join(coded[place : place + 76] for place in range(0, len(coded), 76))
    for text in (f"TLS={coded}", f"    client-key-data: {coded}", f"$ base64 k\n{wrapped}\n$ ls"):
        shown = REDACTOR.text(text)
        assert coded[100:130] not in shown
        assert wrapped.split("\n")[-2] not in shown
    assert "MIIEvQ" not in REDACTOR.text(KEY.replace("\n", "<br>"))


def test_the_base64_of_a_certificate_stays() -> None:
    coded = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + b"MIIC" * 40).decode()
    assert REDACTOR.text(f"client-certificate-data: {coded}") == f"client-certificate-data: {coded}"


# ---- the table ----


@pytest.mark.ci
def test_each_row_of_the_table_finds_its_example() -> None:
    """A row of commands and calls has one; of a token's row its own expression makes one."""
    for row in table.rows("calls"):
        assert CHOSEN not in REDACTOR.text(row[4].replace("\\n", "\n").replace("SECRET", CHOSEN)), row
    for row in table.rows("prints"):
        assert list(commands.printed(row[1], "correct-horse7\n")), row
    dice = random.Random(1)  # noqa: S311
    for one in rules.formats():
        for literal, pattern in zip(one.literals, one.patterns, strict=True):
            token = next(filter(REDACTOR.hits, (f"at {made(pattern, dice)} now" for _ in range(40))), "")
            assert token.startswith(f"at {literal}"), (one.kind, literal)


def made(pattern: str, dice: random.Random) -> str:
    """A text that an expression of the table matches."""

    def of(tree: Iterable[tuple[Any, Any]]) -> str:
        return "".join(one(str(operation), argument) for operation, argument in tree)

    def one(operation: str, argument: Any) -> str:
        if operation == "LITERAL":
            return chr(argument)
        if operation == "IN":
            letters = []
            for kind, value in argument:
                letters += map(chr, range(value[0], value[1] + 1) if str(kind) == "RANGE" else [value])
            return dice.choice(letters)
        if operation == "BRANCH":
            return of(dice.choice(argument[1]))
        if operation == "SUBPATTERN":
            return of(argument[3])
        if operation.endswith("REPEAT"):
            return "".join(of(argument[2]) for _ in range(max(argument[0], min(argument[1], 1))))
        return ""

    return of(parser.parse(pattern))


@pytest.mark.parametrize(
    ("command", "output", "shown"),
    [
        ("vault kv get -field=value secret/app", "Winter2031!\n", False),
        ("echo $DB_PASSWORD", "Winter2031!", False),
        ("printenv DB_PASSWORD", "Berlin2031.\n", False),
        ("redis-cli config get requirepass | tail -1", "3f786850e387550fdab836ed7e6dc881de23001b", False),
        ("jq -r .apiKey config.json", "q7Rt2bVx9MpL4sKd8WzY3nCf\n", False),
        ("cat /run/secrets/db", "q7Rt2bVx9MpL4sKd8WzY3nCf", False),
        ("pwgen 12 2", "Winter2031!\nq7Rt2bVx9MpL\n", False),
        ("echo $API_TOKEN", "\n", True),
        ("echo $API_TOKEN", "ok", True),
        ("cat token.py", "return2\n", True),
        ("git log -1 --grep token --format=%H", "3f786850e387550fdab836ed7e6dc881de23001b", True),
        ("ls", "q7Rt2bVx9MpL4sKd8WzY3nCf is a folder", True),
        ("gh auth token", "error: not logged in\n", True),
        ("grep -c password a", "12", True),
    ],
)
def test_what_a_call_prints_that_names_a_secret_is_one(command: str, output: str, *, shown: bool) -> None:
    call = Event("call", command, START, START, tool="Bash", input={"command": command}, call_id="c1")
    printed = Event("result", output, START, START, tool="Bash", call_id="c1")
    (_, found), _ = REDACTOR.events([call, printed])
    assert (found.text == output) is shown


@pytest.mark.parametrize("row", table.rows("languages"), ids=lambda row: row[0])
def test_a_secret_is_found_by_what_it_is_called_in_many_languages(row: Sequence[str]) -> None:
    for column, secret in ((1, CHOSEN), (2, RANDOM)):
        for name in row[column].split(", "):
            for text in (f"{name}: {secret}", f"- **{name}:** `{secret}`", f"| {name} | {secret} |"):
                assert secret not in REDACTOR.text(text), text


IN_ANY_LANGUAGE = (
    "{label}\uff1a{value}",
    "{label}:\n    {value}\n",
    '{label} "{value}"',
    "{label} ({value})",
    "x,{label}\nbob,{value}\n",
    "<tr><th>x</th><th>{label}</th></tr><tr><td>bob</td><td>{value}</td></tr>",
    '{{"{label}": "{value}"}}',
)


@pytest.mark.parametrize("form", IN_ANY_LANGUAGE)
def test_a_label_and_its_value_are_joined_the_same_way_in_every_language(form: str) -> None:
    for row in table.rows("languages"):
        for column, secret in ((1, "tiger!4821Q"), (2, RANDOM), (3, "483920")):
            label = row[column].split(", ")[0] if column < len(row) else ""
            if label:
                text = form.format(label=label, value=secret)
                assert secret not in REDACTOR.text(text), text


@pytest.mark.parametrize(
    "password", ["trowel.cymbal.vinegar", "anvil_marigold_hobnail", "Junip3r&Ladle1", "%Zither6!Ladle"]
)
def test_words_that_any_sign_joins_are_a_password_and_no_name_of_code(password: str) -> None:
    assert password not in REDACTOR.text(f"the admin password is {password}, try again")
    for name in ("settings.database.primary", "user_login_form"):
        assert name in REDACTOR.text(f"the admin password is {name}, try again")


def test_what_goes_on_from_a_printed_secret_is_a_part_of_it() -> None:
    call = Event("call", "gh auth token", START, START, tool="Bash", input={"command": "gh auth token"}, call_id="c1")
    first = Event("result", "q7Rt2bVx9MpL4s", START, START, tool="Bash", call_id="c1")
    for rest, shown in (("Kd8WzY3nCf", False), ("3f786850e387550fdab836ed7e6dc881de23001b", True), ("ok, go on", True)):
        second = Event("result", rest, START, START, tool="Bash", call_id="c2")
        found, _ = REDACTOR.events([call, first, second])
        assert (found[2].text == rest) is shown


@pytest.mark.parametrize("value", ["thimbl3_spruce42", "Cactus.Osprey40", "blue_heron_77", "Bandit22", "Bruno_2020!"])
@pytest.mark.parametrize(
    "text", ["password: {}", "the password is {}, try it", "db_password={} host=a", "(password {})"]
)
def test_words_that_a_person_makes_a_password_of_are_one_where_something_calls_them_so(text: str, value: str) -> None:
    assert value not in REDACTOR.text(text.format(value))


_SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    "text",
    [
        "my seed phrase is {} and it stays here",
        "Recovery phrase (12 words):\n{}",
        "wallet:\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(_SEED.split(), 1)),
        '"mnemonic": ["' + '", "'.join(_SEED.split()) + '"]',
    ],
)
def test_the_words_of_a_wallet_are_found_however_they_are_listed(text: str) -> None:
    shown = REDACTOR.text(text.format(_SEED))
    assert "legal" not in shown
    assert "yellow" not in shown


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the password of the ingest database?", "S@ffr0n636#9"),
        ("Please give me the token for the registry.", "sure, rkUhZgf1hDrfJtg6fqSetHDOj1ZPreKCEqG3RXCgX"),
    ],
)
def test_a_secret_that_answers_a_question_for_it_is_redacted(question: str, answer: str) -> None:
    events = [Event("assistant", question, START, START), Event("user", answer, START, START)]
    assert answer.split()[-1] not in REDACTOR.events(events)[0][1].text


@pytest.mark.parametrize("answer", ["yes, use login2.py", "it is in 1Password", "see config/app.yml", "go on"])
def test_an_answer_without_a_secret_stays(answer: str) -> None:
    events = [Event("assistant", "What is the password?", START, START), Event("user", answer, START, START)]
    assert REDACTOR.events(events)[0][1].text == answer


def test_what_a_command_prints_that_prints_secrets_is_redacted_within_json_too() -> None:
    for call, output in (
        ("az storage account keys list -n a", '[{{"keyName": "key1", "permissions": "FULL", "value": "{}"}}]'),
        ("cat /etc/pgbouncer/userlist.txt", '"grafana" "{}"'),
    ):
        value = "q8sD3kfj2lKJ3lkfjsdlkfj3lkfjLKJ3lkjsdlfkA"
        assert list(commands.printed(call, output.format(value))), call

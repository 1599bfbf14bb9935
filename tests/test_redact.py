"""Secrets give way to tags before anything is made of a text, and what only looks like one stays."""

from __future__ import annotations

import json
import random
import re
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.faults import planted_secrets
from tests.faults.planted_secrets import KINDS, left, plants
from tests.gitleaks import scan

import ralf
from clocks import in_line, within
from ralf.errors import UsageError
from ralf.maintenance import ownership
from ralf.maintenance.repair import repair
from ralf.project import Project
from ralf.redact import borders, redactor, redactor_for
from ralf.redact.marks import MARKER, Known
from ralf.redact.redactor import Redactor
from ralf.storage import registry
from ralf.transcripts.events import START, Event
from storekit import configure, records_of, write_session

REDACTOR = Redactor(b"k" * 32)
PASSWORD = "pL3x!9rQ-vT2"  # noqa: S105


def result(text: str) -> Event:
    return Event("result", text, START, START)


# ---- texts ----


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(3))
def test_every_kind_is_found_where_it_stands(seed: int) -> None:
    kinds = set()
    for plant in plants(random.Random(seed), 2 * KINDS):  # noqa: S311
        shown = REDACTOR.text(f"before\n{plant.text}\nbehind\n")
        assert MARKER.search(shown), plant
        assert not any(part in shown for part in plant.parts), plant
        kinds.add(plant.kind)
    assert len(kinds) > 80


def test_a_list_that_a_client_tells_is_redacted_though_no_words_stand_beside_it() -> None:
    todos = [{"content": f"export DB_PASSWORD={PASSWORD}", "status": "pending"}]
    told = Event("other", "", START, START, tool="TodoWrite", input={"todos": todos})
    (shown,), _ = REDACTOR.events([told])
    assert PASSWORD not in str(shown.input)
    assert "DB_PASSWORD" in str(shown.input)


@pytest.mark.ci
def test_few_harmless_lines_are_touched() -> None:
    assert len(planted_secrets.false_hits(1, 4_000)) <= 20


def test_equal_secrets_have_equal_tags_and_another_key_has_others() -> None:
    one, other = MARKER.findall(REDACTOR.text(f"A_PASSWORD={PASSWORD}\npassword = '{PASSWORD}'")), None
    assert len(one) == 2
    shown = REDACTOR.text(f"A_PASSWORD={PASSWORD}")
    other = Redactor(b"j" * 32).text(f"A_PASSWORD={PASSWORD}")
    assert shown != other
    assert shown[-9:-1] in REDACTOR.text(f"password = '{PASSWORD}'")


PIECES = [
    *("password", "=", ": ", '"', "\\", "\n", PASSWORD, "ghp_" + "a1B2" * 9, " x", "[REDACTED:", "key", "api_"),
    *("://u:", "@h", "[REDACTED:key:0a1b2c3d]", "eyJhbGciOi.eyJzdWIiOi.abc", "-----BEGIN PRIVATE KEY-----", "MIIE" * 9),
]


@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_redacting_what_is_redacted_changes_nothing(pieces: list[str]) -> None:
    shown = REDACTOR.text("".join(pieces))
    assert REDACTOR.text(shown) == shown


def test_a_tree_is_redacted_by_its_keys_too() -> None:
    tree = {"password": "tulip-24x", "nested": [{"note": f"DB_PASSWORD={PASSWORD}", "size": 3}]}
    shown = REDACTOR.tree(tree)
    assert MARKER.fullmatch(shown["password"])
    assert shown["nested"][0]["size"] == 3
    assert PASSWORD not in json.dumps(shown)


# ---- events ----


def test_of_a_cut_secret_as_much_is_taken_as_is_known_to_follow() -> None:
    rest = "q7Rt2bVx9MpL"
    first, second = result("mysql -u root -pseaside"), result(f"{rest} tide < dump.sql")
    before, ends = REDACTOR.events([first], following=[second])
    assert re.search(rf":[0-9a-f]{{8}}\]\+{len(rest)}\Z", ends["result"])
    behind, _ = REDACTOR.events([second], tails=ends)
    assert re.fullmatch(r"\[REDACTED:password:[0-9a-f]{8}\] tide < dump.sql", behind[0].text)
    assert "seaside" not in before[0].text


def test_a_short_message_between_the_pieces_of_a_secret_stays() -> None:
    token = "ghp_" + "q7Rt2bVx9" * 4
    for message in ("ok", "go on", "Done.", "exit 0", "null", "Deployed rev 17"):
        for cut in range(12, len(token) - 10, 5):
            shown, _ = REDACTOR.events([result(token[:cut]), result(message), result(token[cut:])])
            assert shown[1].text == message
            assert token[:12] not in shown[0].text


SHORT = [
    "ok",
    "Done.",
    "exit 0",
    "3 passed in 0.12s",
    "Success!",
    "Deployed rev 17",
    "null",
    "Server started on port 8080",
]


@pytest.mark.parametrize("message", SHORT)
@pytest.mark.parametrize(
    "end",
    [
        "ghp_" + "q7Rt2bVx9" * 4,
        "the key is ghp_q7Rt2bVx9",
        "DB_PASSWORD=",
        "password: ",
        "token is",
        "Authorization: Bearer",
        "curl -u bob:Winter2031!",
        "postgres://u:Winter2031!@",
        "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 3,
    ],
)
def test_a_short_message_behind_a_secret_stays(end: str, message: str) -> None:
    first, second = result(end), result(message)
    (_, shown), _ = REDACTOR.events([first, second])
    assert shown.text == message
    for following in ([], [second]):
        _, ends = REDACTOR.events([first], following=following)
        assert REDACTOR.events([second], tails=ends)[0][0].text == message


def test_a_text_cannot_tell_how_much_of_the_next_one_is_to_be_taken() -> None:
    _, ends = REDACTOR.events([result("as said: [REDACTED:token:0a1b2c3d]+5000")])
    behind, _ = REDACTOR.events([result("all is well")], tails=ends)
    assert behind[0].text == "all is well"


def test_what_follows_a_cut_secret_is_counted_over_several_checkpoints() -> None:
    token = "ghp_" + "q7Rt2bVx9" * 4
    pieces = [result(f"the key is {token[:20]}"), result(token[20:30]), result(f"{token[30:]} works")]
    shown, ends = REDACTOR.events(pieces[:1], following=pieces[1:])
    for number in (1, 2):
        clean, ends = REDACTOR.events(pieces[number : number + 1], tails=ends, following=pieces[number + 1 :])
        shown += clean
    assert [MARKER.sub("#", event.text) for event in shown] == ["the key is #", "#", "# works"]


def test_a_long_manifest_is_followed_over_the_border_of_two_checkpoints() -> None:
    entries = [f"  key-{number}: cUhOIyUwM2FSNCVSUXB{number}" for number in range(10, 50)]
    lines = ["apiVersion: v1", "kind: Secret", "metadata:", "  name: db", "data:", *entries, "---"]
    before, ends = REDACTOR.events([result("\n".join(lines[:30]) + "\n")])
    behind, _ = REDACTOR.events([result("\n".join(lines[30:]))], tails=ends)
    assert "cUhO" not in before[0].text + behind[0].text


def test_a_random_value_is_found_again_where_nothing_tells_it() -> None:
    value = "v8Kq2Lm9Xw4Rt7Yb1Nc5"
    shown, _ = REDACTOR.events([result(f"API_TOKEN={value}"), result(f"sent {value} to the server")])
    assert value not in shown[1].text


# ---- the whole way ----


def stored(root: Path) -> bytes:
    import zlib

    content = b""
    for path in sorted((root / ".autonomous").rglob("*")):
        if path.is_file():
            found = path.read_bytes()
            content += found if path.parents[1].name != "blobs" else zlib.decompress(found)
    return content


def test_a_persons_edit_is_redacted_when_it_is_taken_in(tmp_path: Path) -> None:
    ralf.record_decision("tide", "We keep the table in one file.", root=tmp_path)
    path = tmp_path / ".autonomous" / "context" / "routes" / "tide.md"
    path.write_text(path.read_text().replace("one file", f"one file, A_PASSWORD={PASSWORD}"))
    ralf.record_decision("tide", "We read it once.", root=tmp_path)
    assert "A_PASSWORD=[REDACTED:" in path.read_text()
    assert PASSWORD.encode() not in stored(tmp_path)


@pytest.mark.ci
def test_a_secret_that_an_editor_saves_repeatedly_stays_in_no_displaced_file(tmp_path: Path) -> None:
    ralf.record_decision("tide", "We keep the table in one file.", root=tmp_path)
    path = tmp_path / ".autonomous" / "context" / "routes" / "tide.md"
    theirs = path.read_text().replace("one file", f"one file, A_PASSWORD={PASSWORD}")
    for number in range(3):
        theirs = theirs.replace("\ndecisions:", f"\nnote_{number}: true\ndecisions:", 1)
        path.write_text(theirs)
        ralf.record_decision("tide", f"We read it {number} times.", root=tmp_path)
        assert PASSWORD.encode() not in stored(tmp_path)
    assert set(ralf.get_context("tide", root=tmp_path).extra) == {"note_0", "note_1", "note_2"}


@pytest.mark.parametrize("edit", ["password: {0}", "password: >-\n  {0}", "db:\n  password:\n    {0}"])
def test_a_value_whose_key_names_a_secret_is_redacted_in_an_edit_and_merged_once(tmp_path: Path, edit: str) -> None:
    ralf.record_decision("tide", "We keep the table in one file.", root=tmp_path)
    path = tmp_path / ".autonomous" / "context" / "routes" / "tide.md"
    theirs = path.read_text().replace("\ndecisions:", f"\n{edit.format(PASSWORD)}\ndecisions:", 1)
    for number in range(2):
        path.write_text(theirs)
        ralf.record_decision("tide", f"We read it {number} times.", root=tmp_path)
        assert PASSWORD.encode() not in stored(tmp_path)
    assert 'password: "[REDACTED:' in path.read_text()
    assert [record["kind"] for record in records_of(tmp_path, "tide")].count("edit") == 1


def test_a_persons_edit_is_redacted_when_a_repair_takes_it_in(tmp_path: Path) -> None:
    ownership.init(Project(tmp_path), share=False)  # with its journal damaged, who else would vouch for the file
    for number in range(3):
        ralf.record_decision("tide", f"We keep {number}.", root=tmp_path)
    context = tmp_path / ".autonomous" / "context"
    path, journal = context / "routes" / "tide.md", context / "journal" / "routes" / "tide.jsonl"
    edit = f"note: A_PASSWORD={PASSWORD}\npassword: {PASSWORD}"
    path.write_text(path.read_text().replace("\ndecisions:", f"\n{edit}\ndecisions:", 1))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], lines[2].replace(b"{", b"x"), *lines[3:]]))
    repair(root=tmp_path)
    assert str(ralf.get_context("tide", root=tmp_path).extra).count("[REDACTED:") == 2
    assert PASSWORD.encode() not in stored(tmp_path)


@pytest.mark.ci
@pytest.mark.parametrize(
    "edit",
    [
        'note: "{head}\\\n  {rest}"',
        'note: "\\x67{tail}"',
        "note: >-\n  the password:\n  {word}",
        'note: "the password =\n  {word}"',
    ],
)
def test_a_secret_visible_only_in_the_value_stays_in_no_displaced_file(tmp_path: Path, edit: str) -> None:
    token, word = f"ghp_{'a1B2c3D4e5F6' * 3}", "tH7zQp9LmX2vKd4R"
    ralf.record_decision("tide", "We keep the table in one file.", root=tmp_path)
    path = tmp_path / ".autonomous" / "context" / "routes" / "tide.md"
    shown = edit.format(head=token[:12], rest=token[12:], tail=token[1:], word=word)
    path.write_text(path.read_text().replace("\ndecisions:", f"\n{shown}\ndecisions:", 1))
    ralf.record_decision("tide", "We read it once.", root=tmp_path)
    assert "[REDACTED:" in str(ralf.get_context("tide", root=tmp_path).extra["note"])
    assert not any(part.encode() in stored(tmp_path) for part in (token[12:], word))


def test_the_key_is_made_once_in_the_users_own_folder(tmp_path: Path) -> None:
    write_session(tmp_path / "session.jsonl", 2_000)
    ralf.checkpoint("tide", tmp_path / "session.jsonl", root=tmp_path)
    first = registry.find(tmp_path)
    assert first is not None and re.fullmatch("[0-9a-f]{64}", first.redaction_key)
    ralf.record_decision("tide", "We read it once.", root=tmp_path)
    assert registry.find(tmp_path) == first
    assert first.redaction_key.encode() not in stored(tmp_path)


def test_without_a_folder_for_the_key_redaction_goes_on_under_one_for_this_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    project = tmp_path / "project"
    project.mkdir()
    write_session(tmp_path / "session.jsonl", 2_000)
    assert "[REDACTED:" in redactor_for(Project(project)).text(f"A_PASSWORD={PASSWORD}")
    with pytest.raises(UsageError, match="no store is made"):
        ralf.checkpoint("tide", tmp_path / "session.jsonl", root=project)


def test_the_users_own_patterns_count(tmp_path: Path) -> None:
    configure(tmp_path, "redact_patterns: ['ACME-[0-9]{8}', 'badge ([a-z]{4})']\n")
    shown = redactor_for(Project(tmp_path)).text("ACME-12345678, badge abcd")
    assert re.fullmatch(r"\[REDACTED:pattern:\w{8}\], badge \[REDACTED:pattern:\w{8}\]", shown)


PERSONAL = (
    "Ask ada.lovelace+ci@mail.example.co.uk first",
    "call +49 171 2345678 or",
    "+1 (415) 555-0132 is hers",
    "(415) 555-0132, after nine",
    "fax 415-555-0132",
    "at 0171-2345678.",
)


@pytest.mark.parametrize("text", PERSONAL)
def test_one_switch_removes_mail_addresses_and_telephone_numbers(tmp_path: Path, text: str) -> None:
    assert redactor_for(Project(tmp_path)).text(text) == text
    configure(tmp_path, "redact_personal: on\n")
    shown = redactor_for(Project(tmp_path)).text(text)
    assert "[REDACTED:pattern:" in shown
    assert not re.search(r"[0-9]{4}(?![0-9a-f]*\])|@", re.sub(r"\[REDACTED:pattern:\w{8}\]", "", shown))


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-26T23:10:00Z",
        "127.0.0.1:6379",
        "v1.2.3-rc.4",
        "10,000 of 20,000",
        "@pytest.mark.slow",
        "0644",
        "a@b",
    ],
)
def test_what_is_no_personal_data_stays_with_the_switch(tmp_path: Path, text: str) -> None:
    configure(tmp_path, "redact_personal: on\n")
    assert redactor_for(Project(tmp_path)).text(text) == text


# ---- time ----


@pytest.mark.ci
def test_no_text_made_of_the_rules_own_words_takes_long() -> None:
    """Twice the text takes at most three times as long: a quadratic rule takes four times."""
    words = sorted({word for rule in redactor.RULES for word in rule.words})
    pieces = [word + end for word in words[::12] for end in ("", " ", "'a' ", "\n")]
    pieces += [
        "password=",
        "api_key= ",
        "token",
        "-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n",
        "://a:",
        "curl -u ",
        "mysql -p ",
        "x-----BEGIN PRIVATE KEY-----\nMIIabc",
        "LS0tLS1CRUdJTi",
        "id,password,x\n",
        "|password|\n",
        "a1b2c3d4e5f6g7 is the token ",
        "the password for x is: ",
        "\\",
        "{ get; set; } = ",
    ]
    pieces += ["AQE", "EAA", "BQ"]
    for piece in pieces:

        def taken(size: int, piece: str = piece) -> float:
            text = piece * (size // len(piece)) + "="
            begin = time.process_time()
            REDACTOR.hits(text)
            return time.process_time() - begin

        in_line(partial(taken, 5_000), partial(taken, 20_000), most=8, spare=0.02)


# ---- one look for many ----


@pytest.mark.parametrize("depth", range(4))
def test_a_manifest_of_kubernetes_is_read_within_json_at_any_depth(depth: int) -> None:
    value = "SEtwSjlpd1YyJXIj"
    text = f"kind: Secret\nmetadata:\n  name: db\ndata:\n  user: {value}\nstringData:\n  more: {value}\n"
    for _ in range(depth):
        text = json.dumps({"out": text})
    assert value not in REDACTOR.text(text)


# ---- planted ----


@pytest.mark.ci
@pytest.mark.parametrize("seed", [1, 2])
def test_of_planted_secrets_nothing_is_left_in_the_store_or_in_what_a_model_was_sent(tmp_path: Path, seed: int) -> None:
    for number in range(4):
        found = planted_secrets.batch(100 * seed + number, folder=tmp_path / f"p{number}")
        assert found == []


@pytest.mark.ci
def test_redacting_each_event_by_itself_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(borders._Stream, "add", lambda *_, **__: None)
    found = planted_secrets.batch(1, 200, folder=tmp_path / "p", model=False)
    assert any(one.plant.form.startswith("cut") for one in found)


@pytest.mark.ci
def test_redacting_after_the_evidence_is_kept_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "events", lambda _, events, **__: (list(events), {}))
    found = planted_secrets.batch(1, 60, folder=tmp_path / "p", model=False)
    assert any("blobs" in one.where for one in found)


@pytest.mark.ci
def test_another_scanner_finds_no_planted_secret_in_the_store(tmp_path: Path) -> None:
    """gitleaks' rules, run by themselves over the raw text and over the store."""
    _, planted = planted_secrets.sown(random.Random(300))  # noqa: S311  # repeatable
    planted_secrets.batch(300, folder=tmp_path / "p")
    parts = [part for plant in planted for part in plant.parts]

    def hits(text: str) -> int:
        return sum(any(len(one) > 7 and (one in part or part in one) for part in parts) for one in set(scan(text)))

    assert hits("\n".join(plant.text for plant in planted)) > 50  # it can find them
    assert hits(stored(tmp_path / "p").decode("utf-8", "replace")) == 0
    assert left(planted, tmp_path / "p") == []


def test_the_file_that_holds_the_key_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("redaction_key: x")
    (tmp_path / "config.local.yaml").symlink_to(tmp_path / "there")
    with pytest.raises(UsageError, match="symbolic link"):
        registry.read(tmp_path / "config.local.yaml")


# ---- many secrets ----


def _many(count: int) -> list[str]:
    generator = random.Random(count)  # noqa: S311
    return ["".join(generator.choices("ABCDEFGHJKabcdefghjk0123456789", k=24)) for _ in range(count)]


def test_of_many_secrets_each_is_found_again_as_of_few() -> None:
    secrets = [*_many(300), "short1", "sh0rt", "x9"]
    text = "".join(f"{secret} and {secret[:12]} " for secret in secrets)
    few = [span for secret in secrets for span in Known({secret: f"[{secret}]"}).spans(text)]
    assert sorted(Known({secret: f"[{secret}]" for secret in secrets}).spans(text)) == sorted(few)


@pytest.mark.ci
def test_a_text_of_many_secrets_is_gone_through_in_time_by_its_length() -> None:
    secrets = _many(30_000)
    text = "\n".join(secrets)
    assert Known(dict.fromkeys(secrets, "gone")).replaced(text) == "\n".join(["gone"] * len(secrets))
    within(1.5, lambda: Known(dict.fromkeys(secrets, "gone")).replaced(text))

"""The vendors' rules are gitleaks', as its file has them, and count as gitleaks counts them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import vendoring
from ralf.redact import borders, engine, vendors
from ralf.redact.engine import Text
from ralf.redact.redactor import Redactor
from ralf.redact.vendors import VendorRule as Rule
from ralf.transcripts.events import START, Event

pytestmark = pytest.mark.skipif(not engine.available(), reason="google-re2 is not installed")

SOURCE = Path(__file__).parents[2] / "shared" / "attack" / "secrets" / "gitleaks.toml"
TOKEN = "zQ7Rt2bVx9MpL4sKd8WzY3nCf"  # noqa: S105


def found(rule: dict[str, Any], text: str) -> list[str]:
    return [text[hit.start : hit.end] for hit in Rule({"id": "x", "regex": "tok_[A-Za-z0-9]+"} | rule).find(Text(text))]


@pytest.mark.ci
def test_the_vendored_rules_are_what_the_script_makes_of_gitleaks_file() -> None:
    if not SOURCE.exists():
        pytest.skip("gitleaks' rule file is not here")
    made = vendoring.text_of(tomllib.loads(SOURCE.read_text()))
    assert files("ralf").joinpath("data", "gitleaks.json").read_text("utf-8") == made


def every_rule() -> set[Rule]:
    return set(vendors.rules())


def test_every_rule_compiles_and_has_a_keyword_and_a_kind_that_a_tag_can_hold() -> None:
    rules = every_rule()
    assert len(rules) > 190
    for rule in rules:
        list(rule.find(Text("some text")))
        assert rule.kind.replace("-", "").isalnum()
    assert all(word == word.lower() for rule in rules for word in rule.words)


def test_a_rule_that_is_left_out_is_left_out_for_a_reason() -> None:
    kept = {rule.kind for rule in every_rule()}
    assert not kept & set(vendoring.DROPPED)
    assert all(vendoring.DROPPED.values())


# ---- as gitleaks counts ----


def test_the_secret_is_the_rules_group_else_the_first_that_took_part_else_the_match() -> None:
    assert found({}, f"a tok_{TOKEN} b") == [f"tok_{TOKEN}"]
    assert found({"regex": "(?:a(x)|key (tok_[A-Za-z0-9]+))"}, f"key tok_{TOKEN}") == [f"tok_{TOKEN}"]
    assert found({"regex": "(key) (tok_[A-Za-z0-9]+)", "secretGroup": 2}, f"key tok_{TOKEN}") == [f"tok_{TOKEN}"]


def test_a_secret_of_little_entropy_is_none() -> None:
    assert found({"entropy": 3}, f"tok_ababababab tok_{TOKEN}") == [f"tok_{TOKEN}"]


def test_what_an_allow_list_names_is_no_secret() -> None:
    text = f"tok_{TOKEN}"
    assert found({"allowlists": [{"stopwords": [TOKEN[:6].lower()]}]}, text) == []
    assert found({"allowlists": [{"regexes": ["^tok_z"]}]}, text) == []
    assert found({"allowlists": [{"regexes": ["^test"], "regexTarget": "line"}]}, f"a\ntest {text}") == []
    assert found({"allowlists": [{"regexes": ["^test"], "regexTarget": "line"}]}, f"test\n{text}") == [text]
    both = {"condition": "AND", "regexes": ["^tok_z"], "stopwords": ["nowhere"]}
    assert found({"allowlists": [both]}, text) == [text]


def test_a_token_is_found_in_a_sentence_a_list_and_a_page_and_not_only_in_source() -> None:
    token = "pnu_" + "aB3dE6gH9jK2mN5pQ8sTuV1xY4zA7cD0eF3g"
    for text in (f"Use {token}, please.", f"It is {token}.", f"[a,{token},b]", f"<b>{token}</b>", f"({token})"):
        assert token not in Redactor(b"k" * 32).text(text)


# ---- what a token begins with ----


def test_the_literals_with_which_tokens_begin_are_read_off_the_expressions() -> None:
    rules = [
        {"id": "a", "regex": r"\b(p8e-(?i)[a-z0-9]{32})", "keywords": ["p8e-"]},
        {"id": "b", "regex": r"(?:sk|rk)_(?:test|live)_[a-z]{9}", "keywords": ["sk_"]},
        {"id": "c", "regex": r"(?i)[\w.-]{0,50}?(?:adobe)=([a-f0-9]{32})", "keywords": ["adobe"]},
    ]
    made = vendoring.vendored({"rules": rules})["rules"]
    assert [rule.get("literals") for rule in made] == [["p8e-"], ["rk_live_", "rk_test_", "sk_live_", "sk_test_"], None]


def test_a_vendored_rules_token_that_a_text_cuts_short_is_redacted_to_the_cut() -> None:
    assert "pnu_" in {literal for rule in vendors.rules() for literal in rule.literals}
    assert [hit.kind for hit in borders.cut_off("the key is pnu_aB3dE6gH9j")] == ["cut-off"]


def test_a_token_of_a_vendored_rule_that_two_results_share_stands_in_neither() -> None:
    token = "rdme_" + "ab3de6gh9jk2mn5pq8st1uv4xy7z" * 2 + "ab3de6gh9jk2mn"
    for place in range(6, len(token) - 5, 7):
        first, second = f"log\nkey {token[:place]}", f"{token[place:]}\nmore"
        shown, _ = Redactor(b"k" * 32).events([Event("result", text, START, START) for text in (first, second)])
        assert token[:place] not in shown[0].text
        assert token[place:] not in shown[1].text

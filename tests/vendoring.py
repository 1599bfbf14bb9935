"""Make `ralf/data/gitleaks.json`, the rules for the tokens of vendors, from the rule file of gitleaks.

    python tests/vendoring.py gitleaks.toml > context/ralf/data/gitleaks.json

The rules are those of the file, but for DROPPED, what ralf cannot answer (a transcript's text has no file name: a rule
or an allow-list that asks for one is left out), and what may follow a token: a transcript is no source file, tokens
stand in its sentences, lists and pages, too.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from re import _constants as constants, _parser as parser  # type: ignore[attr-defined]  # no other module parses them
from typing import Any

DROPPED = {
    "generic-api-key": "our own names find more of its kind, and its value is any ten characters: noise",
    "private-key": "our own finds keys without their end, in listings, in JSON and in base64",
    "curl-auth-header": "our own names find it in any program's headers",
    "curl-auth-user": "our own commands find it, also over continued lines",
    "kubernetes-secret-yaml": "our own takes each value of the manifest, of any length",
    "jwt": "our own finds encrypted ones, too, and its keyword `ey` stands in a third of all words",
    "twilio-api-key": "our own is the same, without its keyword `sk`",
    "vault-service-token": "our own is the same, without its keyword `s.`",
    **dict.fromkeys(
        (
            "adobe-client-id", "asana-client-id", "bitbucket-client-id", "discord-client-id", "linkedin-client-id",
            "looker-client-id", "messagebird-client-id", "plaid-client-id", "sendbird-access-id", "sumologic-access-id",
        ),
        "an id is no secret",
    ),
    **dict.fromkeys(
        ("flutterwave-public-key", "lob-pub-api-key", "mailgun-pub-key", "new-relic-browser-api-token"),
        "a public key is no secret",
    ),
}  # fmt: skip
"""Rules that are left out, each with the reason."""

_BEHIND = r"""(?:[\x60'"\s;]|\\[nr]|$)"""

_BEHIND_IN_TEXT = r"""(?:[\x60'"\s;,)\]}<>&|!?*]|[.:](?:\s|$)|\\[nr]|$)"""

_SHORTEST_LITERAL = 4

_WORDS = ("API-", "ext_", "pat.", "sat.")  # code has them before any name: no sign of a token that was cut short


def vendored(source: Mapping[str, Any]) -> dict[str, Any]:
    """The rules as ralf keeps them, of gitleaks' file as it was parsed."""
    allowed = source.get("allowlist", {})
    return {
        "allowed": {key: allowed[key] for key in ("regexes", "stopwords") if key in allowed},
        "rules": [_rule(rule) for rule in source["rules"] if _is_kept(rule)],
    }


def text_of(source: Mapping[str, Any]) -> str:
    """The file's text: a rule on each line, so that an update shows what it changes."""
    made = vendored(source)
    rules = ",\n".join(json.dumps(rule, ensure_ascii=False, sort_keys=True) for rule in made["rules"])
    return f'{{"allowed": {json.dumps(made["allowed"], sort_keys=True)},\n"rules": [\n{rules}\n]}}\n'


def _is_kept(rule: Mapping[str, Any]) -> bool:
    return rule["id"] not in DROPPED and "regex" in rule and "path" not in rule and bool(rule.get("keywords"))


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: rule[key] for key in ("id", "entropy", "secretGroup") if key in rule}
    kept["regex"] = rule["regex"].replace(_BEHIND, _BEHIND_IN_TEXT)
    if _first_is_repeated(parser.parse(_in_python(rule["regex"]))):
        kept["secretGroup"] = 0  # the group holds the last of its repeats only: the match is the secret
    kept["keywords"] = [keyword.lower() for keyword in rule["keywords"]]
    if literals := sorted(set(_literals(rule["regex"]))):
        kept["literals"] = literals
    allowed = [
        {key: one[key] for key in ("condition", "regexTarget", "regexes", "stopwords") if key in one}
        for one in rule.get("allowlists", ())
        if not ("paths" in one and (one.get("condition") == "AND" or len(one) == 1))
    ]
    return kept | ({"allowlists": allowed} if allowed else {})


def _first_is_repeated(tree: Sequence[tuple[Any, Any]], *, repeated: bool = False) -> bool:
    """Whether the first group that captures stands in a repeat."""
    for operation, argument in tree:
        if operation is constants.SUBPATTERN:
            return repeated or (argument[0] is None and _first_is_repeated(argument[-1], repeated=repeated))
        if operation in (constants.MAX_REPEAT, constants.MIN_REPEAT) and _first_is_repeated(argument[2], repeated=True):
            return True
    return False


# ---- how a token begins ----


def _literals(regex: str) -> Iterator[str]:
    """The literals with which what an expression matches begins, where it begins with some."""
    for literal in _beginnings(parser.parse(_in_python(regex))):
        if len(literal) >= _SHORTEST_LITERAL and literal not in _WORDS and not literal.startswith("http"):
            yield literal


def _in_python(regex: str) -> str:
    """An expression that Python's parser reads to the same literals; flags and anchors are of no matter to them."""
    regex = re.sub(r"\(\?-?[is]\)", "", regex)
    regex = re.sub(r"\(\?-?[is]:", "(?:", regex)
    return regex.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")


def _beginnings(tree: Sequence[tuple[Any, Any]]) -> list[str]:
    """What a match may begin with, as far as each beginning is certain; [""] where nothing is."""
    beginnings = [""]
    for operation, argument in tree:
        if operation is constants.AT:
            continue
        if operation is constants.LITERAL:
            beginnings = [beginning + chr(argument) for beginning in beginnings]
        elif (operation is constants.BRANCH and (inner := _whole([(operation, argument)])) is not None) or (
            operation is constants.SUBPATTERN and (inner := _whole(argument[-1])) is not None
        ):
            beginnings = [beginning + one for beginning in beginnings for one in inner]
        elif operation is constants.SUBPATTERN:
            return [beginning + one for beginning in beginnings for one in _beginnings(argument[-1])]
        elif operation is constants.BRANCH:
            return [beginning + one for beginning in beginnings for part in argument[1] for one in _beginnings(part)]
        else:
            break
    return beginnings


def _whole(tree: Sequence[tuple[Any, Any]]) -> list[str] | None:
    """All that a tree of literals matches; None for any other tree."""
    if len(tree) == 1 and tree[0][0] is constants.BRANCH:
        parts = [_whole(part) for part in tree[0][1][1]]
        return None if None in parts else [one for part in parts for one in part or ()]
    if all(operation is constants.LITERAL for operation, _ in tree):
        return ["".join(chr(argument) for _, argument in tree)]
    return None


if __name__ == "__main__":
    sys.stdout.write(text_of(tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))

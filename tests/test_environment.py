"""What the command of a summariser inherits: no key that it does not need. Real child processes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from ralf import environment
from ralf.refining.command import PRESETS, Command

CODE = "import json, os; print(json.dumps(dict(os.environ)))"
KEYS = (
    *(
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "GITHUB_TOKEN",
        "SMTP_PASS",
        "DBPASS",
        "PGPASSWORD",
        "npm_config__authToken",
    ),
    *("MY_KEYS", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_TENANT_ID", "SSH_AUTH_SOCK", "KUBECONFIG", "SENTRY_DSN"),
    *("GEMINI_API_KEY", "GPG_PASSPHRASE", "VAULT_ADDR", "SESSION_COOKIE", "APIKEY"),
)
PLAIN = ("PATH", "LANG", "KEYBOARD", "PASSENGER", "PATTERN", "AUTHOR", "EDITOR_NAME")


@pytest.fixture(autouse=True)
def _set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "planted")
    for name in PLAIN[1:]:
        monkeypatch.setenv(name, "C.UTF-8")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "LLM_KEY"):
        monkeypatch.setenv(name, "own")


def inherited(keeps: Sequence[str]) -> dict[str, str]:
    """The environment that a real child process of a summariser has."""
    command = Command("command", (sys.executable, "-c", CODE), keeps=tuple(keeps))
    found = command.ask("", {}, environment.of_a_summarizer(command.keeps)).tree or {}
    return {str(name): str(value) for name, value in found.items()}


def test_a_command_of_one_s_own_inherits_no_key_and_all_that_says_nothing_of_one() -> None:
    found = inherited(())
    assert "planted" not in found.values()
    assert "own" not in found.values()
    assert set(PLAIN) <= set(found)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("claude", {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}),
        ("codex", {"OPENAI_API_KEY", "CODEX_API_KEY"}),
        ("llm", {"OPENAI_API_KEY", "LLM_KEY"}),
    ],
)
def test_a_preset_keeps_the_keys_of_its_own_client_alone(name: str, own: set[str]) -> None:
    found = inherited(PRESETS[name].keeps)
    assert {name for name, value in found.items() if value == "own"} == own
    assert "planted" not in found.values()


def test_a_cloud_s_variables_stay_where_the_client_says_that_it_uses_that_cloud(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    monkeypatch.setenv("CLAUDE_CODE_USE_VERTEX", "0")
    found = inherited(PRESETS["claude"].keeps)
    assert {"AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} <= set(found)
    assert "GOOGLE_APPLICATION_CREDENTIALS" not in found

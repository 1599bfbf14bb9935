"""RE2 runs what is looked for in foreign text: in linear time, and without it nothing runs that could hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ralf
import storekit
from clocks import within
from ralf import redact
from ralf.errors import UsageError
from ralf.redact import engine
from ralf.redact.engine import Text, Words
from ralf.redact.redactor import Redactor

needs_re2 = pytest.mark.skipif(not engine.available(), reason="google-re2 is not installed")


def redacted(pattern: str, text: str) -> str:
    return Redactor(b"k" * 32, redact.compiled(Path("config.yaml"), [pattern])).text(text)


def without_re2(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that has no RE2."""
    code = f"import sys\nsys.modules['re2'] = None\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


# ---- patterns of the user ----


@needs_re2
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(x+x+)+y", "(.*)(.*)(.*)(.*)z"])
def test_a_pattern_on_which_a_backtracking_engine_hangs_runs_in_linear_time(pattern: str) -> None:
    text = "ax" * 100_000
    within(5, lambda: redacted(pattern, text[:20_000] if pattern.startswith("(.*)") else text))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[", "missing"),
        (r"(?<=id )\w+", "invalid perl operator"),
        (r"(\w)\1", "invalid escape"),
        ("a*", "nothing stands"),
        ("a{1,5000}", "repetition"),
    ],
)
@needs_re2
def test_a_pattern_that_cannot_run_is_named_with_the_reason_and_never_dropped(pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as raised:
        redacted(pattern, "")
    assert "redact_patterns" in str(raised.value)
    assert repr(pattern) in str(raised.value)
    assert raised.value.hint


@needs_re2
def test_places_count_characters_even_behind_multibyte_letters_and_lone_surrogates() -> None:
    shown = redacted("badge ([0-9]{4})", "ü\ud800漢🔑 badge 1234; ß badge 5678.")
    assert shown.startswith("ü\ud800漢🔑 badge [REDACTED:pattern:")
    assert "1234" not in shown
    assert "5678" not in shown
    assert shown.endswith("].")


# ---- words ----


def test_the_same_words_are_found_in_a_short_text_and_in_a_long_one() -> None:
    words = ["ghp_", "s.", "密码", "a.b", "x"]
    for text in ("", "ghp_ 密码", "S. a1b", "A.B"):
        there = {word for word in words if word in text.lower()}
        assert set(Words(words).within(Text(text))) == there
        assert set(Words(words).within(Text(text + "\ud800" + "-" * 10_000))) == there


def test_lower_case_keeps_each_character_in_its_place() -> None:
    text = "İSTANBUL_PASSWORD"
    assert len(Text(text).low) == len(text)
    assert Text(text).low.endswith("password")


# ---- without RE2 ----


@pytest.mark.ci
def test_without_re2_what_our_own_table_knows_is_found() -> None:
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT" + "uV1xY4zA7cD0eF3g"
    done = without_re2(f"""
from ralf.redact.redactor import Redactor
print(Redactor(b"k" * 32).text("DB_PASSWORD=hunter2!x and {token} " + "x" * 10_000)[:120])
""")
    assert done.stderr == ""
    assert "hunter2" not in done.stdout
    assert "[REDACTED:github:" in done.stdout


@pytest.mark.ci
def test_without_re2_a_pattern_is_refused_and_the_error_says_what_to_install() -> None:
    done = without_re2("""
from pathlib import Path
from ralf.errors import UsageError
from ralf import redact
try:
    redact.compiled(Path("config.yaml"), ["ACME-[0-9]{8}"])
except UsageError as error:
    print(error, error.hint)
""")
    assert "redact_patterns: 'ACME-[0-9]{8}' cannot be used: google-re2 is not installed" in done.stdout, done.stderr
    assert "install google-re2" in done.stdout


def test_a_routes_first_checkpoint_says_once_what_is_not_looked_for_without_re2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda _: None)
    engine.available.cache_clear()
    said = '{"role": "user", "content": "We keep SQLite."}'
    try:
        session = tmp_path / "session.jsonl"
        session.write_text(said + "\n")
        first = ralf.checkpoint("tide", session, root=tmp_path)
        session.write_text(f"{said}\n{said}\n")
        later = ralf.checkpoint("tide", session, root=tmp_path)
    finally:
        engine.available.cache_clear()
    assert engine.NOT_LOOKED_FOR in first.warnings
    assert engine.NOT_LOOKED_FOR not in later.warnings


def test_a_re2_that_cannot_be_loaded_stops_a_write_with_an_error_and_nothing_is_stored(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "re2"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("from . import _re2\n")
    command = [sys.executable, "-m", "ralf_cli", "--root", str(tmp_path), "decide", "tide", f"{'akia ' * 2000} is told"]
    environment = storekit.environment(tmp_path, PYTHONPATH=str(broken.parent))
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "re2 cannot be loaded" in ran.stderr
    assert "Traceback" not in ran.stderr

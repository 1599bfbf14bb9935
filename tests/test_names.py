"""Route names: what is allowed makes a file on every file system, what is not is refused before a path is made."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from contexts import quick
from ralf.errors import UsageError
from ralf.text import cleaning

ALLOWED = ["TASK-001", "api-refactoring", "a", "0", "a.b_c-d", "x" * 64, "console", "com10", "md", "v1.2.3"]
REFUSED = [
    *["", ".", "..", "a..b", ".a", "a.", "-a", "a-", "_a", "a_", "x" * 65],
    *["a/b", "/a", "a\\b", "../a", "a b", "a\n", "\na", "a\0", "a\u00e9", "\u0430", "a:b", "a*", "~", "$HOME", "%2e"],
    *["a.md", "a.MD", "a.tmp", "a.lock", "a.Lock"],
    *["con", "CON", "nul", "nul.txt", "aux.a.b", "com1", "LPT9", "prn"],
]


@pytest.mark.parametrize("name", ALLOWED)
def test_an_allowed_name_is_taken_as_it_is(name: str) -> None:
    assert cleaning.is_valid(name)
    assert cleaning.check(name) == name
    assert cleaning.slug(name) == name


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_some_file_system_would_not_take_is_refused(name: str) -> None:
    assert not cleaning.is_valid(name)
    with pytest.raises(UsageError) as refused:
        cleaning.check(name)
    assert refused.value.exit_status == 2


@given(st.text(max_size=80))
@quick
def test_a_refusal_is_one_printable_line_and_its_hint_names_an_allowed_route(name: str) -> None:
    try:
        cleaning.check(name)
    except UsageError as refused:
        assert str(refused).isprintable()
        assert len(str(refused)) < 400
        assert cleaning.is_valid(refused.hint.split()[-1])


odd = st.text(st.sampled_from("aZ09._-/\\: \n\0\u00e9~"), max_size=70)


@given(odd | st.text(max_size=200) | st.sampled_from(REFUSED))
@quick
def test_any_text_has_an_allowed_slug_that_is_its_own_slug(text: str) -> None:
    slug = cleaning.slug(text)
    assert cleaning.is_valid(slug)
    assert cleaning.slug(slug) == slug
    assert cleaning.slug(text) == slug


def test_texts_that_lose_the_same_characters_have_different_slugs() -> None:
    slugs = {
        cleaning.slug(text) for text in ["feature/login", "feature login", "feature:login", "feature-login", "\ud800"]
    }
    assert len(slugs) == 5


@given(odd)
@quick
def test_an_allowed_name_never_leaves_its_folder(name: str) -> None:
    if cleaning.is_valid(name):
        assert name not in (".", "..")
        assert not set(name) & set("/\\\0\n: ")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Fix the login form: it forgets the user's name", "fix-the-login-form-it-forgets-the-users"),
        ("Überarbeite die Größe der Schrift", "uberarbeite-die-groe-der-schrift"),
        ("Fix src/a.py\nand more", "fix-src-a-py-and-more"),
        ("hi", ""),
        ("潮汐表を新しいリーダーへ移す", ""),
        ("x" * 300 + " is long", ""),
    ],
)
def test_a_readable_name_is_made_of_the_first_words(text: str, name: str) -> None:
    assert cleaning.readable(text) == name


@given(st.text(max_size=500))
@quick
def test_a_readable_name_is_always_allowed_and_short(text: str) -> None:
    name = cleaning.readable(text)
    assert not name or (cleaning.is_valid(name) and len(name) <= 40 and name == name.lower())

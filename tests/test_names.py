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


odd = st.text(st.sampled_from("aZ09._-/\\: \n\0\u00e9~"), max_size=70)


@given(odd)
@quick
def test_an_allowed_name_never_leaves_its_folder(name: str) -> None:
    if cleaning.is_valid(name):
        assert name not in (".", "..")
        assert not set(name) & set("/\\\0\n: ")

"""Route names: what is allowed makes a file on every file system, what is not is refused before a path is made."""

from __future__ import annotations

import pytest

from ralf.errors import UsageError
from ralf.text import cleaning

REFUSED = [
    *["", ".", "..", "a..b", ".a", "a.", "-a", "a-", "_a", "a_", "x" * 65],
    *["a/b", "/a", "a\\b", "../a", "a b", "a\n", "\na", "a\0", "a\u00e9", "\u0430", "a:b", "a*", "~", "$HOME", "%2e"],
    *["a.md", "a.MD", "a.tmp", "a.lock", "a.Lock"],
    *["con", "CON", "nul", "nul.txt", "aux.a.b", "com1", "LPT9", "prn"],
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_some_file_system_would_not_take_is_refused(name: str) -> None:
    assert not cleaning.is_valid(name)
    with pytest.raises(UsageError) as refused:
        cleaning.check(name)
    assert refused.value.exit_status == 2

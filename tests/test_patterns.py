"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ralf.text import matcher
from ralf.text.patterns import regex
from storekit import SOURCE

ALL = """
import gc
from tests.faults.compiled import modules
from ralf.text.patterns import regex
modules()
found = [each for each in gc.get_objects() if type(each) is type(regex(""))]
for each in found:
    each.flags
print(len(found))
"""


def test_every_pattern_of_the_product_compiles() -> None:
    done = subprocess.run([sys.executable, "-c", ALL], cwd=SOURCE, capture_output=True, text=True, check=False)
    assert (done.returncode, int(done.stdout or 0) > 300) == (0, True), done.stderr


def test_a_lazy_pattern_gives_what_the_compiled_one_gives() -> None:
    lazy, compiled = regex(r"(?P<word>\w+)-", re.IGNORECASE), re.compile(r"(?P<word>\w+)-", re.IGNORECASE)
    assert [found["word"] for found in lazy.finditer("ab-cd-")] == ["ab", "cd"]
    assert lazy.sub("", "ab-c") == compiled.sub("", "ab-c") == "c"
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)
    assert regex(rb"a+").fullmatch(b"aa")


def test_a_bad_pattern_is_refused_at_its_first_use() -> None:
    bad = regex("(")
    with pytest.raises(re.error):
        bad.search("")


def test_all_patterns_can_be_compiled_ahead_of_their_first_use() -> None:
    lazy, one_of = regex(r"never used (before|again)"), matcher.AnyOf(r"\bnever used\b")
    assert "search" not in vars(lazy) and "_any" not in vars(one_of)
    for _ in matcher.compile_all():
        pass
    assert "search" in vars(lazy) and "_any" in vars(one_of)

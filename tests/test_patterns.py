"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

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


@pytest.mark.ci
def test_every_pattern_of_the_product_compiles() -> None:
    done = subprocess.run([sys.executable, "-c", ALL], cwd=SOURCE, capture_output=True, text=True, check=False)
    assert (done.returncode, int(done.stdout or 0) > 300) == (0, True), done.stderr


def test_a_lazy_pattern_gives_what_the_compiled_one_gives() -> None:
    lazy, compiled = regex(r"(?P<word>\w+)-", re.IGNORECASE), re.compile(r"(?P<word>\w+)-", re.IGNORECASE)
    assert [found["word"] for found in lazy.finditer("ab-cd-")] == ["ab", "cd"]
    assert lazy.sub("", "ab-c") == compiled.sub("", "ab-c") == "c"
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)
    assert regex(rb"a+").fullmatch(b"aa")

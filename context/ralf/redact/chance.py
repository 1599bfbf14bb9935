"""How likely it is that a text was made at random."""

from __future__ import annotations

from itertools import pairwise

from ralf.redact.table import words
from ralf.text.patterns import regex

RARE = frozenset(letters[0] + second for letters in words("rare-pairs") for second in letters[1:])
"""Pairs of letters that hardly stand in a word or name: 3 of 100 pairs there, 46 of 100 of random ones. Each word of
the table is a letter, and those that rarely follow it."""

_CONSONANTS = regex(r"(?i)[b-df-hj-np-tv-xz](?=[b-df-hj-np-tv-xz]{2})")

_SIGNS = frozenset("!@#%^?+&$~")  # which passwords have, and words of code and prose have not


def odds(text: str) -> int:
    """By how many bits it is likelier that a text was made at random than that it is a word of prose or code.

    Each pair of neighbours counts by how often it stands in both: digits beside letters, capitals behind small letters,
    rare pairs of letters and consonants in a row speak for chance.
    """
    bits = 2 * len(_CONSONANTS.findall(text))
    for one, other in pairwise(text):
        if not (one.isalnum() and other.isalnum()):
            bits += 2 if one in _SIGNS or other in _SIGNS else -1
        elif one.isdigit() or other.isdigit():
            bits += 5 if one.isdigit() != other.isdigit() else 1
        elif one.islower() and other.isupper():
            bits += 5
        elif (one + other).lower() in RARE:
            bits += 4
        else:
            bits -= 3 if one.islower() else 2 if other.isupper() else -2
    return bits

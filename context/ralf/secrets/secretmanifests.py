"""The values of Kubernetes' manifests of kind Secret, as YAML or JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ralf.secrets.secretformats import Hit
from ralf.secrets.secretvalues import is_placeholder

_SECRET = re.compile(r"kind[\"\\]*:\s*[\"\\]*Secret(?![A-Za-z])")
_DOCUMENT = re.compile(r"^---[ \t]*$|(?<!\\)\\++n---\\++n", re.M)
_DATA = re.compile(r"(?:string)?[dD]ata[\"\\]*:(?=\s|\\|\{)")
_YAML_ENTRY = re.compile(
    r"[ \t]*(?:\r?\n|\\+n)(?:[ \t]*[0-9]{1,6}[→\t|:])?([+-]?[ \t]+)[\"']?[\w.-]{1,100}[\"']?:[ ]*"
    r"[\"']?([^\s\"'\\|>]{4,}+)?[\"']?"
)
_JSON_ENTRY = re.compile(r"(?:\s|\\+n|[{,])*+\\*\"[\w.-]{1,100}\\*\"\s*:\s*\\*\"([^\"\\]{4,}+)\\*\"")


def find(text: str) -> Iterator[Hit]:
    """What stands under `data:` and `stringData:` of a manifest of kind Secret, as YAML or JSON."""
    borders = [0, *(found.end() for found in _DOCUMENT.finditer(text)), len(text)]
    for start, end in pairwise(borders):
        if _SECRET.search(text, start, end) is None:
            continue
        read = start  # an entry may be called `data`, too
        for data in _DATA.finditer(text, start, end):
            if data.start() < read:
                continue
            place = data.end()
            json = text[place : place + 3].lstrip().startswith("{")
            indent = None
            while entry := _JSON_ENTRY.match(text, place, end) if json else _YAML_ENTRY.match(text, place, end):
                if not json and (indent := indent or entry[1]) != entry[1]:
                    break
                last = 1 if json else 2
                if entry[last] is not None and not is_placeholder(entry[last]):
                    yield Hit(*entry.span(last), "kubernetes-secret")
                read = place = entry.end()

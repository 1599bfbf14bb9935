"""CONTRIBUTING.md: its paths are there, and its first recipe works on a copy of the source."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_paths_of_the_page_are_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:ralf|tests|cli|integrations|migrations)/[\w./]*)`", page):
        assert (ROOT / ("context" if path.startswith("ralf/") else "") / path).exists() or "NAME" in path, path

"""The texts of the plugin and of AGENTS.md; `clients.plugin` and `clients.agents_md` put them together."""

from __future__ import annotations

from pathlib import Path


def text(name: str) -> str:
    """One of the files beside this one."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")

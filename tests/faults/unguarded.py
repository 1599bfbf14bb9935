"""Readers without their guards, for the fuzzer to find fault with: what each does wrong stands in its first line."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml

from ralf.errors import RalfError
from ralf.model import RouteContext
from ralf.route import routefile

if TYPE_CHECKING:
    from .fuzz import World


def front_matter(_: World, __: random.Random, data: bytes) -> None:
    """Crashes: YAML by the book, with dates, aliases, numbers of any length and any depth."""
    try:
        tree = yaml.safe_load(data.decode("utf-8", "replace"))
    except yaml.YAMLError:
        raise RalfError("x.md", "no YAML") from None
    json.dumps(tree).encode()


def name(world: World, _: random.Random, data: bytes) -> None:
    """Escapes: a name that was checked for its characters alone."""
    text = data.decode("utf-8", "replace")
    if not re.match(r"[A-Za-z0-9._/-]{1,200}$", text):
        raise RalfError("name", "refused")
    path = world.store / "routes" / f"{text}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")


def transcript(_: World, __: random.Random, data: bytes) -> None:
    """Hangs: an expression whose repetitions can be divided in many ways."""
    re.search(rb'^(?:\s*"?[\w ]+"?[:,]?)*$', data[:100], re.M)


def cache(_: World, rng: random.Random, data: bytes) -> None:
    """Takes memory without end: repeats what it is told to."""
    held = data * (rng.randrange(2) * (400 << 20) // max(1, len(data)))
    del held


def render(context: RouteContext) -> str:
    """Forges: a goal that stands in the front matter as it was said."""
    written = routefile.render(replace(context, goal=""))
    return written.replace("\n---\n", f"\ngoal: {context.goal}\n---\n", 1) if context.goal else written

"""Questions about what holds beyond one task: whether what an agent is handed that asks its memory has the answer.

    python benchmarks/lasting_facts.py --sessions DIR --offered DIR --questions FILE ...

sessions   transcripts of one repository, `1-….jsonl` and so on, in the order of time
offered    for each of them `N.jsonl`: what its agent offered at its end, a JSON object a line: kind, text, error, …
questions  JSON: a list of {question, keys}; each key is a list of texts of which one has to be there

The rules take in each session as hooks do; then what its agent offered is accepted, as a person would. An answer counts
where the text that is handed over has every key of it. Neither transcripts nor questions are kept here.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ralf
from ralf import api
from ralf.memory import harvest, writing
from ralf.memory.model import DEFAULT_AGENT
from ralf.memory.wording import handed
from ralf.project import find


def build(root: Path, sessions: Path, offered: Path) -> None:
    """Have a memory learn from sessions, one after the other."""
    for number, transcript in enumerate(sorted(sessions.glob("*.jsonl")), start=1):
        route = f"session-{number}"
        ralf.checkpoint(route, transcript, root=root)
        harvest.take_in(find(root), route)
        for line in (offered / f"{number}.jsonl").read_text(encoding="utf-8").splitlines():
            said = {name: value for name, value in json.loads(line).items() if value}
            item = api.remember(said.pop("kind"), said.pop("text"), root=root, **said)
            if item.status == "offered":
                api.accept_item(item.id, root=root)


def has(text: str, question: dict[str, Any]) -> bool:
    """Whether a text has every key of an answer."""
    flat = _flat(text)
    return all(any(_flat(one) in flat for one in alternatives) for alternatives in question["keys"])


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


def figures(root: Path, questions: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """What was handed over, and how many answers it has."""
    items = writing.load(find(root), DEFAULT_AGENT).items
    whole = "\n".join(handed(item) for item in items)
    once = api.get_memory(root=root)
    texts = {
        "asked for each question, 5,000 tokens": (lambda one: api.get_memory(one, root=root).text, ">= 85 %"),
        "the same, items alone": (lambda one: _items(root, one), ""),
        "asked for each question, 600 tokens": (lambda one: api.get_memory(one, max_tokens=600, root=root).text, ""),
        "one text of 5,000 tokens for all": (lambda _: once.text, ""),
        "all items": (lambda _: whole, ""),
    }
    for what, (text, gate) in texts.items():
        count = sum(has(text(one["question"]), one) for one in questions)
        yield f"{len(items)} items, {what}: answers", f"{count} of {len(questions)}", gate


def _items(root: Path, question: str) -> str:
    return "\n".join(handed(item) for item in api.get_memory(question, root=root).items)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=Path, required=True)
    parser.add_argument("--offered", type=Path, required=True)
    parser.add_argument("--questions", type=Path, nargs="+", required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        build(root, given.sessions, given.offered)
        for path in given.questions:
            for what, figure, gate in figures(root, json.loads(path.read_text(encoding="utf-8"))):
                print(f"| {path.stem}: {what} | {figure} | {gate} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

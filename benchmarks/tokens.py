"""Counting tokens: how far off the estimate is, how fast both ways are, and what the first count costs."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator

import measure

from ralf.text import tokens

PIECE = 4096
SAMPLES = {
    "code": ["context/ralf/*.py", "examples/*.py"],
    "prose": ["docs/*.md", "README.md", "LICENSE"],
    "transcript": ["examples/session.jsonl"],
}

_TIKTOKENS_OWN = """
import os
os.environ["TIKTOKEN_CACHE_DIR"] = ""
import tiktoken, tiktoken.load
ranks = tiktoken.load.load_tiktoken_bpe({ranks!r})
tiktoken.Encoding("o", pat_str={pattern!r}, mergeable_ranks=ranks, special_tokens={{}}).encode_ordinary("x")
"""


def produce(rounds: int) -> list[measure.Row]:
    """All groups, one after another."""
    return [*errors(), *speed(rounds), *cold(max(3, rounds // 2))]


def errors() -> Iterator[measure.Row]:
    """How far the estimate is from the exact count, on pieces of 4 KB, next to characters / 4."""
    for name, patterns in SAMPLES.items():
        text = "".join(path.read_text(encoding="utf-8") for p in patterns for path in sorted(measure.ROOT.glob(p)))
        pieces = [text[start : start + PIECE] for start in range(0, len(text), PIECE)][:-1] or [text]
        exact = [*map(tokens.count, pieces)]
        quarter = _off([len(piece) / 4 for piece in pieces], exact)
        estimate = _off([tokens.estimate(piece) for piece in pieces], exact)
        yield measure.Row(f"{name}: characters / 4, mean error of {len(pieces)} pieces", quarter, "%", 1.0)
        yield measure.Row(f"{name}: estimate, mean error", estimate, "%", estimate / quarter)


def _off(guesses: list[float] | list[int], exact: list[int]) -> float:
    return statistics.mean(abs(guess - true) / true for guess, true in zip(guesses, exact, strict=True)) * 100


def speed(rounds: int) -> Iterator[measure.Row]:
    """Megabytes per second of CPU time, on the texts of the example session."""
    texts = _event_texts()
    size = sum(len(text.encode()) for text in texts) / 1e6
    joined = "\n".join(texts)
    rows = measure.functions(
        {
            "exact, text by text": lambda: [*map(tokens.count, texts)],
            "exact, in one piece": lambda: tokens.count(joined),
            "estimate, text by text": lambda: [tokens.estimate(text) for text in texts],
            "exact, a million of one letter": lambda: tokens.count("a" * 1_000_000),
        },
        rounds=rounds,
    )
    for row in rows:
        amount = 1.0 if "million" in row.name else size
        yield measure.Row(row.name, amount / row.value * 1000, "MB/s", row.ratio)


def cold(rounds: int) -> list[measure.Row]:
    """Whole processes: the first count, next to a bare interpreter and to tiktoken's own loader."""
    with tempfile.NamedTemporaryFile(suffix=".tiktoken") as file:
        ranks = sorted(tokens._table().all().items(), key=lambda item: item[1])
        file.writelines(b"%b %d\n" % (b64encode(token), rank) for token, rank in ranks)
        file.flush()
        return measure.commands(
            {
                "python -I -c pass": measure.BARE,
                "estimate of one word": measure.python("from ralf.text import tokens; tokens.estimate('x')"),
                "exact count of one word": measure.python("from ralf.text import tokens; tokens.count('x')"),
                "exact count of a Thai word": measure.python("from ralf.text import tokens; tokens.count('สวัสดี')"),
                "the same by tiktoken's own loader": measure.python(
                    _TIKTOKENS_OWN.format(ranks=file.name, pattern=tokens.PATTERN)
                ),
            },
            rounds=rounds,
        )


def _event_texts() -> list[str]:
    texts: list[str] = []
    with (measure.ROOT / "examples" / "session.jsonl").open(encoding="utf-8") as file:
        for line in file:
            content = json.loads(line).get("message", {}).get("content", [])
            blocks = [content] if isinstance(content, str) else content
            texts += [block if isinstance(block, str) else json.dumps(block, ensure_ascii=False) for block in blocks]
    return texts


if __name__ == "__main__":
    sys.exit(measure.main("Counting tokens", produce))

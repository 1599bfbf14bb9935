"""Makes the rank file of `ralf.text.tokens` of the one that OpenAI publishes.

python tests/rankfile.py o200k_base.tiktoken > context/ralf/data/o200k_base.ranks
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from itertools import accumulate
from pathlib import Path
from zlib import crc32

from ralf.text.tokens import BUCKETS


def made(ranks: dict[bytes, int]) -> bytes:
    """The file that `ralf.text.tokens` reads, whose parts the class that reads it describes."""
    buckets: list[list[bytes]] = [[] for _ in range(BUCKETS)]
    for token in ranks:
        buckets[crc32(token) % BUCKETS].append(token)
    tokens = [token for bucket in buckets for token in bucket]
    firsts = [0, *accumulate(map(len, buckets))]
    begins = [0, *accumulate(sum(map(len, bucket)) for bucket in buckets)]
    numbers = array("I", [*firsts, *begins, *(ranks[token] for token in tokens)])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes() + bytes(map(len, tokens)) + b"".join(tokens)


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_bytes().splitlines()
    sys.stdout.buffer.write(made({b64decode(line.split()[0]): int(line.split()[1]) for line in lines}))

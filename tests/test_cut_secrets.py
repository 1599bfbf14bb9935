"""The harness of cut secrets finds nothing."""

from __future__ import annotations

import pytest
from tests.faults import cut_secrets

from examples import examples
from ralf.redact import borders


@pytest.mark.ci
def test_of_secrets_cut_by_borders_nothing_is_left() -> None:
    assert list(cut_secrets.run(1, 500)) == []


@pytest.mark.release
@pytest.mark.parametrize("seed", [2, 3])
def test_of_secrets_cut_at_many_more_places_only_what_looks_like_a_word_is_left(seed: int) -> None:
    """What follows a border is taken only where it looks like a secret, so that no short message is taken along."""
    cuts = examples(20_000)
    assert len(list(cut_secrets.run(seed, cuts))) <= cuts // 5_000


def test_a_hash_at_the_end_of_a_text_stays_though_a_vendors_tokens_begin_like_it() -> None:
    for text in ("commit 4b1d9f3c27aa08e5", "4b1d9f3c27aa08e5b6d7c8e9f0a1b2c3d4e5f6a7"):
        assert list(borders.cut_off(text)) == []

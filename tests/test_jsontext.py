"""JSON that others write is read to a depth that somebody may have written, and refused beyond."""

from __future__ import annotations

import pytest

from ralf.document.tree import load as load_json


@pytest.mark.parametrize("text", ["1", "null", '"x"', '{"a": [1, {"b": null}]}', "[" * 64 + "]" * 64])
def test_a_document_of_few_levels_is_read(text: str) -> None:
    load_json(text)


@pytest.mark.parametrize("text", ["[" * 65 + "]" * 65, '{"a":' * 400 + "1" + "}" * 400, "[" * 90_000 + "]" * 90_000])
def test_a_document_of_more_levels_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="deeper than 64 levels"):
        load_json(text)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d+ column"):
        load_json(text)

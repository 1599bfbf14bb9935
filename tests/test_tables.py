"""A small table in a message is read like a list: what an agent sums up in one is kept."""

from __future__ import annotations

from ralf.text.tables import tables_as_items
from test_extractive import summed

TABLE = """The order is clear:

| PR | What | Blocked by |
|----|------|------------|
| **PR 1** | text output of `chart.py` | |
| [PR 2](https://example.org/2) | list view | PR 1 |

So start with PR 1."""


def test_the_rows_of_a_small_table_become_one_item() -> None:
    told = tables_as_items(TABLE).split("\n")
    assert "- **PR 1**: text output of `chart.py`; PR 2: list view (Blocked by: PR 1)" in told
    assert told[0] == "The order is clear:" and told[-1] == "So start with PR 1."


def test_a_long_table_is_left_out_and_a_line_with_bars_is_no_table() -> None:
    rows = "\n".join(f"| {n} | row |" for n in range(20))
    assert "row" not in tables_as_items(f"| n | what |\n|---|---|\n{rows}\nend").replace("| n | what |", "")
    assert tables_as_items("a | b\n| c | d |") == "a | b\n| c | d |"


def test_what_stands_in_a_table_is_in_the_section() -> None:
    assert (
        "PR 2: list view (Blocked by: PR 1)"
        in summed(("user", "what is the order of the work?"), ("agent", TABLE)).text
    )

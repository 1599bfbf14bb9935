"""An agent's or a person's hand-over in Markdown is shown as written, and read by a closed list of headings."""

from ralf.talk.handover_text import parse

AGENTS = """\
## Where it stands
The merge works; `_rebase` is half done.

## Next
- write `_rebase` in delta.py
- run the whole suite

## Riesgos
El reloj del servidor va mal.

## Decided
- Threads, not asyncio, for the fetch
  why: the skipper's pipe blocks
  not: asyncio
  not: a process pool
- Pause of at most 30 s

**Avoid**
1. git stash on store.py
   why: the person refused it
"""


def test_parts_are_read_by_their_headings_and_each_bullet_of_a_kept_part_is_an_entry():
    handover, kept = parse(AGENTS, author="agent", at="2026-03-09T08:45:00Z")
    assert handover.now == "The merge works; `_rebase` is half done."
    assert handover.next == ("write `_rebase` in delta.py", "run the whole suite")
    assert [(one.kind, one.text, one.reason, one.rejected) for one in kept] == [
        (
            "decision",
            "Threads, not asyncio, for the fetch",
            "the skipper's pipe blocks",
            ("asyncio", "a process pool"),
        ),
        ("decision", "Pause of at most 30 s", "", ()),
        ("avoid", "git stash on store.py", "the person refused it", ()),
    ]
    assert {(one.author, one.at, one.id) for one in kept} == {("agent", "2026-03-09T08:45:00Z", "")}


def test_without_any_heading_all_of_it_is_now_in_every_language():
    for text in (
        "Falta la fusión; luego las pruebas.\n\n- primero delta.py",
        "合并还没写完:先改delta.py。",
        "Слияние не готово: сначала delta.py.",
    ):
        handover, kept = parse(text, author="agent")
        assert handover.now == text.replace("\n\n", "\n")
        assert kept == ()


def test_of_a_text_that_is_too_long_the_least_important_ends_are_left_out_and_counted():
    bullets = "".join(f"- fact number {n} of the tide tables and their harbours\n" for n in range(300))
    text = f"## Facts\n{bullets}\n## Now\nhalf done\n## Done\n- merge\n## Open\n- who owns it?"
    handover, kept = parse(text, author="agent")
    facts = [one.text for one in kept if one.kind == "fact"]
    assert handover.left_out == (f"{300 - len(facts)} facts",)
    assert facts[0] == "fact number 0 of the tide tables and their harbours"
    assert handover.now == "half done"
    assert [one.text for one in kept if one.kind != "fact"] == ["merge", "who owns it?"]

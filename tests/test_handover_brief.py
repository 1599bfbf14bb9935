"""A hand-over in the brief and in the route file: entries whole or not at all, an old next step never first."""

from ralf.brief.filling import Budget, fill, joined
from ralf.brief.handover import Since, shown, since
from ralf.model.entries import Item, Message, Said, Step
from ralf.model.handover import Carried, Ended, HandOver, Kept
from ralf.talk.answer import carry
from ralf.talk.handover_text import parse as read

AT = "2026-03-09T08:45:00Z"

DECISION = Kept(
    "decision",
    "Type() is done in #91, not in #90",
    "DEC-009",
    words="let's do it in 91 - I want to merge 90 now",
    by="person",
    line=40,
    reason="90 is reviewed",
    rejected=("in #90", "never"),
    at="2026-03-09T11:20:00Z",
)

MODELS = Carried(
    HandOver("The merge works.", "Ship 0.4", ("write _rebase", "run all", "tag"), model="haiku", at=AT),
    (
        *(Kept("open", f"question {n}", f"OPEN-00{n}") for n in range(4, 0, -1)),
        DECISION,
        *(Kept("decision", f"choice {n}", f"DEC-00{n}") for n in range(8, 0, -1)),
        Kept("open", "answered", "OPEN-009", ended=Ended("model")),
        Kept("avoid", "git stash", "DEC-090", reason="用户拒绝了"),
        Kept("done", "слияние полей", "DONE-001"),
        Kept("fact", "el límite es 30 s", "FACT-001", marks=("30s",)),
    ),
)

FRESH, OLD = Since(), Since(2, 7, is_fresh=False)


def text_of(carried, after=FRESH, items=(), tokens=None):
    found = shown(carried, after, items)
    fill(Budget(tokens), found.pieces, [*found.grants, *found.late])
    return joined(found.pieces.values())


# ---- fresh or not ----


def test_reading_leaves_a_hand_over_fresh_and_a_message_an_edit_or_a_check_makes_it_old():
    later, handover = "2026-03-09T08:50:00Z", HandOver(at=AT)
    read_only = [Message("1", AT, text="before"), Said(later, text="x"), Step("2", later, object="ls", looks=True)]
    ours = Step(
        "4", later, kind="command", tool="Bash", object="/opt/ralf handover tides <<'EOF'\n## Now\nIt stands.\nEOF"
    )
    assert since(handover, [*read_only, ours]) == Since(0, 1, is_fresh=True)
    for entry in (
        Message("3", later, text="да"),
        Step("3", later, kind="edit", files=(("a.py", "edited"),)),
        Step("3", later, kind="command", checks=("pytest",)),
        Step("3", later, kind="command", object="python - <<'EOF'\nprint('ralf handover tides')\nEOF"),
    ):
        assert not since(handover, [*read_only, entry]).is_fresh


# ---- the layout ----


def test_an_agents_hand_over_is_shown_as_it_was_written_with_the_older_entries_behind_its_own():
    lines = ["## Стоит так", "почти готово", "## Open", "- who?", "## Now", "```", "# make", "```"]
    written = "\n".join([*lines, "## Next", "1. first", "2. second"])
    handover, entries = read(written, author="agent", at=AT)
    carried = carry(MODELS, handover, entries)
    text = text_of(carried)
    heads = ["### Hand-over, by the agent 2026-03-09 08:45", "Стоит так:", "почти готово", "Open:"]
    assert text.splitlines()[:5] == [*heads, "- OPEN-010 who?"]
    assert text.index("OPEN-010") < text.index("OPEN-004") < text.index("> # make") < text.index("1. first\n2. second")
    assert "\n# make" not in text


def test_an_old_hand_over_is_dated_and_its_now_and_next_come_last_without_completed_to_dos():
    items = [
        Item("4", "Run all", "completed"),
        Item("5", "合并", "completed"),
        Item("6", "stage all files", "completed"),
    ]
    moment = HandOver("half done", next=("run all!", "#5 finish it", "tag"), at=AT)
    text = text_of(Carried(moment, MODELS.kept), OLD, items)
    assert text.startswith("### Hand-over, by model\nWritten 2026-03-09 08:45, 2 messages and 7 calls ago\nOpen:")
    assert text.endswith("Next:\n- tag")
    assert "run all!" not in text
    assert "#5 finish it" not in text
    assert text.index("FACT-001") < text.index("half done")

"""The brief by the record: what it says of the last message, the state, what was done since, and the talk before."""

# ruff: noqa: RUF001  # words in other scripts

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.talkkit import Session

from ralf.brief.pieces import View
from ralf.brief.record import composed
from ralf.facts.state import State
from ralf.model.entries import GitFact, Item
from ralf.model.handover import Carried, HandOver, Kept
from ralf.talk.answer import carry
from ralf.talk.handover_text import parse
from ralf.talk.recording import record
from ralf.talk.turns import thread
from ralf.text import tokens
from ralf.transcripts.reader import open_transcript

EXAMPLE = Path(__file__).parents[1] / "examples/session.jsonl"


def brief(session, most=None):
    return composed(session.view, most)[0]


def section(text, head):
    """The lines below a heading that begins with some words."""
    found = re.search(rf"(?ms)^### {head}[^\n]*\n(.*?)(?=^### |^Not here|^To record|\Z)", text)
    return found[1] if found else ""


# ---- the last message ----


def test_the_last_message_is_a_quotation_with_its_time_and_status():
    text = section(brief(Session().typed("first").said("one").typed("Now the docs.").ran("ls")), "The last message")
    assert text.startswith("2026-03-09 08:03\n> Now the docs.\n")
    assert "\n- Being worked on: 1 call so far" in text


def test_a_short_last_message_shows_the_text_before_it_once():
    said = "The parser is done. Both ways pass the tests.\n1. Keep the old one\n2. Drop it\nWhich one?"
    text = brief(Session().typed("go").said(said).typed("2"))
    assert text.count("Both ways pass the tests.") == 1
    assert "→" not in section(text, "The talk")


def test_the_text_before_stays_cut_where_there_is_little_room_and_the_option_is_named():
    said = "Two ways:\n1. Keep the old one\n2. Drop it\n" + "A long explanation of both of them. " * 60 + "\nWhich one?"
    text = brief(Session().typed("go").said(said).typed("2"), 300)
    assert "- it answers: 2 = Drop it" in text


def test_a_message_that_was_not_begun_shows_what_was_said_before_it():
    long = "Please look at the parser once more, and tell me why quoted names with escapes are read twice."
    assert "The tests pass." in section(brief(Session().typed("go").said("The tests pass.").typed(long)), "The last")


def test_a_usage_limit_is_the_status_and_the_older_answer_only_its_past():
    session = Session().typed("Add a parser.").said("The parser is done.").typed("Now document it, with examples.")
    text = section(brief(session.mark("stopped", "You've hit your limit")), "The last message")
    assert "Stopped by the service: You've hit your limit; nothing was done for it before." in text


@pytest.mark.parametrize("form", ["", "queued"])
def test_what_was_taken_back_into_the_input_field_is_never_the_last_message(form):
    session = Session().typed("keep this", form).mark("handed") if form else Session().typed("keep this")
    text = section(brief(session.typed("drop it all", "queued").mark("unsent")), "The last message")
    assert "> keep this" in text
    assert 'typed and taken back, not sent in this record: "drop it all"' in text


def test_a_failed_command_of_the_persons_own_shows_its_failing_line():
    session = Session().typed("go").typed("make test", "ran", output="compiling\nerror: no rule to make 'x'\nbye")
    for text in (brief(session), brief(session.typed("what now, in your opinion? tell me all of it"))):
        assert "the person ran `make test`\n" in text and "error: no rule to make 'x'" in text


def test_what_the_person_ran_stands_before_the_agents_closing_words_or_behind_them_as_it_was():
    session = Session().typed("go").typed("make", "ran", output="no rule").said("The rule is written.")
    session.typed("make test", "ran", output="1 failed").typed("why?").said("A name is wrong.").typed("mend it")
    text = brief(session)
    places = [text.index(words) for words in ("ran `make`\n", "\u2192 The rule is written.", "ran `make test`\n")]
    assert places == sorted(places)


def test_a_message_with_a_refusal_shows_the_call_and_the_words():
    session = Session().typed("go").ran("git stash", "refused", id="c7")
    session.typed("Leave it alone, compare with git show.", "refused", call="c7")
    text = brief(session)
    assert "(after refusing Bash `git stash`)\n> Leave it alone" in text
    assert "[refusing Bash `git stash`]" in section(brief(session.typed("ok, go on")), "The talk")


def test_a_message_after_a_refusal_without_words_shows_the_refused_call():
    session = Session().typed("go").ran("git push", "refused").mark("interrupted").typed("first the tests, please")
    assert "(after refusing Bash `git push`)" in section(brief(session), "The last message")


@pytest.mark.parametrize("marks", [(), ("interrupted",), ("ended",), ("interrupted", "ended")])
def test_marks_of_the_client_between_a_refusal_and_the_next_message_hide_nothing(marks):
    session = Session().typed("go").ran("git push", "refused")
    for mark in marks:
        session.mark(mark)
    assert "(after refusing Bash `git push`)" in brief(session.typed("first the tests, please"))


def test_an_interrupted_order_does_not_look_carried_out():
    session = Session().typed("commit this").mark("interrupted").typed("wait, the name is wrong: it is called Sync")
    text = brief(session.said("Renamed."))
    assert "(after interrupting)" in text
    assert '08:01 (answer interrupted) "commit this"' in text
    assert "interrupting" not in section(brief(session.typed("And now the docs of it, please.")), "The talk")
    last = brief(Session().typed("commit this").mark("interrupted"))
    assert "Interrupted by the person after 0 calls." in last


def test_a_question_of_a_tool_stands_with_its_answer():
    asked = "Which time zone should the log use?"
    session = Session().typed("go").step("question", "AskUserQuestion", asked).typed("UTC", "answer", about=asked)
    assert f"- it answers: asked: {asked}" in brief(session)
    assert f'"UTC" [asked: {asked}]' in brief(session.typed("and the docs in English, please, all of them"))


PASTE = "\n".join(f"2026-03-09 08:{n % 60:02} request {n} took {n * 7} ms and came back in time" for n in range(200))


@pytest.mark.parametrize("then", ["go on, then", ""])
def test_the_persons_line_at_the_end_of_a_huge_paste_is_in_every_brief(then):
    session = Session().typed(f"{PASTE}\nThe second machine is the one that must not be restarted.").said("I see.")
    if then:
        session.typed(then)
    assert all("must not be restarted" in brief(session, most) for most in (400, 700, 1_000))


def test_a_paste_takes_little_as_long_as_anything_else_is_left_out():
    session = Session().typed(f"{PASTE}\nThe second machine is the one that must not be restarted.").said("I see.")
    for number in range(20):
        session.typed(f"And now part {number} of all the rest of it, please.").said(f"{number} is done now. " * 40)
    assert len(re.findall(r"request \d+ took", brief(session, 2_500))) < 20


def test_an_order_that_somebody_wrote_is_no_paste_however_long_it_is():
    rules = "\n".join(
        f"- keep the harbour {number} open, whatever the tide table says about it" for number in range(64)
    )
    session = (
        Session().typed(f"# What to do\n{rules}\nBegin with the first.").said("I see.").typed("and be quick please")
    )
    assert len(rules) > 4_000
    assert brief(session, 2_500).count("keep the harbour") > 40


def test_a_prompt_of_a_loop_is_shown_once_with_how_often_it_was_sent():
    session = Session()
    for _ in range(14):
        session.typed("Read PLAN.md, do its next open step, run all the tests, and commit the result.").said("done")
    assert "(sent 14 times)" in brief(session)
    assert brief(session).count("Read PLAN.md") == 1


# ---- the state and what was done since ----


def test_a_list_with_all_its_items_done_is_never_in_progress():
    items = tuple(Item(str(n), f"Part {n}", "completed") for n in range(1, 4))
    session = Session().typed("go").mark("todos", items=items).said("All three are done.").typed("what is a monad?")
    text = brief(session.said("A monoid."))
    assert "all 3 done" in text
    assert "in progress" not in text and "step" not in section(text, "Next").lower()


def test_a_number_of_an_item_is_resolved_to_its_text():
    items = (Item("9", "Write the docs", "in_progress"), Item("10", "Release 0.4.0"))
    text = brief(Session().typed("go").mark("todos", items=items).typed("do #10 before all the rest of that list"))
    assert "- it answers: #10 = Release 0.4.0" in text


def test_what_comes_next_is_told_by_the_record_alone():
    session = Session().mark("branch", "main").typed("go").said("Next I will rewrite everything.").edited("src/a.py")
    session.ran("pytest", "failed", status=1, checks=("pytest",), lines=("E assert 1 == 2",))
    assert section(brief(session), "Next").strip() == "- a check failed (08:05); 1 file not committed by the agent"


def test_a_list_that_three_messages_came_after_is_not_what_comes_next():
    session = Session().typed("go").mark("todos", items=(Item("1", "Mend the reader"),))
    for number in range(3):
        assert "to-do #1 Mend the reader" in section(brief(session), "Next")
        session.typed(f"And now, please, look at what the pump of harbour {number} says.")
    text = brief(session)
    assert "Mend the reader" not in section(text, "Next")
    assert "- to-do list (08:02, 3 messages before the end): 0 of 1 done" in section(text, "State")


def test_an_approved_plan_is_shown_in_the_place_of_the_approval():
    plan = "# Plan\n" + "\n".join(f"{n}. Step {n} of the work" for n in range(1, 9))
    text = brief(Session().typed("(plan approved)", "plan", about=plan).edited("a.py"))
    assert "(a plan that was approved)\n> # Plan\n> 1. Step 1 of the work" in text and "> 8. Step 8" in text


def test_a_failure_stays_until_the_check_passes():
    session = Session().typed("go").ran("pytest", "failed", status=1, checks=("pytest",), lines=("E assert 1 == 2",))
    assert "E assert 1 == 2" in brief(session)
    assert "FAILED" not in brief(session.ran("pytest", checks=("pytest",), lines=("3 passed",)))


def test_each_edited_file_stands_once_in_what_was_done_since():
    session = Session().typed("go").edited("src/a.py").ran("cat src/a.py", looks=True).edited("src/b.py")
    session.ran("pytest", checks=("pytest",)).edited("src/a.py").ran("pytest", checks=("pytest",))
    text = section(brief(session), "Since")
    assert text.count("a.py") == 1 and text.count("b.py") == 1
    assert text.count("pytest") == 1
    assert "- (1 call only looked)" in text


def test_an_edit_between_two_runs_of_checks_stands_between_them_and_what_was_said_last_where_it_was_said():
    session = Session().typed("go").edited("a.py").ran("pytest", "failed", status=1, checks=("pytest",), lines=("E x",))
    session.said("It needs the other option.").edited("a.py")
    told = [line for line in section(brief(session), "Since").splitlines() if line[:1] == "-"]
    assert told == ["- edited a.py", "- `pytest`: FAILED (exit 1)", "- said last:", "- edited a.py"]


def test_a_list_that_was_written_after_the_last_words_is_a_call():
    session = Session().typed("go").said("First I write down the steps.").mark("todos", items=(Item("1", "Read"),))
    assert "Being worked on: 1 call so far, no closing words yet." in brief(session)


def test_only_what_ended_a_turn_is_shown_as_closing_words():
    session = Session().typed("go").said("Done.").mark("ended").typed("and now b, please").said("Wait: why is a gone?")
    session.edited("b.py").typed("Stop here, please: that is enough for today, and I look at it.").said("I stop.")
    talk = section(brief(session), "The talk")
    assert "  → Done." in talk and "  · Wait: why is a gone?" in talk


def test_a_comment_that_a_later_edit_took_out_is_not_said_to_stand_in_the_code():
    words = "Panics if the id is not a valid one: only for trusted sources."
    session = Session().typed("go").edited("a.go", comments=(words,))
    assert words in section(brief(session), "Written into the code")
    assert words not in brief(session.edited("a.go", uncommented=(words,)))


def test_a_check_whose_status_is_hidden_shows_its_last_line():
    session = Session().typed("go").ran("pytest | head", "not shown", checks=("pytest",), lines=("ok tests/a.py",))
    session.ran("mypy | head", "not shown", checks=("mypy",), lines=("tide.py: a note",))
    said = "exit status not shown, its last line: tide.py: a note"
    assert f"`mypy | head`: {said}" in section(brief(session), "Since")
    state = section(brief(session.typed("and now?")), "State")
    assert f"`mypy | head` 08:03: {said}" in state
    assert "exit status not shown, its last line: ok tests/a.py: `pytest | head` 08:02" in state


def test_a_push_that_was_forced_is_called_so():
    push = (GitFact("push", "12e7e04", "main"),)
    session = Session().typed("go").ran("git push --force-with-lease", git=push).ran("git push", git=push)
    assert section(brief(session), "Since").splitlines() == ["- force-pushed", "- pushed"]


def test_an_announcement_is_shown_last_of_all():
    session = Session().typed("go").said("Let me look at the test.").ran("make").said("x " * 300).ran("make docs")
    session.said("It works now. " * 60)
    assert "Let me look" in section(brief(session), "Since")
    assert "Let me look" not in brief(session, 300)


def test_comments_in_edits_are_quoted_once():
    session = Session().typed("go").edited("a.py", comments=("never retry a POST",))
    session.edited("b.py", comments=("never retry a POST",))
    assert brief(session).count('"never retry a POST"') == 1


# ---- the talk ----


def test_the_talk_has_every_message_with_what_it_did_and_the_closing_words():
    session = Session().typed("add a parser").edited("src/a.py").said("The parser is in place.")
    session.typed("Thanks. Please go on with the docs of all of it, in English, and mind the escapes.").ran("ls")
    text = section(brief(session), "The talk")
    assert text.splitlines() == [
        "2026-03-09:",
        '- 08:01 "add a parser"',
        "  did: edited src/a.py",
        "  → The parser is in place.",
    ]


def test_what_was_done_stands_in_its_order_so_that_no_edit_looks_checked_or_pushed_that_came_later():
    session = Session().typed("rebase it, and add Type()").ran("pytest", checks=("pytest",))
    session.ran("git push", git=(GitFact("push", "12e7e04", "main"),)).edited("a.py").edited("b.py")
    session.ran("ruff check", "failed", checks=("ruff check",)).edited("a.py").typed("go on, please")
    did = "did: `pytest`: ok; pushed; edited a.py; b.py; `ruff check`: FAILED; edited a.py"
    assert did in section(brief(session), "The talk").splitlines()[2]


def test_what_was_taken_back_is_one_line_and_nowhere_else():
    session = Session().typed("go", id="u1").typed("never use sqlite", id="u2", parent="p").edited("db.py")
    session.said("No sqlite, then.").typed("use sqlite after all, it is good enough for us", id="u3", parent="p")
    text = brief(session)
    assert text.count("never use sqlite") == 1 and "No sqlite" not in text
    assert "(it had edited db.py; whether that was restored is not recorded)" in section(text, "Taken back")


def test_words_of_others_make_no_heading_of_the_brief():
    session = Session().typed("# Not a heading\n## nor this").said("# Mine\n\n---\ntext").typed("### and this\n\nok?")
    headings = [line for line in brief(session.said("## said\n\n# last")).splitlines() if line.startswith("#")]
    assert all(line.startswith(("# Context of ", "### ")) for line in headings)
    assert "### and this" not in headings


def test_a_brief_says_at_their_place_how_many_messages_are_missing():
    session = Session()
    for number in range(60):
        session.typed(f"This is order number {number}, and it is about another part of the work.").said("ok " * 60)
    text = brief(session, 700)
    talk = section(text, "The talk")
    hidden = int(re.search(r"- \((\d+) messages left out here\)", talk)[1])
    assert hidden + len(re.findall(r"order number", talk)) == 59
    assert f"Not here: {hidden} messages" in text


LANGUAGES = {
    "English": ("Do not push, I do that after the review.", "The parser is done and passes."),
    "Spanish": ("No hagas push, lo hago yo tras la revisión.", "El analizador está listo y pasa."),
    "Chinese": ("不要推送，审查之后我自己来。", "解析器已完成并通过测试。"),
    "German": ("Nicht pushen, das mache ich nach der Durchsicht.", "Der Parser ist fertig und läuft durch."),
    "Russian": ("Не пушить, я сделаю это после проверки.", "Парсер готов, тесты проходят."),
    "Arabic": ("لا تدفع التغييرات، سأفعل ذلك بعد المراجعة.", "المحلل جاهز والاختبارات ناجحة."),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_session_in_another_language_has_the_same_facts(language):
    def told(words, reply):
        session = Session().typed("start the work on the parser now").said(reply).typed(words).edited("src/a.py")
        session.ran("pytest", "failed", status=1, checks=("pytest",), lines=("E assert 1 == 2",)).said(reply)
        text = brief(session.typed(words + " " + words + " " + words).ran("git push", "refused"))
        assert text.count(words) == 4 and text.count(reply) == 3
        return text.replace(words, "W").replace(reply, "R")

    assert told(*LANGUAGES[language]) == told(*LANGUAGES["English"])


# ---- a hand-over ----


def handing(session, at, *kept, **given):
    view = session.view
    last = HandOver("The parser is half done.", "Ship it", ("fetch the levels", "tag it"), at=at, **given)
    return replace(view, handed=Carried(last, kept))


OPEN = Kept("open", "Is 1953 to be kept?", "OPEN-001", at="2026-03-09T08:00:00Z")


def test_a_fresh_hand_over_leads_and_the_last_message_and_its_status_are_there_all_the_same():
    session = Session().typed("begin with the parser, please, and tell me").said("one").typed("Now the docs.").ran("ls")
    text = composed(handing(session, "2026-03-10T00:00:00Z", OPEN), 330)[0]
    assert text.index("The parser is half done.") < text.index("> Now the docs.") < text.index("Being worked on")
    assert text.index("fetch the levels") < text.index("### The last message")


def test_while_a_hand_over_is_fresh_what_was_printed_last_is_shown_up_to_2000_characters():
    session = Session().typed("begin with the parser, please, and tell me").ran("make levels", output="level\n" * 320)
    fresh = handing(session, "2026-03-10T00:00:00Z")
    for view, count in ((fresh, 320), (replace(fresh, handed=Carried()), 49)):
        assert composed(view, 1_500)[0].count("\n    level") + 1 == count


def test_after_a_message_an_edit_or_a_check_the_record_leads_and_an_old_next_step_is_never_first():
    session = Session().typed("begin with the parser, please, and tell me").said("one").typed("Now the docs.")
    for later in (session.edited("src/a.py"), session.ran("pytest", checks=("pytest",))):
        text = composed(handing(later, "2026-03-09T08:01:30Z", OPEN))[0]
        assert (
            text.index("> Now the docs.") < text.index("Is 1953 to be kept?") < text.index("The parser is half done.")
        )
        assert text.index("messages and") < text.index("Is 1953 to be kept?")


def test_an_old_next_step_whose_to_do_is_completed_is_gone():
    session = Session().typed("begin with the parser, please, and tell me")
    session.mark("todos", items=(Item("2", "Fetch the levels", "completed"),)).edited("src/a.py")
    text = composed(handing(session, "2026-03-09T08:00:30Z"))[0]
    assert "tag it" in text and "- fetch the levels" not in text


def test_messages_before_a_fresh_hand_over_come_last():
    session = Session()
    for number in range(30):
        session.typed(f"Please carry out part {number} of the plan, with its tests and its documentation.").said(
            "Done."
        )
    session.edited("src/a.py")
    before = composed(session.view, 700)[0].count("Please carry out part")
    assert composed(handing(session, "2026-03-10T00:00:00Z", OPEN), 700)[0].count("Please carry out part") < before


def test_beside_a_fresh_hand_over_all_that_the_person_said_comes_before_what_was_answered_then():
    session = Session()
    for number in range(12):
        session.typed(f"Part {number}: {'carry it over with care. ' * 16}The end of {number}.").said("An answer. " * 40)
    view = handing(session.typed("Go on.").edited("a.py"), "2026-03-10T00:00:00Z")
    shown = {most: composed(view, most)[0] for most in (600, 1_600, 2_400, 3_900, 4_000)}
    assert {most for most, text in shown.items() if "An answer." in section(text, "The talk")} == {4_000}
    assert all(f"The end of {number}." in shown[most] for number in range(12) for most in (2_400, 3_900, 4_000))
    assert "detail of" in shown[3_900] and "detail of" not in composed(view)[0]


# ---- the budget ----


def handed(at):
    """What somebody handed over at a time: a full hand-over."""
    text = "## Now\n" + "The merge of both sides is half done, and nothing of it is tested. " * 4
    text += "\n## Next\n" + "\n".join(f"- Step {n}: write what the {n}. case of the merge needs" for n in range(6))
    text += "\n## Decided\n" + "\n".join(
        f"- Choice {n} about the fields\n  why: reason {n}\n  not: {n}" for n in range(14)
    )
    text += "\n## Open\n" + "\n".join(f"- Does the {n}. harbour run 1.4?" for n in range(6))
    text += "\n## Facts\n" + "\n".join(f"- The pause of case {n} is {n} s" for n in range(9))
    return carry(Carried(), *parse(text, author="agent", at=at))


@pytest.fixture(
    scope="module", params=["", "2026-03-09T08:46:00Z", "2026-03-09T08:36:00Z"], ids=["none", "fresh", "old"]
)
def view(request):
    transcript = open_transcript(EXAMPLE)
    talk = thread(record(transcript.events(), transcript.cwd, transcript.session))
    carried = handed(request.param) if request.param else Carried()
    return View(talk, State.of(talk.entries), route="tidepool", handed=carried)


@pytest.mark.ci(5)
def test_a_brief_of_the_example_is_never_over_its_budget_and_uses_it(view):
    """Beside a fresh hand-over it uses what the person's words take, and all of it from 4,000 tokens on."""
    shares = []
    is_fresh = view.handed.last is not None and view.handed.last.at > "2026-03-09T08:45"
    whole = tokens.count(composed(view)[0])
    for most in range(200, 8_001, 200):
        text = composed(view, most)[0]
        used = max(tokens.count(text), -(-len(text) // 4))
        assert used <= most
        if (4_000 if is_fresh else 600) <= most < whole:
            shares.append(used / most)
    assert shares and min(shares) >= 0.75
    assert sum(share >= 0.9 for share in shares) >= 0.9 * len(shares)


@pytest.mark.ci(5)
def test_a_message_of_the_example_shown_in_a_brief_is_shown_in_every_larger_one(view):
    before = set()
    for most in range(300, 6_001, 300):
        shown = set(re.findall(r"(?m)^- (\d\d:\d\d .{0,30})", composed(view, most)[0]))
        assert before <= shown
        before = shown
    assert len(before) >= 10


def test_a_brief_is_never_over_its_budget_in_scripts_that_take_many_tokens():
    session = Session().mark("titled", "测试标题" * 30)
    for words, reply in LANGUAGES.values():
        session.typed(words * 12).edited("src/a.py", "docs/b.md").said(reply * 20).typed("好").said(reply)
    for most in (*range(0, 200, 40), *range(200, 3_000, 900)):
        text = composed(session.view, most)[0]
        assert tokens.count(text) <= most and len(text) <= 4 * most
        assert text or not most


@pytest.mark.parametrize(("most", "text"), [(60, '"go"'), (20, "No room"), (1, "…"), (0, "")])
def test_a_budget_too_small_for_a_brief_gets_something_short_and_true(most, text):
    assert text in brief(Session().typed("go").said("Done."), most)


def test_without_a_limit_everything_is_shown_and_nothing_is_said_to_be_missing():
    text = brief(Session().typed("go").said("Done.").typed("and the docs, all of them, in English please"))
    assert "Not here" not in text and "left out" not in text
    assert text.endswith("To record: `ralf decide r TEXT`, `ralf handover r`.")

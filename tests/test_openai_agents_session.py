"""Sessions of the OpenAI Agents SDK in a project's store."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path
from typing import Any

import pytest

import storekit
from ralf.maintenance.purge import Wording, remains
from ralf_integrations.doors.openai_agents import RalfSession

agents = pytest.importorskip("agents", reason="openai-agents is not installed")


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_it_is_a_session_of_the_framework_and_knows_its_settings(tmp_path: Path) -> None:
    session = RalfSession("s-1", tmp_path, session_settings=agents.SessionSettings(limit=2))
    assert isinstance(session, agents.Session)
    asyncio.run(session.add_items([said("a"), said("b"), said("c")]))
    assert asyncio.run(session.get_items()) == [said("b"), said("c")]
    assert asyncio.run(session.get_items(1)) == [said("c")]


def test_a_run_goes_on_with_what_an_earlier_process_had_said(tmp_path: Path) -> None:
    """The example, with a real `Runner`; the model answers by a script and records what it is asked."""
    from agents.models.interface import Model
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    asked: list[Any] = []

    class Scripted(Model):
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:  # noqa: A002
            asked.append(input)
            text = ResponseOutputText(annotations=[], text=f"answer {len(asked)}", type="output_text")
            message = ResponseOutputMessage(
                id=f"m-{len(asked)}", content=[text], role="assistant", status="completed", type="message"
            )
            return agents.ModelResponse(output=[message], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    ask = runpy.run_path(str(storekit.SOURCE / "examples" / "openai_agents_session.py"))["ask"]
    assert (
        asyncio.run(ask(RalfSession("user-2", tmp_path, session_settings={"limit": 1}), "Hm?", Scripted()))
        == "answer 1"
    )
    asked.clear()
    for number, text in enumerate(("The gauge reads 412 cm.", "What did it read?"), start=1):
        assert asyncio.run(ask(RalfSession("user-1", tmp_path), text, Scripted())) == f"answer {number}"
    assert [one.get("content") for one in asked[1] if one.get("role") == "user"] == [
        "The gauge reads 412 cm.",
        "What did it read?",
    ]
    assert "answer 1" in str(asked[1])
    assert len(asyncio.run(RalfSession("user-1", tmp_path).get_items())) == 4


def test_a_session_that_was_cleared_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    session, words = RalfSession("s-1", tmp_path), "the northern gauge counts in fathoms"
    seen = RalfSession("s-1", tmp_path)
    asyncio.run(session.add_items([said(words), said(f"{words} {'x' * 270_000}")]))
    assert len(asyncio.run(seen.get_items())) == 2
    asyncio.run(session.clear_session())
    assert remains(storekit.context_of(tmp_path), Wording([words])) == []
    assert asyncio.run(seen.get_items()) == []
    asyncio.run(session.add_items([said("again")]))
    assert asyncio.run(seen.get_items()) == [said("again")]

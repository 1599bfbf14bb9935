"""Ask an agent of the OpenAI Agents SDK in a session that this project stores: any process can continue it.

python openai_agents_session.py user-123 "What does the tide table need?"
"""

import asyncio
import sys

from agents import Agent, Model, Runner

from ralf_integrations.doors.openai_agents import RalfSession


async def ask(session: RalfSession, prompt: str, model: str | Model | None = None) -> str:
    """Ask, and return the answer."""
    agent = Agent(name="tide", instructions="You look after the tide table.", model=model)
    result = await Runner.run(agent, prompt, session=session)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(ask(RalfSession(sys.argv[1]), sys.argv[2])))

"""Ask Claude in a session that this project stores: any process, in any folder, can continue it.

python claude_sdk_session.py "What does the tide table need?"
python claude_sdk_session.py "Then begin." SESSION
"""

import asyncio
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from ralf_integrations.doors.claude_sdk import RalfSessionStore


async def ask(store: RalfSessionStore, prompt: str, session: str | None = None, **more: Any) -> str:
    """Ask, print the answer, and return the session; `more` are options of the SDK."""
    options = ClaudeAgentOptions(session_store=store, session_store_flush="eager", resume=session, **more)
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            print(message.result, flush=True)
            session = message.session_id
    return session or ""


if __name__ == "__main__":
    store = RalfSessionStore(project_key="tide")
    session = asyncio.run(ask(store, *sys.argv[1:]))
    print(session, store.checkpoint("tide", session).path)

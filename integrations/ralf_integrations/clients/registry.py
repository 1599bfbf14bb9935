"""The clients whose hooks ralf can install, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ralf_integrations.clients.claude_code import CLAUDE_CODE
from ralf_integrations.clients.codex import CODEX
from ralf_integrations.clients.gemini import GEMINI
from ralf_integrations.clients.settings import Client

CLIENTS: Mapping[str, Client] = MappingProxyType({client.name: client for client in (CLAUDE_CODE, CODEX, GEMINI)})

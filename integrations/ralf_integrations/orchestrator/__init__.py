"""An orchestrator's own state, kept in a route."""

from __future__ import annotations

from ralf_integrations.orchestrator.keeping import Orchestrator, SelfCheckpoint

__all__ = ["Orchestrator", "SelfCheckpoint"]

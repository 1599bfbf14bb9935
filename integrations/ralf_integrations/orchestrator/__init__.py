"""An orchestrator's own state, kept in a route: `keeping.Orchestrator`."""

"""Keeps the store healthy: verify, repair, forget, adopt a store, opt a project in."""

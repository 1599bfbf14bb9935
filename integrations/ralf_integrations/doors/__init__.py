"""Stores that agent frameworks accept, on ralf's files: one module a framework, which alone knows it."""

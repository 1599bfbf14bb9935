"""Reads a project: a route's context, the list of routes, and search."""

"""A context as text for the next agent, within a budget and a fence."""

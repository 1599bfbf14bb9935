"""ralf."""

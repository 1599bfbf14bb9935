"""Text: cleaned, cut into sentences, matched, fenced, and counted in tokens; knows nothing of routes."""

"""Transcripts: a client's session log, whatever its format, as one stream of events."""

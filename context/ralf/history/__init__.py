"""What happened to a route: its log, the way back, and the transcript lines behind a claim."""

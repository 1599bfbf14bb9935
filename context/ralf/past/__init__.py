"""What happened to a route: its earlier states, what changed between them, and the way back."""

"""Files on the disk: put in their place whole, locked, opened without following links."""

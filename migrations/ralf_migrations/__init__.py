"""One-off importers of what other tools have kept. They stand on `ralf` and know nothing of the command line."""

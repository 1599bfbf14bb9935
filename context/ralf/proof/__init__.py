"""Whether a checkpoint holds what its segment says, what it lost, and the lines behind a claim of a route."""

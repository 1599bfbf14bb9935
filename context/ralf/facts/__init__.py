"""Facts: what a segment of a transcript shows mechanically, never written by a model."""

"""Run folders of the RALF loop: the documents that a run leaves, and what stands in them."""

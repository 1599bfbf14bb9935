"""The search index: what is found, how it is ranked, what is a hit. The door is `ralf.search`."""

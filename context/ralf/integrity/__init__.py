"""Whether all that is kept is whole, and how it is mended."""

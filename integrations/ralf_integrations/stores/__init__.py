"""Engines other than files for a project's journals and blobs: each keeps the contract of `ralf.storage.journal`."""

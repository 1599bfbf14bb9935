"""Which run folders git has brought: their words are an import, whoever wrote them, and nobody asked for them."""

from __future__ import annotations

from ralf import checkout, gitblobs
from ralf.files.opening import content_of
from ralf.runs.folder import MAX_DOCUMENT, RunFolder


def is_brought(folder: RunFolder) -> bool:
    """Whether the bytes of any document of a run are those that git has checked out: then a clone or a pull may have
    brought them. What the run, or a person, has changed since is their own.
    """
    return any(_is_checked_out(folder, name) for name in folder.files)


def _is_checked_out(folder: RunFolder, name: str) -> bool:
    try:
        content = content_of(folder.path / name, most=MAX_DOCUMENT)
    except OSError:  # too long to be read: tracked is enough
        try:
            return checkout.blob_in_index(folder.path, folder.path / name) is not None
        except gitblobs.Unreadable:
            return True
    return checkout.checked_out(folder.path, folder.path / name, content) == content

"""Route names: which are allowed, and how a foreign name becomes one."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from ralf.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?\Z")
_ENDINGS = (".md", ".tmp", ".lock")
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10))]
)  # names that Windows keeps for devices, whatever follows the first dot

_READ = 400  # characters of a request of which a name is made
_POLITE = re.compile(
    r"\A(?:(?:please|hi|hello|hey|ok|okay|so|now|well|thanks|(?:can|could|would|will) you|i (?:want|need) you to|lets)"
    r"\b[\s,.!:]*)+"
)


def is_valid(name: str) -> bool:
    """Whether `name` may be a route's name, on every file system."""
    return (
        _NAME.match(name) is not None
        and ".." not in name
        and not name.lower().endswith(_ENDINGS)
        and name.lower().split(".", 1)[0] not in _RESERVED
    )


def check(name: str) -> str:
    """`name` itself if it may be a route's name; UsageError otherwise."""
    if not is_valid(name):
        plain = name.isprintable() and name == name.strip() and len(name) <= 80
        shown = name if plain else ascii(name)[:80]
        raise UsageError(
            shown or '""',
            "refused as a route name: letters, digits, '.', '_' and '-' only, at most 64, "
            "beginning and ending with a letter or digit, without '..', not ending in .md, .tmp or .lock, "
            "and no device of Windows (con, nul)",
            f"a name that would do: {slug(name)}",
        )
    return name


def readable(text: str, most: int = 40) -> str:
    """A route name made of the first words of a request, "" where they make none: `Please fix the login form, it …` →
    `fix-the-login-form-it`. Different texts may give the same name.
    """
    plain = unicodedata.normalize("NFKD", text[:_READ]).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", _POLITE.sub("", plain.replace("'", "")))
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word
        if len(longer) > most:
            break
        name = longer
    return name if name.count("-") and is_valid(name) else ""


def slug(name: str) -> str:
    """A route name made of any text: itself if allowed, else its allowed characters and eight of its hash.

    Different texts give different names, and the same text always the same one (`feature/login` →
    `feature-login-3f1c2a9b`).
    """
    if is_valid(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    kept = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._-]+", "-", name))[:50].strip("._-")
    made = f"{kept}-{digest}" if kept else digest
    return made if is_valid(made) else f"route-{digest}"

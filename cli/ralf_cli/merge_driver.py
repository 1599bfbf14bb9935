"""`ralf merge-driver`: what git calls to merge a shared route file."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import click

_MOST = 64 << 20  # bytes of a route file that is read

_CONFLICTS = 127  # the most that `git merge-file` counts; above, it failed

_MERGE_FILE = ("git", "merge-file", "-q", "-L", "ours", "-L", "base", "-L", "theirs")


@click.command(name="merge-driver", short_help="Merge a shared route file (called by git, not by you).")
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
@click.argument("path", default="")
@click.pass_context
def merge_driver(ctx: click.Context, base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Merge two versions of a shared route file, OURS and THEIRS, which both come from BASE, into OURS.

    git calls it with the files that it has written for this (%O %A %B) and the PATH of the file in the repository (%P),
    in clones where `ralf init --share` was run. Decisions and checkpoints of both are united; of a field that both
    changed one value stands, and the other is under `unresolved` in the file: `ralf context verify` shows it, and
    `ralf context edit` settles it. A file that cannot be read is merged as text, by `git merge-file`, and so is one
    whose PATH is not that of a route file: a repository can name this driver for any file.

    \b
    Examples:
      git config merge.ralf.driver "ralf merge-driver -- %O %A %B %P"

    \b
    Exit status: 0 merged · 1 merged as text, with conflict markers in the file; of a file that is no route file, that
    of git merge-file, the number of conflicts
    """
    ctx.exit(_merged(base, ours, theirs, path) if _is_route_file(path) else _by_git(base, ours, theirs))


def _is_route_file(path: str) -> bool:
    from ralf.text import cleaning

    *_, store, context, folder, name = ("", "", "", *PurePosixPath(path).parts)
    place = (store, context, folder) == (".autonomous", "context", "routes")
    return place and name.endswith(".md") and cleaning.is_valid(name.removesuffix(".md"))


def _merged(base: Path, ours: Path, theirs: Path, path: str) -> int:
    from ralf_cli.output import say

    where = path or str(ours)
    try:
        from ralf.route import sharing
        from ralf.storage.files import content_of

        was, one, other = (content_of(version, follow=True, most=_MOST) for version in (base, ours, theirs))
        merged = sharing.merge_files(was, one, other, where, route=Path(path).stem)
        ours.write_bytes(merged.content)
    except Exception as error:  # noqa: BLE001  # whatever it is, git must get a merge and no traceback
        say(f"warning: {where}: merged as text: {str(error).removeprefix(f'{where}: ')}")
        return _as_text(base, ours, theirs, where)
    if merged.conflicts:
        say(f"{where}: changed on both sides: {'; '.join(merged.conflicts)}; one value stands, and the other is under")
        say(f"`unresolved` in the file; to settle it: ralf context edit {Path(where).stem}")
    return 0


def _by_git(base: Path, ours: Path, theirs: Path) -> int:
    """Merge the files as git itself does, into ours; its exit status. Of what it cannot merge, as two versions that are
    not text, ours stays, which is a conflict.
    """
    try:
        done = subprocess.run([*_MERGE_FILE, "--", *map(str, (ours, base, theirs))], check=False)
    except OSError:
        return 1
    return done.returncode if 0 <= done.returncode <= _CONFLICTS else 1


def _as_text(base: Path, ours: Path, theirs: Path, where: str) -> int:
    """Merge the files as git itself does; its exit status. What comes of it without a conflict and cannot be read is
    one: then both versions stand between the marks.
    """
    command = [*_MERGE_FILE, "-p", "--"]
    try:
        one, other = ours.read_bytes(), theirs.read_bytes()
        done = subprocess.run([*command, *map(str, (ours, base, theirs))], stdout=subprocess.PIPE, check=False)
        if 0 < done.returncode <= _CONFLICTS or (not done.returncode and _is_readable(done.stdout, where)):
            ours.write_bytes(done.stdout)
            return min(done.returncode, 1)
        parts = (b"<<<<<<< ours\n", one, b"=======\n", other, b">>>>>>> theirs\n")
        ours.write_bytes(b"".join(part if part.endswith(b"\n") or not part else part + b"\n" for part in parts))
    except OSError as error:
        from ralf_cli.output import say

        say(f"warning: {where}: not merged: {error.strerror or error}")
    return 1


def _is_readable(content: bytes, where: str) -> bool:
    from ralf.errors import RalfError
    from ralf.format import routefile

    try:
        routefile.parse(content, where)
    except (RalfError, RecursionError):
        return False
    return True

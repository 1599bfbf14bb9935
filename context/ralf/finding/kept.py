"""Kept answers of commands, read without loading what makes one. Of ralf, this module loads nothing.

The project's `index.db` keeps an answer with all that its making looked at: each file and folder by its stamp, what git
said, and until when it holds by the clock. It is given again only where all of that is as it was, to the same words in
the same folder and environment; else, and whatever goes wrong, it is made anew. What is looked at is not listed by
hand: a making is watched at its calls of the system.

The key of the store, which lies in the user's own folder, seals an answer and the question: an index that came with a
repository has no such seal, and nothing is given again where the store has no key.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Question = tuple[list[str | bytes], list[str], dict[str, str]]  # words, variables as they are, and others
    Stamp = tuple[int, ...]

_FOR_GIT = 0.25  # seconds, which is less than a making waits for it

_DROP_OLDER = "delete from answer where rowid not in (select rowid from answer order by rowid desc limit 16)"

_PASSING = ("_", "SHLVL", "OLDPWD")
"""Variables that a shell sets at each call, and that no answer depends on."""

_SEAL = 32  # bytes

_began = time.time_ns()  # this process, before it loaded what makes an answer


def read(words: "Sequence[str]") -> bytes:
    """The kept answer to a command line. Any error if there is none, or something has changed."""
    global _began
    _began = time.time_ns()
    import _sqlite3  # a third of what `sqlite3` takes
    import marshal

    cache, key = _place(_root(words))
    name = _name(words, key)
    if not all(os.path.isfile(f"{cache}/index.db{end}") for end in ("", "-wal", "-shm")):  # a pipe would be waited for
        raise LookupError
    quoted = cache.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    index = _sqlite3.connect(f"file:{quoted}/index.db?mode=ro", timeout=0.05, uri=True)
    try:
        ((body,),) = index.execute("select body from answer where name = ?", (name,))
    finally:
        index.close()
    if _seal(name + body[_SEAL:], key) != body[:_SEAL]:
        raise LookupError
    text: bytes
    made, until, looked, asked, text = marshal.loads(body[_SEAL:])  # noqa: S302  # its seal says that we wrote it
    end = time.monotonic() + _FOR_GIT
    if (
        not made <= time.time_ns() < until
        or any(_stamp(path) != stamp for path, stamp in looked.items())
        or any(_seal(_said_by_git(question, end), key) != said for question, said in asked)
    ):
        raise LookupError
    lease = os.environ.get("RALF_LEASE", "").replace(":", "-")
    if lease and "/" not in lease:
        os.utime(f"{_place('')[0]}/leases/{lease}")  # as each command of an agent that holds a task, whatever the root
    return text


def _root(words: "Sequence[str]") -> str:
    return words[1] if words[0] == "--root" else ""


def _place(root: str) -> tuple[str, bytes]:
    """The cache of the project that is likely meant, and the key of its store, as `storage.registry` keeps them. Any
    error where there is none.
    """
    config = os.environ.get("XDG_CONFIG_HOME", "")
    config = config if config.startswith("/") else f"{os.environ['HOME']}/.config"
    top = os.path.abspath(root or os.environ.get("RALF_PROJECT_DIR", ""))
    top = top.removesuffix("/.autonomous")
    while not os.path.isdir(f"{top}/.autonomous/context") and top != "/":
        top = os.path.dirname(top)
    name = os.path.realpath(top).replace("%", "%25").replace("/", "%2F")
    with open(f"{config}/ralf/projects/{name}.json", encoding="utf-8", opener=_open_own) as file:
        said = file.read()
    key, cache = (said.partition(f'\n  "{field}": "')[2].partition('"')[0] for field in ("key", "cache"))
    if not key or not cache:  # not the user's store: whoever brought it can have brought an index
        raise LookupError
    return f"{top}/.autonomous/context/cache/{cache}", bytes.fromhex(key)


def _open_own(path: str, flags: int) -> int:
    found = os.lstat(path)
    if found.st_uid != os.geteuid() or found.st_mode & 0o170077 != 0o100000:
        raise PermissionError
    return os.open(path, flags)


def _name(words: "Sequence[str]", key: bytes) -> bytes:
    """What an answer is kept by: all that is given to a command."""
    user = os.geteuid(), os.getegid(), os.getgroups()
    given = sorted((name, value) for name, value in os.environ.items() if name not in _PASSING)
    process = sys.version, sys.stdout.encoding, user, os.getcwd(), sys.path, sys.argv[0], [*words], given
    return _seal(repr(process).encode(), key)


def _seal(data: bytes, key: bytes) -> bytes:
    from _blake2 import blake2b

    return blake2b(data, key=key, digest_size=_SEAL).digest()


def _stamp(path: str, look: "Callable[[str], os.stat_result]" = os.lstat) -> "Stamp":
    """What changes with a file, and with what a link leads to. Of a folder only which one it is; what is in it, too,
    where the path ends in a dot.
    """
    try:
        found = look(path)
    except OSError as error:
        return (error.errno or 0,)
    kind = found.st_mode & 0o170000
    if kind == 0o040000 and not path.endswith("/."):
        return found.st_dev, found.st_ino, found.st_mode, found.st_uid
    made = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return (*made, *_stamp(path, _followed)) if kind == 0o120000 else made


_followed = os.stat  # which nobody has replaced yet


def _said_by_git(question: "Question", end: float) -> bytes:
    """What git answers now, after its exit status; it is killed where that takes longer than until `end`."""
    import select

    words, names, more = question
    inner, outer = os.pipe()
    streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 2)]
    streams.append((os.POSIX_SPAWN_DUP2, outer, 1))  # type: ignore[arg-type]
    environment = {name: value for name, value in os.environ.items() if name in names} | more
    child = os.posix_spawnp("git", words, environment, file_actions=streams)
    os.close(outer)
    said, pipe = b"", select.poll()
    pipe.register(inner)
    while pipe.poll(max(0.0, end - time.monotonic()) * 1_000):
        if not (part := os.read(inner, 65_536)):
            break
        said += part
    else:
        os.kill(child, 9)
    os.close(inner)
    return b"%d %b" % (os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said)


# ---- watching how an answer is made ----

_FINE, _COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds after which every change of a file also changes its times: where they have a fraction of a millisecond,
and elsewhere.
"""

_ELSEWHERE = ("subprocess.", "os.posix_spawn", "os.fork", "os.exec", "os.system", "os.kill", "socket.", "fcntl.")
"""What somebody does who looks at more than files: other processes, machines, locks."""

_OURS = "ralf_integrations."
"""What an extension begins with that looks at nothing unseen: others may ask the clock or a database."""

_STORE = "/.autonomous/"
"""Where files come and go within a moment: of one that was not there, its folder tells whether it never was."""


class Watch:
    """What this process looks at in a block, which makes an answer."""

    def __init__(self) -> None:
        from ralf.storage import git_files

        self._began = _began
        self._looked: dict[str, Stamp] = {}
        self._asked: list[tuple[Question, bytes]] = []
        self._is_on = self._is_certain = True
        self._replaced: list[tuple[Any, str, Any]] = [(git_files, "ask", git_files.ask), (time, "time", time.time)]
        self._replaced += [(os, name, getattr(os, name)) for name in ("stat", "lstat", "access", "readlink")]

    def __enter__(self) -> "Watch":
        for module, name, call in self._replaced:
            setattr(module, name, self._noting(call) if module is os else getattr(self, f"_{name}"))
        sys.addaudithook(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_certain &= self._is_on
        self._is_on = False
        for module, name, call in self._replaced:
            setattr(module, name, call)

    def _noting(self, call: "Callable[..., Any]") -> "Callable[..., Any]":
        def noting(path: "Any", *arguments: "Any", **more: "Any") -> "Any":
            self._note(path)
            self._is_certain &= more.get("dir_fd") is None
            return call(path, *arguments, **more)

        return noting

    def _hear(self, event: str, arguments: "tuple[Any, ...]") -> None:
        if self._is_on and event.startswith(_ELSEWHERE):
            self._is_certain = False
        elif self._is_on and event in ("open", "os.listdir", "os.scandir"):
            path = "." if arguments[0] is None else arguments[0]
            self._note(path, "" if event == "open" else "/.")
            for name in os.listdir(path) if event == "os.scandir" and not isinstance(path, int) else ():
                self._note(os.path.join(os.fsdecode(path), os.fsdecode(name)))

    def _note(self, path: "Any", end: str = "") -> None:
        if isinstance(path, int):  # an open file: which one was noted then
            self._is_certain &= not end
            return
        name = os.fsdecode(path) + end
        if "\0" in name or name.startswith(("/proc/", "/sys/")):
            self._is_certain = False
        elif name not in self._looked and not name.endswith(".pyc"):
            self._looked[name] = _stamp(name)

    def _time(self) -> float:
        """A look at the clock, of which nobody says how long what is seen holds."""
        self._is_certain = False
        return time.time_ns() / 1e9

    def _ask(self, folder: "Any", arguments: "Any", environment: "Any", given: bytes = b"", **more: "Any") -> "Any":
        self._is_on = False  # for good where this fails
        done = self._replaced[0][2](folder, arguments, environment, given, **more)
        self._is_on = done is not None and not given
        if self._is_on:
            same = [name for name, value in environment.items() if os.environ.get(name) == value]
            others = {name: value for name, value in environment.items() if name not in same}
            words = ["git", "-C", os.fspath(folder), *done.args[1:]]
            self._asked.append(((words, same, others), b"%d %b" % (done.returncode, done.stdout)))
        return done

    def keep(self, words: "Sequence[str]", text: bytes) -> None:
        """Keep the answer that was made; nothing where it may not hold. Any error where it cannot be kept."""
        import marshal

        from ralf import extensions, project as projects
        from ralf.document import index
        from ralf.route import closing

        project, (_, key) = projects.find(_root(words) or None), _place(_root(words))
        is_ours = key.hex() == project.owner.key and all(name.startswith(_OURS) for name in extensions.loaded)
        with index.using(project.room_for(index.NAME) if is_ours and self._is_certain else None) as found:
            # Open before the look that counts: who forgets rewrites a journal, then removes the index.
            if found is not None and self._is_unchanged(str(project.cache)):
                # Of what git said only a digest: no one has looked for secrets in it.
                asked = [(question, _seal(said, key)) for question, said in self._asked]
                body = marshal.dumps((self._began, closing.holds_until(), self._looked, asked, text))
                with found.database() as tables:
                    tables.execute("create table if not exists answer(name blob primary key, body blob)")
                    name = _name(words, key)
                    tables.execute("insert or replace into answer values(?, ?)", (name, _seal(name + body, key) + body))
                    tables.execute(_DROP_OLDER)

    def _is_unchanged(self, cache: str) -> bool:
        """Whether all that was looked at was as it is now when this process began: all but what only caches, and signs
        of life.
        """
        for module in [*sys.modules.values()]:
            self._note(getattr(module, "__file__", None) or sys.executable)
        passing = f"{cache}/index.db", f"{cache}/leases/"
        self._looked = {path: stamp for path, stamp in self._looked.items() if not path.startswith(passing)}
        absent = {os.path.dirname(path) for path, stamp in self._looked.items() if len(stamp) == 1 and _STORE in path}
        stamps = [*self._looked.values(), *(_stamp(_around(folder)) for folder in absent)]
        changed = [stamp[at] for stamp in stamps for at in range(4, len(stamp), 5)]
        return all(time + (_FINE if time % 1_000_000 else _COARSE) < self._began for time in changed) and all(
            _stamp(path) == stamp for path, stamp in self._looked.items()
        )


def _around(folder: str) -> str:
    """A folder and what is in it, or the nearest one around it where it is not there."""
    folder = os.path.abspath(folder)
    return f"{folder}/." if os.path.isdir(folder) else _around(os.path.dirname(folder))

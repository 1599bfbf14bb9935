"""The index of tasks says what files and records say, however it came to it, and opens no file that did not change."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

from examples import examples  # noqa: F401  # the profile
from ralf.errors import RalfError
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, serializing, store
from taskskit import without_index

pytestmark = pytest.mark.ci


def edited(root: Path, random: Random) -> None:
    """What a person does to a file."""
    paths = sorted((root / ".autonomous" / "tasks").glob("[ac]*/*.md"))
    if not paths:
        return
    path = random.choice(paths)
    what = random.randrange(4)
    if what == 0:
        path.unlink()
    elif what == 1:
        path.write_text(path.read_text() + f"\nline {random.random()}\n")
    elif what == 2:
        text = path.read_text()
        for status in ("pending", "completed", "failed", "cancelled"):
            text = text.replace(f'status: "{status}"', "status: " + random.choice(("pending", "completed")))
        path.write_text(text + f"\nline {random.random()}\n")
    else:
        path.write_text("---\nid: [\n---\n" if random.random() < 0.3 else f"# By hand {random.random()}\n")


def did(root: Path, random: Random) -> None:
    """What a command does."""
    states = store.list_tasks(root=root).tasks
    one = random.choice(states).task.id if states else "none"
    by = random.choice(("a", "b"))
    works: list[Callable[[], object]] = [
        lambda: editing.add(
            f"Task {random.random()}", after=[one] if random.random() < 0.5 and states else [], root=root
        ),
        lambda: claims.claim(by=by, root=root),
        lambda: claims.claim(one, by=by, root=root),
        lambda: claims.progress("Half", by=by, root=root),
        lambda: claims.done("Done", by=by, root=root),
        lambda: claims.fail("Failed", by=by, root=root),
        lambda: claims.release(by=by, outcome="crashed", root=root),
        lambda: claims.retry(one, root=root),
        lambda: editing.edit(one, priority=random.randint(1, 10), text=f"text {random.random()}", root=root),
        lambda: editing.split(one, ["Left", "Right"], root=root),
        lambda: serializing.serialize(every=2, root=root),
    ]
    with suppress(RalfError):
        random.choice(works)()


def told(root: Path) -> object:
    found = store.list_tasks(root=root)
    ready = [state.task.id for state in store.list_tasks(ready=True, root=root).tasks]
    return found, ready


@given(st.integers(0, 1 << 32))
def test_an_index_that_is_made_anew_says_what_the_old_one_did(seed: int) -> None:
    random = Random(seed)  # noqa: S311  # an example
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        ownership.init(store.at(root).project, share=False)
        for _ in range(12):
            (edited if random.random() < 0.3 else did)(root, random)
        editing.add("End", root=root)  # what a person undid of the newest write, the index alone knows
        before = told(root)
        without_index(root)
        assert told(root) == before

"""Workers that are killed, an index that is removed, readers and an editor at once: each task is done once, no save is
lost.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

import pytest

from examples import examples
from ralf.document.record import decoded
from ralf.errors import NothingReady
from ralf.maintenance import ownership
from ralf.tasks import claims, editing, records, store
from ralf.tasks.model import Task
from taskskit import without_index

pytestmark = [pytest.mark.release]

FORK = multiprocessing.get_context("fork")
KILLS = 4
"""Workers that are killed for each task that is done: on a slow machine, kills by the clock would let none be done."""


def forever(work: Callable[[], object]) -> None:
    while True:
        work()


def completed(root: Path) -> list[Path]:
    return list((root / ".autonomous" / "tasks" / "completed").glob("TASK-*.md"))


def worked(root: Path, tasks: int) -> None:
    """Claim and complete tasks until all are done, under a name of its own."""
    random, by = Random(os.getpid()), f"agent-{os.getpid()}"  # noqa: S311
    while True:
        try:
            state = claims.claim(by=by, process=os.getpid(), root=root)
        except NothingReady:
            if store.at(root).counts()["completed"] == tasks:
                return
            time.sleep(0.02)
            continue
        assert state.claim is not None
        time.sleep(random.random() * 0.01)
        claims.done("Done", lease=state.claim.lease(state.task.id), root=root)


def saved_into_any(root: Path, lines: multiprocessing.queues.SimpleQueue[tuple[str, str]]) -> None:
    """Save one line after the other into the files of tasks, wherever they are."""
    random, number = Random(5), 0  # noqa: S311
    while True:
        path = random.choice(sorted((root / ".autonomous" / "tasks").glob("*/TASK-*.md")) or [root / "none"])
        line = f"line {number} of {path.stem}"
        with suppress(FileNotFoundError):
            with open(os.open(path, os.O_WRONLY | os.O_APPEND), "a") as file:
                file.write(f"{line}\n")
            lines.put((path.name, line))  # now that it is written: this process is killed in the end
            number += 1
        time.sleep(0.004)


@contextmanager
def running(processes: set[BaseProcess]) -> Iterator[None]:
    """Start processes, and end those that are left, and any that were added, however the block ends."""
    try:
        for process in processes:
            process.start()
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


@pytest.mark.release(seconds=10)
@pytest.mark.parametrize(("seed", "tasks"), [(1, 12), (2, examples(120))])
def test_a_storm_leaves_each_task_done_once_and_each_save_in_its_file(tmp_path: Path, seed: int, tasks: int) -> None:
    random, root = Random(seed), tmp_path  # noqa: S311
    ownership.init(store.at(root).project, share=False)
    editing.add_all([Task(id=f"TASK-{number}", title=f"Task {number}") for number in range(tasks)], root=root)
    lines = FORK.SimpleQueue()
    told: list[tuple[str, str]] = []
    others: set[BaseProcess] = {
        FORK.Process(target=saved_into_any, args=(root, lines)),
        FORK.Process(target=forever, args=(lambda: store.list_tasks(root=root),)),
    }
    workers: set[BaseProcess] = {FORK.Process(target=worked, args=(root, tasks)) for _ in range(4)}
    kills = 0
    with running(others), running(workers):
        while workers:
            time.sleep(random.random() * 0.05)
            while not lines.empty():
                told.append(lines.get())
            if random.random() < 0.5 and kills < KILLS * (1 + len(completed(root))):
                kills += 1
                victim = random.choice(sorted(workers, key=lambda one: one.pid or 0))
                if victim.pid is not None and victim.exitcode is None:
                    os.kill(victim.pid, signal.SIGKILL)
                    another = FORK.Process(target=worked, args=(root, tasks))
                    another.start()
                    workers.add(another)
            elif random.random() < 0.2:
                without_index(root)
            over = {one for one in workers if one.exitcode is not None}
            assert all(one.exitcode in (0, -signal.SIGKILL) for one in over)
            workers -= over
    while not lines.empty():
        told.append(lines.get())
    editing.add("The last one", root=root)  # which sees to what the last ones left
    held: dict[str, int] = {}
    done = Counter[str]()
    for entry in store.at(root).project.store.read(records.STREAM):
        record = decoded(records.STREAM, entry)
        assert record is not None
        task = record.body.get("task", "")
        if record.body["kind"] == "claim":
            assert task not in held
            held[task] = record.revision
        elif record.body["kind"] in ("done", "lost"):
            assert held.pop(task) == record.body["lease"]
            done[task] += record.body["kind"] == "done"
    assert {task: count for task, count in done.items() if count} == {f"TASK-{number}": 1 for number in range(tasks)}
    found = {path.name: path.read_text() for path in completed(root)}
    assert len(found) == tasks
    assert [(name, line) for name, line in told if line not in found[name]] == []

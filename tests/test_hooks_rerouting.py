"""A session that goes on with another route: every byte of its log belongs to one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hookkit
import storekit
from hookkit import Rig
from ralf import routing
from ralf.maintenance import verify
from ralf_integrations.hooks import checkpoints, session_registry

pytestmark = pytest.mark.ci


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = hookkit.rig(tmp_path / "project")
    made.configure(threshold=3_000)
    routing.use(made.project, "A", session=made.session)
    return made


def spans(rig: Rig, route: str) -> list[tuple[int, int]]:
    return [(first, last) for _, first, last in storekit.checkpoints_of(rig.root, route)]


def use(rig: Rig, route: str) -> None:
    """As the agent does it: a hook follows the command."""
    routing.use(rig.project, route, session=rig.session)
    rig.hook()


def go_on(rig: Rig, tokens: int) -> int:
    """Let the session go on, and a hook look; where the log ends then."""
    rig.grow(tokens)
    rig.hook()
    return rig.transcript.stat().st_size


def test_a_change_of_route_ends_the_segment_which_belongs_to_the_one_before(rig: Rig) -> None:
    border = go_on(rig, 1_000)
    rig.hook("SessionEnd", reason="other")
    middle = go_on(rig, 1_000)
    use(rig, "B")
    assert spans(rig, "A") == [(0, border), (border, middle)]
    assert [reason for reason, _ in rig.checkpoints("A")] == ["session-end", "route-change"]
    assert rig.checkpoints("B") == []
    end = go_on(rig, 1_000)
    assert rig.checkpoints("B") == []
    rig.hook("SessionEnd", reason="other")
    assert spans(rig, "B") == [(middle, end)]
    use(rig, "A")
    last = go_on(rig, 1_000)
    rig.hook("SessionEnd", reason="other")
    assert spans(rig, "A")[2:] == [(end, last)]
    assert spans(rig, "B") == [(middle, end)]
    assert verify.verify(root=rig.root).findings == ()


def test_work_too_long_to_wait_for_at_a_change_of_route_goes_to_the_old_route_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LEFT_ROUTE_SECONDS", 0.01)
    go_on(rig, 1_000)
    rig.hook("SessionEnd", reason="other")
    rig.grow(10_000)
    border = rig.transcript.stat().st_size
    use(rig, "B")
    assert spans(rig, "A")[-1][1] == border
    assert rig.checkpoints("B") == []
    end = go_on(rig, 4_000)
    rig.hook("SessionEnd", reason="other")
    assert spans(rig, "B")[0][0] == border
    assert spans(rig, "B")[-1][1] == end


def test_thresholds_of_the_new_route_count_from_the_border(rig: Rig) -> None:
    go_on(rig, 3_500)
    use(rig, "B")
    go_on(rig, 2_000)
    assert rig.checkpoints("B") == []
    go_on(rig, 2_000)
    assert [reason for reason, _ in rig.checkpoints("B")] == ["threshold"]
    assert session_registry.load(rig.project, rig.session).routes == ("A",)

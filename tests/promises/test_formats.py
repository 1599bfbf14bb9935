"""Files of other versions and tools are read, and the file stays small enough to be read."""

from __future__ import annotations

import pytest

from promises.user import FIXTURES, User

pytestmark = pytest.mark.ci

FIRST = (FIXTURES / "format_1_0_0.md").read_text(encoding="utf-8")
"""A file of version 1.0.0, as it was proposed."""

MEMORY = """# Scout Worker Timeline Memory

**Purpose:** Long-term memory

---

```yaml
timeline_memory:
  version: "1.0.0"
  agent: scout-worker
  created: "2026-02-04T00:00:00Z"
  total_runs: 1
history:
  - run_id: "run-20260204-001"
    timestamp: "2026-02-04T10:10:00Z"
    result: "The tide API answers in feet"
stats_by_source:
  github:
    total_scanned: 4711
work_queue:
  priority_sources: ["github.com/harbour/gauges"]
  in_progress: "read the gauge of pier 9"
```
"""


def test_a_file_of_version_1_0_0_is_read_and_keeps_its_words_and_unknown_keys(user: User) -> None:
    path = user.route_file("api-refactoring")
    path.parent.mkdir(exist_ok=True)
    text = FIRST.replace("decisions:\n", 'owner_team: "tides"\ndecisions:\n')
    text = text.replace('    status: "active"\n', '    status: "active"\n    ticket: "API-7"\n')
    path.write_text(text, encoding="utf-8")
    shown = user.does("show", "api-refactoring").out
    for words in ("Use FastAPI over Flask", "Better async support", "TASK-001", "JWT authentication middleware"):
        assert words in shown
    status, said = user.types("trust", "api-refactoring", answer="y\nyes\n")
    assert status == 0, said
    user.does("decide", "api-refactoring", "Go on")
    assert user.decisions("api-refactoring") == ["Use FastAPI over Flask", "Go on"]
    after = path.read_text(encoding="utf-8")
    for words in ("tides", "API-7", "executor", "src/api/routes.py", "cp-001", "Project initialized", "156000"):
        assert words in after
    assert "Started implementing JWT authentication middleware..." in after
    user.does("verify")


def test_a_timeline_memory_is_imported_once_and_left_as_it_is(user: User) -> None:
    source = user.project / "agents/scout-worker/timeline-memory.md"
    source.parent.mkdir(parents=True)
    source.write_text(MEMORY, encoding="utf-8")
    user.does("import", "timeline-memory", "--dry-run")
    assert user.does("list", "--json").json() == []
    user.does("import", "timeline-memory")
    (route,) = [route["route"] for route in user.does("list", "--json").json()]
    assert route == "scout-worker"
    kept = user.does("show", route, "--json").out + user.does("search", "tide API feet", "--json").out
    for words in ("The tide API answers in feet", "read the gauge of pier 9", "github.com/harbour/gauges"):
        assert words in kept or words in user.route_file(route).read_text(encoding="utf-8")
    before = user.does("log", route, "--json").out
    user.does("import", "timeline-memory")
    assert user.does("log", route, "--json").out == before
    assert source.read_text(encoding="utf-8") == MEMORY


FILLS = """
import ralf
for number in range(16):
    reason = f"gauge-{number:02d} " + "as the tide rose again " * 400
    ralf.record_decision("harbour", f"Mark pier {number:02d} on the chart", rationale=reason)
"""


def test_what_a_file_of_20000_tokens_has_no_room_for_is_found_by_search(user: User) -> None:
    filled = user.python(FILLS)
    assert filled.status == 0, filled
    text = user.route_file("harbour").read_text()
    assert 5_000 < len(text.split()) <= 20_000  # a word is a token at least
    assert "gauge-15" in text and "gauge-00" not in text
    (hit, *_) = user.does("search", "gauge-00", "--json").json()
    assert (hit["route"], hit["id"]) == ("harbour", "DEC-001")
    assert "gauge-00" in user.does("show", "harbour", "DEC-001").out

"""The files of the invented project "tidepool", as they stand when the session begins, and those made from a table."""

from __future__ import annotations

import hashlib
import json

# resource: (what it is, singular class, fields as (name, type, meaning, example))
RESOURCES: dict[str, tuple[str, str, list[tuple[str, str, str, object]]]] = {
    "stations": (
        "A tide gauge at a fixed place on the coast.",
        "Station",
        [
            ("id", "str", "stable identifier, lower case", "north-quay"),
            ("name", "str", "display name in the local language", "North Quay"),
            ("latitude", "float", "degrees, WGS 84", 54.1812),
            ("longitude", "float", "degrees, WGS 84", 7.8891),
            ("datum", "str", "reference level of its readings: `LAT` or `NN`", "LAT"),
            ("opened_at", "datetime", "first day of operation, UTC", "1998-04-01T00:00:00Z"),
            ("retired_at", "datetime | None", "last day of operation, or null", None),
        ],
    ),
    "readings": (
        "One water level, as the gauge reported it.",
        "Reading",
        [
            ("id", "str", "station, then second, then a counter within that second", "north-quay:1741500000:0"),
            ("station_id", "str", "the station that sent it", "north-quay"),
            ("taken_at", "datetime", "time of the measurement, UTC, whole seconds", "2026-03-09T06:00:00Z"),
            ("level_mm", "int", "water level above the station's datum, in millimetres", 2310),
            ("quality", "str", "`raw`, `checked` or `rejected`", "raw"),
            ("sensor_id", "str | None", "which of the station's sensors, where it has several", "nq-radar-1"),
        ],
    ),
    "predictions": (
        "A predicted high or low water.",
        "Prediction",
        [
            ("id", "str", "station and running number of the tide", "north-quay:20260309:2"),
            ("station_id", "str", "the station it is predicted for", "north-quay"),
            ("kind", "str", "`high` or `low`", "high"),
            ("expected_at", "datetime", "predicted time, UTC", "2026-03-09T11:42:00Z"),
            ("level_mm", "int", "predicted level, in millimetres above datum", 2840),
            ("model_run", "str", "which run of the model produced it", "hm-2026-03-08T18"),
        ],
    ),
    "alerts": (
        "A warning that the harbour office has issued.",
        "Alert",
        [
            ("id", "str", "running number of the year", "2026-0147"),
            ("station_id", "str | None", "the station concerned, or null for the whole coast", "north-quay"),
            ("severity", "int", "1 notice, 2 warning, 3 danger", 2),
            ("issued_at", "datetime", "time of issue, UTC", "2026-03-09T05:15:00Z"),
            ("expires_at", "datetime | None", "end of validity, or null until cancelled", None),
            ("text", "str", "what is read out on the radio", "Strong wind from the northwest, quay closed."),
        ],
    ),
    "sensors": (
        "A measuring device at a station.",
        "Sensor",
        [
            ("id", "str", "stable identifier", "nq-radar-1"),
            ("station_id", "str", "where it is mounted", "north-quay"),
            ("method", "str", "`radar`, `float` or `pressure`", "radar"),
            ("interval_s", "int", "seconds between two readings", 60),
            ("offset_mm", "int", "added to each raw value", -12),
            ("serial", "str", "the maker's serial number", "RX-4471-B"),
        ],
    ),
    "calibrations": (
        "A visit during which a sensor was compared with the staff gauge.",
        "Calibration",
        [
            ("id", "str", "sensor and day", "nq-radar-1:2026-02-11"),
            ("sensor_id", "str", "the sensor that was compared", "nq-radar-1"),
            ("done_at", "datetime", "time of the comparison, UTC", "2026-02-11T13:20:00Z"),
            ("deviation_mm", "int", "sensor minus staff gauge", 7),
            ("corrected", "bool", "whether the offset was changed afterwards", True),
            ("note", "str", "free text of the technician, edited offline", "growth on the tube removed"),
        ],
    ),
    "outages": (
        "A period without readings that the office knows of.",
        "Outage",
        [
            ("id", "str", "running number", "O-3312"),
            ("station_id", "str", "the station that is silent", "north-quay"),
            ("began_at", "datetime", "start, UTC", "2026-01-30T22:10:00Z"),
            ("ended_at", "datetime | None", "end, or null while it lasts", "2026-01-31T09:00:00Z"),
            ("cause", "str", "`power`, `network`, `ice` or `unknown`", "ice"),
            ("note", "str", "free text, edited offline", "ice on the antenna"),
        ],
    ),
    "annotations": (
        "A remark that a person pinned to a reading.",
        "Annotation",
        [
            ("id", "str", "made by the client, so that it exists before the server has seen it", "an-7f21c0"),
            ("reading_id", "str", "the reading that it is about", "north-quay:1741500000:0"),
            ("author", "str", "initials", "kb"),
            ("written_at", "datetime", "time on the author's device, UTC", "2026-03-09T06:31:07Z"),
            ("text", "str", "the remark", "wake of the pilot boat"),
            ("tags", "list[str]", "any of `wake`, `ice`, `doubt`", ["wake"]),
        ],
    ),
}


def pick(key: str, below: int) -> int:
    """A number from 0 up to `below`, the same for the same key on every machine."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big") % below


def old_model(name: str) -> str:
    """A resource module of version 0.3: functions over plain dicts."""
    about, cls, fields = RESOURCES[name]
    one = cls.lower()
    times = [f for f, t, *_ in fields if t.startswith("datetime")]
    checks = "\n".join(
        f'    if "{f}" not in raw:\n        raise ValueError("{one} without {f}: %r" % (raw,))'
        for f, t, *_ in fields[:4]
        if "None" not in t
    )
    convert = "\n".join(f'    if out.get("{f}"):\n        out["{f}"] = parse_time(out["{f}"])' for f in times)
    unconvert = "\n".join(f'    if out.get("{f}"):\n        out["{f}"] = format_time(out["{f}"])' for f in times)
    return f'''"""{about}"""

import requests

from tidepool.config import settings
from tidepool.times import format_time, parse_time

KEYS = [{", ".join(f'"{f}"' for f, *_ in fields)}]


def clean_{one}(raw):
{checks}
    out = {{key: raw.get(key) for key in KEYS}}
{convert or "    out = dict(out)"}
    return out


def dump_{one}({one}):
    out = dict({one})
{unconvert or "    out.pop('_dirty', None)"}
    return out


def fetch_{name}(since=None):
    """All {name}, page after page. `since` is ignored by the server for {name} before 2024."""
    url = settings["base_url"] + "/v1/{name}"
    params = {{"limit": 2000}}
    if since:
        params["updated_after"] = format_time(since)
    items = []
    while url:
        response = requests.get(url, params=params, headers={{"X-Harbour-Key": settings["api_key"]}})
        response.raise_for_status()
        body = response.json()
        items.extend(clean_{one}(raw) for raw in body["items"])
        url, params = body.get("next"), None
    return items
'''


def new_model(name: str) -> str:
    """The same module after step 2: a slotted dataclass."""
    about, cls, fields = RESOURCES[name]
    width = max(len(f) for f, *_ in fields)
    listed = "\n".join(f"    {f:<{width}}   {meaning}" for f, _, meaning, _ in fields)
    attributes = "\n".join(f"    {f}: {t}" for f, t, *_ in fields)

    def decode(field: str, kind: str) -> str:
        if kind == "datetime":
            return f'parse_time(raw["{field}"])'
        if kind == "datetime | None":
            return f'parse_time(raw["{field}"]) if raw.get("{field}") else None'
        if kind.startswith("list"):
            return f'list(raw.get("{field}", ()))'
        return f'raw.get("{field}")' if "None" in kind else f'{kind}(raw["{field}"])'

    def encode(field: str, kind: str) -> str:
        if kind == "datetime":
            return f"format_time(self.{field})"
        if kind == "datetime | None":
            return f"format_time(self.{field}) if self.{field} else None"
        return f"self.{field}"

    decoded = "\n".join(f"            {f}={decode(f, t)}," for f, t, *_ in fields)
    encoded = "\n".join(f'            "{f}": {encode(f, t)},' for f, t, *_ in fields)
    timed = any(t.startswith("datetime") for _, t, *_ in fields)
    imports = "from datetime import datetime\n" if timed else ""
    clock = "\nfrom tidepool.times import format_time, parse_time" if timed else ""
    return f'''"""{about}"""

from __future__ import annotations

from dataclasses import dataclass
{imports}from typing import Any, ClassVar

from tidepool.errors import BadRecord{clock}


@dataclass(frozen=True, slots=True)
class {cls}:
    """{about}

{listed}
    """

    path: ClassVar[str] = "{name}"

{attributes}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> {cls}:
        """Raises BadRecord, naming the record, where a field is missing or has the wrong shape."""
        try:
            return cls(
{decoded.replace("            ", "                ")}
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecord(cls.path, raw.get("id"), error) from error

    def to_json(self) -> dict[str, Any]:
        return {{
{encoded}
        }}
'''


def example(name: str, n: int = 0) -> dict[str, object]:
    """The n-th sample record of a resource, as the server sends it."""
    record: dict[str, object] = {}
    for field, kind, _, value in RESOURCES[name][2]:
        if n and kind == "int" and isinstance(value, int):
            record[field] = value + pick(f"{name}{field}{n}", 400) - 150
        elif n and field == "id":
            record[field] = f"{value}-{n}"
        elif n and isinstance(value, str) and value.endswith("Z"):
            record[field] = f"{value[:11]}{pick(field + str(n), 24):02}:{pick(name + str(n), 60):02}:00Z"
        else:
            record[field] = value
    return record


def fixture(name: str, count: int) -> str:
    """A recorded page of a resource."""
    items = [example(name, n) for n in range(count)]
    body = {"items": items, "next": None, "cursor": f"c1.{name[:3]}.{pick(name, 10**9):09}"}
    return json.dumps(body, indent=2) + "\n"


def old_test(name: str) -> str:
    """The tests of a resource in version 0.3."""
    _, cls, fields = RESOURCES[name]
    one = cls.lower()
    first = next(f for f, t, *_ in fields[1:] if "None" not in t)
    return f'''import json
from pathlib import Path

import pytest

from tidepool.models.{name} import KEYS, clean_{one}, dump_{one}

PAGE = json.loads((Path(__file__).parent / "fixtures" / "{name}.json").read_text())


def test_clean_{one}_keeps_all_keys():
    assert set(clean_{one}(PAGE["items"][0])) == set(KEYS)


def test_{one}_survives_a_round_trip():
    raw = PAGE["items"][0]
    assert dump_{one}(clean_{one}(raw)) == raw


def test_{one}_without_{first}_is_refused():
    raw = dict(PAGE["items"][0])
    del raw["{first}"]
    with pytest.raises(ValueError):
        clean_{one}(raw)
'''


def new_test(name: str) -> str:
    """The tests of a resource after step 2."""
    _, cls, fields = RESOURCES[name]
    one = cls.lower()
    first = next(f for f, t, *_ in fields[1:] if "None" not in t)
    numbers = [f for f, t, *_ in fields if t in ("int", "float")]
    extra = ""
    if numbers:
        extra = f'''

@pytest.mark.parametrize("bad", ["", "twelve", None, []])
def test_{one}_refuses_a_{numbers[0]}_that_is_no_number(bad):
    with pytest.raises(BadRecord) as caught:
        {cls}.from_json(RAW | {{"{numbers[0]}": bad}})
    assert caught.value.resource == "{name}"
'''
    return f'''"""{cls}: what the server sends, what we hold, what we send back."""

import dataclasses
import json
from pathlib import Path

import pytest

from tidepool.errors import BadRecord
from tidepool.models.{name} import {cls}

PAGE = json.loads((Path(__file__).parent / "fixtures" / "{name}.json").read_text())
RAW = PAGE["items"][0]


@pytest.mark.parametrize("raw", PAGE["items"], ids=lambda raw: raw["id"])
def test_{one}_survives_a_round_trip(raw):
    assert {cls}.from_json(raw).to_json() == raw


def test_{one}_without_{first}_is_refused_by_name():
    raw = {{key: value for key, value in RAW.items() if key != "{first}"}}
    with pytest.raises(BadRecord, match="{first}"):
        {cls}.from_json(raw)


def test_{one}_ignores_fields_that_it_does_not_know():
    assert {cls}.from_json(RAW | {{"colour": "green"}}) == {cls}.from_json(RAW)


def test_{one}_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        {cls}.from_json(RAW).id = "other"
{extra}'''


def api_docs() -> str:
    """docs/api.md: the server's side."""
    parts = [
        "# Harbour API, version 1\n\nBase address: `https://harbour.example/api`. Each request carries `X-Harbour-Key`."
        "\nA page holds `items`, `next` (the address of the next page, or null) and, since 1.4, `cursor`.\n"
        "\nErrors are JSON objects with `code` and `message`. `429` and `503` carry `Retry-After` in seconds.\n"
        "The gateway in front of the API ends every request after 10 seconds with `504`, whatever the API is doing.\n"
    ]
    for name, (about, _, fields) in RESOURCES.items():
        rows = "\n".join(f"| `{f}` | {t} | {meaning} |" for f, t, meaning, _ in fields)
        parts.append(
            f"\n## {name.capitalize()}\n\n{about}\n\n"
            f"    GET  /v1/{name}?limit=N&updated_after=TIME\n    GET  /v1/{name}/ID\n"
            f"    GET  /v1/{name}/changes?cursor=C&limit=N\n\n"
            f"| field | type | meaning |\n| --- | --- | --- |\n{rows}\n\n"
            f"```json\n{json.dumps(example(name), indent=2)}\n```\n"
        )
    return "".join(parts)


_TIMES = '''"""Times as the server writes them."""

from datetime import datetime, timezone


def parse_time(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def format_time(value):
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
'''

_STORE = '''"""What has been downloaded, in one JSON file per resource."""

import json
import os

from tidepool.config import settings


def path_of(name):
    return os.path.join(settings["data_dir"], name + ".json")


def load(name):
    try:
        with open(path_of(name)) as f:
            return json.load(f)
    except FileNotFoundError:
        return []


def save(name, items):
    os.makedirs(settings["data_dir"], exist_ok=True)
    with open(path_of(name), "w") as f:
        json.dump(items, f)


def last_update(name):
    try:
        return os.path.getmtime(path_of(name))
    except FileNotFoundError:
        return None
'''

_SYNC = '''"""Downloads everything."""

from tidepool import store
from tidepool.models import alerts, annotations, calibrations, outages, predictions, readings, sensors, stations

JOBS = [
    ("stations", stations.fetch_stations, stations.dump_station),
    ("sensors", sensors.fetch_sensors, sensors.dump_sensor),
    ("readings", readings.fetch_readings, readings.dump_reading),
    ("predictions", predictions.fetch_predictions, predictions.dump_prediction),
    ("alerts", alerts.fetch_alerts, alerts.dump_alert),
    ("calibrations", calibrations.fetch_calibrations, calibrations.dump_calibration),
    ("outages", outages.fetch_outages, outages.dump_outage),
    ("annotations", annotations.fetch_annotations, annotations.dump_annotation),
]


def sync_all():
    for name, fetch, dump in JOBS:
        print("syncing", name, "...")
        items = fetch()
        store.save(name, [dump(item) for item in items])
        print("  ", len(items), name)
'''

_CONFIG = '''"""Settings, from the environment."""

import os

settings = {
    "base_url": os.environ.get("TIDEPOOL_URL", "https://harbour.example/api"),
    "api_key": os.environ.get("TIDEPOOL_KEY", ""),
    "data_dir": os.environ.get("TIDEPOOL_DATA", os.path.expanduser("~/.local/share/tidepool")),
}
'''

_CLI = '''"""The command `tidepool`."""

import argparse
import sys

from tidepool import store
from tidepool.sync import sync_all


def main(argv=None):
    parser = argparse.ArgumentParser(prog="tidepool")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("sync", help="download everything")
    show = commands.add_parser("show", help="print what has been downloaded")
    show.add_argument("resource")
    args = parser.parse_args(argv)
    if args.command == "sync":
        sync_all()
    else:
        for item in store.load(args.resource):
            print(item)
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''

_PYPROJECT = """[build-system]
requires = ["setuptools>=69"]
build-backend = "setuptools.build_meta"

[project]
name = "tidepool"
version = "0.3.2"
description = "Keeps a local copy of the harbour's tide data"
requires-python = ">=3.11"
dependencies = ["requests>=2.31"]

[project.optional-dependencies]
dev = ["pytest>=8", "ruff>=0.5", "mypy>=1.10", "types-requests"]

[project.scripts]
tidepool = "tidepool.cli:main"

[tool.pytest.ini_options]
testpaths = ["tests"]

[tool.ruff]
line-length = 100

[tool.mypy]
strict = true
packages = ["tidepool"]
mypy_path = ["src"]
"""

_README = """# tidepool

Keeps a local copy of the harbour's tide data, for boats that are out of reach of a network half of the day.

    pip install tidepool
    export TIDEPOOL_KEY=...
    tidepool sync
    tidepool show readings

`tidepool sync` downloads everything each time. That takes four minutes on a good day and uses 60 MB; on the radio link
of the survey boat it does not finish.
"""


def _boat_log() -> str:
    """A week of attempts over the radio link."""
    lines = []
    for run in range(26):
        day, hour = 24 + run // 5, 5 + 3 * (run % 5)
        date = f"2026-02-{day:02}" if day < 29 else f"2026-03-{day - 28:02}"
        lines.append(
            f"{date} {hour:02}:00:01 cron: tidepool sync (attempt {run + 1}), link {pick(f'db{run}', 30) - 98} dBm"
        )
        reached = 1 + pick(f"reach{run}", 4)
        for n, name in enumerate(list(RESOURCES)[:reached]):
            at = f"{date} {hour:02}:{n:02}:{pick(f'{run}{name}', 60):02}"
            lines.append(f"{at} syncing {name} ... {20 + pick(f'n{run}{name}', 3000)} {name}")
        end = f"{date} {hour:02}:{4 + pick(f'end{run}', 40):02}:{pick(f'sec{run}', 60):02}"
        why = (
            "requests.exceptions.HTTPError: 504 Server Error: Gateway Timeout",
            "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104))",
            "killed by cron after 45 minutes, no output since the last line",
        )[pick(f"why{run}", 3)]
        lines.append(f"{end} {why}; {pick(f'mb{run}', 5800) / 100} MB received, nothing stored for the last resource")
    return "\n".join(lines) + "\n"


def initial() -> dict[str, str]:
    """Path to content, on the morning of the session."""
    files = {
        "README.md": _README,
        "pyproject.toml": _PYPROJECT,
        "docs/api.md": api_docs(),
        "logs/survey-boat.log": _boat_log(),
        "src/tidepool/__init__.py": '"""A local copy of the harbour\'s tide data."""\n\n__version__ = "0.3.2"\n',
        "src/tidepool/cli.py": _CLI,
        "src/tidepool/config.py": _CONFIG,
        "src/tidepool/models/__init__.py": "",
        "src/tidepool/store.py": _STORE,
        "src/tidepool/sync.py": _SYNC,
        "src/tidepool/times.py": _TIMES,
        "tests/__init__.py": "",
    }
    for name in RESOURCES:
        files[f"src/tidepool/models/{name}.py"] = old_model(name)
        files[f"tests/test_{name}.py"] = old_test(name)
        files[f"tests/fixtures/{name}.json"] = fixture(name, 16 + pick(name, 9))
    return files

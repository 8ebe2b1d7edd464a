"""Times that callers give, as instants in the zone of the timeline."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.config.moments import normalise_instant, timeline_zone
from hudi_fast.config.read_options import ReadOptions
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.table import HudiTable
from tests.support.small_tables import OPTIONS, plain_rows

BEGIN = "hoodie.datasource.read.begin.instanttime"


def utc() -> str:
    return "UTC"


def local() -> str:
    return "LOCAL"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20240229010203", "20240229010203"),
        ("20240229010203004", "20240229010203004"),
        ("2024-02-29 01:02:03", "20240229010203999"),
        ("2024-02-29 01:02:03.004", "20240229010203004"),
        ("2024-02-29", "20240229000000000"),
        (" 2024-02-29 ", "20240229000000000"),
        ("2024-02-29T01:02:03", "20240229010203999"),
        ("2024-02-29T01:02:03.5", "20240229010203500"),
        ("2024-02-29T01:02:03.004999", "20240229010203004"),
    ],
)
def test_a_time_without_a_zone_is_in_the_zone_of_the_timeline(text: str, instant: str) -> None:
    assert ReadOptions.from_options({"as.of.instant": text}).as_of == instant
    assert normalise_instant(instant) == instant


@pytest.mark.parametrize(
    ("moment", "instant"),
    [
        ("2024-02-29T01:02:03Z", "20240229010203999"),
        ("2024-02-29 01:02:03 z", "20240229010203999"),
        ("2024-02-29T01:02:03.004Z", "20240229010203004"),
        ("2024-02-29T01:02:03.004567+02:00", "20240228230203004"),
        ("2024-02-29T01:02:03-0130", "20240229023203999"),
        ("2024-02-29 01:02:03.004+02", "20240228230203004"),
        (1709168523, "20240229010203999"),
        (1709168523004, "20240229010203004"),
        ("1709168523004", "20240229010203004"),
        (datetime(2024, 2, 29, 1, 2, 3, 4567, UTC), "20240229010203004"),
        (datetime(2024, 2, 29, 6, 32, 3, 4567, timezone(timedelta(hours=5, minutes=30))), "20240229010203004"),
    ],
)
def test_a_time_with_a_zone_is_converted(moment: object, instant: str) -> None:
    assert normalise_instant(moment, zone=utc) == instant
    here = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).astimezone()
    assert normalise_instant(moment, zone=local) == f"{here:%Y%m%d%H%M%S}{instant[14:]}"
    with pytest.raises(ConfigError, match=r"has a time zone, and there is no table"):
        normalise_instant(moment)


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process has that zone."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_local_timeline_has_the_zone_of_this_process(in_new_york) -> None:
    assert normalise_instant("2024-02-29T01:02:03.004Z", zone=local) == "20240228200203004"
    assert normalise_instant(1720000000, zone=local) == "20240703054640999"  # in summer
    assert normalise_instant(datetime(2024, 7, 3, 9, 46, 40, tzinfo=UTC), zone=local) == "20240703054640000"


def test_the_zone_is_that_of_the_table(tmp_path, in_new_york) -> None:
    zone = {"hoodie.table.timeline.timezone": "UTC"}
    table = HudiTable.create(tmp_path / "t", plain_rows(range(1)).schema, {**OPTIONS, **zone})
    assert timeline_zone(Storage(table.path))() == table.config.timezone == "UTC"
    before = datetime.now(UTC)
    table.append(plain_rows(range(3)))
    after = datetime.now().astimezone()
    assert (table.count(as_of=before), table.count(as_of=after)) == (0, 3)
    assert table.count(as_of=after.isoformat()) == table.count(as_of=int(after.timestamp() * 1000)) == 3
    assert table.incremental(before, after).num_rows == table.incremental(before.isoformat()).num_rows == 3
    assert table.history(begin=before).num_rows == 1
    assert table.history(begin=after + timedelta(seconds=1)).num_rows == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "20240229",
        "2023-02-29",
        "2024-02-29T25:00:00Z",
        "2024-02-29T01:02Z",
        "2024-02-29Z",
        "20240229250000",
        "2024-02-29 01:02:03,004",
        "2024-02-29 01:02:03.0x4",
        "2024-02-29T01:02:03.",
        "20240229010203-04",
        "2024-2-029",
        "٢٠٢٤٠٢٢٩٠١٠٢٠٣",
        "170916852",
        "17091685230",
    ],
)
def test_a_time_in_another_form_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ConfigError, match=r"yyyyMMddHHmmssSSS.*2024-01-31T12:00:00Z.*milliseconds \(13 digits\)"):
        normalise_instant(text, zone=utc)


@pytest.mark.parametrize("value", [True, 1709168523.004, None, timedelta(1)])
def test_what_is_no_time_is_refused_by_its_option(value: object) -> None:
    with pytest.raises(ConfigError, match=f"{BEGIN}=.* is not a time; expected one of"):
        normalise_instant(value, BEGIN, utc)


@given(st.datetimes(min_value=datetime(1000, 1, 1)))
def test_every_form_of_one_moment_gives_the_same_second(moment: datetime) -> None:
    millis = f"{moment.microsecond // 1000:03d}"
    digits = f"{moment:%Y%m%d%H%M%S}{millis}"
    assert normalise_instant(moment) == digits
    assert normalise_instant(digits) == digits
    assert normalise_instant(f"{moment:%Y-%m-%d %H:%M:%S}.{millis}") == digits
    assert normalise_instant(f"{moment:%Y-%m-%d %H:%M:%S}") == f"{digits[:14]}999"
    assert normalise_instant(digits[:14]) == digits[:14]
    assert normalise_instant(moment.replace(tzinfo=UTC).isoformat(timespec="milliseconds"), zone=utc) == digits
    assert normalise_instant(date(moment.year, moment.month, moment.day)) == f"{digits[:8]}000000000"

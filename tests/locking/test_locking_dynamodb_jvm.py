"""A lock in DynamoDB that Apache Hudi's own provider takes, too: neither ever has it while the other does."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.locking.contention import LinePeer, contend, python_lock
from tests.locking.jvm_lock import LAST_AWS, hudi_aws_jars, jvm_lock
from tests.servers.dynamodb import CREDENTIALS
from tests.servers.maven_jars import MavenError

PROVIDER = "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"
LOCK = "hoodie.write.lock."


@pytest.fixture(scope="module")
def jars(java: str) -> list[Path]:
    try:
        return hudi_aws_jars()
    except MavenError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def options(dynamodb: str) -> dict[str, Any]:
    return {
        f"{LOCK}provider": PROVIDER,
        f"{LOCK}wait_time_ms": 1500,
        f"{LOCK}dynamodb.table": "jvmlocks",
        f"{LOCK}dynamodb.partition_key": "trips",
        f"{LOCK}dynamodb.region": CREDENTIALS["AWS_REGION"],
        f"{LOCK}dynamodb.endpoint_url": dynamodb,
    }


@contextlib.contextmanager
def apache_hudi(options: dict[str, Any], jars: list[Path]) -> Iterator[LinePeer]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in CREDENTIALS.items():
            environment.setenv(name, value)
        with jvm_lock(PROVIDER, options, LAST_AWS, jars=jars) as peer:
            yield peer


@pytest.fixture(scope="module")
def hudi(options: dict[str, Any], jars: list[Path]) -> Iterator[LinePeer]:
    with apache_hudi(options, jars) as peer:
        yield peer


@pytest.fixture
def python(options: dict[str, Any]) -> Iterator[LinePeer]:
    with python_lock("/nowhere", options, environment=CREDENTIALS) as peer:
        yield peer


def test_each_waits_for_the_other(hudi: LinePeer, python: LinePeer, tmp_path: Path) -> None:
    assert hudi.ask("lock 2") == "locked"
    assert python.ask("lock 0").startswith("busy ")
    assert hudi.ask("unlock") == "unlocked"
    assert python.ask("lock 2") == "locked"
    hudi.send("lock 8")
    time.sleep(2.0)  # longer than the lease: it is renewed
    assert python.ask("held") == "held"
    assert python.ask("unlock") == "unlocked"
    assert hudi.answer() == "locked"
    assert hudi.ask("unlock") == "unlocked"
    contend(tmp_path, [python, hudi], 20)


@pytest.mark.long
def test_hudi_takes_over_from_a_dead_one_and_who_wakes_up_must_not_publish(hudi: LinePeer, python: LinePeer) -> None:
    assert python.ask("lock 2") == "locked"
    python.signal(signal.SIGSTOP)
    assert hudi.ask("lock 8") == "locked"
    python.signal(signal.SIGCONT)
    assert "has taken it" in python.ask("held")
    assert python.ask("unlock") == "unlocked"
    assert python.ask("lock 0").startswith("busy ")
    assert hudi.ask("unlock") == "unlocked"
    assert python.ask("lock 2") == "locked"
    assert python.ask("unlock") == "unlocked"


@pytest.mark.long
def test_a_hudi_that_was_killed_is_taken_over_from(options: dict[str, Any], jars: list[Path], python: LinePeer) -> None:
    with apache_hudi(options, jars) as dying:
        assert dying.ask("lock 2") == "locked"
        dying.signal(signal.SIGKILL)
        started = time.monotonic()
        assert python.ask("lock 5") == "locked"
        assert time.monotonic() - started < 5.0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_they_never_hold_it_at_once_for_long(
    options: dict[str, Any], jars: list[Path], hudi: LinePeer, python: LinePeer, tmp_path: Path
) -> None:
    with python_lock("/nowhere", options, environment=CREDENTIALS) as other:
        contend(tmp_path, [python, other, hudi], 1000, 800.0)
    with apache_hudi(options, jars) as second:
        contend(tmp_path / "fresh", [python, hudi, second], 200, 800.0, fresh=True)

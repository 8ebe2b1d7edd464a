"""The processes of a Spark application, as the tests start, ask and kill them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from tests.cluster.driver_process import Work
from tests.servers.spark_cluster import SparkCluster, processes_below
from tests.spark.programs import environment_of
from tests.support.descriptors import readable

__all__ = ["Application", "Driver"]

_POLL_SECONDS = 0.01


class _Program:
    """A process that answers lines on its output to lines on its input."""

    def __init__(self, arguments: list[str], log: Path, environment: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=pipe,
                stdout=pipe,
                stderr=errors,
                text=True,
                env={**environment_of(), **environment},
            )

    def answer(self) -> str:
        """The next line; empty once the process has ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def has_answer(self, seconds: float = 0.0) -> bool:
        """Whether a line is there, or the process has ended; waits for it so long."""
        assert self._process.stdout is not None
        return readable(self._process.stdout, seconds)

    def say(self, line: str) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End the process, and all below it, at once."""
        for each in [*processes_below(self._process.pid)]:
            each.send(signal.SIGKILL)
        self._process.kill()
        self._process.communicate()


class Driver(_Program):
    """The Python process of a driver. The application survives it."""

    def __init__(self, gateway: Mapping[str, str], log: Path) -> None:
        super().__init__(["tests.cluster.driver_process"], log, gateway)
        self._is_ready = False
        self._said = ""

    def begin(self, work: Work) -> None:
        """Ask for a write; returns when it begins."""
        if not self._is_ready:
            assert self.answer() == "ready", "the driver did not start; see its log"
            self._is_ready = True
        self.say(json.dumps(asdict(work)))
        assert self.answer() == "begin"

    def answer(self) -> str:
        """The next line; empty once the process has ended."""
        said, self._said = self._said, ""
        return said or super().answer()

    def reaches_stage(self) -> bool:
        """Wait for the stage of the write, or for its end; True for the stage."""
        self._said = super().answer()
        if self._said != "stage":
            return False
        self._said = ""
        return True

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait for something that happens before the write answers, for so long; False when it did not happen."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if until():
                return True
            if self.has_answer(_POLL_SECONDS):
                return False
        return False


class Application:
    """A JVM with its executors on a cluster, and the Python driver that is attached to it.

    Args:
        cluster: the workers.
        log: file for what the processes print.
    """

    def __init__(self, cluster: SparkCluster, log: Path) -> None:
        self.cluster = cluster
        self._log = log
        self.driver: Driver
        self._start()

    def new_driver(self) -> None:
        """Kill the driver, and let another take its place."""
        self.driver.kill()
        self.driver = Driver(self._gateway, self._log)

    def restart(self) -> None:
        """Kill the driver and the JVM; executors end by themselves. Begin again."""
        self.kill()
        self._start()

    def kill(self) -> None:
        """Kill the driver and the JVM."""
        self.driver.kill()
        self._jvm.kill()

    def _start(self) -> None:
        self._jvm = _Program(["tests.cluster.application", self.cluster.url], self._log, {})
        said, port, secret = self._jvm.answer().split()
        assert said == "ready"
        self._gateway = {"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}
        self.driver = Driver(self._gateway, self._log)

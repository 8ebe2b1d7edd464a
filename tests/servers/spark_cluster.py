"""A standalone Spark cluster on this machine: a master and workers, each a process with a folder of its own.

Workers differ from the driver's process as machines do: another home, temporary folder and local folder. They share
the file system, which the tables of the tests are on.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import class_path_of, java_command, java_options

__all__ = ["Process", "SparkCluster", "processes_below", "spark_cluster"]

HOME = Path(pyspark.__file__).parent
START_SECONDS = 90.0
WORKER_HEAP = "1g"


@dataclass(frozen=True)
class Process:
    """A running process.

    Attributes:
        pid: its number.
        parent: number of the process that started it.
        command: command line.
    """

    pid: int
    parent: int
    command: str

    def send(self, number: signal.Signals) -> bool:
        """Send a signal; False if the process has ended."""
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster.

    Attributes:
        url: ``spark://host:port``.
        workers: the workers' processes.
        folder: of the cluster.
    """

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]
    folder: Path

    def executors(self) -> list[Process]:
        """Executor JVMs of all applications."""
        return self._below("CoarseGrainedExecutorBackend")

    def python_workers(self) -> list[Process]:
        """Python processes that execute tasks: those that a daemon of PySpark forked."""
        daemons = self._below(".daemon")
        pids = {each.pid for each in daemons}
        return [each for each in daemons if each.parent in pids]

    def shuffle_files(self, since: float) -> list[Path]:
        """What executors have stored for each other since a time, in seconds since 1970."""
        found = []
        for file in self.folder.glob("worker*/local/**/shuffle_*"):
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime >= since:
                    found.append(file)
        return found

    def _below(self, text: str) -> list[Process]:
        return [each for worker in self.workers for each in processes_below(worker.pid) if text in each.command]


def processes_below(pid: int) -> Iterator[Process]:
    """All descendants of a process."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[Process]] = {}
    for line in listed.splitlines():
        number, parent, command = line.split(maxsplit=2)
        children.setdefault(int(parent), []).append(Process(int(number), int(parent), command))
    waiting = [pid]
    while waiting:
        found = children.get(waiting.pop(), [])
        waiting += [each.pid for each in found]
        yield from found


@contextlib.contextmanager
def spark_cluster(
    folder: Path,
    workers: int = 2,
    memory: str = WORKER_HEAP,
    home: Path = HOME,
    python: str = sys.executable,
    modules: str = str(Path(__file__).parents[2]),
) -> Iterator[SparkCluster]:
    """A cluster of workers of one core; ends with everything that it started.

    Args:
        folder: for its files.
        workers: their number.
        memory: of each worker, for its executors.
        home: folder of the Spark release.
        python: interpreter of the workers.
        modules: ``PYTHONPATH`` of the workers; by default this checkout.
    """
    spark = {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": _scala_version(home),
        "PYSPARK_PYTHON": python,
        "PYTHONPATH": modules,
    }
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        started.append(_start(folder / "master", [*master, "--webui-port", "0"], spark))
        _await(folder / "master", r"I have been elected leader")
        for number in range(workers):
            place = folder / f"worker{number}"
            settings = ["--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", "0"]
            command = ["org.apache.spark.deploy.worker.Worker", *settings, "--work-dir", str(place / "work"), url]
            started.append(_start(place, command, spark))
        for number in range(workers):
            _await(folder / f"worker{number}", r"Successfully registered with master")
        yield SparkCluster(url, tuple(started[1:]), folder)
    finally:
        for process in reversed(started):
            for each in [*processes_below(process.pid)]:
                each.send(signal.SIGKILL)
            process.kill()
            process.wait()


def _start(folder: Path, command: list[str], spark: dict[str, str]) -> subprocess.Popen[bytes]:
    java = java_command()
    if java is None:
        raise ServerError("Spark needs Java.")
    for name in ("home", "tmp", "local"):
        (folder / name).mkdir(parents=True)
    environment = {
        **os.environ,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        **spark,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    jars = Path(spark["SPARK_HOME"]).resolve() / "jars"
    whole = [java, *java_options(64, jars).split(), "-Xmx256m", "-cp", class_path_of(jars), *command]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(whole, env=environment, stdout=log, stderr=log, cwd=folder)


def _scala_version(home: Path) -> str:
    """A worker looks for it in a file that the Python package lacks."""
    (core,) = (home / "jars").glob("spark-core_*.jar")
    return core.name.split("_")[1].split("-")[0]


def _await(folder: Path, text: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not re.search(text, (folder / "log").read_text(errors="replace")):
        if time.monotonic() > deadline:
            raise ServerError(f"Spark did not start: {(folder / 'log').read_text(errors='replace')[-3000:]}")
        time.sleep(0.1)

"""Jars from Maven Central for servers and JVM peers, through Ivy: the client that comes with PySpark 3.5's jars.

Data flow: coordinates -> Ivy resolves them in its cache below the home folder (the one that Spark's ``--packages``
uses), and over the network what is not there -> paths of the jars, kept in a file of the cache folder, so that the next
test asks nobody.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.peer.client import PROJECT
from tests.support.jvm import java_command

__all__ = ["LANCE", "PARQUET_TESTS", "MavenError", "maven_jars"]

PARQUET_TESTS = "org.apache.parquet:parquet-hadoop:1.13.1:tests"
"""Has the key management system of Parquet's own tests, for Spark 3.5."""

_ARROW = ("vector", "format", "memory-core", "memory-netty", "c-data")
LANCE = [
    *("org.lance:lance-spark-3.5_2.12:0.4.0", "org.lance:lance-spark-base_2.12:0.4.0", "org.lance:lance-core:4.0.0"),
    *(f"org.apache.arrow:arrow-{name}:15.0.2" for name in _ARROW),
    *("com.google.flatbuffers:flatbuffers-java:23.5.26", "org.questdb:jar-jni:1.1.1"),
    *(f"org.eclipse.collections:eclipse-collections{name}:11.1.0" for name in ("", "-api")),
]
"""Lance's connector of Spark 3.5, of the release that Apache Hudi 1.2.0 is built with, and what it needs of Arrow."""

FETCH_SECONDS = 600.0


class MavenError(Exception):
    """The jars could not be had."""


def maven_jars(cache: Path, coordinates: Sequence[str], transitive: bool = False) -> list[Path]:
    """The jars of some releases, in the order of ``coordinates``, and of all they depend on if that is asked for.

    Args:
        cache: folder of what tests fetch.
        coordinates: ``group:artifact:version``, or ``group:artifact:version:classifier``; ``@tar.gz`` at the end of the
            latter names another kind of file than a jar.
        transitive: with dependencies of compile and runtime.

    Raises:
        MavenError: they are not there and cannot be fetched.
    """
    name = hashlib.sha256(json.dumps([list(coordinates), transitive]).encode()).hexdigest()[:16]
    known = cache / "jars" / f"{name}.json"
    if known.exists():
        paths = [Path(path) for path in json.loads(known.read_text())]
        if all(path.exists() for path in paths):
            return paths
    paths = _resolve(coordinates, transitive)
    known.parent.mkdir(parents=True, exist_ok=True)
    temporary = known.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps([str(path) for path in paths]))
    temporary.replace(known)
    return paths


def _resolve(coordinates: Sequence[str], transitive: bool) -> list[Path]:
    jars = sorted((PROJECT / ".venv-hudi").glob("lib/python3*/site-packages/pyspark/jars/ivy-*.jar"))
    java = java_command()
    if not jars or java is None:
        raise MavenError(f"Ivy needs Java and PySpark below {PROJECT / '.venv-hudi'}: run `make setup`.")
    with tempfile.TemporaryDirectory() as scratch:
        description, listed = Path(scratch, "ivy.xml"), Path(scratch, "jars")
        description.write_text(_description(coordinates, transitive))
        ivy = [java, "-cp", str(jars[0]), "org.apache.ivy.Main", "-ivy", str(description), "-confs", "default"]
        kinds = {each.partition("@")[2] for each in coordinates} - {""}
        ivy += ["-cache", os.path.expanduser("~/.ivy2/cache"), "-types", "jar", "bundle", *sorted(kinds)]
        done = subprocess.run(
            [*ivy, "-cachepath", str(listed)], capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
        if done.returncode or not listed.exists():
            raise MavenError(f"Ivy could not get {', '.join(coordinates)}: {(done.stdout + done.stderr)[-3000:]}")
        found = [Path(path) for path in listed.read_text().strip().split(os.pathsep)]
    names = [each.split(":")[1] for each in coordinates]
    rank = {name: place for place, name in enumerate(names)}
    return sorted(found, key=lambda path: rank.get(path.parent.parent.name, len(rank)))


def _description(coordinates: Sequence[str], transitive: bool) -> str:
    lines = []
    for each in coordinates:
        name, _, kind = each.partition("@")
        group, artifact, version, *classifier = name.split(":")
        kind = kind or "jar"
        conf = "default->runtime,master(*)" if transitive else "default->master(*)"
        file = ""
        if classifier:
            file = f'<artifact name="{artifact}" type="{kind}" ext="{kind}" e:classifier="{classifier[0]}"/>'
        lines.append(f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="{conf}">{file}</dependency>')
    return (
        '<ivy-module version="2.0" xmlns:e="http://ant.apache.org/ivy/extra"><info organisation="tests" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{"".join(lines)}</dependencies>'
        "</ivy-module>"
    )

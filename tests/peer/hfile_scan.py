"""HFiles through the readers of real Hudi, entry by entry: its own (1.x), and HBase's (0.15).

Runs in the peer's process. A request takes some milliseconds per entry.
"""

from __future__ import annotations

from typing import Any


def scan_hfile(jvm: Any, version: str, path: str, keys: list[str]) -> dict:
    """``count`` (by the trailer), ``entries`` (all), ``found`` (those of ``keys``, which ascend) and ``bloom``.

    Keys and values are in hexadecimal, entries pairs of them.
    """
    scanner = (_HBaseScanner if version.startswith("0.") else _NativeScanner)(jvm, path)
    entries = []
    more = scanner.begin()
    while more:
        entries.append(scanner.entry())
        more = scanner.proceed()
    found = [scanner.entry() for key in keys if scanner.seek(bytes.fromhex(key))] if entries else []
    return {"count": scanner.count(), "entries": entries, "found": found, "bloom": scanner.bloom()}


class _NativeScanner:
    """Hudi's own reader (1.x)."""

    def __init__(self, jvm: Any, path: str) -> None:
        self._jvm, self._hfile = jvm, jvm.org.apache.hudi.io.hfile
        with open(path, "rb") as source:
            self._raw = source.read()
        self._reader = self._open()

    def _open(self) -> Any:
        io = self._jvm.org.apache.hudi.io
        stream = io.ByteArraySeekableDataInputStream(io.ByteBufferBackedInputStream(self._raw))
        reader = self._hfile.HFileReaderImpl(stream, len(self._raw))
        reader.initializeMetadata()
        return reader

    def count(self) -> int:
        return self._reader.getNumKeyValueEntries()

    def bloom(self) -> str | None:
        block = self._reader.getMetaBlock("bloomFilter")
        utf8 = self._jvm.java.nio.charset.StandardCharsets.UTF_8
        return utf8.decode(block.get()).toString() if block.isPresent() else None

    def begin(self) -> bool:
        return self._reader.seekTo()

    def proceed(self) -> bool:
        more = self._reader.next()
        if not more:  # look-ups go forwards only: they begin anew
            self._reader = self._open()
            self._reader.seekTo()
        return more

    def seek(self, key: bytes) -> bool:
        return self._reader.seekTo(self._hfile.UTF8StringKey(key)) == 0

    def entry(self) -> list:
        pair = self._reader.getKeyValue().get()
        raw, value = pair.getBytes(), pair.getValueOffset()
        content = pair.getKeyContentOffset()
        return [
            raw[content : content + pair.getKeyContentLength()].hex(),
            raw[value : value + pair.getValueLength()].hex(),
        ]


class _HBaseScanner:
    """HBase's reader, as bundled with Hudi 0.15."""

    def __init__(self, jvm: Any, path: str) -> None:
        self._hbase = jvm.org.apache.hudi.org.apache.hadoop.hbase
        conf = jvm.org.apache.hadoop.conf.Configuration()
        file = jvm.org.apache.hadoop.fs.Path(path)
        cache = self._hbase.io.hfile.CacheConfig(conf)
        self._reader = self._hbase.io.hfile.HFile.createReader(file.getFileSystem(conf), file, cache, True, conf)
        self._scanner = self._reader.getScanner(True, True)

    def count(self) -> int:
        return self._reader.getEntries()

    def bloom(self) -> str | None:
        block = self._reader.getMetaBlock("bloomFilter", False)
        return None if block is None else bytes(block.getBufferWithoutHeader().toBytes()).decode()

    def begin(self) -> bool:
        return self._scanner.seekTo()

    def proceed(self) -> bool:
        return self._scanner.next()

    def seek(self, key: bytes) -> bool:
        return self._scanner.seekTo(self._hbase.KeyValue(key, None, None, None)) == 0

    def entry(self) -> list:
        utility = self._hbase.CellUtil
        cell = self._scanner.getCell()
        return [bytes(utility.cloneRow(cell)).hex(), bytes(utility.cloneValue(cell)).hex()]

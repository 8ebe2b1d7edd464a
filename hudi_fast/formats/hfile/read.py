"""HFiles of version 3: sorted keys and values in blocks, as in Hudi's HFile log blocks and metadata table.

::

    data blocks (leaf index blocks between them) | meta blocks | intermediate index
        | root index | index of meta blocks | file info | trailer
          ^ load-on-open offset                           4096 bytes

    trailer -> root index -> (intermediate -> leaf index, if HBase was the writer) -> data blocks -> entries

Modules that read and write one part each: ``blocks`` (frames), ``codecs`` (compression), ``trailer`` (trailer and file
info), ``index``, ``entries``. ``reader`` (ranged reads, look-ups) and ``writer`` build on them. This module reads a
whole in-memory file in one call, and exports the public names of the package.

Stored checksums are not verified, as in Hudi's own reader. Keys are the contents alone, without HBase's suffix.
Source: HFile reference section 1; HFileReaderImpl, HFileBlock and HFileTrailer, Hudi 1.2.0; files by HBase 2.4 and
Hudi 0.15 and 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.hfile.blocks import BlockReference, Codec, HFileContent, read_block
from hudi_fast.formats.hfile.entries import read_entries
from hudi_fast.formats.hfile.index import data_blocks
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.hfile.source import HFileSource
from hudi_fast.formats.hfile.trailer import HFileTrailer, read_trailer

__all__ = [
    "BlockReference",
    "Codec",
    "HFileContent",
    "HFileTrailer",
    "data_blocks",
    "hfile_arrays",
    "read_block",
    "read_entries",
    "read_hfile",
    "read_trailer",
]


def read_hfile(content: pa.Buffer, path: str = "<memory>", offset: int = 0) -> tuple[pa.Array, pa.Array]:
    """Keys and values of a whole HFile, binary[n] each, in key order; equal keys keep their stored order.

    ``path`` and ``offset``, the HFile's position in that file, are for messages.

    Raises:
        CorruptTableError: the content is not an HFile, or is damaged.
        UnsupportedFeatureError: the HFile has another version, is compressed with LZO or BZIP2, or has more than 2 GiB
            of keys or values (use :func:`hfile_arrays`).
    """
    pairs = list(hfile_arrays(content, path, offset))
    if not pairs:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    if len(pairs) == 1:
        return pairs[0]
    try:
        return pa.concat_arrays([keys for keys, _ in pairs]), pa.concat_arrays([values for _, values in pairs])
    except pa.ArrowInvalid as error:
        raise UnsupportedFeatureError(
            f"The HFile holds more than an Arrow array can (2 GiB): {error} [file {path}, byte {offset}]"
        ) from error


def hfile_arrays(content: pa.Buffer, path: str = "<memory>", offset: int = 0) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and values of each data block, in key order; arguments and errors as for :func:`read_hfile`."""
    return HFileReader(HFileSource(content, path, 0, content.size, offset), None).scan()

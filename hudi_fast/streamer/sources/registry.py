"""Schemas of messages: from a registry, or a descriptor file.

Schemas of a registry with Confluent's interface, through Confluent's own client.

Protobuf message types from a descriptor file, or from a schema registry.

::

    descriptor file (protoc --include_imports --descriptor_set_out) ─┐
    registry: a file descriptor in base64 ───────────────────────────┼─► files ─► pool ─► ProtoType
    registry: the text of a .proto file ─► protoc ───────────────────┘

Confluent's registry gives file descriptors to a client that asks for them. Others give the text that was registered;
protoc, which comes with the package grpcio-tools, compiles it.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError, SourceError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.protobuf import ProtoForm, ProtoType
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.values import dataclass

__all__ = ["ProtoSchema", "Registry", "files_of", "message_name", "read_descriptor_file", "type_of"]

_URL_KEY, _CLIENT_KEY = "schemaprovider.registry.url", "schema.registry.url"
_AS_DESCRIPTOR = "serialized"
"""The form of a Protobuf schema that Confluent's registry is asked for."""


@dataclass(frozen=True, slots=True)
class ProtoSchema:
    """A Protobuf schema of a registry.

    Attributes:
        name: by which other schemas import it; empty for the one that was asked for.
        text: a file descriptor in base64; or, of other registries than Confluent's, what was registered.
        imports: schemas that it imports.
        where: names it, for errors.
    """

    name: str
    text: str
    imports: tuple[ProtoSchema, ...]
    where: str


class Registry:
    """A client of the registry that the settings name.

    Args:
        settings: of the streamer. ``hoodie.streamer.schemaprovider.registry.url`` is the address of one schema
            (``http://host/subjects/trips-value/versions/latest``), ``schema.registry.url`` that of the registry.

    Raises:
        ConfigError: neither is given, or the first is no such address; or Confluent's client is not installed.
    """

    def __init__(self, settings: StreamSettings) -> None:
        module = import_extra("confluent_kafka.schema_registry", "kafka", "A schema registry")
        address = settings.stream.get(_URL_KEY, "")
        self._subject, self._version = "", "latest"
        base = settings.client.get(_CLIENT_KEY, "")
        if address:
            at = urlsplit(address)
            parts = at.path.rpartition("/subjects/")
            names = parts[2].split("/")
            if not parts[1] or len(names) != 3 or names[1] != "versions":
                raise ConfigError(
                    f"hoodie.streamer.{_URL_KEY} is the address of a schema, such as "
                    f"http://host:8081/subjects/trips-value/versions/latest; got {address!r}."
                )
            self._subject, self._version = unquote(names[0]), names[2]
            base = base or at._replace(path=parts[0]).geturl()
        if not base:
            raise ConfigError(f"A schema registry needs the property {_CLIENT_KEY}, or hoodie.streamer.{_URL_KEY}.")
        self._url, self._error = base, module.SchemaRegistryError
        given = {"url": base}
        if "schema.registry.basic.auth.user.info" in settings.client:
            given["basic.auth.user.info"] = settings.client["schema.registry.basic.auth.user.info"]
        self._client: Any = module.SchemaRegistryClient(given)

    def schema_of(self, schema_id: int) -> str:
        """The Avro JSON text of a schema.

        Raises:
            SourceError: the registry does not know it, or does not answer.
        """
        return str(self._asked(f"schema {schema_id}", lambda: self._client.get_schema(schema_id)).schema_str)

    def newest(self, topic: str) -> pa.Schema:
        """The newest schema of the values of a topic.

        Raises:
            SourceError: as :meth:`schema_of`.
        """
        return self._columns(f"{topic}-value", "latest")

    def proto_of(self, schema_id: int) -> ProtoSchema:
        """The Protobuf schema with an id.

        Raises:
            InvalidDataError: it is of another kind.
            SourceError: as :meth:`schema_of`.
        """
        what = f"schema {schema_id}"
        return self._proto("", self._asked(what, lambda: self._client.get_schema(schema_id, fmt=_AS_DESCRIPTOR)), what)

    def newest_proto(self, topic: str) -> ProtoSchema:
        """The Protobuf schema that the settings name; without one, the newest of the values of a topic.

        Raises:
            InvalidDataError: as :meth:`proto_of`.
            SourceError: as :meth:`schema_of`.
        """
        subject, version = (self._subject, self._version) if self._subject else (f"{topic}-value", "latest")
        return self._proto("", *self._version_of(subject, version, _AS_DESCRIPTOR))

    def _proto(self, name: str, schema: Any, what: str) -> ProtoSchema:
        if schema.schema_type != "PROTOBUF":
            raise InvalidDataError(f"{what} of the registry {self._url} is {schema.schema_type}; expected PROTOBUF.")
        imports = [
            self._proto(one.name, *self._version_of(one.subject, str(one.version), _AS_DESCRIPTOR))
            for one in schema.references or ()
        ]
        return ProtoSchema(name, str(schema.schema_str), tuple(imports), f"{what} of the registry {self._url}")

    def provided(self) -> pa.Schema:
        """The schema that the settings name.

        Raises:
            ConfigError: they name none.
            SourceError: as :meth:`schema_of`.
        """
        if not self._subject:
            raise ConfigError(f"SchemaRegistryProvider needs the property hoodie.streamer.{_URL_KEY}.")
        return self._columns(self._subject, self._version)

    def _columns(self, subject: str, version: str) -> pa.Schema:
        found, what = self._version_of(subject, version)
        return avro_to_arrow(found.schema_str, f"{what} in the registry {self._url}")

    def _version_of(self, subject: str, version: str, form: str | None = None) -> tuple[Any, str]:
        """The schema of a version of a subject, and a text that names it."""
        number: Any = int(version) if version.isdecimal() else version
        what = f"version {version} of {subject}"
        if version == "latest":
            found = self._asked(what, lambda: self._client.get_latest_version(subject, fmt=form))
        else:
            found = self._asked(what, lambda: self._client.get_version(subject, number, fmt=form))
        return found.schema, what

    def _asked(self, what: str, ask: Any) -> Any:
        try:
            return ask()
        except self._error as error:
            raise SourceError(f"The registry {self._url} has no {what}: {error.error_message}.") from error
        except Exception as error:  # of the HTTP client that Confluent's client uses
            raise SourceError(f"The registry {self._url} does not answer ({what}): {error}.") from error


_WHAT, _EXTRA = "A stream of Protobuf messages", "protobuf"
_ROOT = "schema.proto"
_SHIPPED = {
    "google/protobuf": (
        "google.protobuf",
        "any api descriptor duration empty field_mask source_context struct timestamp type wrappers",
    ),
    "google/type": (
        "google.type",
        "calendar_period color date datetime dayofweek decimal expr fraction interval latlng localized_text money "
        "month phone_number postal_address quaternion timeofday",
    ),
    "confluent": ("confluent_kafka.schema_registry.confluent", "meta"),
    "confluent/type": ("confluent_kafka.schema_registry.confluent.type", "decimal variant"),
    "confluent/types": ("confluent_kafka.schema_registry.confluent.types", "decimal"),
}
"""By folder, the package that has its files, and the names of those that a schema may import unregistered."""

Files = Sequence[Any]
"""``FileDescriptorProto``: files, each after those that it imports, as far as they are known."""


def read_descriptor_file(data: bytes, where: str) -> Files:
    """The files of a descriptor file.

    Args:
        data: a ``FileDescriptorSet``, as protoc writes it.
        where: its path, for errors.

    Raises:
        ConfigError: it is none, or protobuf is not installed.
    """
    found = _descriptors().FileDescriptorSet()
    try:
        found.ParseFromString(data)
    except Exception as error:  # DecodeError, whose module belongs to an extra
        raise _no_descriptor_file(where) from error
    if not found.file:
        raise _no_descriptor_file(where)
    return list(found.file)


def files_of(schema: ProtoSchema) -> Files:
    """The files of a schema of a registry, which is the last of them.

    Raises:
        ConfigError: it is text, and grpcio-tools is not installed.
        InvalidDataError: it is neither a file descriptor nor a text that protoc accepts.
        UnsupportedFeatureError: a text imports a schema that is registered as a file descriptor.
    """
    described = _described(schema)
    if described is None:
        return _compiled(schema)
    files = [file for one in schema.imports for file in files_of(one)]
    return [*files, described]


def message_name(files: Files, indexes: Sequence[int], where: str) -> str:
    """The full name of a message type of the last file.

    Args:
        files: of a schema.
        indexes: the number of the type in the file, then in the type before.
        where: names the schema, for errors.

    Raises:
        InvalidDataError: there is no such type.
    """
    types, names = files[-1].message_type, [files[-1].package]
    for index in indexes:
        if index >= len(types):
            raise InvalidDataError(f"{where} has no message type with the indexes {list(indexes)}.")
        names.append(types[index].name)
        types = types[index].nested_type
    return ".".join(name for name in names if name)


def type_of(files: Files, name: str, form: ProtoForm, where: str) -> ProtoType:
    """A message type.

    Args:
        files: that define it.
        name: its full name, such as ``shop.Order``.
        form: how it becomes columns.
        where: names the files, for errors.

    Raises:
        ConfigError: the files have no such type, or lack an import.
        UnsupportedFeatureError: as :class:`~hudi_fast.streamer.protobuf.ProtoType`.
    """
    pool = import_extra("google.protobuf.descriptor_pool", _EXTRA, _WHAT).DescriptorPool()
    known, added = {one.name: one for one in files}, set[str]()
    for one in files:
        _add(pool, one.name, known, added, where)
    try:
        descriptor = pool.FindMessageTypeByName(name)
    except KeyError:
        names = sorted(text for one in files for text in _names(one.message_type, one.package))
        shown = ", ".join(names[:10]) + (" ..." if len(names) > 10 else "")
        raise ConfigError(
            f"{where} has no Protobuf message type {name!r}; it has {shown or 'none'}. Give the full name, with its "
            "package: --proto-message."
        ) from None
    factory = import_extra("google.protobuf.message_factory", _EXTRA, _WHAT)
    return ProtoType(descriptor, factory.GetMessageClass(descriptor), form)


def _descriptors() -> Any:
    return import_extra("google.protobuf.descriptor_pb2", _EXTRA, _WHAT)


def _no_descriptor_file(where: str) -> ConfigError:
    return ConfigError(
        f"{where} is not a descriptor file of Protobuf. Make one: protoc --include_imports --descriptor_set_out=FILE "
        "shop.proto."
    )


def _names(types: Sequence[Any], prefix: str) -> Iterator[str]:
    for one in types:
        name = f"{prefix}.{one.name}" if prefix else one.name
        if not one.options.map_entry:
            yield name
            yield from _names(one.nested_type, name)


def _add(pool: Any, name: str, known: Mapping[str, Any], added: set[str], where: str) -> None:
    """Add a file to a pool, after its imports."""
    if name in added:
        return
    added.add(name)
    file = known.get(name) or _shipped(name, where)
    for one in file.dependency:
        _add(pool, one, known, added, where)
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        raise ConfigError(f"{where}: the Protobuf file {name} cannot be used: {error}") from error


def _shipped(name: str, where: str) -> Any:
    """A file that comes with a package, such as ``google/protobuf/timestamp.proto``."""
    folder, _, stem = name.removesuffix(".proto").rpartition("/")
    package, stems = _SHIPPED.get(folder, ("", ""))
    if stem in stems.split():
        file = _descriptors().FileDescriptorProto()
        file.ParseFromString(import_extra(f"{package}.{stem}_pb2", _EXTRA, _WHAT).DESCRIPTOR.serialized_pb)
        return file
    raise ConfigError(
        f"{where} lacks the file {name}, which it imports. Make a descriptor file with protoc --include_imports, or "
        "register the file as a reference of the schema."
    )


def _described(schema: ProtoSchema) -> Any:
    """The file descriptor of a schema; None if the schema is text."""
    file = _descriptors().FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError):
        return None
    except Exception as error:  # DecodeError, whose module belongs to an extra
        raise InvalidDataError(f"{schema.where} is not a file descriptor of Protobuf: {error}.") from error
    file.name = schema.name or _ROOT
    return file


def _compiled(schema: ProtoSchema) -> Files:
    """The files of a schema that is text, and of its imports."""
    tools = import_extra("grpc_tools", _EXTRA, "A Protobuf schema of a registry that gives its text")
    packages = Path(tools.__file__ or "").parent
    with tempfile.TemporaryDirectory(prefix="hudi_fast-proto-") as scratch:
        folder, made = Path(scratch, "files").resolve(), Path(scratch, "set")
        root = schema.name or _ROOT
        for one in (schema, *_imports(schema)):
            file = (folder / (one.name or _ROOT)).resolve()
            if not file.is_relative_to(folder):
                raise InvalidDataError(f"{one.where} has the name {one.name!r}, which leaves its folder.")
            if one is not schema and _described(one) is not None:
                raise UnsupportedFeatureError(
                    f"{schema.where} is text and imports {one.name}, which is registered as a file descriptor. Give a "
                    "descriptor file: --proto-descriptor-file."
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(one.text, encoding="utf-8")
        found = [str(folder), str(packages / "_proto"), str(packages.parent)]  # the last has google/type
        command = [sys.executable, "-m", "grpc_tools.protoc", *(f"-I{one}" for one in found)]
        command += ["--include_imports", f"--descriptor_set_out={made}", root]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode:
            raise InvalidDataError(f"{schema.where} is not a text of Protobuf: {done.stderr.strip()}")
        return read_descriptor_file(made.read_bytes(), schema.where)


def _imports(schema: ProtoSchema) -> Iterator[ProtoSchema]:
    for one in schema.imports:
        yield one
        yield from _imports(one)

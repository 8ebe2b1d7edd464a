"""Schemas of a registry with Confluent's interface, through Confluent's own client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError, SourceError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.settings import StreamSettings

__all__ = ["ProtoSchema", "Registry"]

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

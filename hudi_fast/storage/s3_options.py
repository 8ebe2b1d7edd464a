"""How to reach S3: names of several libraries, one value, two clients made from it.

::

    storage_options ─► S3Options ─► file_system()   pyarrow's, which reads and streams
                                └─► client()        boto3's, which writes under conditions

Whatever is not said comes from where Amazon's own tools look: the environment, ``~/.aws``, the machine's role.
Secrets are in no representation of the value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.option_names import checked_options, is_true

__all__ = ["S3Options"]

_ONE_REQUEST = 19
"""The release of pyarrow that can write a small file in one request."""

_NAMES = {
    "access_key": "aws_access_key_id access_key_id key fs.s3a.access.key hoodie.aws.access.key",
    "secret_key": "aws_secret_access_key secret_access_key secret fs.s3a.secret.key hoodie.aws.secret.key",
    "session_token": "aws_session_token token fs.s3a.session.token hoodie.aws.session.token",
    "region": "aws_region aws_default_region region_name fs.s3a.endpoint.region",
    "endpoint_url": "aws_endpoint_url aws_endpoint_url_s3 aws_endpoint endpoint endpoint_override fs.s3a.endpoint",
    "scheme": "",
    "allow_http": "aws_allow_http",
    "ssl": "fs.s3a.connection.ssl.enabled",
    "anonymous": "anon skip_signature aws_skip_signature",
    "role_arn": "aws_role_arn fs.s3a.assumed.role.arn hoodie.aws.role.arn",
    "path_style": "fs.s3a.path.style.access",
    "virtual_addressing": "force_virtual_addressing aws_virtual_hosted_style_request",
    "timeout": "request_timeout",
}


@dataclass(frozen=True, slots=True)
class S3Options:
    """What was said about how to reach S3; None is left to Amazon's own rules.

    Attributes:
        access_key: id of the key.
        secret_key: the key.
        session_token: of a key that lasts for a while.
        region: of the bucket.
        endpoint_url: of a server other than Amazon's, with ``http://`` or ``https://``.
        anonymous: ask without credentials.
        role_arn: role to take on.
        virtual_addressing: whether the bucket is a part of the host's name; by default it is not where there is an
            ``endpoint_url``.
        timeout: seconds to wait for an answer.
    """

    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    endpoint_url: str | None = None
    anonymous: bool = False
    role_arn: str | None = None
    virtual_addressing: bool | None = None
    timeout: float = 20.0

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> S3Options:
        """From storage options.

        Raises:
            ConfigError: an option is unknown, or no value for it; the message has no values of secrets.
        """
        said = checked_options(options, _NAMES, "s3://")
        endpoint = said.get("endpoint_url") or _environment_endpoint()
        virtual = None if said.get("virtual_addressing") is None else is_true(said, "virtual_addressing")
        if said.get("path_style") is not None:
            virtual = not is_true(said, "path_style")
        if ("access_key" in said) != ("secret_key" in said):
            raise ConfigError("Of access_key and secret_key either both are storage options of s3://, or none.")
        if "role_arn" in said and "access_key" in said:
            raise ConfigError("role_arn is taken on with the machine's own credentials: it goes without access_key.")
        return cls(
            access_key=said.get("access_key"),
            secret_key=said.get("secret_key"),
            session_token=said.get("session_token"),
            region=said.get("region"),
            endpoint_url=_with_scheme(endpoint, said),
            anonymous=is_true(said, "anonymous"),
            role_arn=said.get("role_arn"),
            virtual_addressing=virtual,
            timeout=_seconds(said.get("timeout", "20")),
        )

    def located(self, bucket: str) -> S3Options:
        """With the region of the bucket, where Amazon can be asked and nobody has said it."""
        if self.region or self.endpoint_url or _environment_region():
            return self
        try:
            return replace(self, region=pafs.resolve_s3_region(bucket))
        except (OSError, ValueError):
            return self  # whoever reads or writes will hear what is wrong

    def file_system(self) -> pafs.S3FileSystem:
        """For reading and streaming."""
        endpoint = urlparse(self.endpoint_url) if self.endpoint_url else None
        more: dict[str, Any] = {}
        if endpoint is not None:
            more = {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
        if self.role_arn:
            more["role_arn"] = self.role_arn
        elif self.access_key:
            more |= {"access_key": self.access_key, "secret_key": self.secret_key}
            more |= {"session_token": self.session_token} if self.session_token else {}
        if int(pa.__version__.partition(".")[0]) >= _ONE_REQUEST:
            more["allow_delayed_open"] = True
        return pafs.S3FileSystem(
            anonymous=self.anonymous,
            region=self.region or _environment_region() or (None if endpoint is None else "us-east-1"),
            request_timeout=self.timeout,
            force_virtual_addressing=bool(self.virtual_addressing),
            **more,
        )

    def client(self) -> Any:
        """For conditional writes: tries nothing twice.

        Raises:
            ConfigError: boto3 is not installed.
        """
        core = import_extra("botocore.config", "s3", "Writing to s3://")
        style = {None: "path" if self.endpoint_url else "auto", True: "virtual", False: "path"}
        more: dict[str, Any] = {}
        if self.anonymous:
            more["signature_version"] = import_extra("botocore", "s3", "S3").UNSIGNED
        if self.endpoint_url and not os.environ.get("AWS_REQUEST_CHECKSUM_CALCULATION"):
            # Amazon's newer checksums are unknown to many other servers.
            more |= dict.fromkeys(("request_checksum_calculation", "response_checksum_validation"), "when_required")
        config = core.Config(
            retries={"total_max_attempts": 1},
            connect_timeout=min(self.timeout, 10),
            read_timeout=self.timeout,
            s3={"addressing_style": style[self.virtual_addressing]},
            max_pool_connections=32,
            **more,
        )
        session = self._session()
        region = session.region_name or "us-east-1"
        return session.client("s3", endpoint_url=self.endpoint_url, config=config, region_name=region)

    def _session(self) -> Any:
        boto3 = import_extra("boto3", "s3", "Writing to s3://")
        known = {"region_name": self.region or _environment_region()}
        if self.access_key:
            known |= {
                "aws_access_key_id": self.access_key,
                "aws_secret_access_key": self.secret_key,
                "aws_session_token": self.session_token,
            }
        session = boto3.session.Session(**known)
        return session if self.role_arn is None else _in_role(session, self.role_arn)


def _in_role(session: Any, role: str) -> Any:
    """A session whose credentials are those of a role, asked for anew before they end."""
    parts = import_extra("botocore.credentials", "s3", "Writing to s3://")
    core = import_extra("botocore.session", "s3", "Writing to s3://").Session()
    fetcher = parts.AssumeRoleCredentialFetcher(
        client_creator=session._session.create_client,
        source_credentials=session.get_credentials(),
        role_arn=role,
        extra_args={"RoleSessionName": "hudi-fast"},
    )
    core._credentials = parts.DeferredRefreshableCredentials(
        refresh_using=fetcher.fetch_credentials, method="assume-role"
    )
    boto3 = import_extra("boto3", "s3", "Writing to s3://")
    return boto3.session.Session(botocore_session=core, region_name=session.region_name)


def _environment_endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _environment_region() -> str | None:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None


def _with_scheme(endpoint: str | None, said: Mapping[str, str]) -> str | None:
    """Hadoop and pyarrow name a server without its scheme."""
    if endpoint is None:
        return None
    if "://" not in endpoint:
        plain = said.get("scheme", "https") == "http" or not is_true(said, "ssl", default=True)
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    parsed = urlparse(endpoint)
    if parsed.scheme not in ("http", "https") or not parsed.hostname or "@" in parsed.netloc:
        raise ConfigError("endpoint_url is http:// or https://, a host and a port, without a user.")
    return endpoint.rstrip("/")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise ConfigError("The storage option timeout is a number of seconds, above 0 and up to 3600.")
    return seconds

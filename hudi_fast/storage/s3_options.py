"""Connection options of S3: one value from the option names of several libraries, and two clients from it.

::

    storage_options ─► S3Options ─► file_system()   pyarrow's, for reads and streams
                                └─► client()        boto3's, for conditional writes

Missing options come from the same sources as in Amazon's tools: the environment, ``~/.aws``, the machine's role.
Representations of the value contain no secrets.
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
"""First release of pyarrow that can write a small file in one request."""

_STREAM_RETRIES = 12
"""Retries of one request of a stream. Pauses double from 50 ms to 51 s; the last begins 102 s after the first attempt.

pyarrow's other strategy, its default, has a budget of 100 retries for the life of a file system, and does not fill it
up again (pyarrow 26): a process that meets many slow-downs would fail with the 101st.
"""

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
    """Connection options of S3; Amazon's own defaults replace missing ones.

    Attributes:
        access_key: id of the key.
        secret_key: the key.
        session_token: token of a temporary key.
        region: region of the bucket.
        endpoint_url: a server other than Amazon's, with ``http://`` or ``https://``.
        anonymous: send requests without credentials.
        role_arn: role to assume.
        virtual_addressing: whether the bucket is part of the host name; by default not if ``endpoint_url`` is set.
        timeout: seconds to wait for a response.
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
        """Parse storage options.

        Raises:
            ConfigError: an option is unknown or invalid; the message does not contain secrets.
        """
        given = checked_options(options, _NAMES, "s3://")
        endpoint = given.get("endpoint_url") or _environment_endpoint()
        virtual = None if given.get("virtual_addressing") is None else is_true(given, "virtual_addressing")
        if given.get("path_style") is not None:
            virtual = not is_true(given, "path_style")
        if ("access_key" in given) != ("secret_key" in given):
            raise ConfigError("Set both access_key and secret_key as storage options of s3://, or neither.")
        if "role_arn" in given and "access_key" in given:
            raise ConfigError("role_arn is assumed with the machine's own credentials: do not set access_key as well.")
        return cls(
            access_key=given.get("access_key"),
            secret_key=given.get("secret_key"),
            session_token=given.get("session_token"),
            region=given.get("region"),
            endpoint_url=_with_scheme(endpoint, given),
            anonymous=is_true(given, "anonymous"),
            role_arn=given.get("role_arn"),
            virtual_addressing=virtual,
            timeout=_seconds(given.get("timeout", "20")),
        )

    def located(self, bucket: str) -> S3Options:
        """Add the region of the bucket if it is missing and Amazon can be asked for it."""
        if self.region or self.endpoint_url or _environment_region():
            return self
        try:
            return replace(self, region=pafs.resolve_s3_region(bucket))
        except (OSError, ValueError):
            return self  # the next read or write reports the error

    def file_system(self) -> pafs.S3FileSystem:
        """The file system for reads and streams."""
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
            retry_strategy=pafs.AwsDefaultS3RetryStrategy(max_attempts=_STREAM_RETRIES),
            **more,
        )

    def client(self, session: Any) -> Any:
        """The client for conditional writes, without retries.

        Args:
            session: see :meth:`session`.
        """
        core = import_extra("botocore.config", "s3", "Writing to s3://")
        style = {None: "path" if self.endpoint_url else "auto", True: "virtual", False: "path"}
        more: dict[str, Any] = {}
        if self.anonymous:
            more["signature_version"] = import_extra("botocore", "s3", "S3").UNSIGNED
        if self.endpoint_url and not os.environ.get("AWS_REQUEST_CHECKSUM_CALCULATION"):
            # Many other servers do not support Amazon's newer checksums.
            more |= dict.fromkeys(("request_checksum_calculation", "response_checksum_validation"), "when_required")
        config = core.Config(
            retries={"total_max_attempts": 1},
            connect_timeout=min(self.timeout, 10),
            read_timeout=self.timeout,
            s3={"addressing_style": style[self.virtual_addressing]},
            max_pool_connections=32,
            **more,
        )
        region = session.region_name or "us-east-1"
        return session.client("s3", endpoint_url=self.endpoint_url, config=config, region_name=region)

    def session(self) -> Any:
        """A new session of boto3, with the credentials of these options, or those that boto3 finds now.

        Raises:
            ConfigError: boto3 is not installed.
        """
        boto3 = import_extra("boto3", "s3", "Writing to s3://")
        known = {"region_name": self.region or _environment_region()}
        if self.access_key:
            known |= {
                "aws_access_key_id": self.access_key,
                "aws_secret_access_key": self.secret_key,
                "aws_session_token": self.session_token,
            }
        session = boto3.session.Session(**known)
        return session if self.role_arn is None else _role_session(session, self.role_arn)


def _role_session(session: Any, role: str) -> Any:
    """A session with the credentials of a role, which are refreshed before they expire."""
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


def _with_scheme(endpoint: str | None, given: Mapping[str, str]) -> str | None:
    """Add the scheme, which Hadoop and pyarrow omit from a server's name."""
    if endpoint is None:
        return None
    if "://" not in endpoint:
        plain = given.get("scheme", "https") == "http" or not is_true(given, "ssl", default=True)
        endpoint = f"{'http' if plain else 'https'}://{endpoint}"
    parsed = urlparse(endpoint)
    if parsed.scheme not in ("http", "https") or not parsed.hostname or "@" in parsed.netloc:
        raise ConfigError("endpoint_url must be http:// or https://, a host and a port, without a user.")
    return endpoint.rstrip("/")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise ConfigError("The storage option timeout must be a number of seconds, above 0 and up to 3600.")
    return seconds

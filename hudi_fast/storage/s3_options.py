"""Connection options of S3: one value from the option names of several libraries, and two clients from it.

::

    storage_options ─► S3Options ─► file_system()   pyarrow's, for reads and streams
                                ├─► client()        boto3's, for conditional writes
                                └─► headers()       of every object that boto3's client writes

Missing options come from the same sources as in Amazon's tools: the environment, ``~/.aws``, the machine's role.
Representations of the value contain no secrets. Names that begin with ``fs.s3a.`` are Hadoop's (3.4).
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any
from urllib.parse import quote, urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.option_names import TIMEOUT, checked_options, checked_url, is_true, timeout_of
from hudi_fast.storage.s3_credentials import (
    ANONYMOUS,
    KEYS,
    Role,
    chosen_source,
    role_error,
    role_session,
    with_shared_descriptions,
)
from hudi_fast.storage.servers import RenewedFiles, Server
from hudi_fast.values import dataclass

__all__ = ["S3Options"]

_ONE_REQUEST = 19
"""First release of pyarrow that can write a small file in one request."""

_STREAM_RETRIES = 12
"""Retries of one request of a stream. Pauses double from 50 ms to 51 s; the last begins 102 s after the first attempt.

pyarrow's default strategy has a budget of 100 retries for the life of a file system, and does not refill it (pyarrow
26): a process would fail at its 101st slow-down.
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
    "credentials_provider": "fs.s3a.aws.credentials.provider",
    "role_session_name": "session_name aws_role_session_name fs.s3a.assumed.role.session.name",
    "role_external_id": "external_id fs.s3a.assumed.role.external.id",
    "role_duration": "fs.s3a.assumed.role.session.duration",
    "role_policy": "fs.s3a.assumed.role.policy",
    "role_credentials_provider": "fs.s3a.assumed.role.credentials.provider",
    "role_sts_endpoint": "aws_endpoint_url_sts fs.s3a.assumed.role.sts.endpoint",
    "role_sts_region": "fs.s3a.assumed.role.sts.endpoint.region",
    "proxy_url": "proxy",
    "proxy_host": "fs.s3a.proxy.host",
    "proxy_port": "fs.s3a.proxy.port",
    "proxy_username": "fs.s3a.proxy.username",
    "proxy_password": "fs.s3a.proxy.password",
    "proxy_https": "fs.s3a.proxy.ssl.enabled",
    "requester_pays": "request_payer fs.s3a.requester.pays.enabled",
    "sse": "server_side_encryption aws_server_side_encryption fs.s3a.encryption.algorithm "
    "fs.s3a.server-side-encryption-algorithm",
    "sse_kms_key_id": "aws_sse_kms_key_id fs.s3a.encryption.key fs.s3a.server-side-encryption.key",
    "sse_kms_context": "fs.s3a.encryption.context",
    "acl": "fs.s3a.acl.default",
    "storage_class": "fs.s3a.create.storage.class",
}

_ENCRYPTIONS = {
    "AES256": "AES256",
    "SSE-S3": "AES256",
    "SSE-KMS": "aws:kms",
    "AWS:KMS": "aws:kms",
    "DSSE-KMS": "aws:kms:dsse",
    "AWS:KMS:DSSE": "aws:kms:dsse",
}
"""Names of Hadoop and of Amazon -> the value of ``x-amz-server-side-encryption``."""

_LONGEST_ROLE = 43200
_REGION_SECONDS = 3.0
"""Maximum seconds to wait for Amazon before asking it for the region of a bucket."""

_PUBLIC_REGION = re.compile(r"(?:us|eu|ap|sa|ca|me|af|il|mx|cn)-(?!iso)[a-z-]+\d+$")


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
        role: to assume.
        proxy: a proxy as URL, its user and password included.
        sse: server-side encryption of objects that are written: ``AES256``, ``aws:kms`` or ``aws:kms:dsse``.
        sse_kms_key_id: key of the latter two; None for the account's own.
        sse_kms_context: encryption context, in JSON.
        acl: canned access control list of objects that are written.
        storage_class: of objects that are written.
        virtual_addressing: whether the bucket is part of the host name; by default not if ``endpoint_url`` is set.
        timeout: seconds to wait for a response.
    """

    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    endpoint_url: str | None = None
    anonymous: bool = False
    role: Role | None = None
    proxy: str | None = field(default=None, repr=False)
    sse: str | None = None
    sse_kms_key_id: str | None = field(default=None, repr=False)
    sse_kms_context: str | None = field(default=None, repr=False)
    acl: str | None = None
    storage_class: str | None = None
    virtual_addressing: bool | None = None
    timeout: float = TIMEOUT

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
        if "role_arn" in given and "access_key" in given and "credentials_provider" not in given:
            raise ConfigError(
                "role_arn is assumed with the machine's own credentials: do not set access_key as well. To assume it "
                "with the keys, set fs.s3a.aws.credentials.provider to Hadoop's AssumedRoleCredentialProvider."
            )
        if is_true(given, "requester_pays"):
            raise UnsupportedFeatureError(
                "requester_pays (fs.s3a.requester.pays.enabled) is not supported: pyarrow's client of S3, which lists "
                "and reads, cannot send that header. Read through an access of the bucket's owner, or copy the table."
            )
        source, assumes = chosen_source(given)
        keys = given if source == KEYS else {}
        return cls(
            access_key=keys.get("access_key"),
            secret_key=keys.get("secret_key"),
            session_token=keys.get("session_token"),
            region=given.get("region"),
            endpoint_url=_with_scheme(endpoint, given),
            anonymous=is_true(given, "anonymous") or source == ANONYMOUS,
            role=_role(given) if assumes else None,
            proxy=_proxy(given),
            sse=_encryption(given),
            sse_kms_key_id=given.get("sse_kms_key_id"),
            sse_kms_context=_context(given),
            acl=_canned_acl(given.get("acl")),
            storage_class=(given["storage_class"].upper() if "storage_class" in given else None),
            virtual_addressing=virtual,
            timeout=timeout_of(given),
        )

    def located(self, bucket: str) -> S3Options:
        """Add the region of the bucket if it is missing and Amazon can be asked for it."""
        if self.region or self.endpoint_url or self.proxy or _environment_region():
            return self  # behind a proxy Amazon cannot be asked
        try:
            replace(self, timeout=min(self.timeout, _REGION_SECONDS)).server().require_answer()
            return replace(self, region=pafs.resolve_s3_region(bucket))
        except (OSError, ValueError):
            return self  # the next read or write reports the error

    def server(self) -> Server:
        """The server of these options: its proxy, if there is one.

        The names of Amazon's servers are known for the regions of its public partitions.
        """
        found = self.endpoint_url
        if found is None:
            region = self.region or _environment_region() or "us-east-1"
            known = _PUBLIC_REGION.match(region) is not None
            china = ".cn" if region.startswith("cn-") else ""
            found = f"https://s3.{region}.amazonaws.com{china}" if known else None
        url = _without_user(self.proxy) if self.proxy else found
        settings = "and endpoint_url, region and the proxy if set"
        return Server("S3", (url,) if url else (), self.timeout, settings, {})

    def files(self) -> RenewedFiles:
        """File systems for reads and streams; the first one is made after the server has answered."""
        renewed, first = self._renewed_keys(), self.server().require_answer
        return RenewedFiles(renewed or (lambda: None), self.file_system, first)

    def file_system(self, keys: Any = None) -> pafs.S3FileSystem:
        """The file system for reads and streams.

        Args:
            keys: keys of boto3, which replace the keys of these options.
        """
        endpoint = urlparse(self.endpoint_url) if self.endpoint_url else None
        more: dict[str, Any] = {}
        if endpoint is not None:
            more = {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
        more |= {name: value for name, value in self._arrow_keys(keys).items() if value is not None}
        if self.proxy:
            more["proxy_options"] = self.proxy
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

    def _renewed_keys(self) -> Callable[[], Any] | None:
        """The credentials of a role that boto3 assumes; None where pyarrow needs no help."""
        if self.role is None or self._arrow_assumes:
            return None
        found, role = list[Any](), self.role

        def keys() -> Any:
            try:
                found[:] = found or [self.session().get_credentials()]
                return found[0].get_frozen_credentials()
            except _failures() as error:
                raise role_error(role, error) from error

        return keys

    def headers(self) -> dict[str, str]:
        """Arguments of boto3's calls that create an object: encryption, access control list, storage class.

        pyarrow's streams cannot send these headers (pyarrow 26).
        """
        found = {
            "ServerSideEncryption": self.sse,
            "SSEKMSKeyId": self.sse_kms_key_id,
            "SSEKMSEncryptionContext": self.sse_kms_context
            and base64.b64encode(self.sse_kms_context.encode()).decode(),
            "ACL": self.acl,
            "StorageClass": self.storage_class,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def _arrow_assumes(self) -> bool:
        """Whether pyarrow assumes the role itself."""
        return self.role is not None and self.role.is_plain and self.access_key is None and not self.anonymous

    def _arrow_keys(self, keys: Any) -> dict[str, str | None]:
        """Arguments of pyarrow for credentials."""
        if keys is not None:
            return {"access_key": keys.access_key, "secret_key": keys.secret_key, "session_token": keys.token}
        if self.role is not None:
            role = self.role
            return {"role_arn": role.arn, "session_name": role.session_name, "external_id": role.external_id}
        known = {"access_key": self.access_key, "secret_key": self.secret_key, "session_token": self.session_token}
        return known if self.access_key else {}

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
            proxies={"http": self.proxy, "https": self.proxy} if self.proxy else None,
            **more,
        )
        region = session.region_name or "us-east-1"
        return session.client("s3", endpoint_url=self.endpoint_url, config=config, region_name=region)

    def session(self) -> Any:
        """A new session of boto3, with the credentials of these options, or the credentials that boto3 finds now.

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
        session = with_shared_descriptions(boto3.session.Session(**known))
        return session if self.role is None else role_session(session, self.role)


def _failures() -> tuple[type[Exception], ...]:
    botocore = import_extra("botocore.exceptions", "s3", "S3")
    return botocore.ClientError, botocore.BotoCoreError


def _without_user(proxy: str) -> str:
    """A proxy without user and password."""
    scheme, _, rest = proxy.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


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
    return checked_url(endpoint, "endpoint_url")


def _role(given: Mapping[str, str]) -> Role:
    seconds = _duration(given["role_duration"]) if "role_duration" in given else 0
    if seconds and not 900 <= seconds <= _LONGEST_ROLE:
        raise ConfigError("fs.s3a.assumed.role.session.duration (role_duration) must be from 15 minutes to 12 hours.")
    endpoint = given.get("role_sts_endpoint")
    return Role(
        given["role_arn"],
        given.get("role_session_name", "hudi-fast"),
        given.get("role_external_id"),
        seconds,
        given.get("role_policy"),
        endpoint if endpoint is None or "://" in endpoint else f"https://{endpoint}",
        given.get("role_sts_region"),
    )


def _duration(text: str) -> int:
    """Seconds of a duration as Hadoop writes it: a number and ``s``, ``m``, ``h`` or ``d``; seconds without a unit."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:].lower())
    number = text if unit is None else text[:-1].strip()
    if not number.isdigit():
        raise ConfigError("role_duration must be a number of seconds, or a number and s, m, h or d.")
    return int(number) * (unit or 1)


def _proxy(given: Mapping[str, str]) -> str | None:
    """The proxy as URL; no message contains it, because it may have a password."""
    host, url = given.get("proxy_host"), given.get("proxy_url")
    if host is None:
        if any(name in given for name in ("proxy_port", "proxy_username", "proxy_password")):
            raise ConfigError("A proxy for s3:// needs proxy_host (fs.s3a.proxy.host).")
        if url is not None and (urlparse(url).scheme not in ("http", "https") or not urlparse(url).hostname):
            raise ConfigError("The storage option proxy_url must be http:// or https://, a host and a port.")
        return url
    if url is not None:
        raise ConfigError("Set only one of the storage options proxy_url and proxy_host.")
    https, port = is_true(given, "proxy_https"), given.get("proxy_port")
    if port is not None and not (port.isdigit() and 0 < int(port) < 1 << 16):
        raise ConfigError("proxy_port (fs.s3a.proxy.port) must be a port.")
    user, password = given.get("proxy_username"), given.get("proxy_password")
    if (user is None) != (password is None):
        raise ConfigError("Set both proxy_username and proxy_password (fs.s3a.proxy.username, .password), or neither.")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user is not None and password is not None else ""
    return f"{'https' if https else 'http'}://{login}{host}:{port or (443 if https else 80)}"


def _encryption(given: Mapping[str, str]) -> str | None:
    """The value of ``x-amz-server-side-encryption``."""
    text = given.get("sse")
    key, context = "sse_kms_key_id" in given, "sse_kms_context" in given
    if text is None:
        if key or context:
            raise ConfigError(
                "sse_kms_key_id and sse_kms_context (fs.s3a.encryption.key, .context) need sse "
                "(fs.s3a.encryption.algorithm): aws:kms or aws:kms:dsse."
            )
        return None
    found = _ENCRYPTIONS.get(text.upper())
    if found is None and text.upper() in ("SSE-C", "CSE-KMS", "CSE-CUSTOM"):
        raise UnsupportedFeatureError(
            f"The encryption {text.upper()} (sse, fs.s3a.encryption.algorithm) is not supported: neither pyarrow nor "
            "hudi_fast encrypts on the client or sends its key. Use SSE-KMS or DSSE-KMS, whose keys stay with Amazon."
        )
    if found is None:
        raise ConfigError("sse (fs.s3a.encryption.algorithm) must be AES256, SSE-KMS (aws:kms) or DSSE-KMS.")
    if found == "AES256" and (key or context):
        raise ConfigError("The encryption AES256 takes no sse_kms_key_id and no sse_kms_context; use SSE-KMS.")
    return found


def _context(given: Mapping[str, str]) -> str | None:
    """The encryption context, ``name=value`` pairs with commas between them or JSON, as JSON."""
    text = given.get("sse_kms_context")
    if text is None:
        return None
    try:
        found = json.loads(text) if text.startswith("{") else dict(one.split("=", 1) for one in text.split(","))
        return json.dumps({str(name).strip(): str(value).strip() for name, value in found.items()})
    except ValueError:
        raise ConfigError("sse_kms_context (fs.s3a.encryption.context) must be name=value pairs.") from None


def _canned_acl(text: str | None) -> str | None:
    """Amazon's name of a list: Hadoop's ``BucketOwnerFullControl`` is ``bucket-owner-full-control``."""
    if text is None or "-" in text:
        return text
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in text).lstrip("-")

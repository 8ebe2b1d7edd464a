"""Credentials of S3: the sources that Hadoop's provider classes stand for, and sessions of boto3 with them.

::

    fs.s3a.aws.credentials.provider ─► chosen_source: the first class that has credentials
        keys       access_key, secret_key and, for temporary ones, session_token of the options
        machine    credentials found by boto3 and Amazon's C++ client: environment, ~/.aws, web identity, container,
                   instance
        anonymous  none
        role       a role, assumed with the credentials of assumed.role.credentials.provider

A machine's credentials are looked up by the first request, so classes after it in a list are never used.
Source: Hadoop 3.4, ``S3AFileSystem`` and "Authenticating with S3".
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hudi_fast.errors import ConfigError, StorageAccessError, UnsupportedFeatureError
from hudi_fast.storage.extras import import_extra
from hudi_fast.values import dataclass

__all__ = [
    "ANONYMOUS",
    "KEYS",
    "MACHINE",
    "Role",
    "chosen_source",
    "role_error",
    "role_session",
    "with_shared_descriptions",
]

KEYS = "keys"
MACHINE = "machine"
ANONYMOUS = "anonymous"
"""Sources of credentials: the options, the machine, none."""

_ROLE = "role"
_PROVIDER = "fs.s3a.aws.credentials.provider"
_ROLE_PROVIDER = "fs.s3a.assumed.role.credentials.provider"
_MACHINE_CLASSES = frozenset(
    {
        "ContainerCredentialsProvider",
        "DefaultAWSCredentialsProviderChain",
        "DefaultCredentialsProvider",
        "EC2ContainerCredentialsProviderWrapper",
        "IAMInstanceCredentialsProvider",
        "InstanceProfileCredentialsProvider",
        "ProfileCredentialsProvider",
        "WebIdentityTokenCredentialsProvider",
        "WebIdentityTokenFileCredentialsProvider",
    }
)
_ROLE_CLASS = "AssumedRoleCredentialProvider"
_ENVIRONMENT_CLASS = "EnvironmentVariableCredentialsProvider"
_SEPARATORS = str.maketrans("\n\t,", "   ")


@dataclass(frozen=True, slots=True)
class Role:
    """A role to assume.

    Attributes:
        arn: its name.
        session_name: of the session, for the logs of the account.
        external_id: required by some roles of other accounts.
        seconds: after which its credentials expire, unless they are renewed; 0 for Amazon's default of an hour.
        policy: a policy in JSON that narrows what the role allows.
        sts_endpoint: the server to ask; None for the server of the region.
        sts_region: its region; None for the bucket's region.
    """

    arn: str
    session_name: str = "hudi-fast"
    external_id: str | None = field(default=None, repr=False)
    seconds: int = 0
    policy: str | None = None
    sts_endpoint: str | None = None
    sts_region: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether pyarrow can assume it: it uses the default server, an hour, and the machine's own keys."""
        return not (self.seconds or self.policy or self.sts_endpoint or self.sts_region)


def chosen_source(given: Mapping[str, str]) -> tuple[str, bool]:
    """The source of credentials that Hadoop's list of provider classes chooses.

    Args:
        given: options under their canonical names.

    Returns:
        :data:`KEYS`, :data:`MACHINE` or :data:`ANONYMOUS`; and whether a role is assumed with them.

    Raises:
        UnsupportedFeatureError: a class that hudi_fast does not know.
        ConfigError: no class of the list has credentials.
    """
    role = "role_arn" in given
    providers = _classes(given.get("credentials_provider"))
    if not providers:
        return (KEYS if "access_key" in given else MACHINE), role
    found = _first(providers, given, _PROVIDER)
    if found != _ROLE:
        return found, False
    if not role:
        raise ConfigError(f"{_PROVIDER} names {_ROLE_CLASS}, and fs.s3a.assumed.role.arn (role_arn) is missing.")
    sources = _classes(given.get("role_credentials_provider"))
    if sources:
        return _first(sources, given, _ROLE_PROVIDER), True
    return (KEYS if "access_key" in given else MACHINE), True


def _classes(text: str | None) -> list[str]:
    return (text or "").translate(_SEPARATORS).split()


def _first(providers: list[str], given: Mapping[str, str], setting: str) -> str:
    """The first provider with credentials; refuses unknown providers anywhere in the list."""
    found = [_source(name, given, setting) for name in providers]
    for source in found:
        if source:
            return source
    raise ConfigError(
        f"{setting} names {', '.join(one.rpartition('.')[2] for one in providers)}, and none of these has credentials: "
        "set fs.s3a.access.key and fs.s3a.secret.key (with fs.s3a.session.token for temporary ones), or name another "
        "provider."
    )


def _source(name: str, given: Mapping[str, str], setting: str) -> str:
    """The source that a class stands for; empty if it has no credentials."""
    kind = name.rpartition(".")[2]
    if kind == "SimpleAWSCredentialsProvider":
        return KEYS if "access_key" in given else ""
    if kind == "TemporaryAWSCredentialsProvider":
        return KEYS if "access_key" in given and "session_token" in given else ""
    if kind == "AnonymousAWSCredentialsProvider" or name.endswith("auth.credentials.AnonymousCredentialsProvider"):
        return ANONYMOUS
    if kind == _ENVIRONMENT_CLASS:
        return MACHINE if os.environ.get("AWS_ACCESS_KEY_ID") and os.environ.get("AWS_SECRET_ACCESS_KEY") else ""
    if kind == _ROLE_CLASS and setting == _PROVIDER:
        return _ROLE
    if kind in _MACHINE_CLASSES:
        return MACHINE
    raise UnsupportedFeatureError(
        f"{setting} names {name}, which is a Java class that hudi_fast cannot call. Use one of Hadoop's or Amazon's "
        "own providers, or pass access_key, secret_key and session_token as storage_options."
    )


def role_error(role: Role, error: Exception) -> StorageAccessError:
    """The error for a role that cannot be assumed.

    Args:
        role: the role.
        error: of botocore.
    """
    return StorageAccessError(
        f"The role {role.arn} was not assumed: {error}. Check the credentials that assume it, and that the role trusts "
        "them."
    )


def role_session(session: Any, role: Role) -> Any:
    """A session of boto3 with the credentials of a role, which are renewed before they expire.

    Args:
        session: has the credentials that may assume it.
        role: the role.
    """
    parts = import_extra("botocore.credentials", "s3", "A role for s3://")
    core = import_extra("botocore.session", "s3", "A role for s3://").Session()
    extra: dict[str, Any] = {"RoleSessionName": role.session_name}
    more = {"ExternalId": role.external_id, "DurationSeconds": role.seconds or None, "Policy": role.policy}
    extra |= {name: value for name, value in more.items() if value is not None}

    def client(service: str, **settings: Any) -> Any:
        place = {"endpoint_url": role.sts_endpoint, "region_name": role.sts_region or session.region_name}
        return session._session.create_client(service, **settings, **{k: v for k, v in place.items() if v})

    fetcher = parts.AssumeRoleCredentialFetcher(
        client_creator=client, source_credentials=session.get_credentials(), role_arn=role.arn, extra_args=extra
    )
    core._credentials = parts.DeferredRefreshableCredentials(
        refresh_using=fetcher.fetch_credentials, method="assume-role"
    )
    boto3 = import_extra("boto3", "s3", "A role for s3://")
    return with_shared_descriptions(boto3.session.Session(botocore_session=core, region_name=session.region_name))


def with_shared_descriptions(session: Any) -> Any:
    """The session of boto3, whose clients take botocore's descriptions of services from all sessions of the process.

    To parse that of S3 takes longer than a request.
    """
    core = session._session
    core.register_component("data_loader", _descriptions(core.get_config_variable("data_path")))
    return session


@functools.cache
def _descriptions(folders: str | None) -> Any:
    return import_extra("botocore.loaders", "s3", "S3").create_loader(folders)

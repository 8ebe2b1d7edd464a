"""Settings of Hadoop as storage options.

Settings of Hadoop's file systems as storage options: honoured, refused, or without effect on tables.

::

    s3a://, s3n://   fs.s3a.bucket.<bucket>.*, fs.s3a.*                        S3A, Hadoop 3.4
    s3://            the same, and before them fs.s3.*                         EMRFS, Amazon EMR
    abfs[s]://       fs.azure.*, of the container, the account, all accounts   ABFS and WASB, Hadoop 3.4
    gs://            fs.gs.*, google.cloud.auth.*                              Google's connector 2 and 3

docs/object-stores.md lists them. No message contains the value of a secret.

Options of HDFS: Hadoop's own settings, from storage options and from Hadoop's configuration files.

::

    storage options ──────────────────────────────┐
    core-site.xml, hdfs-site.xml of config_dir,   ├─► the first that has a setting ─► client
    HADOOP_CONF_DIR or HADOOP_HOME/etc/hadoop     ─┘

The client (hdfs-native) reads the same files. This module reads them for the settings that the client leaves to its
caller: ports, permissions, replication, block sizes, and the number of attempts per address.
"""

from __future__ import annotations

import base64
import os
import re
import socket
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.storage.option_names import timeout_of
from hudi_fast.values import dataclass

__all__ = ["HADOOP_PREFIXES", "TOKENS", "HdfsOptions", "counts", "from_hadoop", "scheme_prefixes", "secret_names"]

HADOOP_PREFIXES = ("fs.s3a.", "fs.s3.", "fs.s3n.", "fs.azure.", "fs.gs.", "google.cloud.auth.")
"""Prefixes of all names."""

_S3 = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss", "wasb", "wasbs", "az")
_GCS = ("gs", "gcs")

_S3A_HONOURED = frozenset(
    f"fs.s3a.{name}"
    for name in (
        "access.key secret.key session.token endpoint endpoint.region path.style.access connection.ssl.enabled "
        "aws.credentials.provider proxy.host proxy.port proxy.username proxy.password proxy.ssl.enabled "
        "requester.pays.enabled encryption.algorithm encryption.key encryption.context acl.default "
        "server-side-encryption-algorithm server-side-encryption.key create.storage.class assumed.role.arn "
        "assumed.role.session.name assumed.role.external.id assumed.role.session.duration assumed.role.policy "
        "assumed.role.credentials.provider assumed.role.sts.endpoint assumed.role.sts.endpoint.region"
    ).split()
)
_S3A_REFUSED = {
    "fs.s3a.accesspoint.arn": "use the alias of the access point as the bucket",
    "fs.s3a.access.grants.enabled": "use a role (fs.s3a.assumed.role.arn) or keys",
    "fs.s3a.custom.signers": "leave it out",
    "fs.s3a.delegation.token.binding": "use a role (fs.s3a.assumed.role.arn) or keys",
    "fs.s3a.endpoint.fips": "set fs.s3a.endpoint to the FIPS endpoint of the region",
    "fs.s3a.proxy.domain": "use a proxy without NTLM",
    "fs.s3a.proxy.workstation": "use a proxy without NTLM",
    "fs.s3a.s3.signing-algorithm": "leave it out: requests are signed with version 4",
    "fs.s3a.signing-algorithm": "leave it out: requests are signed with version 4",
}
_S3A_RENAMED = {
    "fs.s3a.encryption.algorithm": "fs.s3a.server-side-encryption-algorithm",
    "fs.s3a.encryption.key": "fs.s3a.server-side-encryption.key",
}
_EMRFS = {
    "awsaccesskeyid": "access_key",
    "awssecretaccesskey": "secret_key",
    "canned.acl": "acl",
    "customawscredentialsprovider": "credentials_provider",
    "endpoint": "endpoint_url",
    "userequesterpaysheader": "requester_pays",
}
_OAUTH = "fs.azure.account.oauth2."
_TENANT = re.compile(r"/([^/]+)/oauth2(?:/v2\.0)?/token/?$")
_MSI_HOST = "169.254.169.254"
_OFF = ("", "false", "disabled")


def scheme_prefixes(scheme: str) -> tuple[str, ...]:
    """Prefixes of the names that apply to a scheme."""
    if scheme in _S3:
        return ("fs.s3a.", "fs.s3.", "fs.s3n.")
    if scheme in _AZURE:
        return ("fs.azure.",)
    return ("fs.gs.", "google.cloud.auth.") if scheme in _GCS else ()


def from_hadoop(uri: str, settings: Mapping[str, str], others: bool = True) -> dict[str, str]:
    """Storage options from settings of Hadoop.

    Args:
        uri: the table.
        settings: names that begin with :data:`HADOOP_PREFIXES`, in the spelling of Hadoop.
        others: whether settings that this module does not know are returned unchanged, and fail later. Otherwise they
            are left out: a session has many settings without effect on the result.

    Raises:
        UnsupportedFeatureError: hudi_fast does not support the effect of a setting.
        ConfigError: settings contradict each other or are incomplete.
    """
    scheme, _, rest = uri.partition("://")
    authority = rest.partition("/")[0]
    given = {name: str(value).strip() for name, value in settings.items() if value is not None}
    if scheme.lower() in _S3:
        return _s3(scheme.lower(), authority, given, others)
    if scheme.lower() in _AZURE:
        return _azure(authority, given)
    return _gcs(given) if scheme.lower() in _GCS else dict(settings)


def counts(name: str) -> bool:
    """Whether a setting may affect results; most settings of S3A only tune its performance."""
    if not name.startswith("fs.s3a."):
        return name.startswith(HADOOP_PREFIXES)
    return name.startswith("fs.s3a.bucket.") or name in _S3A_HONOURED or name in _S3A_REFUSED


def secret_names(uri: str) -> tuple[str, ...]:
    """Names of the secrets that Hadoop looks up in its credential files, too."""
    scheme, _, rest = uri.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    if scheme.lower() in _S3:
        names = "access.key secret.key session.token encryption.key proxy.username proxy.password".split()
        return tuple(f"fs.s3a.{where}{name}" for name in names for where in ("", f"bucket.{host}."))
    if scheme.lower() in _AZURE:
        names = f"account.key sas.fixed.token {_OAUTH[9:]}client.id {_OAUTH[9:]}client.secret".split()
        return tuple(f"fs.azure.{name}{where}" for name in names for where in ("", f".{host}"))
    return ()


# ---- S3


def _s3(scheme: str, bucket: str, given: Mapping[str, str], others: bool) -> dict[str, str]:
    found = {
        name: value for name, value in given.items() if not name.startswith(("fs.s3a.bucket.", "fs.s3.", "fs.s3n."))
    }
    own = f"fs.s3a.bucket.{bucket}."
    found |= {f"fs.s3a.{name[len(own) :]}": value for name, value in given.items() if name.startswith(own)}
    for name, way in _S3A_REFUSED.items():
        if found.get(name, "").lower() not in _OFF:
            raise _refused(name, way)
    for new, old in _S3A_RENAMED.items():
        if found.get(new):
            found.pop(old, None)
    if "AssumedRoleCredentialProvider" not in found.get("fs.s3a.aws.credentials.provider", ""):
        found = {name: value for name, value in found.items() if not name.startswith("fs.s3a.assumed.role.")}
    if not others:
        found = {name: value for name, value in found.items() if name in _S3A_HONOURED and value}
    if scheme == "s3a":
        return found
    return _with_emrfs(found, _emrfs({name: value for name, value in given.items() if name.startswith("fs.s3")}))


def _emrfs(given: Mapping[str, str]) -> dict[str, str]:
    """Storage options from the settings of EMRFS."""
    named = {
        name.split(".", 2)[2].lower(): value
        for name, value in given.items()
        if value and name.startswith(("fs.s3.", "fs.s3n."))
    }
    if named.get("cse.enabled", "").lower() == "true":
        raise _refused("fs.s3.cse.enabled", "use fs.s3.enableServerSideEncryption; files stay readable for others")
    mapped = [name for name, value in named.items() if name.startswith("authorization.") and value]
    if mapped:
        raise _refused(f"fs.s3.{mapped[0]}", "use a role: role_arn in storage_options")
    found = {option: named[name] for name, option in _EMRFS.items() if named.get(name)}
    if named.get("enableserversideencryption", "").lower() == "true":
        key = named.get("serversideencryption.kms.keyid")
        found["sse"] = "aws:kms" if key else named.get("serversideencryptionalgorithm", "AES256")
        found |= {"sse_kms_key_id": key} if key else {}
        if context := named.get("serversideencryption.kms.customencryptioncontext"):
            found["sse_kms_context"] = _decoded(context)
    return found


def _with_emrfs(found: dict[str, str], emrfs: dict[str, str]) -> dict[str, str]:
    """Merge options; EMRFS takes precedence: its encryption replaces all of S3A's, and its keys replace S3A's."""
    groups = {
        "sse": ("encryption.", "server-side-encryption"),
        "access_key": ("access.key", "secret.key", "session.token"),
        "acl": ("acl.default",),
        "endpoint_url": ("endpoint",),
        "credentials_provider": ("aws.credentials.provider",),
        "requester_pays": ("requester.pays.enabled",),
    }
    gone = tuple(f"fs.s3a.{one}" for option in emrfs for one in groups.get(option, ()))
    kept = {name: value for name, value in found.items() if not gone or not name.startswith(gone)}
    return {**kept, **emrfs}


def _decoded(context: str) -> str:
    try:
        return base64.b64decode(context, validate=True).decode()
    except ValueError:
        raise ConfigError("fs.s3.serverSideEncryption.kms.customEncryptionContext must be JSON in Base64.") from None


# ---- Azure


def _azure(authority: str, given: Mapping[str, str]) -> dict[str, str]:
    container, _, host = authority.rpartition("@") if "@" in authority else (authority, "", "")
    account = host.partition(".")[0] or given.get("fs.azure.account.name", "")

    def value(name: str) -> str:
        """The setting of the container, else of the account, else of all accounts."""
        domain = host.partition(".")[2].partition(".")[2] or "core.windows.net"
        hosts = [f"{account}.{kind}.{domain}" for kind in ("dfs", "blob")] + [account]
        for suffix in (*(f".{container}.{one}" for one in hosts), *(f".{one}" for one in hosts), ""):
            if given.get(f"{name}{suffix}"):
                return given[f"{name}{suffix}"]
        return ""

    for name, way in (
        ("fs.azure.encryption.encoded.client-provided-key", "use keys of the account's key vault"),
        ("fs.azure.encryption.context.provider.type", "use keys of the account's key vault"),
        ("fs.azure.client-provided-encryption-key", "use keys of the account's key vault"),
    ):
        if value(name):
            raise _refused(name, way)
    if "SimpleKeyProvider" not in (value("fs.azure.account.keyprovider") or "SimpleKeyProvider"):
        raise _refused("fs.azure.account.keyprovider", "set fs.azure.account.key")
    kind = value("fs.azure.account.auth.type").upper()
    shared = {"account_key": value("fs.azure.account.key")}
    fixed = {"sas_token": value("fs.azure.sas.fixed.token") or value("fs.azure.sas")}
    if kind == "OAUTH":
        return _oauth(value)
    if kind == "SAS":
        if not fixed["sas_token"]:
            raise _refused("fs.azure.sas.token.provider.type", "set fs.azure.sas.fixed.token")
        return fixed
    if kind not in ("", "SHAREDKEY"):
        raise _refused(f"fs.azure.account.auth.type={kind}", "use SharedKey, OAuth or SAS")
    if kind and not shared["account_key"]:
        raise ConfigError("fs.azure.account.auth.type is SharedKey, and fs.azure.account.key is not set.")
    found = shared if shared["account_key"] else fixed
    return {name: text for name, text in found.items() if text}


def _oauth(value: Callable[[str], str]) -> dict[str, str]:
    name = value("fs.azure.account.oauth.provider.type")
    kind, client = name.rpartition(".")[2], value(f"{_OAUTH}client.id")
    if kind == "MsiTokenProvider":
        endpoint = value(f"{_OAUTH}msi.endpoint")
        if endpoint and urlsplit(endpoint).hostname != _MSI_HOST:
            raise _refused(f"{_OAUTH}msi.endpoint", "leave it out: the machine's own identity is found")
        return {"client_id": client} if client else {}
    if kind != "ClientCredsTokenProvider":
        raise _refused(
            f"fs.azure.account.oauth.provider.type={name or '(none)'}",
            "use ClientCredsTokenProvider or MsiTokenProvider",
        )
    endpoint, secret = value(f"{_OAUTH}client.endpoint"), value(f"{_OAUTH}client.secret")
    tenant = _TENANT.search(endpoint)
    if tenant is None or not client or not secret:
        raise ConfigError(
            f"ClientCredsTokenProvider needs {_OAUTH}client.id, {_OAUTH}client.secret and {_OAUTH}client.endpoint "
            "(https://login.microsoftonline.com/<tenant>/oauth2/token)."
        )
    if urlsplit(endpoint).hostname not in ("login.microsoftonline.com", "login.windows.net"):
        raise _refused(
            f"{_OAUTH}client.endpoint={endpoint}", "set AZURE_AUTHORITY_HOST, and tenant_id in storage_options"
        )
    return {"tenant_id": tenant[1], "client_id": client, "client_secret": secret}


# ---- Google


def _gcs(given: Mapping[str, str]) -> dict[str, str]:
    def value(name: str) -> str:
        """A setting under its newer and older name."""
        return given.get(f"fs.gs.{name}") or given.get(f"google.cloud.{name}") or ""

    for name, way in (
        ("encryption.key", "use keys of Cloud KMS, which the bucket names"),
        ("encryption.algorithm", "use keys of Cloud KMS, which the bucket names"),
        ("auth.access.token.provider", "set access_token in storage_options, or a key file"),
        ("auth.access.token.provider.impl", "set access_token in storage_options, or a key file"),
        ("auth.impersonation.service.account", "use a key file of that account"),
        ("auth.service.account.private.key", "set fs.gs.auth.service.account.json.keyfile"),
        ("auth.service.account.keyfile", "set fs.gs.auth.service.account.json.keyfile"),
        ("proxy.address", "set the environment variable https_proxy"),
    ):
        if value(name):
            raise _refused(f"fs.gs.{name}", way)
    if value("requester.pays.mode").lower() not in _OFF:
        raise _refused("fs.gs.requester.pays.mode", "read through an access of the bucket's owner")
    kind, file = value("auth.type").upper(), value("auth.service.account.json.keyfile")
    found = {"project_id": value("project.id"), "endpoint_url": value("storage.root.url")}
    if kind == "UNAUTHENTICATED" or value("auth.null.enable").lower() == "true":
        found["anonymous"] = "true"
    elif kind == "SERVICE_ACCOUNT_JSON_KEYFILE" or (not kind and file):
        if not file:
            raise ConfigError(
                "fs.gs.auth.type is SERVICE_ACCOUNT_JSON_KEYFILE, and fs.gs.auth.service.account.json.keyfile is not "
                "set."
            )
        found["service_account_file"] = file
    elif kind not in ("", "APPLICATION_DEFAULT", "COMPUTE_ENGINE"):
        raise _refused(f"fs.gs.auth.type={kind}", "use SERVICE_ACCOUNT_JSON_KEYFILE or APPLICATION_DEFAULT")
    return {name: text for name, text in found.items() if text}


def _refused(name: str, way: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"The setting {name} is not supported by hudi_fast: {way}.")


HDFS_PREFIXES = ("dfs.", "fs.", "hadoop.", "ipc.")
"""Prefixes of the names of Hadoop's settings."""

TOKENS = "delegation_tokens"
"""Option with the content of a file of delegation tokens, in base64: how a Spark driver gives them to its tasks."""

_OWN = ("config_dir", "kerberos_principal", "kerberos_keytab", "kerberos_cache", "timeout", TOKENS)
_PORT = 8020
_ATTEMPTS = ("dfs.client.failover.max.attempts", "4")
"""Attempts for an address without another NameNode to fail over to: some seconds in all."""

_SIZE = re.compile(r"(\d+)([kmgtpe]?)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{([^}$ ]+)\}")


@dataclass(frozen=True, slots=True)
class HdfsOptions:
    """How to reach one HDFS, and how to create files there. Hashable, so that clients can be kept.

    Attributes:
        url: scheme and authority, with a port unless it is a name service; ``hdfs://`` for ``fs.defaultFS``.
        settings: Hadoop's settings from storage options, as (name, value) pairs.
        config_dir: folder of Hadoop's configuration files; None for the environment's.
        kerberos: principal, keytab and ticket cache; None for the environment's.
        tokens: delegation tokens in base64; "" for the tokens in ``HADOOP_TOKEN_FILE_LOCATION``.
        umask: permission bits that new files and folders lack.
        replication: copies of new files; None for the NameNode's default.
        block_size: bytes of a block of new files; None for the NameNode's default.
        name_nodes: addresses of NameNodes, host and port; empty if Hadoop's settings do not contain them.
        timeout: seconds to wait for the first answer of a NameNode.
    """

    url: str
    settings: tuple[tuple[str, str], ...]
    config_dir: str | None
    kerberos: tuple[str | None, str | None, str | None]
    tokens: str
    umask: int
    replication: int | None
    block_size: int | None
    name_nodes: tuple[str, ...]
    timeout: float

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def url_by_ip(self) -> str:
        """The URL by which the client finds tokens: tokens of a single NameNode are for its IP address and port."""
        scheme, _, authority = self.url.partition("://")
        host, _, port = authority.partition(":")
        if scheme == "viewfs" or not port:
            return self.url
        try:
            return f"{scheme}://{socket.gethostbyname(host)}:{port}"
        except OSError:
            return self.url

    @classmethod
    def of(cls, options: Mapping[str, Any], uri: str) -> HdfsOptions:
        """Validate the options for a URI.

        Raises:
            ConfigError: an unknown name, a setting with an invalid value, or a keytab or tickets without a principal.
        """
        given = {name: str(value) for name, value in options.items() if value is not None and str(value)}
        for name in given:
            if name not in _OWN and not name.startswith(HDFS_PREFIXES):
                raise ConfigError(
                    f"The storage option {name!r} is unknown for HDFS. Known are Hadoop's own settings, such as "
                    f"dfs.nameservices, and {', '.join(_OWN[:-1])}."
                )
        settings = {name: value for name, value in given.items() if name not in _OWN}
        config_dir = given.get("config_dir")
        if config_dir is not None and not os.path.isdir(config_dir):
            raise ConfigError(f"The storage option config_dir={config_dir} is not a folder on this machine.")
        for name in ("kerberos_keytab", "kerberos_cache"):
            if name in given and "kerberos_principal" not in given:
                raise ConfigError(f"The storage option {name} needs kerberos_principal, such as alice@EXAMPLE.COM.")
        known = {**_read_files(config_dir), **settings}
        url, single = _address(uri, known)
        if single and _ATTEMPTS[0] not in known:
            settings[_ATTEMPTS[0]] = _ATTEMPTS[1]
        return cls(
            url,
            tuple(sorted(settings.items())),
            config_dir,
            (given.get("kerberos_principal"), given.get("kerberos_keytab"), given.get("kerberos_cache")),
            given.get(TOKENS, ""),
            _umask(known.get("fs.permissions.umask-mode", "022")),
            _size("dfs.replication", known),
            _size("dfs.blocksize", known),
            _name_nodes(url, known),
            timeout_of(given),
        )


def _address(uri: str, known: Mapping[str, str]) -> tuple[str, bool]:
    """URL of the NameNodes, and whether it is a single one."""
    parts = urlsplit(uri)
    scheme, authority = parts.scheme.lower(), parts.netloc
    if not authority:
        default = urlsplit(known.get("fs.defaultFS", ""))
        if default.scheme != scheme or not default.netloc:
            raise ConfigError(
                f"{uri} names no NameNode, and fs.defaultFS is {known.get('fs.defaultFS', 'not set')!r}. Write "
                f"{scheme}://namenode{parts.path}, or set HADOOP_CONF_DIR to the folder of core-site.xml."
            )
        authority = default.netloc
    if scheme == "viewfs":
        return f"{scheme}://{authority}", False
    host, _, port = authority.rpartition("@")[2].partition(":")
    if not port and f"dfs.ha.namenodes.{host}" in known:
        return f"{scheme}://{host}", False
    if port and not (port.isdigit() and 0 < int(port) < 1 << 16):
        raise ConfigError(f"{uri} names the port {port!r} of a NameNode; expected a number up to 65535.")
    return f"{scheme}://{host}:{port or _PORT}", True


def _name_nodes(url: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Addresses of the NameNodes behind a URL; empty if the settings do not contain them."""
    scheme, _, authority = url.partition("://")
    if scheme == "viewfs":
        return ()
    host, _, port = authority.rpartition("@")[2].partition(":")
    if port:
        return (f"{host}:{port}",)
    names = known.get(f"dfs.ha.namenodes.{host}", "").split(",")
    found = (known.get(f"dfs.namenode.rpc-address.{host}.{name.strip()}") for name in names)
    return tuple(address for address in found if address and "$" not in address)


def _read_files(config_dir: str | None) -> dict[str, str]:
    home = os.environ.get("HADOOP_HOME")
    folder = config_dir or os.environ.get("HADOOP_CONF_DIR") or (home and f"{home}/etc/hadoop")
    found: dict[str, str] = {}
    for name in ("core-site.xml", "hdfs-site.xml") if folder else ():
        file = Path(str(folder), name)
        if not file.exists():
            continue
        try:
            properties = ElementTree.parse(file).getroot().iter("property")
        except (ElementTree.ParseError, OSError) as error:
            raise ConfigError(f"Hadoop's configuration file {file} cannot be read: {error}.") from error
        for one in properties:
            key, value = one.findtext("name"), one.findtext("value")
            if key and value:
                found[key.strip()] = value.strip()
    return {key: _REFERENCE.sub(lambda match: found.get(match[1], match[0]), value) for key, value in found.items()}


def _umask(text: str) -> int:
    try:
        return int(text, 8) & 0o777
    except ValueError:
        raise ConfigError(
            f"fs.permissions.umask-mode={text} is not supported; write it in octal digits, such as 022."
        ) from None


def _size(key: str, known: Mapping[str, str]) -> int | None:
    text = known.get(key)
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{key}={text} is not a number.")
    return int(match[1]) << (10 * "kmgtpe".index(match[2].lower()) + 10 if match[2] else 0)

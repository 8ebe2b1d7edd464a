"""Certificates for servers of this machine, made by OpenSSL: an authority, a server's certificate and a client's."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Certificates", "make_certificates"]

_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


@dataclass(frozen=True)
class Certificates:
    """PEM files.

    Attributes:
        authority: the certificate that signs the others.
        server: certificate and key for ``localhost`` and 127.0.0.1.
        client: certificate and key.
        elsewhere: certificate and key of a server with another name.
        stranger: another authority, which signs none of them.
    """

    authority: Path
    server: Path
    client: Path
    elsewhere: Path
    stranger: Path


def make_certificates(folder: Path) -> Certificates:
    """Make them in a folder."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def authority(name: str) -> Path:
        key, path = folder / f"{name}.key", folder / f"{name}.pem"
        made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"]
        openssl("req", "-x509", *made, "-keyout", key, "-out", path, "-subj", f"/CN={name}")
        return path

    def signed(name: str, names: str) -> Path:
        key, request, path = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.crt"
        made = ["-newkey", "rsa:2048", "-nodes", "-addext", names]
        openssl("req", "-new", *made, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        by = ["-CA", root, "-CAkey", folder / "authority.key", "-CAcreateserial"]
        openssl("x509", "-req", "-in", request, *by, "-days", "30", "-copy_extensions", "copy", "-out", path)
        both = folder / f"{name}.pem"
        both.write_text(key.read_text() + path.read_text())
        return both

    root = authority("authority")
    names = {"server": _NAMES, "client": "subjectAltName=DNS:client", "elsewhere": "subjectAltName=DNS:elsewhere.test"}
    made = {name: signed(name, value) for name, value in names.items()}
    return Certificates(root, made["server"], made["client"], made["elsewhere"], authority("stranger"))

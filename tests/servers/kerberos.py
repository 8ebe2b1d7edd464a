"""A key distribution centre of Kerberos: Hadoop's ``MiniKdc``, in the process of a test's HDFS.

The realm's ``krb5.conf`` is set for that JVM. Other processes find it by ``KRB5_CONFIG``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["KDC_JARS", "KDC_JVM", "Kdc"]

KDC_JARS = ("org.apache.hadoop:hadoop-minikdc:3.3.4",)
KDC_JVM = ("--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",)


class Kdc:
    """A running centre.

    Args:
        gateway: py4j's to the JVM.
        folder: for its data.

    Attributes:
        config: path of ``krb5.conf``.
        realm: for example ``EXAMPLE.COM``.
    """

    def __init__(self, gateway: Any, folder: Path) -> None:
        self._gateway, self._folder = gateway, folder
        folder.mkdir()
        server = gateway.jvm.org.apache.hadoop.minikdc.MiniKdc
        self._kdc = server(server.createConf(), self._file(folder))
        self._kdc.start()
        self.config, self.realm = str(self._kdc.getKrb5conf().getPath()), str(self._kdc.getRealm())

    def keytab(self, name: str, *principals: str) -> Path:
        """A keytab with new principals, such as ``hdfs/localhost``."""
        file = self._folder / f"{name}.keytab"
        names = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(principals))
        for number, principal in enumerate(principals):
            names[number] = principal
        self._kdc.createPrincipal(self._file(file), names)
        return file

    def ticket_cache(self, name: str, principal: str, keytab: Path) -> Path:
        """A ticket cache as ``kinit -k`` makes one."""
        client = self._gateway.jvm.org.apache.kerby.kerberos.kerb.client.KrbClient(self._file(Path(self.config).parent))
        client.init()
        file = self._folder / f"{name}.cache"
        client.storeTicket(client.requestTgt(f"{principal}@{self.realm}", self._file(keytab)), self._file(file))
        return file

    def _file(self, path: Path) -> Any:
        return self._gateway.jvm.java.io.File(str(path))

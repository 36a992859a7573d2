"""A Kerberos realm of its own: MIT's KDC as a process in a folder, its principals and keytabs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from mirror_lib.features.demo.ports import LOOPBACK, free_ports

#: Debian keeps the server's programs where users do not look.
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))
_SECONDS = 60.0

_KRB5_CONF = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_realm = false
    dns_lookup_kdc = false
    rdns = false
    dns_canonicalize_hostname = false
    udp_preference_limit = 1
    ticket_lifetime = 1h
[realms]
    {realm} = {{
        kdc = {host}:{port}
    }}
[domain_realm]
    {host} = {realm}
"""
_KDC_CONF = """\
[kdcdefaults]
    kdc_ports = ""
    kdc_tcp_listen = {host}:{port}
    kdc_listen = ""
[realms]
    {realm} = {{
        database_name = {folder}/principal
        acl_file = {folder}/kadm5.acl
        key_stash_file = {folder}/stash
        max_life = 1h
        supported_enctypes = aes256-cts-hmac-sha1-96:normal
    }}
[logging]
    kdc = FILE:{folder}/kdc.log
"""


class Realm:
    """One realm, on a free port of this machine. Use as a context manager."""

    def __init__(self, name: str, folder: Path) -> None:
        """Nothing starts yet.

        Args:
            name: in capitals, by custom.
            folder: an empty one.
        """
        self.name = name
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def krb5_conf(self) -> Path:
        """What clients and brokers find the realm by."""
        return self._folder / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        """For processes that use MIT's libraries."""
        return {"KRB5_CONFIG": str(self.krb5_conf), "KRB5_KDC_PROFILE": str(self._folder / "kdc.conf")}

    def keytab(self, principal: str) -> Path:
        """A new principal's keytab."""
        path = self._folder / f"{principal.replace('/', '_')}.keytab"
        if not path.exists():
            self._run("kadmin.local", "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    def ticket_cache(self, principal: str) -> Path:
        """A file with a ticket of a principal, as `kinit` makes it."""
        path = self._folder / f"{principal.replace('/', '_')}.cache"
        self._run("kinit", "-c", f"FILE:{path}", "-k", "-t", str(self.keytab(principal)), principal)
        return path

    def forget(self, principal: str) -> None:
        """Delete a principal; its keytab stays where it is."""
        self._run("kadmin.local", "-q", f"delprinc -force {principal}")

    def __enter__(self) -> Self:
        (port,) = free_ports(1)
        self._folder.mkdir(parents=True, exist_ok=True)
        names = {"realm": self.name, "host": LOOPBACK, "port": port, "folder": self._folder}
        self.krb5_conf.write_text(_KRB5_CONF.format(**names), encoding="ascii")
        (self._folder / "kdc.conf").write_text(_KDC_CONF.format(**names), encoding="ascii")
        self._run("kdb5_util", "create", "-s", "-W", "-P", "of-the-database", "-r", self.name)
        self._process = subprocess.Popen(
            [_program("krb5kdc"), "-n", "-r", self.name],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait(port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_SECONDS)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((LOOPBACK, port)) == 0:
                    return
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                log = self._folder / "kdc.log"
                said = log.read_text(errors="replace") if log.exists() else "nothing was logged"
                raise RuntimeError(f"the KDC did not start: {said}")
            time.sleep(0.05)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(program), *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    if found is None:
        raise RuntimeError(f"{name} is missing: apt-get install krb5-kdc krb5-admin-server krb5-user")
    return found

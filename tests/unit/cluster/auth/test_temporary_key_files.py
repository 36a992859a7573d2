"""A client's private key lies on disk for a moment, since Python reads keys from files only: for its owner alone."""

from __future__ import annotations

import ssl
import stat
import tempfile
from pathlib import Path

import pytest

from mirror_lib.cluster.auth.keystores import KeyPair
from mirror_lib.cluster.auth.tls import Tls
from tests.support.security.pki import Certified


def test_the_key_is_encrypted_readable_by_its_owner_alone_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Certified.root("Root").issue("client")
    found: list[tuple[int, int, bytes]] = []

    class Looking(ssl.SSLContext):
        def load_cert_chain(self, certfile: Path, *given: object, **more: object) -> None:  # type: ignore[override]
            path = Path(certfile)
            modes = (stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent))
            found.append((*modes, path.read_bytes()))  # type: ignore[arg-type]
            super().load_cert_chain(certfile, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl, "create_default_context", lambda **_: Looking(ssl.PROTOCOL_TLS_CLIENT))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    Tls(client=KeyPair(client.chain_pem, client.key_pem())).context()

    ((mode, folder_mode, content),) = found
    assert (mode, folder_mode) == (0o600, 0o700)
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in content
    assert list(tmp_path.iterdir()) == []

"""A private key that was pasted without joining its lines is told as one mistake, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.loader import InvalidConfigurationError, check, load

_HEAD = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
_KEY = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "ggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyji", "WA4R4/M2bS1G==")
_PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *_KEY, "-----END PRIVATE KEY-----"])


def test_a_key_over_several_lines_is_one_mistake(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for before in ["A.ssl.keystore.key = ", "A.ssl.keystore.key =\n", ""]:
        with subtests.test(before):
            path = tmp_path / "mirror.properties"
            path.write_text(f"{_HEAD}{before}{_PEM}\nnonsense = 1\n")

            with pytest.raises(InvalidConfigurationError) as caught:
                load(path)

            assert [problem.line for problem in caught.value.problems] == [
                5 + before.count("\n"),
                10 + before.count("\n"),
            ]
            assert not [
                piece for piece in _KEY if piece.rstrip("=") in repr((str(caught.value), caught.value.attributes()))
            ]


def test_a_key_whose_lines_are_joined_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "mirror.properties"
    joined = _PEM.replace("\n", "\\n\\\n  ")
    path.write_text(f"{_HEAD}A.ssl.keystore.key = {joined}\nB.client.id = x\n")

    assert check(path) == ()

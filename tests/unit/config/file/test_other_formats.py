"""Files of another format are told in one sentence, whatever they hold."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from mirror_lib.config.file.other_formats import CONFIGURATION_BYTES, foreign_format
from mirror_lib.config.loader import check
from mirror_lib.config.model import Severity

PLAIN = b"clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"
CONNECTOR = b'{"name": "mm2", "config": {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}}'


def test_another_format_is_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for data, what, todo in [
        (CONNECTOR, "a Connect connector (JSON)", "mirror config import"),
        (b"\xef\xbb\xbf" + CONNECTOR, "a Connect connector (JSON)", "mirror config import"),
        (CONNECTOR[:-1], "malformed JSON", "mirror config import"),
        (b'{"clusters": "A,B"}', "JSON", "name = value"),
        (b"name = m\nconnector.class = x.MirrorSourceConnector\ntopics = .*\n", "Connect connector", "config import"),
        (
            b"apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaMirrorMaker2\nspec:\n  clusters:\n  - alias: a\n",
            "KafkaMirrorMaker2",
            "mirror config import",
        ),
        (
            b"  apiVersion: kafka.strimzi.io/v1\n  kind: KafkaMirrorMaker2\n  spec:\n    clusters:\n    - alias: a\n",
            "KafkaMirrorMaker2",
            "mirror config import",
        ),
        (b"services:\n  kafka:\n    image: apache/kafka\n", "YAML", "properties file"),
        (b"{{- if .Values.mm2 }}\n" + PLAIN + b"{{- end }}\n", "a template", "helm template"),
        (b'resource "aws_msk_cluster" "a" {\n  name = "x"\n}\n', "Terraform", "terraform apply"),
        (b"<?xml version='1.0'?>\n<configuration/>", "XML", "properties file"),
        (gzip.compress(PLAIN, mtime=0), "compressed by gzip", "unpacked"),
        (b"-----BEGIN CERTIFICATE-----\nMII=\n", "a certificate or key", "properties file"),
        (b"\x00\x01\x02", "binary", "properties file"),
        (PLAIN * (CONFIGURATION_BYTES // len(PLAIN) + 1), "larger than 10 MiB", "properties file"),
    ]:
        with subtests.test(what):
            file = tmp_path / "mirror.properties"
            file.write_bytes(data)

            (told,) = check(file)

            assert told.severity is Severity.ERROR
            assert what in told.message
            assert todo in (told.suggestion or "")


def test_a_properties_file_is_read_as_one() -> None:
    for data in [
        PLAIN,
        PLAIN.replace(b"\n", b"\r\n"),
        b"# kind: KafkaMirrorMaker2\n" + PLAIN,
        b"clusters: A, B\nA.bootstrap.servers: a:1\n",
        PLAIN + b"A->B.topics = {{ topics }}\n",
        PLAIN + b"connector.class = x\n",
        "clusters = A, B\n".encode("utf-16"),
        b"",
    ]:
        assert foreign_format(data) is None, data

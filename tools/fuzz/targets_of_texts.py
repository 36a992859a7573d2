"""Files that users and other programs write: properties, logins, key stores, checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from mirror_lib.cluster.auth.jaas import parse_jaas
from mirror_lib.cluster.auth.keystores import KeystoreError, read_keystore, read_pem_key, read_truststore
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.loader import InvalidConfigurationError, load
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.mirror_maker1 import MirrorMaker1, import_mirror_maker_1
from mirror_lib.features.translate.spark_checkpoint import OffsetLog, parse_initial_offsets
from tools.fuzz.model import Target, Wrong
from tools.fuzz.mutation import WORDS, mutated

_PASSWORD = "changeit"
_PROPERTIES = rb"""
# A comment
clusters = berlin, cloud
berlin.bootstrap.servers = localhost:9092
cloud.bootstrap.servers : localhost:9093
cloud.security.protocol=SASL_SSL
cloud.sasl.mechanism=SCRAM-SHA-512
cloud.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="ann" password="a\\"b\u00e9";
berlin->cloud.enabled = true
berlin->cloud.topics = orders.*, [a-z]+\\.events
berlin->cloud.groups = .*
berlin->cloud.topics.exclude = .*[\\-.]internal
replication.factor = 1
mirror.schedule = 5m
tasks.max = 4
mirror.poison.policy = quarantine
emit.heartbeats.interval.seconds = 5
berlin->cloud.sync.topic.acls.enabled = false
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
cloud.client.id = ${env:PATH}
"""

#: They find no values, which is reported.
_PROVIDERS = rb"""config.providers = env, file, dir
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.dir.class = org.apache.kafka.common.config.provider.DirectoryConfigProvider
berlin.client.id = ${file:/nowhere/secrets:berlin}
berlin.client.rack = ${dir:/nowhere:rack}
"""


def _text(valid: bytes, random: Random) -> bytes:
    """Return damaged bytes, or lines in another order with other words."""
    if random.random() < 0.5:
        return mutated(valid, random)
    lines = valid.split(b"\n")
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(len(lines))
        line = lines[at]
        cut = random.randrange(len(line) + 1)
        lines[at] = line[:cut] + random.choice((*WORDS, random.choice(lines))) + line[cut:]
    if random.random() < 0.3:
        random.shuffle(lines)
    return b"\n".join(lines)


class Properties(Target):
    """Properties files as a format."""

    name = "properties"
    what = "properties files, as a format"

    def make(self, random: Random) -> bytes:
        """Return a damaged file."""
        return _text(_PROPERTIES, random)

    def run(self, data: bytes) -> str:
        """Check that nothing is raised: an error is a problem with its line."""
        found = parse_properties(data)
        lines = data.count(b"\n") + data.count(b"\r") + 1
        if any(not 1 <= entry.line <= lines for entry in found.entries):
            raise Wrong("an entry stands on no line")
        return f"{'some' if found.entries else 'no'} entries, {min(len(found.problems), 5)} problems"


class Configurations(Target):
    """The whole configuration: every rule of every key."""

    name = "configurations"
    what = "configuration files with all their rules"
    errors = (InvalidConfigurationError,)
    weight = 0.5

    def make(self, random: Random) -> bytes:
        """Return a damaged file."""
        return _text(random.choice((_PROPERTIES, _PROPERTIES + _PROVIDERS)), random)

    def run(self, data: bytes) -> str:
        """Load the file; all its problems are reported at once."""
        file = _folder() / "mirror.properties"
        file.write_bytes(data)
        return f"{len(load(file).flows)} flows"


@cache
def _folder() -> Path:
    keeper = tempfile.TemporaryDirectory(prefix="mirror-fuzz-files-")
    _KEPT.append(keeper)
    return Path(keeper.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


class OldSettings(Target):
    """Files of MirrorMaker 1, to be converted."""

    name = "mirror-maker-1"
    what = "settings of MirrorMaker 1, to be imported"
    errors = (ConfigurationError,)
    _consumer = b"bootstrap.servers=old:9092\ngroup.id=mm1\nauto.offset.reset=earliest\nfetch.min.bytes=1\nx.y=z\n"
    _producer = (
        b'bootstrap.servers=new:9092\nacks=all\ncompression.type=lz4\nlinger.ms=5\nsasl.jaas.config=a b c="d";\n'
    )
    _include = "orders|payments.*,a\\.b"

    def make(self, random: Random) -> bytes:
        """Return three parts with NUL bytes between."""
        parts = [self._consumer, self._producer, self._include.encode()]
        at = random.randrange(3)
        parts[at] = _text(parts[at], random)
        return b"\0".join(parts)

    def run(self, data: bytes) -> str:
        """Check that the output can be loaded."""
        consumer, producer, include = ([*data.split(b"\x00", 2), b"", b""])[:3]
        old = MirrorMaker1(consumer, producer, include.decode("utf-8", "surrogateescape"))
        made = import_mirror_maker_1(old, source="old", target="new")
        errors = [
            each for each in parse_properties(made.text.encode("ascii")).problems if each.severity.value == "error"
        ]
        if errors:
            raise Wrong(f"the new file cannot be read: {errors[0].message}")
        return f"{min(len(made.remarks), 5)} remarks"


class Logins(Target):
    """`sasl.jaas.config`."""

    name = "jaas"
    what = "sasl.jaas.config"
    errors = (ValueError,)
    _valid = (
        b'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="a\\"b\\101";',
        b"com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true /* c */ keyTab='/k' // x\n debug=true;",
    )

    def make(self, random: Random) -> bytes:
        """Return a damaged login."""
        return _text(random.choice(self._valid), random)

    def run(self, data: bytes) -> str:
        """Parse it to one module."""
        return f"{min(len(parse_jaas(data.decode('utf-8', 'replace')).options), 4)} options"


class Keystores(Target):
    """JKS, PKCS12 and PEM."""

    name = "keystores"
    what = "key and trust stores: JKS, PKCS12, PEM"
    errors = (KeystoreError,)
    weight = 0.3

    def make(self, random: Random) -> bytes:
        """Return a damaged store."""
        return mutated(random.choice(_stores()), random, _stores())

    def run(self, data: bytes) -> str:
        """Read it as a trust store, as a key store, and as PEM."""
        found = []
        readers: tuple[Callable[[], object], ...] = (
            lambda: read_truststore(data, _PASSWORD),
            # Without a password a JKS store has no integrity check.
            lambda: read_truststore(data, None),
            lambda: read_keystore(data, _PASSWORD, None),
            lambda: read_pem_key(data.decode("latin-1"), data.decode("latin-1"), _PASSWORD),
        )
        for name, read in zip(("trust", "trust unchecked", "key", "PEM"), readers, strict=True):
            try:
                read()
                found.append(name)
            except KeystoreError:
                pass
        return f"readable as {', '.join(found) or 'nothing'}"


@cache
def _stores() -> tuple[bytes, ...]:
    """Return stores made by keytool 17 and by Python, all with the password of `_PASSWORD`; nothing trusts them."""
    return tuple(file.read_bytes() for file in sorted((Path(__file__).parent / "stores").iterdir()))


class Checkpoints(Target):
    """Offset files of Spark structured streaming."""

    name = "spark-checkpoints"
    what = "offset files of Spark checkpoint folders"
    errors = (ValueError,)
    _metadata = b'{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}'
    _valid = (
        b"v1\n" + _metadata + b'\n{"orders":{"0":100,"1":-2}}\n-',
        b"v2\n" + _metadata + b'\nname:{"orders":{"0":100,"1":-2}}',
        b'\x00\x00\x00\x02v1\n{"orders":{"0":100}}',
        b'v1\n{"orders":{"0":100}}',
    )

    def make(self, random: Random) -> bytes:
        """Return a damaged file."""
        return _text(random.choice(self._valid), random)

    def run(self, data: bytes) -> str:
        """Parse, serialize and compare."""
        try:
            return f"{len(parse_initial_offsets(data))} initial offsets"
        except ValueError:
            log = OffsetLog.parse(data.decode())
        if OffsetLog.parse(str(log)).sources != log.sources:
            raise Wrong("a checkpoint was not read as it was written")
        return f"version {log.version}"


TARGETS = (Properties(), Configurations(), OldSettings(), Logins(), Keystores(), Checkpoints())

"""What `./run security` tries and how it judges it."""

from __future__ import annotations

from tools.security.__main__ import parse_arguments
from tools.security.ways import WAYS


def test_every_protocol_and_mechanism_that_kafka_secures_is_a_way() -> None:
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
    over = [f"{mechanism} over {protocol}" for mechanism in mechanisms for protocol in ("SASL_PLAINTEXT", "SASL_SSL")]
    assert [way.name for way in WAYS] == ["SSL", "mutual TLS", *over]

    some = parse_arguments(["--mechanisms", "mutual, plain"]).mechanisms
    assert [way.name for way in some] == ["mutual TLS", "PLAIN over SASL_PLAINTEXT", "PLAIN over SASL_SSL"]

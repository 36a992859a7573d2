"""Security settings that `mirror config check` finds without a cluster."""

from __future__ import annotations

import json
from dataclasses import replace

from typer.testing import CliRunner

from mirror_lib.cli.main import app
from tests.support.config_files import TWO_CLUSTERS, ConfigFile

LOGIN = 'sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'


def errors(file: ConfigFile, *lines: str) -> list[tuple[str | None, str, str | None]]:
    return [(each.key, each.message, each.suggestion) for each in file.errors("\n".join(lines))]


def test_given_a_java_class_for_the_login_then_the_error_names_key_and_way_out(file: ConfigFile) -> None:
    ((key, message, suggestion),) = errors(
        file,
        "A.security.protocol = SASL_SSL",
        "A.sasl.mechanism = OAUTHBEARER",
        f"A.{LOGIN}",
        "A.sasl.login.callback.handler.class = com.example.Handler",
    )
    assert key == "A.sasl.login.callback.handler.class"
    assert message == "A.sasl.login.callback.handler.class: the Java class com.example.Handler cannot run here"
    assert suggestion.startswith("log in with client credentials")


def test_given_a_mechanism_that_is_not_spoken_then_those_that_are_get_listed(file: ConfigFile) -> None:
    ((key, message, suggestion),) = errors(
        file, "B.security.protocol = SASL_SSL", "B.sasl.mechanism = DIGEST-MD5", f"B.{LOGIN}"
    )
    assert (key, message) == ("B.sasl.mechanism", "B.sasl.mechanism=DIGEST-MD5 is not supported")
    assert suggestion == "use one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM"


def test_given_versions_or_suites_that_cannot_be_spoken_then_the_error_names_the_setting(file: ConfigFile) -> None:
    versions = ["A.security.protocol = SSL", "A.ssl.enabled.protocols = TLSv1.4"]
    suites = ["A.security.protocol = SSL", "A.ssl.enabled.protocols = TLSv1.2", "A.ssl.cipher.suites = TLS_NONE"]
    for lines, key in ((versions, "A.ssl.enabled.protocols"), (suites, "A.ssl.cipher.suites")):
        ((found, said, suggestion),) = errors(file, *lines)
        assert (found, suggestion) == (key, "use others, or remove the setting")
        assert "is unknown" in said, key


def test_given_a_setting_or_flow_without_effect_then_nothing_is_wrong(file: ConfigFile) -> None:
    for lines in [
        # TLS is not supported, so its settings do not count; neither do those of a flow that is switched off.
        ["A.security.protocol = SASL_PLAINTEXT", f"A.{LOGIN}", "A.ssl.engine.factory.class = com.example.Engine"],
        ["A.security.protocol = SSL", "A.sasl.login.class = com.example.Login"],
        ["A.ssl.provider = BCJSSE"],
        ["A.ssl.enabled.protocols = TLSv1.4"],
        ["A.security.protocol = SSL", "A.ssl.protocol = TLSv1.3", "A.ssl.provider ="],
    ]:
        assert errors(file, *lines) == [], lines

    lines = ["A.security.protocol = SSL", "A.ssl.provider = BCJSSE"]
    assert len(errors(file, *lines)) == 1
    off = replace(file, base=TWO_CLUSTERS.replace("enabled = true", "enabled = false"))
    assert errors(off, *lines) == []


def test_given_kerberos_where_the_client_has_none_then_the_command_warns_with_the_cluster(file: ConfigFile) -> None:
    errors(
        file,
        "A.security.protocol = SASL_SSL",
        "A.sasl.kerberos.service.name = kafka",
        "A.sasl.jaas.config = com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;",
    )

    result = CliRunner().invoke(app, ["config", "check", str(file.path), "--json"])

    told = json.loads(result.stdout)
    assert (result.exit_code, told["errors"]) == (0, 0)
    messages = [problem["message"] for problem in told["problems"]]
    assert any(message.startswith("A: sasl.mechanism=GSSAPI will fail on this machine") for message in messages)

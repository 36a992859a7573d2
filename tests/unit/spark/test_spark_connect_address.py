"""Where a Spark Connect server is, as people write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import ConfigurationError, SparkUnreachableError
from mirror_lib.features.demo.ports import free_ports
from mirror_lib.spark.connect_server import ConnectAddress, is_connect, shared_session_id


def test_an_address_is_read_as_spark_reads_it_and_shown_without_its_token() -> None:
    options = {"use_ssl": "true", "token": "a b"}
    for text, host, port, parameters in (
        ("sc://localhost", "localhost", 15002, {}),
        ("sc://spark.example:443/;use_ssl=true;token=a%20b", "spark.example", 443, options),
        ("sc://[::1]:7/", "::1", 7, {}),
    ):
        address = ConnectAddress.parse(text)
        assert (address.host, address.port, dict(address.parameters)) == (host, port, parameters)

    address = ConnectAddress.parse("sc://h:1/;token=hush")
    assert str(address) == "sc://h:1"
    assert "hush" in address.url


def test_what_is_no_address_is_refused_without_being_repeated() -> None:
    for text in ("", "localhost:15002", "http://h", "sc://", "sc://h/path", "sc://h:x", "sc://h/;token", "sc://u@h"):
        with pytest.raises(ConfigurationError) as refused:
            ConnectAddress.parse(f"{text};token=a=b" if text else text)
        assert "a=b" not in str(refused.value), text
    # Before Spark sees it.
    with pytest.raises(ConfigurationError, match="session_id"):
        ConnectAddress.parse("sc://h/;session_id=mine")


@given(st.dictionaries(st.sampled_from(["token", "user_id", "x"]), st.text(min_size=1), max_size=3))
def test_an_address_survives_being_written(parameters: dict[str, str]) -> None:
    address = ConnectAddress("h", 15002).with_parameters(**parameters)

    assert ConnectAddress.parse(address.url).url == address.url


def test_only_its_scheme_makes_a_master_a_server() -> None:
    assert is_connect("sc://h")
    assert not is_connect("spark://h:7077")
    assert not is_connect("local[*]")


def test_runs_of_a_week_share_a_session_until_it_was_closed() -> None:
    monday, sunday = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 8, tzinfo=UTC)
    first = shared_session_id("1", 0, monday)

    assert shared_session_id("1", 0, sunday) == first
    others = {
        shared_session_id("1", 1, monday),
        shared_session_id("2", 0, monday),
        shared_session_id("1", 0, datetime(2026, 3, 9, tzinfo=UTC)),
    }
    assert len({first, *others}) == 4


def test_nobody_waits_for_a_server_that_is_not_there() -> None:
    with pytest.raises(SparkUnreachableError, match="no response from"):
        ConnectAddress("127.0.0.1", free_ports(1)[0]).require_listener()

"""A log at `DEBUG` has the requests of a connection, but for those of its login."""

from __future__ import annotations

import logging

import pytest
from aiokafka.protocol.admin import SaslAuthenticateRequest_v1, SaslAuthenticateResponse_v1
from aiokafka.protocol.metadata import MetadataRequest

from mirror_lib.cluster.raw.handshake import hide_logins

_LOGGER = logging.getLogger("aiokafka.conn")


@pytest.fixture(autouse=True)
def _hidden(caplog: pytest.LogCaptureFixture) -> None:
    hide_logins()
    caplog.set_level(logging.DEBUG, logger=_LOGGER.name)


def test_the_password_of_a_login_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    request = SaslAuthenticateRequest_v1(b"\0mirror\0bear")
    assert "bear" in repr(request)

    # As `AIOKafkaConnection.send` writes it.
    _LOGGER.debug("Request to %s:%d %d: %s", "berlin", 9092, 1, request)
    _LOGGER.debug("Response %d: %s", 1, SaslAuthenticateResponse_v1(0, None, b"token", 0))

    assert caplog.messages == []


def test_everything_else_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    _LOGGER.debug("Request to %s:%d %d: %s", "berlin", 9092, 1, MetadataRequest([]))
    _LOGGER.debug("Closing connection")

    assert len(caplog.messages) == 2


def test_hiding_twice_hides_once() -> None:
    hide_logins()
    assert len([each for each in _LOGGER.filters if type(each).__name__ == "_NoLogins"]) == 1

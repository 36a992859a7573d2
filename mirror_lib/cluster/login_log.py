"""aiokafka's log without logins: at `DEBUG` it writes every request, with PLAIN's password and OAuth's token."""

from __future__ import annotations

import logging

_LOGGER = "aiokafka.conn"
_LOGIN = "SaslAuthenticate"


class _NoLogins(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        given = record.args if isinstance(record.args, tuple) else ()
        return not any(type(each).__name__.startswith(_LOGIN) for each in given)


def hide_logins() -> None:
    """From now on lines with the messages of a login are left out, whoever has switched `DEBUG` on."""
    logger = logging.getLogger(_LOGGER)
    if not any(isinstance(each, _NoLogins) for each in logger.filters):
        logger.addFilter(_NoLogins())

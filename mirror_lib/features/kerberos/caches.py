"""Ticket caches of Kerberos by their names, and whose they are.

MIT's library and Java use any cache that they can read: in /tmp another user may create the default one first, and this
user's records would be written in that user's name.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.private_files import refuse_foreign, without_foreign_links


def own_file_of_cache(name: str, where: Where) -> Path | None:
    """The file of a ticket cache; None if it does not exist, and for caches that are no single file.

    Raises:
        ConfigurationError: another user has made it or its folder, may change it, or has not shared it.
    """
    kind, colon, rest = name.partition(":")
    if not colon:
        kind, rest = "FILE", name
    if kind not in ("FILE", "DIR"):
        # The kernel and daemons give a process its own user's caches only.
        return None
    path = Path(rest.removeprefix(":") if kind == "DIR" else rest)
    try:
        real = without_foreign_links(path)
        for each in (real, *real.parents):
            refuse_foreign(each)
        found = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    else:
        is_own = found.st_uid in (0, os.geteuid())
        if not is_own and not found.st_mode & (stat.S_IRGRP | stat.S_IROTH):
            # Root can read it all the same.
            reason = "it belongs to another user, who has not shared it"
        elif found.st_mode & stat.S_IWOTH:
            # Also of a folder like /tmp: its file `primary` names the cache that is used.
            reason = "all users may change it"
        else:
            return path if kind == "FILE" else None
    raise ConfigurationError(
        f"the ticket cache {path} is not used: {reason}.",
        where=where,
        action="Set ticketCache in sasl.jaas.config, or KRB5CCNAME in the environment, to a cache that the user of "
        "this process has made (`kinit -c FILE:/path`), in a folder that no other user may write.",
    )

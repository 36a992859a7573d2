"""Masks secrets in URLs, addresses and connection strings; the only function for this.

A list of secret names always misses some, so only parts of URLs that are known to be harmless are shown. Connection
strings without a scheme (JDBC, ADO, libpq) have no form that could be told from other texts: there the names count. All
expressions here take linear time: they have no two unbounded repetitions that could match the same characters.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "[hidden]"

#: The first sign of parameters or of a fragment.
_MORE = re.compile(r"[?#;]")
#: Parameters in a text that is no URL, such as `host:8081?x=y`; patterns of topics have no such names.
_NAMED = re.compile(r"[?&#][\w.\-%]+=")
_PARTS = re.compile(r"([?&;#])")
#: Parameters of addresses of databases, Spark Connect, registries and identity providers that never hold a secret.
_HARMLESS = frozenset(
    {
        *("api-version", "application_name", "audience", "cache", "channel_binding", "charset", "client_encoding"),
        *("connect_timeout", "database", "dbname", "deleted", "driver", "encoding", "format", "gssencmode", "host"),
        *("hostaddr", "keepalives", "keepalives_idle", "load_balance_hosts", "mode", "normalize", "pool_timeout"),
        *("port", "prepare_threshold", "resource", "schema", "sslcert", "sslkey", "sslmode", "sslrootcert", "subject"),
        *("target_session_attrs", "timeout", "timezone", "uri", "use_ssl", "user", "user_agent", "user_id", "verbose"),
        "version",
    }
)
_PLAIN_VALUE = re.compile(r"[\w.,:/\-]{0,120}")
#: The folder into which Spark unpacks an archive.
_ARCHIVE = re.compile(r"\.(?:zip|tar|tgz|tar\.gz|jar|egg|pex)\Z")
_FOLDER = re.compile(r"[A-Za-z_]{1,40}")
#: The name of a user of a database is shown; elsewhere it may be a token.
_WITH_USER = re.compile(r"(?:\A|[^A-Za-z0-9])(?:postgres(?:ql)?|mysql|mariadb|oracle|mssql)(?:\+[a-z0-9_]{1,20})?\Z")
_NAME = re.compile(r"[\w.\-]{1,64}")
#: An `@` of no address: Kafka's principals with a realm of Kerberos, and offsets (`orders:3@1234`).
_OTHER_AT = re.compile(
    r"\b(?:User|Group):[\w.\-/]{1,100}@(?![\w.\-]{1,255}:)|(?<![\w.\-:/@])[\w.\-]{1,249}:[0-9]{1,10}@[0-9]{1,19}(?![\w.\-:@/])"
)
#: The name of a secret and the sign before its value: `Password=x`, `"api_key": "x"`, `pwd =x`, `client-secret: x`.
_NAMED_SECRET = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|jaas|user\.?info|assertion|signature"
    r"|(?:access|account|api|private|shared|signing|encryption|master)[ _.\-]?key"
    r"|(?<![A-Za-z])(?:pass|pw|sas|sig|auth(?:orization)?))"
    r"[\w.\-]{0,40}[\"'`\])]{0,3}[ \t]{0,10}(?:=|:(?!//))",
    re.IGNORECASE,
)
#: Decodings of a text that was percent-encoded again and again.
_MOST_DECODINGS = 4
_ONE_SCHEME = re.compile(r"(?:jdbc:)?[a-z][a-z0-9+.\-]{0,40}")
_AUTHORITY = "://"


def masked_urls(text: str) -> str:
    """Return a text without user information, and without parameters and fragments that are not known to be harmless.

    A password may contain any character, also blanks, quotes and another `://`: user information begins after the first
    scheme and ends at the last `@`. Without a scheme (`user:password@host:9092`) it begins with the text. All after the
    name of a secret (`;password=`) is hidden, because a value may contain any sign too.
    """
    shown = plain = _masked(text)
    for _ in range(_MOST_DECODINGS):
        decoded = unquote(plain)
        if decoded == plain:
            return shown
        if _masked(decoded) != decoded:
            return HIDDEN
        plain = decoded
    return HIDDEN


def _masked(text: str) -> str:
    named = _NAMED_SECRET.search(text)
    if named is None:
        return _masked_addresses(text)
    before, after = text[: named.end()], text[named.end() :]
    if "@" in after and (":" in before[:-1] or "//" in before):
        # Either the value or the user information has the `@`.
        return HIDDEN
    return _masked_addresses(before).removesuffix(HIDDEN) + HIDDEN


def _masked_addresses(text: str) -> str:
    scheme, authority, rest = text.partition(_AUTHORITY)
    user, at, after = rest.rpartition("@") if authority else text.rpartition("@")
    if authority:
        shown = _masked_addresses(scheme)
        if at:
            # In `user:a://b@host` the sign is a part of the password.
            shown = shown if _ONE_SCHEME.fullmatch(shown) else HIDDEN
            user = _shown_user(scheme, user)
        else:
            after, user = rest, ""
        return shown + authority + user + at + _AUTHORITY.join(map(_masked_piece, after.split(_AUTHORITY)))
    if (":" in user or "//" in user) and text.count("@") > len(_OTHER_AT.findall(text)):
        return HIDDEN + at + _masked_addresses(after)
    return _masked_piece(text) if _NAMED.search(text) else text


def masked_addresses(text: str) -> str:
    """Return the text of `bootstrap.servers`; no address has user information, so all before an `@` is hidden."""
    _, at, rest = text.rpartition("@")
    if at and _NAMED_SECRET.search(text):
        return HIDDEN
    return (HIDDEN + at if at else "") + masked_urls(rest)


def _shown_user(scheme: str, user: str) -> str:
    name, colon, _ = user.partition(":")
    return f"{name}:{HIDDEN}" if colon and _WITH_USER.search(scheme[-60:]) and _NAME.fullmatch(name) else HIDDEN


def _masked_piece(piece: str) -> str:
    """Mask the parameters of a text that has one address at most."""
    found = _MORE.search(piece)
    if found is None:
        return piece
    path, parts = piece[: found.start()], _PARTS.split(piece[found.start() :])[1:]
    shown = path
    if parts[0] == "#" and _FOLDER.fullmatch(parts[1]) and _ARCHIVE.search(path):
        return piece if len(parts) == 2 else f"{path}#{HIDDEN}"
    for sign, part in zip(parts[::2], parts[1::2], strict=True):
        if part and not _is_harmless(part):
            # The rest may be of the same secret: `?password=a&b`.
            return f"{shown}{sign}{HIDDEN}"
        shown += sign + part
    return shown


def is_harmless(name: str, value: str) -> bool:
    """Return True if a parameter of a URL may be shown."""
    return name.lower() in _HARMLESS and _PLAIN_VALUE.fullmatch(value) is not None


def _is_harmless(parameter: str) -> bool:
    name, equals, value = parameter.partition("=")
    return bool(equals) and is_harmless(name, value)

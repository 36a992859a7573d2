"""AWS's Security Token Service on this machine, for botocore (`AWS_ENDPOINT_URL_STS`)."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.support.http_server import Reply, Request, serving

_ASSUMED = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>
<Expiration>{ends}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
_IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>{arn}</Arn><UserId>u</UserId><Account>1</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"""
_REFUSED = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>{message}</Message></Error></ErrorResponse>"""


@dataclass(slots=True)
class Sts:
    """What it gives, and what it was asked."""

    access_key: str
    secret_key: str
    session_token: str
    url: str = ""
    lifetime_seconds: float = 3600.0
    #: Refuses with this message.
    refusal: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)

    def answer(self, form: dict[str, str]) -> tuple[int, str]:
        """Status and body."""
        self.asked.append(form)
        if self.refusal is not None:
            return 403, _REFUSED.format(message=self.refusal)
        if form["Action"] == "GetCallerIdentity":
            return 200, _IDENTITY.format(arn="arn:aws:sts::1:assumed-role/mirror/batch")
        ends = (datetime.now(UTC) + timedelta(seconds=self.lifetime_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return 200, _ASSUMED.format(key=self.access_key, secret=self.secret_key, token=self.session_token, ends=ends)


@contextmanager
def sts(access_key: str, secret_key: str, session_token: str) -> Iterator[Sts]:
    """Run one."""
    running = Sts(access_key, secret_key, session_token)

    def answer(request: Request) -> Reply:
        status, text = running.answer(dict(urllib.parse.parse_qsl(request.body.decode())))
        return Reply(status, text.encode(), {"Content-Type": "text/xml"})

    with serving(answer) as running.url:
        yield running

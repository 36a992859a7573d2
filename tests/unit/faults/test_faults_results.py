"""What a campaign comes to: any finding spoils it, and so does a campaign that did not come to its end."""

from dataclasses import fields

from tools.faults.records.sequences import Findings
from tools.faults.results import Complete, Results, Strike

_NOTHING = Findings()


def _strike(kind: str, findings: Findings = _NOTHING) -> Strike:
    return Strike(kind, True, findings, seconds=2.0, runs=2, recovered=10, recovery_seconds=None)


def _finished(*strikes: Strike, findings: Findings = _NOTHING, input_faults: tuple[str, ...] = ()) -> Results:
    return Results(7, list(strikes), Complete(1000, 1000, findings, input_faults))


def test_any_finding_spoils_it_wherever_it_was_seen() -> None:
    for field in fields(Findings):
        findings = Findings(**{field.name: 1})
        assert not _finished(_strike("cut", findings)).clean, field.name
        assert not _finished(_strike("cut"), findings=findings).clean, field.name


def test_a_campaign_that_did_not_come_to_its_end_proves_nothing() -> None:
    stopped = _finished(_strike("cut"))
    stopped.stopped = "it was interrupted"

    assert not stopped.clean
    assert not Results(7, [_strike("cut")]).clean
    assert not _finished(_strike("cut"), input_faults=("orders-0: ...",)).clean

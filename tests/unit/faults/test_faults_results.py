"""What a campaign comes to, and how it is told."""

import json
from io import StringIO

import pytest
from rich.console import Console

from faults.records.sequences import Findings
from faults.report import print_report, to_json
from faults.results import Complete, Results, Strike

_NOTHING = Findings()


def _strike(kind: str, findings: Findings = _NOTHING, *, recovery: float | None = None) -> Strike:
    return Strike(kind, True, findings, seconds=2.0, runs=2, recovered=10, recovery_seconds=recovery)


def _finished(*strikes: Strike, findings: Findings = _NOTHING, input_faults: tuple[str, ...] = ()) -> Results:
    return Results(7, list(strikes), Complete(1000, 1000, findings, input_faults))


def _printed(results: Results) -> str:
    console = Console(width=140, record=True, file=StringIO())
    print_report(console, results)
    return console.export_text()


def test_a_campaign_without_findings_is_clean() -> None:
    results = _finished(_strike("cut"), _strike("killed", recovery=3.0), _strike("killed", recovery=5.5))

    assert results.clean
    assert [(line.kind, line.tried, line.recovered) for line in results.lines] == [("cut", 1, 10), ("killed", 2, 20)]
    assert [line.recovery_seconds for line in results.lines] == [None, 5.5]


@pytest.mark.parametrize(
    "findings", [Findings(missing=1), Findings(duplicated=1), Findings(out_of_order=1), Findings(altered=1)]
)
def test_any_finding_makes_it_unclean_wherever_it_was_seen(findings: Findings) -> None:
    assert not _finished(_strike("cut", findings)).clean
    assert not _finished(_strike("cut"), findings=findings).clean


def test_a_campaign_that_did_not_come_to_its_end_proves_nothing() -> None:
    stopped = _finished(_strike("cut"))
    stopped.stopped = "it was interrupted"

    assert not stopped.clean
    assert not Results(7, [_strike("cut")]).clean
    assert not _finished(_strike("cut"), input_faults=("orders-0: ...",)).clean


def test_findings_are_shown_beside_their_fault() -> None:
    text = _printed(_finished(_strike("cut", Findings(duplicated=3)), _strike("killed", recovery=16.0)))

    (line,) = (line for line in text.splitlines() if "│ cut" in line)
    assert [cell.strip() for cell in line.split("│")[2:8]] == ["1", "1", "0", "3", "0", "0"]
    assert "goal: 15 s, not reached" in text
    assert "2 faults of 2 kinds, seed 7" in text


def test_an_interrupted_campaign_shows_the_table_so_far() -> None:
    results = Results(7, [_strike("cut")], stopped="it was interrupted; everything is stopped.")

    text = _printed(results)

    assert "│ cut" in text
    assert "it was interrupted" in text
    assert "Not all records were read" in text


def test_the_json_holds_every_fault_and_the_sums() -> None:
    results = _finished(_strike("cut", Findings(missing=2)), _strike("killed", recovery=4.0))

    data = json.loads(json.dumps(to_json(results, {"brokers": 3})))

    assert data["clean"] is False
    assert data["findings"] == {"missing": 2, "duplicated": 0, "out_of_order": 0, "altered": 0}
    assert [strike["kind"] for strike in data["strikes"]] == ["cut", "killed"]
    assert data["complete"]["target_records"] == 1000
    assert data["recovery_seconds"] == 4.0
    assert data["setup"] == {"brokers": 3}

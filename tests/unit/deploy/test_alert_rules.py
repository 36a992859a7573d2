"""Alert rules and dashboard: complete, and about metrics that exist. Prometheus itself: tests/integration/deploy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from mirror_lib.features.audit.metrics_text import METRICS as AUDIT_METRICS
from mirror_lib.features.metrics.exported import METRICS, UNSYNCED
from mirror_lib.offsets.group_standing import GroupReason

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
DASHBOARD = DEPLOY / "grafana" / "mirror.json"
NAME = re.compile(r"\bmirror_[a-z_]+\b")
EXPORTED = {metric.name for metric in (*METRICS, *AUDIT_METRICS)}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def test_every_alert_is_tested_firing_and_not_firing_and_says_what_happened_and_where_its_runbook_is() -> None:
    tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    checks = [check for test in tests for check in test["alert_rule_test"]]
    runbook = (DEPLOY.parent / "docs" / "troubleshooting.md").read_text()

    for alert in alerts():
        name = alert["alert"]
        outcomes = {bool(check["exp_alerts"]) for check in checks if check["alertname"] == name}
        assert outcomes == {True, False}, name
        assert alert["labels"]["severity"] in ("page", "warn"), name
        assert set(alert["annotations"]) == {"summary", "description", "runbook"}, name
        assert alert["annotations"]["runbook"] == f"docs/troubleshooting.md#{name.lower()}"
        assert f"\n### `{name}`\n" in runbook


def test_rules_and_dashboard_use_only_metrics_and_reasons_that_are_exported() -> None:
    assert {name for alert in alerts() for name in NAME.findall(alert["expr"])}
    # Also those in comments and descriptions.
    assert set(NAME.findall((PROMETHEUS / "alerts.yml").read_text())) <= EXPORTED
    (rule,) = [alert for alert in alerts() if UNSYNCED.name in alert["expr"]]
    (reasons,) = re.findall(r'reason=~"([^"]+)"', rule["expr"])
    assert set(reasons.split("|")) <= {reason.value for reason in GroupReason}

    shown = {name for each in expressions() for name in NAME.findall(each)}
    assert shown
    assert shown <= EXPORTED


def test_the_dashboard_takes_any_prometheus_and_grafana_finds_it() -> None:
    assert {panel["datasource"]["uid"] for panel in panels()} == {"${datasource}"}

    folder = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((folder / "dashboards" / "mirror.yml").read_text())["providers"]
    assert source["type"] == "prometheus"
    # Where the containers have the dashboard.
    assert provider["options"]["path"] == "/etc/mirror"

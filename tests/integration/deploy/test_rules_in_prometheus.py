"""Prometheus' own tool takes the alert rules, their tests and the dashboard's expressions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules_and_the_configuration() -> None:
    promtool("check", "rules", "alerts.yml")
    # The token is there where Prometheus runs.
    promtool("check", "config", "--syntax-only", "prometheus.yml")


def test_the_rules_alert_when_they_should_and_only_then() -> None:
    promtool("test", "rules", "alerts_test.yml")


def test_promtool_accepts_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    panels = json.loads((DEPLOY / "grafana" / "mirror.json").read_text())["panels"]
    found = [target["expr"] for panel in panels if panel["type"] != "row" for target in panel["targets"]]
    without_variables = (each.replace("$__rate_interval", "5m").replace("$flow", ".*") for each in found)
    rules = [{"record": f"x{number}", "expr": each} for number, each in enumerate(without_variables)]
    path = tmp_path / "dashboard.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))

    promtool("check", "rules", str(path))

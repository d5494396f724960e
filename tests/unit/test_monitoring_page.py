"""The dashboard, the alert rules and the page name only metrics that the nodes expose. The page explains
every alert.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from protocol.node import logs
from protocol.node.monitoring.alerts import Alarm, Alerts
from protocol.node.monitoring.posting import Poster
from protocol.node.monitoring.webhook import Webhook
from protocol.node.party.collector import CHECKS, Known, NodeCollector
from solver.database import Stage
from solver.metrics import Metrics as SolverMetrics
from tests.toolchain.project import REPOSITORY
from verifier.metrics import Metrics as VerifierMetrics

PAGE = (REPOSITORY / "docs/guide/monitoring.md").read_text()
RULES = (REPOSITORY / "docs/monitoring/rules.yml").read_text()
DASHBOARD = (REPOSITORY / "docs/monitoring/dashboard.json").read_text()
NAME = re.compile(r"\b((?:assay|process)_[a-z_]+)\b")


def exposed(folder: Path) -> dict[str, set[str]]:
    """The metrics of both nodes, under their Prometheus names, with their labels."""
    found: dict[str, set[str]] = {}
    for registry in (SolverMetrics().registry, VerifierMetrics().registry):
        alerts = Alerts(logs.get("test"), registry, {})
        Poster(alerts, Webhook.parse("http://127.0.0.1:1"), logs.get("test"), registry)
        NodeCollector(
            Known(), folder, lambda: dict.fromkeys(CHECKS, ""), {"node": "", "chain": "", "account": ""}
        ).register(registry)
        for family in registry.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = {label for sample in family.samples for label in sample.labels}
    return found


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    return exposed(tmp_path_factory.mktemp("node"))


def expressions() -> list[str]:
    """The dashboard's expressions."""
    return [target["expr"] for panel in json.loads(DASHBOARD)["panels"] for target in panel["targets"]]


def rules() -> dict[str, str]:
    """Maps each alert to its expression."""
    blocks = RULES.split("- alert: ")[1:]
    return {block.split("\n", 1)[0]: block[block.index("expr:") : block.index("labels:")] for block in blocks}


def test_rules_and_dashboard_name_what_the_nodes_expose(names: dict[str, set[str]]) -> None:
    used = [*rules().values(), *expressions()]
    assert len(rules()) > 10
    assert len(expressions()) > 20
    for text in used:
        found = set(NAME.findall(text))
        assert found <= names.keys(), text
        assert found or "up{" in text, text


def test_what_the_nodes_expose_is_shown(names: dict[str, set[str]]) -> None:
    used = set(NAME.findall(RULES)) | {name for text in expressions() for name in NAME.findall(text)}
    assert {name for name in names if name.startswith("assay_")} <= used


def test_the_page_names_what_the_nodes_expose(names: dict[str, set[str]]) -> None:
    prefixes = {"assay_node_", "assay_solver_", "assay_verifier_", "process_"}
    assert set(NAME.findall(PAGE)) - prefixes <= names.keys()
    assert {name for name in names if name.startswith("assay_node_")} <= set(NAME.findall(PAGE))


def test_every_alert_has_its_paragraph_and_no_other_has() -> None:
    runbook = PAGE[PAGE.index("## 5. Runbook") :]
    paragraphs = re.split(r"^### ", runbook, flags=re.MULTILINE)[1:]
    assert [text.split("\n", 1)[0] for text in paragraphs] == list(rules())
    assert all(len(text.split("\n", 1)[1].strip()) > 80 for text in paragraphs)


def test_every_event_is_explained() -> None:
    table = PAGE[PAGE.index("| event | when |") : PAGE.index("## 5. Runbook")]
    assert set(re.findall(r"`([a-z_]+)`", table)) >= {alarm.value for alarm in Alarm}
    assert all(f"| `{check}` |" in PAGE for check in CHECKS)


def test_labels_in_rules_are_those_of_the_metrics() -> None:
    assert 'stage="training"' in RULES
    assert Stage.TRAINING.value == "training"
    assert '{outcome="failed"}' in RULES


def test_a_metric_that_is_gone_is_seen(names: dict[str, set[str]]) -> None:
    assert set(NAME.findall("rate(assay_solver_stepz_total[5m]) > 0")) - names.keys() == {
        "assay_solver_stepz_total"
    }

"""What the project is made of: known licences, a bill of materials, and an audit that is never green by silence."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.features.demo.jar_digests import CheckedJars, check_jars
from tools.supply import __main__ as command
from tools.supply.bill_of_materials import bill_of_materials
from tools.supply.licences import is_allowed, licences
from tools.supply.lockfile import LOCK, LockError, read_lock
from tools.supply.vulnerabilities import Audit, Vulnerable, judged

PACKAGES = read_lock(LOCK.read_text(encoding="utf-8"))
HASH = "a" * 64
SMALL = f"""# A comment
aiokafka==0.14.0 \\
    --hash=sha256:{HASH} \\
    --hash=sha256:{"b" * 64}
    # via batch-mirror (pyproject.toml)
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:{HASH}
    # via
    #   pytest
    #   aiokafka
pytest==9.0.0 \\
    --hash=sha256:{HASH}
    # via batch-mirror (pyproject.toml:dev)
"""


def test_every_locked_package_has_a_known_licence_that_is_allowed() -> None:
    wrong = [f"{each.package.name}: {each.expression}" for each in licences(PACKAGES) if not each.allowed]

    assert wrong == []


def test_of_alternatives_one_must_be_allowed_and_of_parts_all() -> None:
    for expression, allowed in (
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("(Apache-2.0 OR GPL-2.0-only) AND BSD-3-Clause", True),
        ("AGPL-3.0-only OR GPL-3.0-only", False),
    ):
        assert is_allowed(expression) is allowed, expression


def test_the_lock_is_read_with_hashes_markers_and_what_the_program_itself_needs() -> None:
    packages = {each.name: each for each in read_lock(SMALL)}

    assert packages["aiokafka"].hashes == (HASH, "b" * 64)
    assert packages["colorama"].marker == "sys_platform == 'win32'"
    # Wanted by pytest, and by what the program needs.
    assert {name for name, each in packages.items() if each.runtime} == {"aiokafka", "colorama"}


def test_a_lock_without_hashes_or_with_anything_else_is_refused() -> None:
    for text in ("aiokafka==0.14.0\n", SMALL + "--index-url x\n", SMALL + "a @ file:///x\n"):
        with pytest.raises(LockError):
            read_lock(text)


def test_the_bill_has_every_package_with_digests_licence_and_what_it_needs() -> None:
    bill = json.loads(bill_of_materials(licences(PACKAGES), version="1.2.3", lock=b"lock"))

    components = {component["bom-ref"]: component for component in bill["components"]}
    assert len(components) == len(PACKAGES)
    (client,) = [each for each in PACKAGES if each.name == "aiokafka"]
    found = components[f"pkg:pypi/aiokafka@{client.version}"]
    assert sorted(each["content"] for each in found["hashes"]) == sorted(client.hashes)
    assert found["licenses"] == [{"expression": "Apache-2.0"}]
    assert all(component.get("licenses") for component in components.values())
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert found["bom-ref"] in needs["batch-mirror"]
    assert {reference for each in needs.values() for reference in each} <= set(components)
    (excluded,) = [each for each in components.values() if each["name"] == "pytest"]
    assert (excluded["scope"], found["scope"]) == ("excluded", "required")
    assert bill["metadata"]["component"]["version"] == "1.2.3"


def test_the_bill_follows_the_schema_of_cyclonedx() -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = bill_of_materials(licences(PACKAGES[:20]), version="1", lock=b"lock")

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_what_was_not_answered_for_is_not_fine() -> None:
    vulnerability = {"id": "PYSEC-1", "fix_versions": ["0.15"]}
    answer = {
        "dependencies": [
            {"name": "aiokafka", "version": "0.14.0", "vulns": [vulnerability]},
            {"name": "colorama", "skip_reason": "Dependency not found on PyPI and could not be audited"},
        ]
    }

    found = judged(read_lock(SMALL), "pypi", answer)

    assert (found.asked, found.silent, found.complete) == (1, ("colorama 0.4.6", "pytest 9.0.0"), False)
    assert found.vulnerable == (Vulnerable("aiokafka", "0.14.0", (("PYSEC-1", ("0.15",)),)),)
    assert judged(read_lock(SMALL)[:1], "pypi", answer).complete


@pytest.mark.parametrize(
    ("audits", "code", "says"),
    [
        ({"pypi": Audit("pypi", 9)}, 0, "fine  vulnerabilities: 9 packages at pypi"),
        (
            {"pypi": Audit("pypi", 0, silent=("a 1",)), "osv": Audit("osv", 0, failure="no way")},
            3,
            "NOT ASKED osv: no way",
        ),
        ({"pypi": Audit("pypi", 0, failure="no way"), "osv": Audit("osv", 9)}, 0, "9 packages at osv"),
        ({"pypi": Audit("pypi", 5, (Vulnerable("a", "1", (("X", ()),)),), ("b 1",))}, 1, "a 1: X (not mended)"),
    ],
)
def test_the_exit_code_tells_fine_wrong_and_not_asked_apart(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    audits: dict[str, Audit],
    code: int,
    says: str,
) -> None:
    def answered(_packages: Any, service: str) -> Audit:
        return audits[service]

    monkeypatch.setattr(command, "audit", answered)
    monkeypatch.setattr(command, "check_jars", lambda _known, _folder: CheckedJars(0, ()))

    assert command.main(["audit"]) == code
    assert says in capsys.readouterr().err


def test_a_jar_that_changed_or_that_nobody_knows_is_named(tmp_path: Path) -> None:
    (tmp_path / "4.3.1").mkdir()
    for name, content in (("same.jar", b"1"), ("other.jar", b"2"), ("new.jar", b"3")):
        (tmp_path / "4.3.1" / name).write_bytes(content)
    known = {"same.jar": hashlib.sha256(b"1").hexdigest(), "other.jar": HASH, "absent.jar": HASH}

    found = check_jars(known, tmp_path)

    assert found.checked == 3
    assert [("new.jar" in each, "other.jar" in each) for each in found.problems] == [(True, False), (False, True)]

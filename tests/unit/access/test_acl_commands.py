"""Rights as commands for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from mirror_lib.config.model import MirrorConfig
from mirror_lib.features.access.commands import acl_commands
from mirror_lib.features.access.reference import markdown_reference
from mirror_lib.features.access.required import required_access

MakeConfig = Callable[..., MirrorConfig]
SERVERS = {"A": "a:9092", "B": "b1:9092,b2:9092"}


def lines(config: MirrorConfig, principal: str = "User:mirror", command_config: str | None = None) -> tuple[str, ...]:
    return acl_commands(
        required_access(config, config.flow("A->B")),
        principals=dict.fromkeys("AB", principal),
        bootstrap_servers=SERVERS,
        command_config=command_config,
    )


def test_a_resource_has_one_command_with_all_its_operations(config_with: MakeConfig) -> None:
    found = [line for line in lines(config_with("topics = orders")) if line.endswith("--topic A.orders")]

    assert [shlex.split(line) for line in found] == [
        [
            *("kafka-acls.sh", "--bootstrap-server", "b1:9092,b2:9092", "--add", "--allow-principal", "User:mirror"),
            *("--operation", "Alter", "--operation", "AlterConfigs", "--operation", "Create"),
            *("--operation", "Read", "--operation", "Write", "--topic", "A.orders"),
        ]
    ]


def test_every_line_is_one_command_for_a_shell_or_a_comment(config_with: MakeConfig) -> None:
    principal = "User:CN=mirror,OU=ops; rm -rf"

    for line in lines(config_with(), principal, "my admin.properties"):
        if line and not line.startswith("#"):
            words = shlex.split(line)
            assert words[words.index("--allow-principal") + 1] == principal
            assert words[words.index("--command-config") + 1] == "my admin.properties"


def test_the_characters_of_names_mean_nothing_to_the_shell(config_with: MakeConfig) -> None:
    found = lines(config_with())

    assert any("--transactional-id 'mirror:A->B:' --resource-pattern-type prefixed" in line for line in found)
    assert any(line.endswith("--topic '*'") for line in found)


def test_clusters_are_told_apart_and_what_old_brokers_ask_for_is_a_comment(config_with: MakeConfig) -> None:
    found = lines(config_with())

    assert [line for line in found if line.startswith("# cluster")] == ["# cluster A (source)", "# cluster B (target)"]
    old = [line for line in found if "IdempotentWrite" in line]
    assert len(old) == 1
    assert old[0].startswith("# before Kafka 2.8: kafka-acls.sh --bootstrap-server b1:9092")


def test_the_page_of_permissions_is_what_the_code_says() -> None:
    page = Path(__file__).parents[3] / "docs" / "permissions.md"

    assert page.read_text(encoding="utf-8") == markdown_reference(), (
        "run `python -m mirror_lib.features.access.reference > docs/permissions.md`"
    )

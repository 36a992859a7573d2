from __future__ import annotations

import pytest

from mirror_lib.config.model import CopySettings, Rename
from mirror_lib.config.settings.mirror_keys import FLOW_KEYS, OWN_BY_NAME, copy_settings, parse_rename_list, rename


def test_keys_of_our_own_have_a_prefix_and_the_defaults_of_the_settings() -> None:
    assert copy_settings(lambda name: OWN_BY_NAME[name].default) == CopySettings()

    assert all(definition.name.startswith("mirror.") for definition in FLOW_KEYS)


def test_copy_settings_are_typed_and_limited() -> None:
    values = {"mirror.produce.max.in.flight": "5", "mirror.run.max.seconds": "1.5"}
    settings = copy_settings(lambda name: values.get(name))
    assert (settings.produce_max_in_flight, settings.run_max_seconds) == (5, 1.5)
    for text in ("0", "6", "x"):
        with pytest.raises(ValueError):
            OWN_BY_NAME["mirror.produce.max.in.flight"].parse(text)


def test_renames_are_read_or_refused(subtests: pytest.Subtests) -> None:
    values = {
        "mirror.topics.rename": "orders:sales, old:new",
        "mirror.topics.rename.regex": " (.*)-v1 ",
        "mirror.topics.rename.replacement": "$1",
        "mirror.topics.merge.enabled": "TRUE",
    }
    assert rename(values.get) == Rename(
        explicit={"orders": "sales", "old": "new"}, pattern="(.*)-v1", replacement="$1", merge=True
    )
    assert rename(lambda name: None) == Rename()

    for text in ["a", "a:", ":b", "a:b:c", "a:b,a:c"]:
        with subtests.test(text), pytest.raises(ValueError):
            parse_rename_list(text)

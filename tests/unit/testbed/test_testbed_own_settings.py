"""The option `--set`: properties of a flow."""

import argparse

import pytest

from testbed.own_settings import add_own_settings, own_settings


def test_properties_are_collected_and_values_may_hold_the_sign() -> None:
    parser = argparse.ArgumentParser()
    add_own_settings(parser)
    chosen = parser.parse_args(["--set", "tasks.max=4", "--set", "topics=a=b"])

    assert own_settings(chosen.set) == {"tasks.max": "4", "topics": "a=b"}
    assert own_settings(parser.parse_args([]).set) == {}


def test_a_property_without_a_value_is_named() -> None:
    with pytest.raises(ValueError, match=r"not KEY=VALUE: tasks\.max"):
        own_settings(["topics=a", "tasks.max"])

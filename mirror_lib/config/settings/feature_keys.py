"""Settings that features declare. Features are listed only for keys that nothing else knows, and to list all keys."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mirror_lib.config.settings.definition import Definition, Scope
from mirror_lib.config.settings.keys_of_transforms import is_transform_key
from mirror_lib.config.settings.mirror_keys import FLOW_KEYS, OWN_BY_NAME, PREFIX
from mirror_lib.feature import Feature
from mirror_lib.former_names import SETTINGS as FORMER_SETTINGS
from mirror_lib.installed_features import FailedFeature, installed_features
from mirror_lib.topology.java_types import ValueType


def feature_setting(name: str) -> Definition | None:
    """Return the setting of a feature with this name; None for all others."""
    if not name.startswith(PREFIX) or name in OWN_BY_NAME or name in FORMER_SETTINGS or is_transform_key(name):
        return None
    return feature_settings().get(name)


@cache
def feature_settings() -> Mapping[str, Definition]:
    """Return the settings of all features, also of those that cannot be used here."""
    features = installed_features()
    failed = (each.feature for each in features.failed if each.feature is not None)
    return {name: found for each in (*features.ready, *failed) for name, found in _definitions(each).items()}


def unusable_feature(name: str) -> FailedFeature | None:
    """Return the feature of a setting that has no effect because the feature cannot be used here."""
    for failed in installed_features().failed if feature_setting(name) is not None else ():
        if failed.feature is not None and any(setting.name == name for setting in failed.feature.settings):
            return failed
    return None


@cache
def flow_keys() -> tuple[Definition, ...]:
    """Return the project's settings of a flow and those of features, in the order of the documentation."""
    found = list(FLOW_KEYS)
    after = {setting.name: setting.after for each in installed_features().ready for setting in each.settings}
    for name, definition in feature_settings().items():
        place = next((at for at, each in enumerate(found, 1) if each.name == after.get(name)), len(found))
        found.insert(place, definition)
    return tuple(found)


def _definitions(feature: Feature) -> Mapping[str, Definition]:
    return {
        each.name: Definition(
            each.name, ValueType(each.type), each.default, Scope.FLOW, "own", each.meaning, check=each.check
        )
        for each in feature.settings
    }

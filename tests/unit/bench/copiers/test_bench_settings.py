"""The properties files of the copiers: what is compared is configured alike."""

from dataclasses import replace

import javaproperties

from tools.bench.copiers.settings import Copier, CopySetup, properties, render


def _setup(copier: Copier, number: int = 1) -> CopySetup:
    return CopySetup(copier, number, "1kb-lz4", "localhost:1", "localhost:2", 2)


def test_each_file_has_the_clients_of_both_clusters_and_own_properties_for_this_project_alone() -> None:
    for copier in Copier:
        own = {"mirror.batch.max.bytes": "1", "tasks.max": "7"}
        settings = properties(replace(_setup(copier), client={"security.protocol": "SSL"}, own=own))

        assert settings["target.security.protocol"] == "SSL", copier
        assert settings[f"{_setup(copier).source_alias}.security.protocol"] == "SSL", copier
        ours = copier is Copier.MIRROR
        assert ("mirror.batch.max.bytes" in settings, settings["tasks.max"]) == (ours, "7" if ours else "2"), copier
        assert javaproperties.loads(render(settings)) == settings, copier


def test_our_flow_is_configured_as_default_mm2_is_which_gets_only_what_it_needs() -> None:
    def without_alias(copier: Copier) -> str:
        setup = _setup(copier)
        return render(properties(setup)).replace(setup.source_alias, "A")

    settings = properties(_setup(Copier.MM2_DEFAULT))
    assert settings["clusters"] == "mm2default1, target"
    assert settings["mm2default1->target.enabled"] == "true"
    assert settings["mm2default1->target.topics"] == "1kb-lz4"
    assert not [name for name in settings if ".producer." in name or ".consumer." in name or "lag.max" in name]
    assert without_alias(Copier.MIRROR) == without_alias(Copier.MM2_DEFAULT)

"""Files to import of which a part cannot be read: refused, with the lines and a way on."""

from __future__ import annotations

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.kinds import recognise
from mirror_lib.features.importers.mirror_maker1 import MirrorMaker1, import_mirror_maker_1
from mirror_lib.features.importers.questions import Answers
from mirror_lib.features.importers.topic_map import translate_topic_map

_BROKEN = b"connector.class=org.apache.kafka.connect.mirror.MirrorSourceConnector\nname=C:\\users\ntopics=\\u12\n"


def test_lines_with_broken_escapes_are_named_with_what_to_write(subtests: pytest.Subtests) -> None:
    for import_file in [
        lambda data: recognise([("c.properties", data)], Answers({})),
        lambda data: import_mirror_maker_1(MirrorMaker1(data, b"", ".*"), source="A", target="B"),
        translate_topic_map,
    ]:
        with subtests.test(import_file=import_file):
            with pytest.raises(ConfigurationError) as refused:
                import_file(_BROKEN)

            told = str(refused.value)
            assert "line 2: invalid escape \\user" in told
            assert "line 3: invalid escape \\u12" in told
            assert "In these lines: write a single backslash as \\\\." in told

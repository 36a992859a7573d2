"""Checkpoint folders of Spark structured streaming, written by hand as Spark's own classes write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import CheckpointFolderError, TopologyError
from mirror_lib.features.translate.spark_checkpoint import (
    OffsetLog,
    encode_offsets,
    parse_initial_offsets,
    parse_offsets,
    read_newest,
    rewrite_checkpoint,
    translate_offsets,
)
from mirror_lib.topology.names import TopicPartition

METADATA = (
    '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,'
    '"conf":{"spark.sql.shuffle.partitions":"200","spark.sql.streaming.join.stateFormatVersion":"2"}}'
)


def shifted(source: TopicPartition, offset: int | None) -> tuple[TopicPartition, int]:
    """The target has every record a thousand offsets later."""
    return TopicPartition(f"A.{source.topic}", source.partition), (offset or 0) + 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stateful query that has planned batch 1 and committed batch 0."""
    root = tmp_path / "checkpoint"
    files: dict[str, bytes] = {
        "metadata": b'{"id":"5a2d0f80-4e02-4d7f-9d8c-1f4a3a3f8f0e"}',
        ".metadata.crc": b"crc\0 of metadata",
        "offsets/0": f'v1\n{METADATA}\n{{"orders":{{"0":5,"1":7}}}}'.encode(),
        "offsets/.0.crc": b"crc\0 of offsets",
        "offsets/1": f'v1\n{METADATA}\n{{"orders":{{"0":15,"1":-1}}}}'.encode(),
        "offsets/.1.crc": b"crc\0 of offsets",
        "commits/0": b'v1\n{"nextBatchWatermarkMs":0}',
        "commits/.0.crc": b"crc\0 of commits",
        "sources/0/0": b'\0v1\n{"orders":{"0":-2,"1":3}}',
        "sources/0/.0.crc": b"crc\0 of sources",
        "state/0/0/1.delta": b"\x00\x01binary",
        "state/0/0/.1.delta.crc": b"crc\0 of state",
        "state/0/_metadata/metadata": b'v1\n{"operatorInfo":{"operatorId":0}}',
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


class TestAFolder:
    def test_offsets_and_names_are_those_of_the_target_and_the_original_stays(
        self, folder: Path, tmp_path: Path
    ) -> None:
        before = contents(folder)

        done = rewrite_checkpoint(folder, tmp_path / "out", shifted)

        found = contents(tmp_path / "out")
        assert found["offsets/0"] == f'v1\n{METADATA}\n{{"A.orders":{{"0":1005,"1":1007}}}}'.encode()
        assert found["offsets/1"] == f'v1\n{METADATA}\n{{"A.orders":{{"0":1015,"1":-1}}}}'.encode()
        assert found["sources/0/0"] == b'\0v1\n{"A.orders":{"0":-2,"1":1003}}'
        assert contents(folder) == before
        assert done.newest == {"0": {TopicPartition("orders", 0): 15, TopicPartition("orders", 1): -1}}

    def test_everything_else_is_copied_and_stale_checksums_are_left_out(self, folder: Path, tmp_path: Path) -> None:
        done = rewrite_checkpoint(folder, tmp_path / "out", shifted)

        before, after = contents(folder), contents(tmp_path / "out")
        stale = {"offsets/.0.crc", "offsets/.1.crc", "sources/0/.0.crc"}
        rewritten = {"offsets/0", "offsets/1", "sources/0/0"}
        assert set(after) == set(before) - stale
        assert {name for name in after if after[name] != before[name]} == rewritten == set(done.rewritten)
        assert done.copied == len(after) - len(rewritten)

    def test_remains_of_an_interrupted_writer_and_checksums_are_left_out(self, folder: Path, tmp_path: Path) -> None:
        """The checksums of `ChecksumCheckpointFileManager`, and Hadoop's of these."""
        for name in (".2.8f2c.tmp", "..2.8f2c.tmp.crc", "1.crc", ".1.crc.crc"):
            (folder / "offsets" / name).write_bytes(b"half")

        rewrite_checkpoint(folder, tmp_path / "out", shifted)

        assert sorted(path.name for path in (tmp_path / "out" / "offsets").iterdir()) == ["0", "1"]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("name", "content", "why"),
        [
            ("offsets/2", b"v3\n{}\n{}", "starts with 'v3'"),
            ("offsets/2", b"", "starts with ''"),
            ("offsets/2", b"v1\n{}", "no source"),
            ("offsets/2", b'v1\n{}\n{"logOffset":4}', "source 0 cannot be translated"),
            ("offsets/2", b"v1\n{}\n17", "source 0 cannot be translated"),
            ("offsets/2", b'v1\n{}\n{"orders":{"0":1}}\n{"logOffset":4}', "source 1 cannot be translated"),
            ("offsets/2", b'v1\n{}\n{"orders":{"x":1}}', "is not a partition"),
            ("offsets/2", b'v1\n{}\n{"orders":{"0":1.5}}', "is not an offset"),
            ("offsets/2", b'v1\n{}\n{"orders":{"0":-3}}', "is not an offset"),
            ("offsets/2", b"v2\n{}\nno colon", "has no source"),
            ("offsets/2", b"v1\n{}\n\xff", "cannot be translated"),
            ("offsets/readme.txt", b"", "no such file"),
            ("sources/0/0", b'{"orders":{"0":1}}', "instead of the initial offsets"),
            ("sources/0/0", b'\0v2\n{"orders":{"0":1}}', "instead of the initial offsets"),
            ("sinks/0", b"", "sinks"),
        ],
    )
    def test_a_file_that_is_not_understood_is_named(
        self, folder: Path, tmp_path: Path, name: str, content: bytes, why: str
    ) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)

        with pytest.raises(CheckpointFolderError, match=why) as caught:
            rewrite_checkpoint(folder, tmp_path / "out", shifted)

        assert name.split("/")[0] in caught.value.what
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]

    def test_a_folder_that_is_there_is_not_overwritten(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()

        with pytest.raises(CheckpointFolderError, match="already exists"):
            rewrite_checkpoint(folder, tmp_path / "out", shifted)

    @pytest.mark.parametrize("place", ["metadata2", "state/0/x", "offsets/9"])
    def test_a_folder_with_links_or_devices_is_refused(self, folder: Path, tmp_path: Path, place: str) -> None:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        for make in (lambda: path.symlink_to("/etc/passwd"), lambda: path.symlink_to("/etc"), lambda: os.mkfifo(path)):
            make()
            with pytest.raises(CheckpointFolderError, match="neither a file nor a folder"):
                rewrite_checkpoint(folder, tmp_path / "out", shifted)
            path.unlink()

        assert [each.name for each in tmp_path.iterdir()] == ["checkpoint"]

    def test_a_folder_without_batches_is_no_checkpoint(self, tmp_path: Path) -> None:
        with pytest.raises(CheckpointFolderError, match="not a folder"):
            read_newest(tmp_path)
        (tmp_path / "offsets").mkdir()
        with pytest.raises(CheckpointFolderError, match="no batch"):
            read_newest(tmp_path)

    def test_what_the_map_refuses_leaves_nothing_behind(self, folder: Path, tmp_path: Path) -> None:
        def refuse(source: TopicPartition, offset: int | None) -> tuple[TopicPartition, int]:
            raise TopologyError(f"{source.topic} is not replicated.")

        with pytest.raises(TopologyError):
            rewrite_checkpoint(folder, tmp_path / "out", refuse)

        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]

    def test_two_topics_that_become_one(self) -> None:
        offsets = parse_offsets('{"a":{"0":1},"b":{"0":1}}')

        with pytest.raises(ValueError, match="both translate to"):
            translate_offsets(offsets, lambda source, _: (TopicPartition("both", source.partition), 1))


class TestOffsetLogs:
    def test_version_2_names_its_sources_and_one_without_an_offset_stays_without(self) -> None:
        text = f'v2\n{METADATA}\norders-stream:{{"orders":{{"0":5}}}}\nother:-'

        log = OffsetLog.parse(text)

        assert log.sources == (("orders-stream", {TopicPartition("orders", 0): 5}), ("other", None))
        assert str(log) == text
        version_1 = f'v1\n{METADATA}\n-\n{{"orders":{{"0":5}}}}'
        assert str(OffsetLog.parse(version_1)) == version_1
        spaced = {TopicPartition("orders", 0): 23, TopicPartition("orders", 1): -1}
        assert parse_offsets('{"orders": {"0": 23, "1": -1}}') == spaced


_names = st.text("abc.-_", min_size=1, max_size=8)
_offsets = st.dictionaries(
    st.builds(TopicPartition, _names, st.integers(0, 2**31 - 1)), st.integers(-2, 2**62), max_size=6
)


@given(offsets=_offsets)
def test_offsets_come_back_from_their_json(offsets: dict[TopicPartition, int]) -> None:
    assert parse_offsets(encode_offsets(offsets)) == offsets
    assert parse_initial_offsets(b"\0v1\n" + encode_offsets(offsets).encode()) == offsets


@given(offsets=_offsets)
def test_only_real_offsets_are_moved(offsets: dict[TopicPartition, int]) -> None:
    moved = translate_offsets(offsets, shifted)

    assert {(topic, partition) for topic, partition in moved} == {(f"A.{topic}", number) for topic, number in offsets}
    assert sorted(moved.values()) == sorted(offset + 1000 if offset >= 0 else offset for offset in offsets.values())

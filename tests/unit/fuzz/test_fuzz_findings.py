"""What fuzzing has found, each as the smallest input that did it.

The short form of fuzzing: some thousand cases of every kind of input that comes from outside.
"""

from __future__ import annotations

import base64
import gzip
import re
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest

from mirror_lib.cluster.auth.keystores import KeystoreError, read_keystore, read_pem_key
from mirror_lib.cluster.protocol.acls import parse_describe_acls
from mirror_lib.cluster.protocol.fetch import EPOCH_CHECKING_VERSION, parse_fetch
from mirror_lib.cluster.protocol.fields import read_varint
from mirror_lib.cluster.protocol.groups import LIST_GROUPS_WITH_KINDS, parse_fetch_offsets, parse_list_groups
from mirror_lib.cluster.protocol.malformed import GarbledAnswerError
from mirror_lib.cluster.protocol.produce import (
    parse_epoch_ends,
    parse_list_end,
    parse_log_dirs,
    parse_produce,
    parse_produce_by_id,
)
from mirror_lib.cluster.protocol.topic_ids import parse_topic_ids
from mirror_lib.cluster.topics.mm2_formats import RecordFormatError
from mirror_lib.cluster.topics.position_format import decode_value
from mirror_lib.config.loader import check
from mirror_lib.errors import MirrorError, OffsetMapError, OversizedBatchError
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock, read_blocks
from mirror_lib.features.verify.compare.record_columns import columns
from mirror_lib.offsets.runs import OffsetRun, decode, encode
from mirror_lib.outside_limits import BATCH_BODY_BYTES, BATCH_RECORDS
from mirror_lib.records.compression.codecs import CodecError, compress, decompress
from mirror_lib.records.header import HEADER_SIZE, parse_header
from mirror_lib.records.legacy import read_legacy
from mirror_lib.records.records import RecordError, read_records
from mirror_lib.records.spans import Span
from mirror_lib.records.split import halves, skipped_batch
from mirror_lib.records.varint import decode_varint
from mirror_lib.topology.names import TopicPartition
from tests.support.records.record_batches import SourceRecord, assembler, batch, message_set, sealed
from tools import fuzz
from tools.fuzz.child import case
from tools.fuzz.model import Kind, Target
from tools.fuzz.targets import TARGETS
from tools.fuzz.targets_of_logs import bombs

STORES = Path(fuzz.__file__).parent / "stores"
P256, UNKNOWN_CURVE = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030177")


def with_body(body: bytes, codec: int, *, count: int = 1) -> bytes:
    raw = bytearray(batch([SourceRecord(0)])[:61] + body)
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">hi", raw, 21, codec, count - 1)
    struct.pack_into(">i", raw, 57, count)
    return sealed(raw)


def old_message(body: bytes, codec: int, magic: int = 1) -> bytes:
    content = struct.pack(">bb", magic, codec) + (struct.pack(">q", 5) if magic else b"")
    content += struct.pack(">ii", -1, len(body)) + body
    return struct.pack(">qiI", 9, len(content) + 4, zlib.crc32(content)) + content


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_that_nothing_has_to_look_into_goes_on_as_it_is(codec: int) -> None:
    """A small batch waits for others of its codec; that it cannot be joined is no damage."""
    bomb = {1: bombs()[0], 2: bombs()[6], 3: bombs()[5], 4: bombs()[3]}[codec]
    subject = assembler(passthrough_min_bytes=1 << 30, target_max_message_bytes=1 << 30)
    second = bytearray(with_body(bomb, codec))
    struct.pack_into(">q", second, 0, 1)

    ready = subject.feed(with_body(bomb, codec) + bytes(second))
    ready += [last for last in (subject.flush(),) if last]

    assert subject.failure is None
    assert [bytes(each.payload[61:]) for each in ready] == [bomb, bomb]


def test_very_many_members_of_gzip_are_refused_before_they_take_long() -> None:
    with pytest.raises(CodecError, match="64 members"):
        decompress(1, gzip.compress(b"") * 5000)
    assert decompress(1, gzip.compress(b"a") + gzip.compress(b"b") + bytes(20)) == b"ab"


def test_a_refused_batch_of_a_codec_that_does_not_exist_can_be_left_out() -> None:
    (ready,) = assembler(passthrough_min_bytes=1).feed(with_body(b"xyz", 6))

    assert skipped_batch(ready, MirrorError("refused")).codec is None


def test_a_length_inside_of_an_old_message_that_lies_leads_nowhere() -> None:
    for size in (-12, -1, 0, 13, 2**31 - 1):
        inner = bytearray(message_set([SourceRecord(0)], magic=1))
        struct.pack_into(">i", inner, 8, size)
        message = old_message(compress(1, bytes(inner)), 1)

        with pytest.raises(RecordError):
            list(read_legacy(memoryview(message), 1))


def test_old_messages_that_hold_nothing_are_unreadable() -> None:
    for body in (b"", b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, -4)):
        for codec in (1, 2):
            with pytest.raises(RecordError):
                list(read_legacy(memoryview(old_message(body, codec)), 1))


def test_old_messages_that_become_too_much_are_not_called_damaged() -> None:
    with pytest.raises(OversizedBatchError):
        list(read_legacy(memoryview(old_message(bombs()[0], 1)), 1))


def test_counts_that_lie_take_no_memory() -> None:
    """Each of the batches claims as many records as all of them have bytes."""
    many = b""
    for number in range(400):
        raw = bytearray(batch([SourceRecord(number, value=b"x" * 50)]))
        struct.pack_into(">i", raw, 57, 40_000)
        many += sealed(raw)

    found, _ = read_blocks(memoryview(many), (), read_committed=False)

    assert not any(isinstance(each, RecordBlock) for each in found)
    with pytest.raises(RecordError, match="2147483647 records"):
        list(read_records(b"", base_offset=0, base_timestamp=0, count=2**31 - 1))
    assert BATCH_RECORDS < 2**31 - 1


def test_answers_to_fetch_that_lie_end_in_an_error_of_ours() -> None:
    for answer in (
        b"",
        bytes(3),
        # A topic whose name goes six bytes back: for ever, over the same bytes.
        struct.pack(">ihii", 0, 0, 0, 2**31 - 1) + struct.pack(">h", -6) + bytes(8),
        # Records that end behind the answer.
        struct.pack(">ihiihcii", 0, 0, 0, 1, 1, b"t", 1, 0) + bytes(26) + struct.pack(">iii", 0, -1, 1000),
    ):
        with pytest.raises(GarbledAnswerError):
            parse_fetch(memoryview(answer))


def test_answers_in_the_compact_encoding_that_lie_end_in_an_error_of_ours() -> None:
    for answer in (b"", b"\0" * 5, b"\0" * 11 + b"\xff" * 100, b"\0" * 11 + b"\x02\0" + bytes(40)):
        with pytest.raises(GarbledAnswerError):
            parse_fetch(memoryview(answer), EPOCH_CHECKING_VERSION)


@pytest.mark.parametrize(
    "parse",
    [
        parse_produce,
        partial(parse_produce_by_id, names={b"\x7f" * 16: "t", bytes(16): "t"}),
        parse_log_dirs,
        parse_list_end,
        parse_epoch_ends,
        parse_fetch_offsets,
        parse_describe_acls,
        parse_topic_ids,
    ],
)
def test_no_other_answer_ends_in_another_error(parse: Callable[[memoryview], object]) -> None:
    for answer in (b"", struct.pack(">iih", 1, 1, -6), b"\xff" * 40, bytes(4) + b"\x7f" * 30):
        with suppress(GarbledAnswerError):
            parse(memoryview(answer))


def test_a_number_without_an_end_is_not_read_to_it() -> None:
    assert read_varint(memoryview(b"\xff\xff\xff\xff\x0f"), 0) == (2**32 - 1, 5)
    with pytest.raises(ValueError):
        read_varint(memoryview(b"\xff" * 1000), 0)
    with pytest.raises(GarbledAnswerError):
        parse_list_groups(memoryview(b"\xff" * 1000), LIST_GROUPS_WITH_KINDS)


def test_a_position_with_half_of_a_surrogate_pair_is_damage() -> None:
    # It can be read, and could not be written again.
    for field in ('"run_id":"id\\ud800"', '"left_out":[[1,2,1,"id\\udfff",false]]', '"routes":[["\\ud800",0,1]]'):
        with pytest.raises(RecordFormatError, match="surrogate"):
            decode_value(TopicPartition("t", 0), b'{"offset":1,%s}' % field.encode())


def test_times_whose_difference_takes_65_bits_are_copied_and_halved() -> None:
    times = [-(1 << 63), (1 << 63) - 1, -5]
    subject = assembler()

    found = subject.feed(b"".join(batch([SourceRecord(at, time)]) for at, time in enumerate(times)))
    found += [held] if (held := subject.flush()) else []

    (gathered,) = found
    span = Span(0, 3, parse_header(gathered.payload), bytes(gathered.payload[HEADER_SIZE:]))
    assert columns(span).times == times
    parts = halves(gathered)
    assert parts is not None
    assert [parse_header(each.payload).first_timestamp for each in parts] == times[:2]
    assert decode_varint(b"\xff" * 9 + b"\x7f", 0) == (-(1 << 63), 10)


def test_a_few_bytes_of_a_position_do_not_become_gigabytes_of_offset_map() -> None:
    bomb = base64.b64encode(b"\x01" + zlib.compress(bytes(64 << 20))).decode()

    with pytest.raises(RecordFormatError):
        decode_value(TopicPartition("t", 0), b'{"offset":1,"runs":"%s"}' % bomb.encode())
    with pytest.raises(OffsetMapError, match="larger than 24 bytes"):
        decode(encode([OffsetRun(0, 0, 1), OffsetRun(5, 1, 1)]), largest=24)


def test_bytes_behind_an_offset_map_are_damage() -> None:
    with pytest.raises(OffsetMapError):
        decode(encode([OffsetRun(0, 0, 1)]) + b"more")


def test_a_key_on_a_curve_that_nobody_knows_is_an_error_of_ours() -> None:
    text = (STORES / "client.pem").read_text()
    key = re.search(r"-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", text, re.DOTALL)
    der = base64.b64decode(key[1])
    assert P256 in der
    odd = text.replace(key[1], "\n" + base64.encodebytes(der.replace(P256, UNKNOWN_CURVE)).decode())

    with pytest.raises(KeystoreError):
        read_pem_key(odd, odd, None)
    with pytest.raises(KeystoreError):
        read_keystore(odd.encode(), None, None)


def test_names_that_no_file_and_no_variable_can_have_are_a_problem_and_no_crash(tmp_path: Path) -> None:
    lines = ["clusters = a, b", "a->b.enabled = true", "config.providers = env, file, dir"]
    lines += [
        f"config.providers.{short}.class = org.apache.kafka.common.config.provider.{kind}ConfigProvider"
        for short, kind in (("env", "EnvVar"), ("file", "File"), ("dir", "Directory"))
    ]
    lines += ["a.bootstrap.servers = x:1", "b.bootstrap.servers = x:2"]
    file = tmp_path / "mirror.properties"
    for variable in ("env:{}", "file:/tmp/{}:key", "dir:/tmp:{}", "dir:/{}:key"):
        for name in ("\\uD800", "a\\u0000b"):
            file.write_text("\n".join([*lines, f"a.client.id = ${{{variable.format(name)}}}"]))

            assert check(file), (variable, name)


#: Quick ones: what needs a ledger or Airflow is fuzzed by `./run fuzz`, and by tests of its own.
QUICK = [target for target in TARGETS if target.name not in ("airflow-forms", "page-requests", "configurations")]


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_whatever_is_read_the_parser_answers_or_fails_with_an_error_that_it_documents(target: Target) -> None:
    # Targets of little weight start processes or connections for each case.
    for number in range(250 if target.weight > 0.1 else 100):
        data = case(target, 20_26, number)
        try:
            target.run(data)
        except target.errors:
            continue
        except Exception as error:
            pytest.fail(f"case {number} of {target.name}: {type(error).__name__}: {error}\n{data[:2000].hex()}")


def test_no_bomb_becomes_more_than_the_bound_and_each_is_told_from_damage() -> None:
    made, too_large = bombs(), set()
    for number, bomb in enumerate(made):
        for codec in (1, 2, 3, 4):
            try:
                assert len(decompress(codec, bomb)) <= BATCH_BODY_BYTES, (codec, number)
            except OversizedBatchError:
                too_large.add((codec, number))
            except CodecError:
                continue
    assert too_large >= {(1, 0), (4, 3), (3, 5), (2, 6)}


def test_a_snappy_block_that_claims_more_than_its_bytes_can_become_is_damage() -> None:
    with pytest.raises(CodecError, match="45 bytes claims to have 4294967295"):
        decompress(2, bombs()[7])


class Bad(Target):
    """A parser with every fault."""

    name = "bad"
    what = "what fails"

    def make(self, random: Random) -> bytes:
        return random.randbytes(4)

    def run(self, data: bytes) -> str:
        raise KeyError("what no module documents")


def test_an_error_that_is_not_documented_is_a_failure_with_its_place() -> None:
    from tools.fuzz.child import _outcome

    outcome, failure = _outcome(Bad(), b"")

    assert outcome == "UNTYPED KeyError"
    assert failure[0] is Kind.ERROR
    assert "test_fuzz_findings.py:" in failure[1]

"""The partitioner of Java's producer."""

from mirror_lib.cluster.topics.position_format import murmur2, partition_for


def test_the_hash_is_javas() -> None:
    for data, signed in (
        # Kafka's UtilsTest.testMurmur2.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        # What Utils.murmur2 of Kafka 4.3.1 gives for every length modulo 4 and for bytes above 127.
        (b"", 275646681),
        (b"a", -1563381124),
        (b"ab", 316155434),
        (b"abcd", -1323649548),
        (b"abcde", 461995741),
        ("äÿ€".encode(), -814313677),
    ):
        assert murmur2(data) == signed & 0xFFFFFFFF, signed


def test_a_position_goes_to_the_partition_that_java_chooses() -> None:
    for key, partition in (
        # BuiltInPartitioner.partitionForKey(key, 25) of Kafka 4.3.1.
        (b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"foo"}]', 16),
        (b'["MirrorSourceConnector",{"cluster":"us-west","partition":11,"topic":"orders.v1"}]', 21),
    ):
        assert partition_for(key, 25) == partition, key

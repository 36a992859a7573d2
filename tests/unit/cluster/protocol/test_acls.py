"""DescribeAcls v1 on the wire, by the protocol's definition (DescribeAclsRequest.json, DescribeAclsResponse.json)."""

import struct

from mirror_lib.cluster.protocol.acls import encode_describe_acls, parse_describe_acls
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.topology.acls import AclBinding, AclPattern, AclPermission, AclResource
from tests.support.wire import plain


def answer(*resources: bytes, code: int = 0, message: bytes = b"\xff\xff") -> memoryview:
    head = struct.pack(">ih", 0, code) + message
    return memoryview(head + struct.pack(">i", len(resources)) + b"".join(resources))


def resource(kind: int, name: str, pattern: int, *entries: tuple[str, str, int, int]) -> bytes:
    acls = b"".join(plain(who) + plain(host) + struct.pack(">bb", *codes) for who, host, *codes in entries)
    return struct.pack(">b", kind) + plain(name) + struct.pack(">bi", pattern, len(entries)) + acls


def test_a_request_asks_for_everything_on_a_type_of_resource() -> None:
    # TOPIC, any name, pattern ANY, any principal, any host, operation ANY, permission ANY.
    assert b"".join(encode_describe_acls(AclResource.TOPIC)) == bytes.fromhex("02 ffff 01 ffff ffff 01 01")
    assert b"".join(encode_describe_acls(AclResource.TRANSACTIONAL_ID))[:1] == b"\x05"


def test_an_answer_is_read_with_all_its_parts() -> None:
    frame = answer(
        resource(2, "orders", 3, ("User:a", "*", 3, 3), ("User:ä", "10.0.0.1", 2, 2)),
        resource(3, "g-", 4, ("User:a", "*", 8, 3)),
    )

    found = parse_describe_acls(frame)

    assert found.error_code == ErrorCode.NONE
    topic, group = AclResource.TOPIC, AclResource.GROUP
    assert found.acls == {
        AclBinding(topic, "orders", AclPattern.LITERAL, "User:a", "*", "READ", AclPermission.ALLOW),
        AclBinding(topic, "orders", AclPattern.LITERAL, "User:ä", "10.0.0.1", "ALL", AclPermission.DENY),
        AclBinding(group, "g-", AclPattern.PREFIXED, "User:a", "*", "DESCRIBE", AclPermission.ALLOW),
    }


def test_a_refusal_keeps_its_code_and_words() -> None:
    found = parse_describe_acls(answer(code=54, message=plain("No Authorizer is configured.")))

    assert found == (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.", frozenset())


def test_what_a_later_kafka_adds_is_left_out_and_the_rest_is_read() -> None:
    frame = answer(
        resource(99, "x", 3, ("User:a", "*", 3, 3)), resource(2, "t", 3, ("User:a", "*", 99, 3), ("User:a", "*", 3, 3))
    )

    assert [acl.operation for acl in parse_describe_acls(frame).acls] == ["READ"]

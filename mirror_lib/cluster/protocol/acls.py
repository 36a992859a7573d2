"""DescribeAcls, encoded and decoded here: librdkafka returns an empty list of ACLs for a rejected request.

Codes are those of Java's `ResourceType`, `PatternType`, `AclOperation` and `AclPermissionType`. Codes of later versions
of Kafka are skipped: they could not be used here.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mirror_lib.cluster.protocol.fields import FieldReader
from mirror_lib.cluster.protocol.malformed import response_of
from mirror_lib.cluster.raw.connection import Buffer
from mirror_lib.outside_limits import LIST_ELEMENTS
from mirror_lib.topology.acls import AclBinding, AclPattern, AclPermission, AclResource

#: The first version with prefixed ACLs (KIP-290); Kafka 2.0 and every later one speaks it.
DESCRIBE_ACLS, DESCRIBE_ACLS_VERSION = 29, 1

_ANY = 1
_RESOURCES = {AclResource.TOPIC: 2, AclResource.GROUP: 3, AclResource.TRANSACTIONAL_ID: 5}
_OUR_RESOURCES = {code: resource for resource, code in _RESOURCES.items()}
_PATTERNS = {3: AclPattern.LITERAL, 4: AclPattern.PREFIXED}
_PERMISSIONS = {2: AclPermission.DENY, 3: AclPermission.ALLOW}
_OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
_INT8, _INT16, _INT32 = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">i")
_NULL_STRING = _INT16.pack(-1)


class DescribedAcls(NamedTuple):
    """A broker's response; with an `error_code` it has no ACLs."""

    error_code: int
    error_message: str
    acls: frozenset[AclBinding]


def encode_describe_acls(resource: AclResource) -> list[Buffer]:
    """A request for all ACLs on resources of a type, with any pattern."""
    return [
        _INT8.pack(_RESOURCES[resource]),
        _NULL_STRING,
        _INT8.pack(_ANY),
        _NULL_STRING,
        _NULL_STRING,
        _INT8.pack(_ANY),
        _INT8.pack(_ANY),
    ]


@response_of("DescribeAcls")
def parse_describe_acls(view: memoryview) -> DescribedAcls:
    """Parse its response."""
    response = FieldReader(view, flexible=False, elements=LIST_ELEMENTS)
    # The throttle time.
    response.int32()
    code, message = response.int16(), response.string()
    acls: list[AclBinding] = []
    for _ in range(response.count()):
        resource, name, pattern = _OUR_RESOURCES.get(response.int8()), response.string(), _PATTERNS.get(response.int8())
        for _ in range(response.count()):
            principal, host = response.string(), response.string()
            operation, permission = _OPERATIONS.get(response.int8()), _PERMISSIONS.get(response.int8())
            if resource is None or pattern is None or operation is None or permission is None:
                continue
            acls.append(AclBinding(resource, name, pattern, principal, host, operation, permission))
    return DescribedAcls(code, message, frozenset(acls))

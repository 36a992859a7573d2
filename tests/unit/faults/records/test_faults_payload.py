"""The input's records are of all shapes."""

from itertools import islice

from tools.faults.records.payload import Payload, PayloadMill


def _payloads(seed: int, count: int = 2000) -> list[Payload]:
    mill = PayloadMill(seed)
    return list(islice(iter(mill.next, None), count))


def test_all_the_shapes_come_that_a_copier_may_stumble_over() -> None:
    payloads = _payloads(1)

    assert {None, b""} <= {payload.key for payload in payloads}
    assert {None, b""} <= {payload.value for payload in payloads}
    assert max(len(payload.value or b"") for payload in payloads) > 2000
    headers = [payload.headers for payload in payloads]
    assert () in headers
    assert any(len(each) > 1 and each[0][0] == each[1][0] for each in headers)
    assert {None, b""} <= {value for each in headers for _, value in each}

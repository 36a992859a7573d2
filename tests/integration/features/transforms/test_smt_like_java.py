"""Our transforms and converters against Connect's own classes, on the same settings and records.

Where ours differ on purpose is not asked here: numbers that Connect cuts, payloads that do not fit their schemas, text
after a value. Those have their unit tests.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.features.demo.jars import classpath, fetch, mirror_maker
from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.converters.converters import decode, encode
from mirror_lib.features.transforms.smt.errors import SmtError
from mirror_lib.features.transforms.smt.record import RawRecord
from mirror_lib.features.transforms.smt.settings import parse_settings
from mirror_lib.features.transforms.smt.values.data import as_float32
from mirror_lib.spark.java import find_java

PROGRAM = Path(__file__).parent / "ConnectSmts.java"
PACKAGE = "org.apache.kafka.connect.transforms"
JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
AT = 1_700_010_123_004

PLAIN = {"value.converter": JSON, "value.converter.schemas.enable": "false", "header.converter": SIMPLE}
ENVELOPE = {"value.converter": JSON, "header.converter": JSON, "header.converter.schemas.enable": "false"}
NUMERIC = ENVELOPE | {
    "value.converter.decimal.format": "numeric",
    "value.converter.replace.null.with.default": "false",
    "value.converter.schemas.cache.size": "10",
}
PLAIN_KEY = {"key.converter": JSON, "key.converter.schemas.enable": "false"}
MAPS = (
    '{"id":7,"name":"Ada","sum":1.5,"ok":true,"none":null,"tags":["a",1],"at":1700010123004,"when":"2023-11-15 01:02",'
    '"inner":{"x":1,"deep":{"y":"z"},"list":[{"q":1}]},"emoji":"\\u00e9\\ud83d\\ude00\\u0007\\"\\\\"}',
    '{"id":-1}',
    "{}",
    '"text"',
    "5",
    "[1,2]",
    "null",
    None,
)
_TIMESTAMP = '{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp","version":1,"field":"at"}'
_FIELDS = (
    '{"type":"int32","field":"id"},{"type":"string","optional":true,"default":"x","field":"name"},'
    '{"type":"double","field":"sum"},{"type":"float","optional":true,"field":"part"},{"type":"boolean","field":"ok"},'
    '{"type":"int8","optional":true,"default":3,"field":"small"},{"type":"int16","optional":true,"field":"short"},'
    '{"type":"bytes","field":"data"},'
    '{"type":"array","items":{"type":"int64"},"field":"list"},' + _TIMESTAMP + ","
    '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2"},'
    '"field":"price"},{"type":"struct","optional":true,"name":"in","fields":[{"type":"string","field":"x"},'
    '{"type":"int16","optional":true,"field":"y"}],"field":"inner"}'
)
STRUCT = '{"type":"struct","name":"row","version":3,"optional":true,"fields":[' + _FIELDS + "]}"
STRUCTS = (
    f'{{"schema":{STRUCT},"payload":{{"id":7,"name":"Ada","sum":1.5,"part":0.1,"ok":true,"small":-1,"short":-300,'
    '"data":"aGk=","list":[1,2],"at":1700010123004,"price":"AJw=","inner":{"x":"y","y":5}}}',
    f'{{"schema":{STRUCT},"payload":{{"id":-7,"sum":1e300,"ok":false,"data":"","list":[],"at":-1,"price":"/w==",'
    '"inner":null}}',
    f'{{"schema":{STRUCT},"payload":{{"id":-7}}}}',
    f'{{"schema":{STRUCT},"payload":null}}',
    '{"schema":{"type":"string","optional":true},"payload":null}',
    '{"schema":{"type":"int32"},"payload":5}',
    '{"schema":null,"payload":{"id":1,"name":"n"}}',
    "{}",
    None,
)


@dataclass(frozen=True)
class Case:
    """Settings and one record."""

    settings: Mapping[str, str]
    record: RawRecord
    decodes: bool = True


def one(type_name: str, options: Mapping[str, str], converters: Mapping[str, str]) -> dict[str, str]:
    """A chain of one transform; the other side is bytes unless the converters say otherwise."""
    lines = {f"transforms.t.{name}": text for name, text in options.items()}
    return {"transforms": "t", "transforms.t.type": f"{PACKAGE}.{type_name}", **lines, **converters}


def on_values(texts: Sequence[str | None], settings: Mapping[str, str]) -> Iterator[Case]:
    for text in texts:
        value = None if text is None else text.encode()
        yield Case(settings, RawRecord("src.orders", 2, b'"key"', value, (("h", b"1"), ("n", None)), AT))


#: Transforms of fields, tried on maps and on structs.
OF_FIELDS: Sequence[tuple[str, Mapping[str, str]]] = (
    ("MaskField$Value", {"fields": "name,id,tags,none,missing,inner"}),
    ("MaskField$Value", {"fields": "id,sum,ok,part,small,short,at,list,price"}),
    ("MaskField$Value", {"fields": "id,name,sum", "replacement": "12.7"}),
    ("MaskField$Value", {"fields": "id,sum,part,small,short,price", "replacement": "12"}),
    ("MaskField$Value", {"fields": "id", "replacement": "x"}),
    ("MaskField$Value", {"fields": "data"}),
    ("MaskField$Value", {"fields": "name", "replace.null.with.default": "false"}),
    ("InsertField$Value", {"topic.field": "topic!", "partition.field": "p!", "timestamp.field": "ts?"}),
    ("InsertField$Value", {"static.field": "name", "static.value": "s"}),
    ("ReplaceField$Value", {"exclude": "name,data", "renames": "id:number,ok:id"}),
    ("ReplaceField$Value", {"include": "id,name", "renames": "id:first"}),
    ("ReplaceField$Value", {"include": "id,name", "exclude": "name"}),
    ("ExtractField$Value", {"field": "name"}),
    ("ExtractField$Value", {"field": "inner"}),
    ("ExtractField$Value", {"field": "inner.x", "field.syntax.version": "V2"}),
    ("ExtractField$Value", {"field": "missing"}),
    ("HoistField$Value", {"field": "whole"}),
    ("Flatten$Value", {}),
    ("Flatten$Value", {"delimiter": "_"}),
    ("HeaderFrom$Value", {"fields": "id,name", "headers": "a,b", "operation": "move"}),
    ("HeaderFrom$Value", {"fields": "name,inner", "headers": "a,b", "operation": "move"}),
    ("HeaderFrom$Value", {"fields": "sum,ok,tags", "headers": "a,b,c", "operation": "move"}),
    ("Cast$Value", {"spec": "id:int8,sum:string,ok:int64"}),
    ("Cast$Value", {"spec": "id:float32,sum:int32,small:boolean,name:boolean"}),
    ("Cast$Value", {"spec": "at:string,price:string,data:string"}),
    ("Cast$Value", {"spec": "at:int64,price:float64"}),
    ("Cast$Value", {"spec": "price:int8,small:int16"}),
    ("Cast$Value", {"spec": "name:int32"}),
    ("Cast$Value", {"spec": "string"}),
    ("Cast$Value", {"spec": "int16"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "unix", "unix.precision": "seconds"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "Date"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "Time"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "unix", "unix.precision": "microseconds"}),
    ("TimestampConverter$Value", {"field": "at", "target.type": "unix", "unix.precision": "nanoseconds"}),
    ("TimestampConverter$Value", {"field": "when", "target.type": "unix", "format": "yyyy-MM-dd HH:mm"}),
    ("TimestampConverter$Value", {"target.type": "unix"}),
)


def all_cases() -> Iterator[Case]:
    for name, options in OF_FIELDS:
        yield from on_values(MAPS, one(name, options, PLAIN))
        yield from on_values(STRUCTS, one(name, options, ENVELOPE))
        yield from on_values(STRUCTS, one(name, options, NUMERIC))
    yield from on_values(STRUCTS[:2], one("ReplaceField$Value", {"renames": "name:id"}, ENVELOPE))
    copied = {"fields": "id,name", "headers": "a,b", "operation": "copy"}
    yield from on_values(MAPS, one("HeaderFrom$Value", copied, PLAIN))
    for fields in ("id", "id,name", "missing"):
        yield from on_values(MAPS, one("ValueToKey", {"fields": fields}, {**PLAIN, **PLAIN_KEY}))
        yield from on_values(STRUCTS, one("ValueToKey", {"fields": fields}, {**ENVELOPE, **PLAIN_KEY}))
    yield from on_values(MAPS, one("ValueToKey", {"fields": "id"}, {**PLAIN, "key.converter": TEXT}))
    yield from _keys()
    yield from _envelopes()
    yield from _routing()
    yield from _literals()
    yield from _dates()
    yield from _numbers()


def _keys() -> Iterator[Case]:
    record = RawRecord("src.orders", 2, b'{"id":7,"name":"Ada","inner":{"x":1}}', b'{"id":1}', (("h", b"1"),), AT)
    for name, options in (
        ("MaskField$Key", {"fields": "id"}),
        ("HeaderFrom$Key", {"fields": "id,missing", "headers": "a,b", "operation": "move"}),
        ("HoistField$Key", {"field": "whole"}),
        ("Flatten$Key", {"delimiter": "#"}),
    ):
        yield Case(one(name, options, {**PLAIN, **PLAIN_KEY}), record)


def _envelopes() -> Iterator[Case]:
    """Payloads of each schema, and what is no schema, as in Kafka's `JsonConverterTest`."""
    logical = "org.apache.kafka.connect.data"
    with_map = '{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}}'
    envelopes = (
        ('{"type":"boolean"}', "true"),
        ('{"type":"boolean","optional":true}', "null"),
        ('{"type":"boolean","default":true}', "null"),
        ('{"type":"int8"}', "12"),
        ('{"type":"int8"}', "null"),
        ('{"type":"int64"}', "4398046511104"),
        ('{"type":"float"}', "12.34"),
        ('{"type":"double"}', "12"),
        ('{"type":"bytes"}', '"dGVzdC1zdHJpbmc="'),
        ('{"type":"string","name":"n","version":2,"doc":"d","parameters":{"p":"q"}}', '"text"'),
        ("null", "[1, 2]"),
        ('{"type":"array","items":{"type":"int32"}}', "[1,2]"),
        (with_map, '{"key1":12}'),
        ('{"type":"map","keys":{"type":"int32"},"values":{"type":"int32"}}', "[[1,12],[2,15]]"),
        (f'{{"type":"bytes","name":"{logical}.Decimal","parameters":{{"scale":"2"}}}}', '"AJw="'),
        (f'{{"type":"int32","name":"{logical}.Date","version":1}}', "10000"),
        (f'{{"type":"int32","name":"{logical}.Time","version":1}}', "10000"),
        (f'{{"type":"int64","name":"{logical}.Timestamp","version":1}}', "4000000000"),
        (f'{{"type":"struct","fields":[{with_map[:-1]},"field":"m"}}]}}', '{"m":{}}'),
        ("{}", "null"),
        ('{"type":"date"}', "null"),
        ('{"type":"array"}', "null"),
        ('{"type":"map","keys":{"type":"string"}}', "null"),
        ('{"type":"struct"}', "null"),
        ('{"type":"struct","fields":[{"type":"string"}]}', "null"),
    )
    for name, options in (("HoistField$Value", {"field": "whole"}), ("Flatten$Value", {})):
        texts = [f'{{"schema":{schema},"payload":{payload}}}' for schema, payload in envelopes]
        yield from on_values(texts, one(name, options, ENVELOPE))


def _routing() -> Iterator[Case]:
    record = RawRecord("src.orders-2023", 1, b"k", b"v", (("old", b"1"), ("kept", b"2"), ("old", None)), AT)
    for regex, replacement in (
        *((r"src\.(.*)", "$1"), ("src|src.*", "x"), ("(?<a>s).*", "${a}$1\\$"), ("other", "x")),
        *(("src", "whole names only"), ("(.*)", "copy_$1"), (r"(?<site>\w+)\.\w+-(\d\d\d\d)", "${site}.$2")),
    ):
        yield Case(one("RegexRouter", {"regex": regex, "replacement": replacement}, {}), record)
    yield Case(one("TimestampRouter", {}, {}), record)
    without_time = RawRecord("src.orders", 1, None, b"{}")
    yield Case(one("TimestampRouter", {}, {}), without_time)
    yield Case(one("InsertField$Value", {"timestamp.field": "at"}, PLAIN), without_time)
    for pattern in (
        *("yyyy-MM-dd'T'HH", "EEE MMM d k K h a D u yy", "EEEE MMMM SSSS z Z X XX XXX zzzz", "D u k EEEE S SSSSSS y M"),
        # From Java's documentation of `SimpleDateFormat`.
        *("yyyy.MM.dd 'at' HH:mm:ss z", "EEE, MMM d, ''yy", "h:mm a", "hh 'o''clock' a, zzzz", "K:mm a, z"),
        *("yyyyy.MMMMM.dd hh:mm aaa", "EEE, d MMM yyyy HH:mm:ss Z", "yyMMddHHmmssZ", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
    ):
        yield Case(one("TimestampRouter", {"topic.format": "${timestamp}", "timestamp.format": pattern}, {}), record)
    yield Case(one("DropHeaders", {"headers": "old, none"}, {}), record)
    for name, options in (
        ("TopicNameMatches", {"pattern": "src.orders.*"}),
        ("TopicNameMatches", {"pattern": "src"}),
        ("HasHeaderKey", {"name": "old"}),
        ("RecordIsTombstone", {}),
    ):
        for negate in ("true", "false"):
            lines = {f"predicates.p.{key}": text for key, text in options.items()}
            settings = one("Filter", {"predicate": "p", "negate": negate}, lines)
            settings |= {"predicates": "p", "predicates.p.type": f"{PACKAGE}.predicates.{name}"}
            yield Case(settings, record)
            yield from (Case(settings, RawRecord("t", 0, None, value, (), 0)) for value in (None, b""))


def _literals() -> Iterator[Case]:
    texts = (
        *("text", "null", "true", "5", "-129", "1e3", "1.50", "3.14159265358979", "1e39", "10:30", "1,5", "-", "+7"),
        *("2019-08-23", "14:34:54.346Z", "2019-08-23T14:34:54.346Z", "2019-99-99", "12345678901234567890", '"q"'),
        *("0.1", "a:b", "false]", "007", "1.", ".5", "- 5", "99999999999999999999.5", "1e400"),
        *("  ", " null ", "null=", "true}", "False", "32768", "2147483648", "1st", "14:34:54.346"),
    )
    for converter in (SIMPLE, JSON):
        for text in texts:
            settings = one("InsertHeader", {"header": "h", "value.literal": text}, {"header.converter": converter})
            yield Case(settings, RawRecord("t", 0, b"k", b"v", (("old", b"1"),), AT))


def _dates() -> Iterator[Case]:
    reads = {
        "yyyyMMddHHmmss": ("20010704120856", "2001070412085", "20011301000000"),
        "yyyy-MM-dd": ("2001-7-4", "2001-13-32", "2001-07-04 more", "2001/07/04", ""),
        "EEE, d MMM yyyy HH:mm:ss Z": ("Wed, 4 Jul 2001 12:08:56 -0700", "wed, 4 july 2001 1:2:3 +0000", "x"),
        "yyyy-MM-dd'T'HH:mm:ssX": ("2001-07-04T12:08:56Z", "2001-07-04T12:08:56+02", "2001-07-04T12:08:56"),
        "yyyy-MM-dd hh:mm a": ("2001-07-04 12:08 AM", "2001-07-04 12:08 pm", "2001-07-04 01:08 PM"),
        "yyyy-MM-dd kk.SSS": ("2001-07-04 24.5", "2001-07-04 01.050"),
        "yyyy-MM-dd HH:mm": ("2001-07-04 12:08 and more",),
        "yyyy-M-d": ("2001-7-4", "2001/07/04"),
        "d MMM yyyy": ("4 july 2001", "4 Foo 2001"),
        "ss.SSS": ("1.5",),
        "yyyy": ("  2001", "x"),
        "yyyyMMdd": ("200107",),
        "yyyy z": ("2001 ",),
    }
    for pattern, texts in reads.items():
        settings = one("TimestampConverter$Value", {"target.type": "unix", "format": pattern}, PLAIN)
        yield from on_values([json.dumps(text) for text in texts], settings)


def _numbers() -> Iterator[Case]:
    """Doubles and longs of all sizes as texts, and texts as numbers."""
    draw = random.Random(7)
    doubles = [draw.uniform(-10, 10) * 10.0 ** draw.randint(-320, 308) for _ in range(150)]
    longs = [draw.randint(-(1 << draw.randint(1, 63)), 1 << draw.randint(1, 62)) for _ in range(50)]
    texts = [repr(number) for number in [*doubles, *longs, 0.0, -0.0, 5e-324, 1e22, 1e23, 9007199254740993.0]]
    for kind in ("string", "float32", "int8", "int16", "int32", "int64", "boolean"):
        yield from on_values(texts, one("Cast$Value", {"spec": kind}, PLAIN))
    words = ("1", "-1", "+1", "1.5", " 1 ", "1e3", "1f", "NaN", "-Infinity", "", "x", "99999999999", "true", "TRUE")
    for kind in ("int8", "int32", "int64", "float32", "float64", "boolean"):
        yield from on_values([json.dumps(word) for word in words], one("Cast$Value", {"spec": kind}, PLAIN))


@pytest.fixture(scope="module")
def answers() -> list[tuple[Case, Any]]:
    """What Java says about all cases, of which one JVM is enough."""
    asked = list(all_cases())
    done = subprocess.run(
        [
            *(str(find_java()), "-Xmx256m", "-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"),
            *("-cp", classpath(fetch(mirror_maker())), str(PROGRAM)),
        ],
        input=json.dumps([_as_json(case) for case in asked]),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return list(zip(asked, json.loads(done.stdout), strict=True))


def _as_json(case: Case) -> dict[str, Any]:
    return {"settings": dict(case.settings), "decodes": case.decodes, "record": _record_json(case.record)}


def _record_json(record: RawRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [[name, _base64(data)] for name, data in record.headers],
    }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def ours(case: Case) -> dict[str, Any] | None:
    parsed = parse_settings(case.settings)
    assert parsed.chain is not None, parsed.problems
    try:
        after = SmtChain(parsed.chain, case.decodes).transform(case.record)
    except SmtError as error:
        return {"error": error.problem}
    if after is None:
        return None
    if after.value is case.record.value:
        # What no transform has changed keeps its bytes with us, and is written anew by Connect.
        after = after._replace(
            value=encode(parsed.chain.value_converter, *decode(parsed.chain.value_converter, after.value))
        )
    return _record_json(after)


def comparable(case: Case, answer: Any) -> Any:
    """Contents that are JSON as values, for Java's maps have no order and its numbers no memory of their texts.

    Numbers are compared as the `double` or `float` that they mean: before version 19 Java often writes more digits than
    needed.
    """
    if answer is None or "error" in answer:
        return answer and "error"
    number = as_float32 if case.settings.get("transforms.t.spec") == "float32" else float
    return {name: _comparable_part(part, number) for name, part in answer.items()}


def _comparable_part(part: Any, number: Callable[[float], float]) -> Any:
    if isinstance(part, list):
        return [[name, _comparable_part(data, number)] for name, data in part]
    if not isinstance(part, str):
        return part
    try:
        value = json.loads(base64.b64decode(part, validate=True), parse_float=lambda text: number(float(text)))
        return float(value) if isinstance(value, str) and value != "NaN" else value
    except ValueError:
        return part


#: Of this text Java makes a tombstone, and here it stays.
NULL = b"null"


def test_all_records_arrive_as_from_connect(answers: list[tuple[Case, Any]]) -> None:
    different = [
        (case, theirs, mine)
        for case, theirs in answers
        if case.record.value != NULL and comparable(case, theirs) != comparable(case, mine := ours(case))
    ]

    assert different == []
    assert sum(1 for _, theirs in answers if theirs is not None and "error" not in theirs) > len(answers) / 3


def test_errors_say_what_connect_says(answers: list[tuple[Case, Any]]) -> None:
    """For the transforms of fields, whose messages people look up."""
    shared = ("Only Map objects", "Only Struct objects", "Cannot mask value", "Unknown field", "Cannot create field")
    told = 0
    for case, theirs in answers:
        if theirs is None or not str(theirs.get("error", "")).startswith(shared):
            continue
        mine = ours(case)
        assert mine["error"].rstrip(".") == theirs["error"].rstrip(".")
        told += 1
    assert told > 50

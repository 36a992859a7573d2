"""SQL that would reach more than its record: files, other tables, Java, programs."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_lib.features.transforms.sql.expressions import check_column, check_filter, check_select

#: As a part of an expression.
REACHING = (
    "java_method('java.lang.System', 'exit', 1)",
    "reflect('a', 'b')",
    "try_reflect('a', 'b')",
    "JAVA_METHOD ('a', 'b')",
    "builtin.java_method('a', 'b')",
    "system.builtin.reflect('a', 'b')",
    "`java_method`('a', 'b')",
    "java_method/* x */('a', 'b')",
    "java_method -- x\n ('a', 'b')",
    "identifier('java_method')('a', 'b')",
    "identifier('key')",
    "transform(headers, x -> reflect('a', x.key))",
    "secret('scope', 'name')",
    "read_files('/etc/passwd')",
    "company.mask(key)",
    "xpath(value, '/a')",
    "XPATH_String(value, '/a')",
    "`xpath_boolean`(value, '/a')",
    "system.builtin.xpath_int(value, '/a')",
    "transform(headers, x -> xpath_number/**/(x.value, '/a'))",
    "schema_of_xml(value, map('rowValidationXSDPath', '/etc/passwd'))",
    "from_avro(value, '{}', map('avroSchemaUrl', '/etc/passwd'))",
    "from_xml(value, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
    "from_protobuf(value, 'Message', '/etc/passwd')",
    "(SELECT value FROM text.`/etc/passwd`)",
    "EXISTS(SELECT 1 FROM parquet.`/x`)",
    "EXISTS(TABLE x)",
    "key IN (TABLE x)",
    "key IN (VALUES (1))",
    "key IN (FROM text.`/etc/passwd`)",
    "key IN (FROM text.`/etc/passwd` |> SELECT value)",
    "key IN (WITH x AS (SELECT 1) SELECT * FROM x)",
    "(SELECT TRANSFORM(key) USING 'cat' AS (x) FROM records)",
    # What sqlglot cannot read, or passes over.
    "key >>> (SELECT 1 FROM text.`/x`)",
    "value:a = (TABLE x)",
    "value:a = (VALUES (1))",
    "value:a = (FROM text.`/etc/passwd`)",
    "value:a = `java_method`('a', 'b')",
    "upper(key, (SELECT value FROM text.`/x`))",
    "X '1F' = (WITH x AS (TABLE y) TABLE x)",
    # What Spark and sqlglot split into words differently.
    "key -- \r || java_method('a', 'b')",
    "key -- \\\n'\n || java_method('a', 'b') --'",
    "/* /* */ ' */ || java_method('a', 'b') /* '*/",
    # What Spark replaces before it parses, also in strings and comments.
    "'${env:HOME}'",
    "'${spark:spark.authenticate.secret}'",
    "'x${'||\"}'||java_method('java.lang.System','getenv','HOME')||'\" -- '",
    "key /* ${x} */",
    "/*+ x */ key",
    "b'x'",
    "key \u00a0 || key",
    "key \x0c || key",
)


def test_an_expression_that_reaches_more_than_its_record_is_refused(subtests: pytest.Subtests) -> None:
    for text in REACHING:
        with subtests.test(text):
            for checked in (
                check_column(text),
                check_column(f"concat(key, {text})"),
                check_filter(f"{text} IS NOT NULL"),
            ):
                assert not checked.is_valid
            for file in (f"SELECT {text} AS key FROM records", f"SELECT key FROM records WHERE {text} IS NULL"):
                assert not check_select(file).is_valid


def test_a_select_of_more_than_the_records_is_refused() -> None:
    for text in [
        "SELECT key FROM text.`/etc/passwd`",
        "SELECT key FROM text.`/etc/passwd` AS records",
        "SELECT key FROM parquet.`/x` records",
        "SELECT key FROM `text`.`/etc/passwd` records",
        "SELECT key FROM spark_catalog.text.`/etc/passwd`",
        "SELECT key FROM records, text.`/etc/passwd`",
        "SELECT key FROM records JOIN x",
        "SELECT key FROM records -- x\r, text.`/etc/passwd`",
        "SELECT key FROM IDENTIFIER('text.x')",
        "SELECT key FROM read_files('/x') records",
        "SELECT key FROM (TABLE x) records",
        "SELECT key FROM VALUES (1) records(key)",
        "SELECT key FROM records LATERAL VIEW java_method('a', 'b') x",
        "SELECT key FROM records LATERAL VIEW explode((SELECT collect_list(value) FROM text.`/x`)) x AS y",
        "SELECT key FROM records, LATERAL (SELECT 1)",
        "SELECT key FROM records, LATERAL explode(headers)",
        "WITH records AS (TABLE x) SELECT key FROM records",
        "WITH records AS (SELECT * FROM text.`/x`) SELECT key FROM records",
        "SELECT key FROM records UNION SELECT value FROM text.`/x`",
        "FROM text.`/x` SELECT key",
        "FROM records SELECT TRANSFORM(key) USING 'cat' AS (key)",
        "FROM records MAP key USING 'cat' AS key",
        "SELECT TRANSFORM(key) USING 'cat /etc/passwd' AS (key) FROM records",
        "SELECT TRANSFORM(key) USING 'cat' AS key FROM records",
        "SELECT MAP key USING 'cat' AS (key) FROM records",
        "SELECT REDUCE key USING 'cat' AS (key) FROM records",
        "SELECT value:a >>> (SELECT 1 FROM text.`/x`) AS key FROM records",
        "SELECT value:a AS key FROM text.`/x`",
        "SELECT key FROM STREAM records",
        "SELECT key FROM records WITH ('path'='/x')",
        "TABLE text.`/x`",
        "VALUES (1)",
        "SET x = y",
        "ADD JAR '/x'",
        "CREATE TEMPORARY FUNCTION x AS 'y'",
    ]:
        assert not check_select(text).is_valid, text


def test_what_reaches_its_record_only_is_taken() -> None:
    for text in [
        "concat('java_method(', key, ') -- /* text')",
        r"regexp_replace(key, r'\d+', 'it\'s')",
        "value.reflect",
        "value.`select`",
        "named_struct('select', key, 'table', value)",
        "key -- the key\n || value /* as it is */",
        "trim(BOTH 'x' FROM value)",
        "from_avro(value, '\"string\"')",
        "from_json(value, 'a INT', map('mode', 'FAILFAST'))",
    ]:
        assert check_column(text).is_valid, text
        assert check_select(f"SELECT {text} AS key FROM records").is_valid, text


PIECES = st.sampled_from(["'", '"', "`", "--", "/*", "*/", "\n", "\r", "\\", " ", "r'", "x", "(", ")", ";", "$$"])


@given(st.lists(PIECES, max_size=12), st.lists(PIECES, max_size=12))
@example(["--", "\r"], [])
@example(["--", "\\", "\n", "'", "\n"], ["--", "'"])
def test_no_quotes_and_comments_hide_a_call_from_the_check(before: list[str], behind: list[str]) -> None:
    """Whatever stands around it: a call that Spark's lexer sees is refused."""
    call = "java_method('a','b')"
    text = f"{''.join(before)}{call}{''.join(behind)}"
    if call_in_spark(text, len("".join(before))):
        assert not check_column(text).is_valid


def call_in_spark(text: str, place: int) -> bool:
    """True if a place is code for Spark (`SqlBaseLexer.g4`): no part of a string, a quoted name or a comment."""
    index = 0
    while index < place:
        rest = text[index:]
        if rest.startswith("--"):
            index = end_of_line(text, index)
        elif rest.startswith("/*") and not rest.startswith("/*+"):
            index = end_of_brackets(text, index)
        elif rest[:2].lower() in ("r'", 'r"'):
            index = end_of_quote(text, index + 1, escapes=False)
        elif rest[0] in "'\"":
            index = end_of_quote(text, index, escapes=True)
        elif rest[0] == "`":
            index = end_of_quote(text, index, escapes=False)
        else:
            index += 1
    return index == place


def end_of_line(text: str, index: int) -> int:
    while index < len(text):
        if text.startswith("\\\n", index):
            index += 2
        elif text[index] in "\r\n":
            return index
        else:
            index += 1
    return index


def end_of_brackets(text: str, index: int) -> int:
    depth = 0
    while index < len(text):
        if text.startswith("/*", index) and not text.startswith("/*+", index):
            depth, index = depth + 1, index + 2
        elif text.startswith("*/", index):
            depth, index = depth - 1, index + 2
            if depth == 0:
                return index
        else:
            index += 1
    return len(text)


def end_of_quote(text: str, index: int, *, escapes: bool) -> int:
    quote = text[index]
    index += 1
    while index < len(text):
        if escapes and text[index] == "\\":
            index += 2
        elif text[index] == quote:
            return index + 1
        else:
            index += 1
    return len(text)

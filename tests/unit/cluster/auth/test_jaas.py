"""`sasl.jaas.config`: what Kafka's own `JaasConfig` class (clients 4.3.1, Java 17) answered for the same texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.auth.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_what_java_accepts_gives_the_same_options() -> None:
    for text, options in (
        (
            f'{PLAIN} required username="alice" password="a;b=\\"c\\\\d\'e";',
            {"username": "alice", "password": "a;b=\"c\\d'e"},
        ),
        ("M required a=b;", {"a": "b"}),
        ('M required a="1" ;', {"a": "1"}),
        ("M REQUIRED a='x y';", {"a": "x y"}),
        ("M required;", {}),
        ("M required a=b // c\n;", {"a": "b"}),
        ('M required a="/etc/x";', {"a": "/etc/x"}),
        ("M required a=b.c-d_e$f;", {"a": "b.c-d_e$f"}),
        ("M required a=x1;", {"a": "x1"}),
        ('M required a="t\\tb\\101\\q";', {"a": "t\tbAq"}),
        ('M required a="\\777";', {"a": "?7"}),
        ('M required a =\n "b" ;', {"a": "b"}),
        ('M required a="é ü";', {"a": "é ü"}),
        ("M required a=é;", {"a": "é"}),
        ('M required "a"="b";', {"a": "b"}),
        ('M required a="";', {"a": ""}),
        ('M required a="b"c="d";', {"a": "b", "c": "d"}),
        ("M required /* x */ a=b;", {"a": "b"}),
        ("M required a.b=c;", {"a.b": "c"}),
    ):
        assert dict(parse_jaas(text).options) == options, text


def test_what_java_refuses_is_refused(subtests: pytest.Subtests) -> None:
    for text in (
        "M required a=1;",
        "M required",
        "M required a=b",
        "M required a=/etc/x;",
        "M required a=-x;",
        "M required a=1x;",
        "M foo a=b;",
        "",
        'M required a="x\ny";',
        "M required a=;",
        "M required a=b,c=d;",
        "M required a=b;;",
        "M required -a=c;",
        "1 required a=c;",
        "M required a=#x;",
        "# c\nM required a=b;",
        'M required a="unterminated;',
    ):
        with subtests.test(text=text), pytest.raises(ValueError):
            parse_jaas(text)


def test_two_login_modules_are_refused_as_for_every_java_client() -> None:
    with pytest.raises(ValueError, match="exactly one login module"):
        parse_jaas("M required a=b; N required;")


def test_a_refusal_never_repeats_a_secret() -> None:
    with pytest.raises(ValueError) as refusal:
        parse_jaas('M required password="s3cret" username=;')
    assert "s3cret" not in str(refusal.value)


def test_a_refusal_names_the_place_and_no_text(subtests: pytest.Subtests) -> None:
    """A secret that stands unquoted, or holds a quote, is read as anything."""
    for text in (
        "hunter2 = pass;",
        "M hunter2;",
        "M required hunter2;",
        'M required "hunter2" x;',
        "M required hunter2=;",
        "M required hunter2=1;",
        "M required =hunter2;",
        'M required password="ab" hunter2";',
    ):
        with subtests.test(text=text):
            with pytest.raises(ValueError, match=r"token [1-9]") as refusal:
                parse_jaas(text)
            assert "hunter2" not in str(refusal.value)


def test_the_entry_hides_its_options() -> None:
    assert "s3cret" not in repr(parse_jaas('M required password="s3cret";'))


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,10}", fullmatch=True)
values = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)), max_size=30)


@given(module=names, options=st.dictionaries(names, values, max_size=4))
def test_any_quoted_value_survives(module: str, options: dict[str, str]) -> None:
    quoted = " ".join(
        '{}="{}"'.format(key, value.replace("\\", "\\\\").replace('"', '\\"')) for key, value in options.items()
    )
    entry = parse_jaas(f"{module} required {quoted};")
    assert (entry.login_module, dict(entry.options)) == (module, options)

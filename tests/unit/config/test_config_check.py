"""All problems of a file in one pass."""

from __future__ import annotations

from mirror_lib.config.first_start import EARLIEST, LATEST, first_starts
from mirror_lib.config.loader import check, load
from mirror_lib.config.model import Severity
from tests.support.config_files import TWO_CLUSTERS, ConfigFile

_LOGIN = (
    "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n"
    "A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="{}" password="Endpoint=sb://x/";\n'
)


def test_all_problems_are_told_at_once_with_their_lines(file: ConfigFile) -> None:
    problems = file.problems(
        "A->B.topcs = x\ntasks.max = 0\nA->B.mirror.schedule = 5x\nB.security.protocol = TLS\nfoo.bar = 1\n"
    )
    assert [(p.severity, p.line, p.key) for p in problems] == [
        (Severity.ERROR, 5, "A->B.topcs"),
        (Severity.ERROR, 6, "tasks.max"),
        (Severity.ERROR, 7, "A->B.mirror.schedule"),
        (Severity.ERROR, 8, "B.security.protocol"),
        (Severity.NO_EFFECT, 9, "foo.bar"),
    ]


def test_misspelt_keys_are_errors_with_a_suggestion(file: ConfigFile) -> None:
    for line, suggestion in [
        ("A->B.topcs = x", "A->B.topics"),
        ("A->B.topic.exclude = x", "A->B.topics.exclude"),
        ("emit.heartbeat.enabled = true", "emit.heartbeats.enabled"),
        ("sync_group_offsets_enabled = true", "sync.group.offsets.enabled"),
        ("tasksMax = 2", "tasks.max"),
        ("taks.max = 2", "tasks.max"),
        ("mirror.shedule = 5m", "mirror.schedule"),
        ("replication.facter = 1", "replication.factor"),
        ("A.securty.protocol = SSL", "A.security.protocol"),
        ("B.offset.flush.intervall.ms = 1", "B.offset.flush.interval.ms"),
        ("a->b.enabled = true", "A->B.enabled"),
        ("b->a.enabled = true", "B->A.enabled"),
        ("a.security.protocol = SSL", "A.security.protocol"),
        ("A-B.enabled = true", "A->B.enabled"),
        ("A_B.topics = x", "A->B.topics"),
        ("A=>B.topics = x", "A->B.topics"),
        ("A-&gt;B.topics = x", "A->B.topics"),
        ("A => B.topics = x", "A->B.topics"),
        ("A->B.source.consumr.fetch.min.bytes = 1", "A->B.source.consumer.fetch.min.bytes"),
        ("replication.policy.class = DefaultReplicationPolicy", "connect.mirror.DefaultReplicationPolicy"),
        ("A -> B.tasks.max = 1", "A->B.tasks.max"),
        ("A->B .tasks.max = 1", "A->B.tasks.max"),
        ("A-> B.tasks.max = 1", "A->B.tasks.max"),
        ("A->B. tasks.max = 1", "A->B.tasks.max"),
        ("A .security.protocol = SSL", "A.security.protocol"),
        ("mirror.something.else = 1", "mirror config keys"),
        ("<<<<<<< HEAD", "finish the merge"),
        (">>>>>>> branch", "finish the merge"),
    ]:
        problem = file.one(line)
        assert problem.severity is Severity.ERROR, line
        assert problem.suggestion is not None, line
        assert suggestion in problem.suggestion, line


_THIRD = "C.bootstrap.servers = c:9092\nC.security.protocol = SSL\nC.ssl.truststore.location = /t\n"


def test_given_a_cluster_that_is_not_in_clusters_then_its_lines_have_no_effect_as_in_mm2(file: ConfigFile) -> None:
    for line in [
        "B->C.enabled = true",
        "C->B.topics = x",
        "C.replication.factor = 1",
        "C.producer.acks = all",
        "C.consumer.auto.offset.reset = latest",
    ]:
        problems = file.problems(_THIRD + line + "\n")

        assert [problem.line for problem in problems] == [5, 6, 7, 8], line
        assert {problem.severity for problem in problems} == {Severity.NO_EFFECT}, line
        assert all("to clusters, or delete the line" in (problem.suggestion or "") for problem in problems), line


def test_given_similar_aliases_then_one_is_asked_for_and_not_taken(file: ConfigFile) -> None:
    base = TWO_CLUSTERS.replace("A", "us-east-1").replace("B", "us-east-2")
    lines = "us-east-3.security.protocol = SSL\nus-east-3->us-east-2.topics = x\n"

    problems = file.problems("us-east-3.bootstrap.servers = c:9092\n" + lines, base) + file.problems(lines, base)

    assert [problem.severity for problem in problems] == 5 * [Severity.NO_EFFECT]

    base = TWO_CLUSTERS.replace("A", "us-east-1").replace("B", "eu")

    problems = file.problems("us-east-2.security.protocol = SSL\nus-east-2->eu.topics = x\n", base)

    assert [(problem.rename_to, problem.suggestion) for problem in problems] == [
        (None, "did you mean us-east-1.security.protocol? Else add us-east-2 to clusters, or delete the line"),
        (None, "did you mean us-east-1->eu.topics? Else add its clusters to clusters, or delete the line"),
    ]


def test_given_addresses_under_a_misspelt_alias_then_they_are_errors_of_the_cluster_that_lacks_them(
    file: ConfigFile,
) -> None:
    base = (
        TWO_CLUSTERS.replace("A.boot", "Alpha.boot")
        .replace("clusters = A", "clusters = alpha")
        .replace("A->", "alpha->")
    )

    problems = file.problems("Alpha.security.protocol = SSL\n", base)

    assert [(problem.line, problem.rename_to) for problem in problems if problem.line] == [
        (2, "alpha.bootstrap.servers"),
        (5, "alpha.security.protocol"),
    ]


def test_values_that_cannot_be_used_are_errors(file: ConfigFile) -> None:
    for line in [
        "tasks.max = 0",
        # MM2 creates no topic with it.
        "replication.factor = 0",
        "checkpoints.topic.replication.factor = -2",
        "offset.storage.replication.factor = 0",
        "tasks.max = two",
        "enabled = yes",
        "offset-syncs.topic.location = both",
        "mirror.produce.max.in.flight = 6",
        "mirror.topics.rename = a",
        "A->B.mirror.ledger.url = sqlite:///x",
        "A.mirror.schedule = 5m",
        "A.admin.bootstrap.servers = host",
        "A.producer.bootstrap.servers = host:99999",
        "A.consumer.isolation.level = serializable",
        "A->B.topics = a(",
        "mirror.topics.rename.regex = (",
        # Of both parts of a rename one is missing.
        "A->B.mirror.topics.rename.regex = a(.*)",
        "replication.policy.class = com.example.MyPolicy",
        "topic.filter.class = no.such.module.Filter",
        # In a vendor's example.
        "A->A1B->B.topics = .*",
    ]:
        problems = file.problems(line)
        assert any(p.severity is Severity.ERROR and p.line == 5 for p in problems), (line, problems)
    group = file.one("mirror.topics.rename.regex = a(.*)\nmirror.topics.rename.replacement = $2\n")
    assert (group.severity, group.line) == (Severity.ERROR, 6)
    for url in (
        "mysql://me:secret@host/db",
        "postgresql+psycopg2://me:secret@host/db",
        "sqlite:///:memory:",
        "over-there",
    ):
        problem = file.one(f"mirror.ledger.url = {url}\n")
        assert (problem.severity, problem.line) == (Severity.ERROR, 5), url
        assert "of SQLite or PostgreSQL" in problem.message, url
        assert "secret" not in problem.message, url


def test_what_has_no_effect_here_is_a_warning_that_says_so(file: ConfigFile) -> None:
    for line in [
        # Renamed, and honoured here.
        "topics.blacklist = x",
        "A->B.groups.blacklist = x",
        "A->B.mirror.way.back = true",
        # What MM2 has and this program does not do.
        "A->B.transforms.x.type = y",
        "A->B.exactly.once.support = required",
        "dedicated.mode.enable.internal.rest = true",
        "forwarding.admin.class = com.example.Admin",
        "key.converter = x",
        "A->B.producer.client.id = me",
        "config.providers.x.class = y",
    ]:
        problem = file.one(line)
        assert problem.severity is Severity.WARNING, line
        assert problem.line == 5, line
        assert problem.key == line.split(" ")[0], line


def test_what_mm2_ignores_as_well_refuses_no_file(file: ConfigFile) -> None:
    for line, todo in [
        # Removed, newer.
        ("use.incremental.alter.configs = never", "delete the line"),
        ("add.source.alias.to.metrics = true", "delete the line"),
        # KIP-382 and vendor documents.
        ("readahead.queue.capacity = 500", "delete the line"),
        ("A->B.heartbeats.topic.retention.ms = 1", "delete the line"),
        ("A->B.enable = true", "delete the line"),
        ("source.replication.topic.a = b", "delete the line"),
        ("target.cluster.bootstrap.servers = x:1", "delete the line"),
        ("max.tasks = 4", "delete the line"),
        ("heartbeats.enabled = true", "delete the line"),
        ("emit.checkpoints.interval.ms = 5000", "delete the line"),
        # MirrorMaker 1, brokers.
        ("num.streams = 4", "delete the line"),
        ("A.consumer.config = x", "delete the line"),
        ("offsets.topic.replication.factor = 1", "delete the line"),
        # At the wrong place: told where it counts, if it counts anywhere here.
        ("transforms.x.type = y", "write <source>-><target>.transforms.x.type, or delete the line"),
        ("A.predicates.x.type = y", "write predicates.x.type under a flow, or delete the line"),
        ("use.defaults.from = source", "write <source>-><target>.use.defaults.from, or delete the line"),
        ("exactly.once.support = required", "delete the line"),
        ("offset.flush.interval.ms = 1", "write <target>.offset.flush.interval.ms, or delete the line"),
        ("group.id = g", "delete the line"),
        ("plugin.path = /x", "delete the line"),
        ("batch.size = 1", "delete the line"),
        ("client.rack = r1", "write <alias>.consumer.client.rack, or delete the line"),
        ("consumer.fetch.min.bytes = 1", "delete the line"),
        ("consumer.isolation.level = read_committed", "write <alias>.consumer.isolation.level, or delete the line"),
        ("producer.override.max.request.size = 1", "<source>-><target>.producer.override.max.request.size"),
        ("A.fetch.min.bytes = 1", "delete the line"),
        ("A.isolation.level = read_committed", "write A.consumer.isolation.level, or delete the line"),
        ("A.topics = x", "write topics at the top level or under a flow, or delete the line"),
        ("A->B.offset.storage.topic = x", "write B.offset.storage.topic, or delete the line"),
        ("A->B.ssl.key.password = x", "write <alias>.ssl.key.password, or delete the line"),
        ("A->B.isolation.level = read_committed", "write A->B.source.consumer.isolation.level, or delete the line"),
        ("A->B.consumer.override.fetch.min.bytes = 1", "delete the line"),
        ("A.consumer.my.interceptor = 1", "delete the line"),
        ("A->B.clusters = A", "write clusters, or delete the line"),
        ("source.consumer.client.rack = r", "write <source>-><target>.source.consumer.client.rack, or delete the line"),
        # Names of other words than a setting's are no misspelling of it; published files have them.
        ("emit.offset-syncs.interval.seconds = 5", "delete the line"),
        ("offset-syncs.topic.partitions = 1", "delete the line"),
        ("source.offsets.replication.factor = 3", "delete the line"),
        ("A->B.source.client_id = x", "delete the line"),
        ("mm.enable.internal.rest = true", "delete the line"),
        ("checkpoints.replication.factor = 1", "or write checkpoints.topic.replication.factor if it was meant"),
        ("source.cluster.sasl.mechanism = PLAIN", "write security.protocol, sasl.* and ssl.* under the alias"),
        ("A.cluster.security.protocol = SSL", "write security.protocol, sasl.* and ssl.* under the alias"),
        ("cluster.A.brokers.list = a:9092", "write <alias>.bootstrap.servers, or delete the line"),
        ("A.boostrap.servers = x:1", "delete the line"),
        ("A->A.enabled = true", "delete the line"),
        ("north->south.enabled = true", "add its clusters to clusters, or delete the line"),
        # Nobody's.
        ("foo.bar = 1", "delete the line"),
        ("my.own.note = 1", "delete the line"),
        ("A.what.ever = 1", "delete the line"),
        ("A->B.what.ever = 1", "delete the line"),
    ]:
        problem = file.one(line)
        assert problem.severity is Severity.NO_EFFECT, line
        assert problem.line == 5, line
        assert problem.key == line.split(" ")[0], line
        assert todo in (problem.suggestion or ""), line


def test_what_works_is_no_problem(file: ConfigFile) -> None:
    for text in [
        "",
        "B.offset.flush.timeout.ms = 1",
        "B.offset.storage.topic = x",
        "B.group.id = x",
        "offset.storage.replication.factor = -1",
        "config.storage.replication.factor = 1",
        "status.storage.replication.factor = 1",
        "A->B.use.defaults.from = source",
        "replication.policy.my.own = 1",
        "ssl.truststore.location = /x",
        "security.protocol = plaintext",
        "A.ssl.truststore.location = /x",
        "A->B.source.cluster.ssl.truststore.location = /x",
        "replication.factor = -1",
        "A->B.topics = orders, clicks-[0-9]+",
        "A->B.topics = products\\\\..*",
        "topic.filter.class = mirror_lib.topology.filters.DefaultTopicFilter",
        "mirror.topics.rename.regex = a(.*)\nmirror.topics.rename.replacement = $1",
        "emit.offset-syncs.enabled = false\nemit.checkpoints.enabled = false",
        # Excluded from topic configs, or set: the target keeps its safety.
        "config.properties.exclude = min\\\\.insync\\\\.replicas, unclean.*",
        "config.properties.exclude = unclean.*\nmirror.configs.never = min.insync.replicas",
        "config.properties.exclude = unclean.*\nmirror.configs.override = min.insync.replicas=2",
        "config.properties.exclude = .*",
        "mirror.ledger.url = sqlite:///l.sqlite3",
        "mirror.ledger.url = sqlite+pysqlite:////l.sqlite3",
        "mirror.ledger.url = postgres://host/db",
        "mirror.ledger.url = postgresql+psycopg://host/db",
        # The user of Event Hubs.
        _LOGIN.format("$ConnectionString"),
    ]:
        assert file.problems(text) == [], text
    addresses = file.problems("A.bootstrap.servers = a:1, [::1]:9092 ,PLAINTEXT://c.example.com:9093")
    assert ["is set again" in problem.message for problem in addresses] == [True]


def test_what_is_doubtful_is_a_warning_at_its_line(file: ConfigFile) -> None:
    for text, message, suggestion in [
        ("B->A.enabled = true ", "", ""),
        (
            "A->B.consumer.client.rack = a\nA.consumer.client.rack = b\n",
            "A.consumer.client.rack overrides it",
            "A->B.source.consumer.client.rack",
        ),
        ("A.sasl.jaas.config = ${env:NONE}", "${env:NONE}", ""),
        ("sync.group.offsets.enabled = true\nemit.checkpoints.enabled = false", "", ""),
        ("emit.offset-syncs.enabled = false", "", ""),
    ]:
        problem = file.one(text)
        assert (problem.severity, problem.line) == (Severity.WARNING, 5), text
        assert message in problem.message, text
        assert suggestion in (problem.suggestion or ""), text
    for topics, suggestion in [
        ("orders, products\\..*", "write products\\\\..* to match a dot"),
        ('"orders", pay', "remove the quotes: lists have none"),
        ("orders, 'pay'", "remove the quotes: lists have none"),
    ]:
        problem = file.one(f"A->B.topics = {topics}")
        assert (problem.severity, problem.line, problem.suggestion) == (Severity.WARNING, 5, suggestion), topics
    for text, message in [
        ("A->B.topics = orders;payments", "no name has a ';'"),
        ("topics.exclude = orders payments", "no name has a space"),
        ("A->B.groups = g1;g2", "it matches only names with ';'"),
        ("mirror.first.start = 2026-01-31T10:00:00", "is read as UTC"),
        ("mirror.first.start.topics = a=2026-01-31, b=2026-01-31T00:00:00Z", "2026-01-31 has no time zone"),
        # Neither MM2 nor a run here copies anything for such a flow.
        ("B->A.enabled = false # passive", "the flow is disabled, as in MM2"),
    ]:
        problem = file.one(text)
        assert (problem.severity, problem.line) == (Severity.WARNING, 5), text
        assert message in problem.message, text
    (again, scheme) = file.problems("A.bootstrap.servers = http://a:9092\n")
    assert "set again" in again.message
    assert "http:// has no effect" in scheme.message
    login = file.one(_LOGIN.format("$USER"))
    assert "placeholder" in login.message
    topics = file.one("A->B.topics = ${TOPICS}")
    assert "for the character" not in topics.message
    assert "fill in ${TOPICS}" in (topics.suggestion or "")


def test_a_comment_behind_a_value_is_named_once_and_its_text_is_not_shown(file: ConfigFile) -> None:
    for text in (
        "tasks.max = 4 # all \xe9\xe9",
        "A->B.enabled = true # now",
        "refresh.topics.interval.seconds = 60  # s",
    ):
        of_line = [each for each in file.problems(text) if each.line == 5 and "set again" not in each.message]
        assert [each.severity for each in of_line] == [Severity.ERROR], text
        assert "put the comment on its own line" in (of_line[0].suggestion or ""), text
        assert of_line[0].message.endswith("# ...'"), text


def test_placeholders_of_published_files_are_recognized(file: ConfigFile) -> None:
    for value, placeholder in [
        ("<BROKER>", "<BROKER>"),
        (":BOOTSTRAP_SERVERS:", ":BOOTSTRAP_SERVERS:"),
        ("KAFKA_SOURCE_BROKERS", "KAFKA_SOURCE_BROKERS"),
        ("{{ x }}", "{{ x }}"),
        ("<%= @brokers %>", "<%= @brokers %>"),
        ("%BROKERS%", "%BROKERS%"),
        ("{SOURCE CLUSTER BROKERS ADDRESS}", "{SOURCE CLUSTER BROKERS ADDRESS}"),
        ("REPLACE_WITH_MSK_BROKERS:9098", "REPLACE_WITH_MSK_BROKERS"),
    ]:
        *_, found = file.problems(f"B.bootstrap.servers = {value}\n")
        assert f"fill in {placeholder} before" in (found.suggestion or ""), value
    # MM2 takes such an alias where it names no topic.
    flows = (
        "A->B&c.enabled = true\nA->B&c.offset-syncs.topic.location = target\nB&c->A.emit.heartbeats.enabled = false\n"
    )
    servers = "A.bootstrap.servers = a:1\nB&c.bootstrap.servers = b:1\n"
    assert file.problems("", base=f"clusters = A, B&c\n{servers}{flows}") == []
    alias = file.problems("", base="clusters = <dc>, B\n<dc>.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n")
    assert any(
        each.severity is Severity.ERROR and "write the alias instead of <dc>" in (each.suggestion or "")
        for each in alias
    )


def test_files_without_addresses_clusters_or_flows_are_errors(file: ConfigFile) -> None:
    for text in ("", "clusters = A\nA.bootstrap.servers=a:1", "clusters = A,B\nemit.heartbeats.enabled = false\n"):
        assert any(problem.severity is Severity.ERROR for problem in file.problems(text, base="")), text
    (missing,) = file.problems("clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\n", base="")
    assert (missing.severity, missing.key) == (Severity.ERROR, "B.bootstrap.servers")
    (alias,) = file.problems(
        "clusters = us.west, B\nus.west.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nus.west->B.enabled=true",
        base="",
    )
    assert alias.severity is Severity.WARNING, "it contains the separator"


def test_of_several_lines_whose_keys_end_at_a_blank_each_is_named(file: ConfigFile) -> None:
    for first, second in [
        ("A -> B.topics = orders", "A -> B.groups = app"),
        ("A-> B.topics = orders", "A-> B.groups = app"),
        ("A => B.topics = orders", "A => B.groups = app"),
    ]:
        problems = file.problems(f"{first}\n{second}\n")

        assert [(each.severity, each.line, each.suggestion) for each in problems] == [
            (Severity.ERROR, 5, "write A->B.topics"),
            (Severity.ERROR, 6, "write A->B.groups"),
        ], first


def test_secrets_and_values_of_providers_do_not_appear_in_problems(file: ConfigFile) -> None:
    text = "config.providers = f\nA.sasl.jaas.config = hush\nA.sasl.jas.config = hush\nmirror.ledger.url = hush:hush\n"
    assert "hush" not in " ".join(p.message for p in file.problems(text))
    (file.path.parent / "s.properties").write_text("k = hush\n")
    text = (
        "config.providers = file\n"
        "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider\n"
        f"tasks.max = ${{file:{file.path.parent}/s.properties:k}}\n"
        f"A->B.source.cluster.bootstrap.servers = ${{file:{file.path.parent}/s.properties:k}}\n"
    )
    problems = file.problems(text)
    assert [problem.line for problem in problems] == [7, 8]
    assert not any("hush" in problem.message for problem in problems)


def test_an_exclusion_of_ones_own_that_lets_the_source_weaken_the_target_is_told_once(file: ConfigFile) -> None:
    two_flows = TWO_CLUSTERS + "B->A.enabled = true\n"

    (told,) = file.problems("config.properties.exclude = retention\\\\.ms\n", two_flows)

    assert told.severity is Severity.WARNING
    assert "min.insync.replicas and unclean.leader.election.enable" in told.message
    assert told.suggestion == "add min.insync.replicas,unclean.leader.election.enable"


def test_settings_that_tune_javas_clients_are_one_line(file: ConfigFile) -> None:
    text = (
        "A.consumer.fetch.min.bytes = 1\nB.producer.compression.type = lz4\nA->B.producer.override.linger.ms = 1\n"
        "A.consumer.client.rack = r1\nB.producer.batch.size = 1\n"
    )
    (told,) = file.problems(text)

    assert (told.severity, told.line) == (Severity.WARNING, 5)
    assert "only on Java's clients: batch.size, compression.type, fetch.min.bytes, linger.ms (line" in told.message
    assert "(line 5, 6, 7, 9)" in told.message


def test_a_comma_in_a_regex_splits_the_list(file: ConfigFile) -> None:
    problems = file.problems("A->B.topics = order[0-9]{1,3}")
    assert "order[0-9]{1 and 3} are two elements" in problems[0].message
    assert [problem.severity for problem in problems] == [Severity.WARNING, Severity.ERROR]
    assert all("without a comma" in (problem.suggestion or "") for problem in problems)


def test_no_offset_reset_copies_new_partitions_from_their_start_and_says_so(file: ConfigFile) -> None:
    line = "A.consumer.auto.offset.reset = none\n"
    file.write(line)

    (problem,) = [problem for problem in check(file.path) if problem.key == "A.consumer.auto.offset.reset"]

    assert problem.severity is Severity.WARNING
    assert "earliest" in problem.message
    assert first_starts(load(file.path).flows[0]).of("orders") == EARLIEST
    file.write(line + "mirror.first.start = latest\n")
    assert [problem for problem in check(file.path) if problem.key == "A.consumer.auto.offset.reset"] == []
    assert first_starts(load(file.path).flows[0]).of("orders") == LATEST


def test_given_a_regex_that_java_refuses_then_its_advice_works_in_a_properties_file(file: ConfigFile) -> None:
    for value, advice in [("*.internal", ".*.internal"), ("a{x}", "a[{]x}"), ("+a", "[+]a"), ("{a}", "[{]a}")]:
        wrong = file.one(f"topics.exclude = {value}")

        assert wrong.severity is Severity.ERROR, value
        written = wrong.message.partition("; write ")[2].split()[0]
        assert written in advice, value
        assert file.problems(f"topics.exclude = {advice}") == [], value

"""Planted secrets and whole runs: real Airflow, real Spark, brokers that want passwords, a ledger that wants one.

Each secret comes from another source. After runs that succeed and runs that fail, everything that was left behind is
searched for all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.fernet import Fernet
from sqlalchemy import create_engine, text

from mirror_lib.features.demo.airflow_api import DagRunStatus
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from tests.support.airflow.shared import SharedAirflow, shared_airflow
from tests.support.clusters import start_together
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.ledger.postgres import postgres_server
from tests.support.page.app import Airflow, page_app
from tests.support.page.routes import routes_of
from tests.support.security.pki import PASSWORD, Certified
from tests.support.security.planted import (
    Planted,
    Watch,
    as_text,
    dump_database,
    dump_sqlite,
    flattened,
    forms,
    new_secret,
)

pytestmark = pytest.mark.timeout(900)

FLOW, DAG_ID, VERIFY_DAG_ID = "berlin->paris", "mirror__berlin__paris", "mirror_verify__berlin__paris"
TOPIC, RECORDS = "orders", 300
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_PROVIDERS = "org.apache.kafka.common.config.provider"
#: Changes that are tried must stand in the file as it is: what is rotated comes from elsewhere.
_CONFIG = """\
config.providers = env, file, dir, airflow
config.providers.env.class = {providers}.EnvVarConfigProvider
config.providers.file.class = {providers}.FileConfigProvider
config.providers.dir.class = {providers}.DirectoryConfigProvider
config.providers.airflow.class = mirror_lib.AirflowSecretProvider
clusters = berlin, paris
berlin.bootstrap.servers = ${{airflow:connection/kafka_berlin:host}}:${{airflow:connection/kafka_berlin:port}}
berlin.security.protocol = SASL_SSL
berlin.sasl.mechanism = SCRAM-SHA-512
berlin.sasl.jaas.config = {scram} username="${{airflow:connection/kafka_berlin:login}}" \\
    password="${{airflow:connection/kafka_berlin:password}}";
berlin.ssl.truststore.location = {kept}/trust.p12
berlin.ssl.truststore.password = ${{env:BERLIN_STORE}}
berlin.ssl.keystore.password = ${{airflow:variable:berlin_key}}
berlin.consumer.sasl.mechanism = PLAIN
berlin.consumer.sasl.jaas.config = {plain} username="reader" password="{inline}";
paris.bootstrap.servers = {target}
paris.security.protocol = SASL_PLAINTEXT
paris.sasl.mechanism = PLAIN
paris.sasl.jaas.config = {plain} username="${{file:{kept}/paris.properties:user}}" \
    password="${{file:{kept}/paris.properties:password}}";
berlin->paris.enabled = true
berlin->paris.topics = {topic}
paris->berlin.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
tasks.max = 1
mirror.ledger.url = postgresql+psycopg://ledger:${{dir:{kept}:ledger}}@{ledger}/ledger
"""


@dataclass
class Site:
    """Everything that runs, and what it has left until now."""

    folder: Path
    #: Where secrets belong: the properties file, those of providers, a store.
    kept: Path
    source: KafkaCluster
    target: KafkaCluster
    airflow: SharedAirflow
    planted: Planted
    #: Those that count at first, and what the target's second user has.
    passwords: Mapping[str, str]
    #: The superuser's.
    postgres: str
    spark_ui: str
    seen: dict[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.kept / "mirror.properties"

    @property
    def log(self) -> str:
        """The last lines of the scheduler."""
        return self.airflow.running.parts.log("scheduler")

    @property
    def ledger(self) -> str:
        """The ledger's database, for who needs no password."""
        return self.postgres.replace("postgresql://", "postgresql+psycopg://").replace("/postgres", "/ledger")

    def run(self, dag_id: str = DAG_ID) -> DagRunStatus:
        """A run that says as much as it can, watched from outside."""
        with Watch(self.spark_ui) as watch:
            status = self.airflow.running.run(dag_id, {"log_level": "DEBUG"})
        self.see("command lines", "\n".join(watch.command_lines))
        self.see("pages of Spark", "\n".join(watch.spark_pages))
        return status

    def see(self, what: str, content: str) -> None:
        """Keep something to be searched."""
        self.seen[what] = f"{self.seen.get(what, '')}\n{content}"

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One of `mirror`, outside Airflow, which gets the connection by the variable that Airflow defines for it."""
        connection = {
            "conn_type": "kafka",
            "login": "mirror",
            "password": (self.kept / "connection").read_text(),
            "host": LOOPBACK,
            "port": int(self.source.bootstrap_servers_of("PASSWORD").rpartition(":")[2]),
        }
        done = subprocess.run(
            [sys.executable, "-m", "mirror_lib.cli.main", *arguments],
            env={
                **self.airflow.environment,
                "AIRFLOW_CONN_KAFKA_BERLIN": json.dumps(connection),
                "AIRFLOW_VAR_BERLIN_KEY": (self.kept / "variable").read_text(),
                "MIRROR_LOG_LEVEL": "DEBUG",
            },
            capture_output=True,
            text=True,
            timeout=240,
        )
        self.see(f"mirror {arguments[0]}", done.stdout + done.stderr)
        return done

    def page(self) -> dict[str, int]:
        """Ask every route of the page; path -> status code."""
        codes: dict[str, int] = {}
        with httpx.Client(base_url=f"{self.airflow.running.url}/replication", trust_env=False, timeout=60) as client:
            for route in routes_of(page_app(None, Airflow())):
                if route.method == "GET":
                    given = route.path.format(**route.path_values(DAG_ID))
                    answer = client.get(given, params=route.query_values())
                    codes[route.path] = answer.status_code
                    self.see("the page", f"{given}: {as_text(answer)}")
        return codes

    def set_connection(self, password: str) -> None:
        """Make Airflow's connection to the source, or change its password."""
        (self.kept / "connection").write_text(password)
        host, _, port = self.source.bootstrap_servers_of("PASSWORD").rpartition(":")
        body = {
            "connection_id": "kafka_berlin",
            "conn_type": "kafka",
            "login": "mirror",
            "password": password,
            "host": host,
            "port": int(port),
        }
        with httpx.Client(base_url=f"{self.airflow.running.url}/api/v2", trust_env=False, timeout=60) as client:
            one, all_of_them = "/connections/kafka_berlin", "/connections"
            known = client.get(one).is_success
            answer = client.patch(one, json=body) if known else client.post(all_of_them, json=body)
        assert answer.is_success, answer.status_code

    def set_file(self, password: str, user: str = "mirror") -> None:
        """What the file provider gives for the target, whose users cannot change their passwords."""
        _replace(self.kept / "paris.properties", _file_of(user, password))


def _in_jaas(password: str) -> str:
    return password.replace("\\", "\\\\").replace('"', '\\"')


def _file_of(user: str, password: str) -> str:
    return f"user = {user}\npassword = {password}\n"


def _replace(path: Path, content: str) -> None:
    """As people and Kubernetes do it: readers see the old file or the new one."""
    new = path.with_suffix(".new")
    new.write_text(content)
    new.chmod(0o600)
    new.replace(path)


def _set_password(cluster: KafkaCluster, user: str, password: str) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 3})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, credential, password.encode())
    client.alter_user_scram_credentials([change])[user].result(timeout=30)


def _cluster(folder: Path, jars: Path, name: str, protocol: str, users: Mapping[str, str], **more: str) -> KafkaCluster:
    """A broker that knows these users by PLAIN, and others by SCRAM."""
    known = "".join(f' user_{user}="{_in_jaas(password)}"' for user, password in users.items())
    overrides = {
        "listener.name.password.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.password.plain.sasl.jaas.config": f"{_PLAIN}{known};",
        "listener.name.password.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    listeners = {"PLAINTEXT": "PLAINTEXT", "PASSWORD": protocol}
    return KafkaCluster(name, directory=folder / name, jars=jars, overrides=overrides, listeners=listeners)


def _make_ledger(superuser: str, password: str) -> None:
    """A database whose owner has to show a password."""
    engine = create_engine(superuser.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE ROLE ledger LOGIN PASSWORD '{password}'"))
        connection.execute(text("CREATE DATABASE ledger OWNER ledger"))
        rules = connection.execute(text("SHOW hba_file")).scalar_one()
        lines = "('host all ledger 127.0.0.1/32 scram-sha-256'), ('host all mirror 127.0.0.1/32 trust')"
        connection.execute(text(f"COPY (VALUES {lines}) TO '{rules}'"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()


def _change_ledger(site: Site, password: str) -> None:
    """Another password, and nobody may go on with a connection that was opened with the old one."""
    engine = create_engine(site.ledger, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"ALTER ROLE ledger PASSWORD '{password}'"))
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ledger'"))
    engine.dispose()


@pytest.fixture(scope="module")
def site(kafka_jars: Path, brokers_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("secrets")
    kept = folder / "kept"
    for each in (kept, folder / "temporary", folder / "events", folder / "spark"):
        each.mkdir()
    authority = Certified.root("Root")
    (folder / "broker.p12").write_bytes(authority.issue("broker", addresses=(LOOPBACK,)).keystore())
    planted = Planted()
    store = planted.add("store", new_secret("/+&"))
    ledger = planted.add("ledger", new_secret("/%@"))
    inline = planted.add("inline", new_secret('"\\'))
    variable = planted.add("variable", new_secret())
    connection, file = planted.add("connection", new_secret("/+&")), planted.add("file", new_secret("%=<"))
    new_file = planted.add("new file", new_secret("%=<"))
    passwords = {"connection": connection, "file": file, "new file": new_file}
    (kept / "trust.p12").write_bytes(authority.truststore(store))
    (kept / "variable").write_text(variable)
    (kept / "ledger").write_text(quote(ledger, safe=""))
    source = _cluster(
        brokers_folder,
        kafka_jars,
        "berlin",
        "SASL_SSL",
        {"reader": inline},
        ssl_keystore_location=str(folder / "broker.p12"),
        ssl_keystore_password=PASSWORD,
        ssl_key_password=PASSWORD,
    )
    target = _cluster(brokers_folder, kafka_jars, "paris", "SASL_PLAINTEXT", {"mirror": file, "mirror2": new_file})
    with postgres_server() as postgres, start_together(source, target):
        _make_ledger(postgres, ledger)
        _set_password(source, "mirror", connection)
        (kept / "mirror.properties").write_text(
            _CONFIG.format(
                providers=_PROVIDERS,
                scram=_SCRAM,
                plain=_PLAIN,
                kept=kept,
                # Properties files double a backslash.
                inline=_in_jaas(inline).replace("\\", "\\\\"),
                target=target.bootstrap_servers_of("PASSWORD"),
                topic=TOPIC,
                ledger=postgres.rpartition("@")[2].removesuffix("/postgres"),
            )
        )
        create_topic(source, TOPIC)
        produce(source, TOPIC, records(RECORDS, size=200))
        _replace(kept / "paris.properties", _file_of("mirror", file))
        (ui,) = free_ports(1)
        variables = _variables(folder, store, ui)
        with shared_airflow(folder, [kept / "mirror.properties"], variables, triggerer=False) as airflow:
            pages = f"http://{LOOPBACK}:{ui}"
            running = Site(folder, kept, source, target, airflow, planted, passwords, postgres, pages)
            airflow.running.wait_ready([DAG_ID, VERIFY_DAG_ID])
            running.set_connection(connection)
            body = {"key": "berlin_key", "value": variable}
            made = httpx.post(f"{airflow.running.url}/api/v2/variables", json=body, trust_env=False, timeout=60)
            assert made.is_success, made.status_code
            yield running


def _variables(folder: Path, store: str, ui: int) -> dict[str, str]:
    """Of Airflow, which says as much as it can, and of its Spark."""
    (folder / "spark" / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{folder}/events\n"
        f"spark.ui.port {ui}\n"
    )
    return {
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        # As docs/secrets.md asks for it: without a key Airflow keeps connections as they are.
        "AIRFLOW__CORE__FERNET_KEY": Fernet.generate_key().decode(),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "DEBUG",
        "MIRROR_STATE_DIR": str(folder / "state"),
        "BERLIN_STORE": store,
        "TMPDIR": str(folder / "temporary"),
        "SPARK_CONF_DIR": str(folder / "spark"),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_DIRS": str(folder / "temporary"),
    }


def _temporary_files(site: Site) -> list[str]:
    """What processes that have ended should have taken with them."""
    return sorted(str(path.relative_to(site.folder)) for path in (site.folder / "temporary").rglob("*"))


@dataclass(frozen=True, slots=True)
class Refused:
    """A run and a command with a password that is wrong."""

    run: DagRunStatus
    plan: subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Story:
    """What came of everything that was done, in this order."""

    site: Site
    #: File -> secrets in it, before anything ran.
    kept: Mapping[str, set[str]]
    first_run: DagRunStatus
    first_copied: int
    verification: DagRunStatus
    commands: Mapping[str, subprocess.CompletedProcess[str]]
    page: Mapping[str, int]
    #: By the place of the wrong password.
    refused: Mapping[str, Refused]
    page_after_rotation: Mapping[str, int]
    run_after_rotation: DagRunStatus
    copied_after_rotation: int
    status_without_ledger: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def story(site: Site) -> Story:
    """Everything in one go: starting Airflow and Spark costs more than all that is tested."""
    kept = site.planted.found_under(site.kept)
    first_run = site.run()
    first_copied = len(consume(site.target, f"berlin.{TOPIC}"))
    verification = site.run(VERIFY_DAG_ID)
    commands = {
        "check": ("config", "check", str(site.config)),
        "show": ("config", "show", str(site.config), "--flow", FLOW),
        "show as JSON": ("config", "show", str(site.config), "--flow", FLOW, "--json"),
        "plan": ("plan", "--config", str(site.config), "--flow", FLOW),
        "status": ("status", "--config", str(site.config), "--json"),
        "run": ("run", "--config", str(site.config), "--flow", FLOW, "--master", "local[1]"),
    }
    ended = {name: site.command(*words) for name, words in commands.items()}
    page = site.page()
    refused = {
        "connection": _refused(site, "connection", site.set_connection),
        "file": _refused(site, "file", site.set_file),
    }
    page_after_rotation = _rotate(site)
    run_after_rotation = site.run()
    return Story(
        site,
        kept,
        first_run,
        first_copied,
        verification,
        ended,
        page,
        refused,
        page_after_rotation,
        run_after_rotation,
        len(consume(site.target, f"berlin.{TOPIC}")),
        _without_ledger(site),
    )


def _refused(site: Site, place: str, change: Callable[[str], None]) -> Refused:
    change(site.planted.add(f"wrong {place}", new_secret("/+&")))
    try:
        return Refused(site.run(), site.command("plan", "--config", str(site.config), "--flow", FLOW))
    finally:
        change(site.passwords[place])


def _rotate(site: Site) -> Mapping[str, int]:
    """New passwords everywhere, new records, and what the page says then."""
    connection, ledger = (site.planted.add(f"new {name}", new_secret("/+&%@")) for name in ("connection", "ledger"))
    _set_password(site.source, "mirror", connection)
    _change_ledger(site, ledger)
    site.set_connection(connection)
    site.set_file(site.passwords["new file"], user="mirror2")
    _replace(site.kept / "ledger", quote(ledger, safe=""))
    produce(site.source, TOPIC, records(RECORDS, size=200, start=RECORDS))
    return site.page()


def _without_ledger(site: Site) -> subprocess.CompletedProcess[str]:
    right = (site.kept / "ledger").read_text()
    _replace(site.kept / "ledger", quote(site.planted.add("wrong ledger", new_secret("/%@")), safe=""))
    try:
        told = site.command("status", "--config", str(site.config))
        site.page()
    finally:
        _replace(site.kept / "ledger", right)
    return told


@pytest.mark.parametrize("special", ["", "/+&", '"\\', "<%=@"])
def test_the_search_finds_a_secret_in_every_notation(special: str, tmp_path: Path) -> None:
    secret = new_secret(special)
    planted = Planted(one=secret, other=new_secret())

    for place, content in enumerate(forms(secret)):
        (tmp_path / str(place)).write_bytes(b"before " + content + b" after")
    (tmp_path / "innocent").write_text("nothing")
    (tmp_path / "kept").write_text(secret)

    expected = {str(place): {"one"} for place in range(len(forms(secret)))}
    assert planted.found_under(tmp_path, but=[tmp_path / "kept"]) == expected


def test_the_secrets_are_where_they_belong(story: Story) -> None:
    assert story.kept["mirror.properties"] == {"inline"}
    assert story.kept["paris.properties"] == {"file"}
    assert story.kept["ledger"] == {"ledger"}


def test_a_run_copies_by_passwords_of_five_sources(story: Story) -> None:
    site = story.site

    assert (story.first_run.state, story.first_run.failed_tasks) == ("success", ()), site.log
    assert story.first_copied == RECORDS
    assert "spark_jobs/replicate.py --config=" in site.seen["command lines"]
    assert "spark.eventLog.enabled" in site.seen["pages of Spark"]


def test_a_verification_reads_by_them_too(story: Story) -> None:
    assert story.verification.state == "success"


def test_commands_and_the_page_show_none_of_them(story: Story) -> None:
    commands, page = story.commands, story.page

    assert {name: done.returncode for name, done in commands.items()} == dict.fromkeys(commands, 0), commands
    assert "[hidden]" in commands["show"].stdout
    assert page["/api/overview"] == page["/api/flows/{dag_id}"] == page["/metrics"] == 200
    assert not {name: code for name, code in page.items() if code >= 500}


@pytest.mark.parametrize("place", ["connection", "file"])
def test_a_wrong_password_fails_the_run_and_is_not_told(story: Story, place: str) -> None:
    run, plan = story.refused[place].run, story.refused[place].plan

    assert (run.state, run.tasks["preflight"]) == ("failed", "failed")
    # A login that is refused is not tried again: that could lock the account.
    assert run.tries["preflight"] == 1
    assert plan.returncode == 3, plan.stderr
    assert "could not log in" in plan.stderr or "rejected the credentials" in plan.stderr


def test_new_passwords_count_from_the_next_run_on_without_any_restart(story: Story) -> None:
    run = story.run_after_rotation

    assert not {name: code for name, code in story.page_after_rotation.items() if code >= 500}
    assert (run.state, run.failed_tasks) == ("success", ()), story.site.log
    assert story.copied_after_rotation == 2 * RECORDS


def test_a_ledger_that_refuses_the_password_does_not_tell_it(story: Story) -> None:
    assert story.status_without_ledger.returncode != 0
    assert "ledger" in story.status_without_ledger.stderr


def test_nothing_that_was_left_behind_holds_any_of_them(story: Story) -> None:
    """Logs of tasks and of Airflow's parts, its database, Spark's event log, the state folder: all of the folder."""
    site = story.site
    logs = [path.read_text(errors="replace") for path in (site.folder / "airflow" / "logs").rglob("*.log")]
    events = [path.read_text(errors="replace") for path in (site.folder / "events").rglob("*") if path.is_file()]
    metadata, ledger = dump_sqlite(site.folder / "airflow" / "airflow.db"), dump_database(site.ledger)

    assert any("spark_jobs/replicate.py" in log for log in logs)
    # Libraries, too, log as much as they can: the request after this one holds the password.
    assert any("SaslHandShakeRequest" in log for log in logs)
    assert any("SparkListenerEnvironmentUpdate" in event for event in events)
    assert DAG_ID in metadata
    assert "rendered_task_instance_fields" in metadata
    assert ledger["run"]

    assert site.planted.found_in(metadata) == set()
    assert site.planted.found_in(flattened(ledger)) == set()
    assert {what: found for what, content in site.seen.items() if (found := site.planted.found_in(content))} == {}
    assert site.planted.found_under(site.folder, but=[site.kept]) == {}


def test_no_temporary_file_is_left(story: Story) -> None:
    assert [name for name in _temporary_files(story.site) if "mirror" in name or "spark" in name] == []

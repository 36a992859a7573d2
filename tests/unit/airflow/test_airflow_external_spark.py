"""The command line of `spark-submit` for an Airflow connection, in a task outside of Airflow."""

from types import SimpleNamespace

import pytest

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.external.spark_submit import submit_line


def _line(host, port=None, variables=None, **extra):
    connection = SimpleNamespace(
        conn_type="spark", host=host, port=port, extra_dejson={name.replace("_", "-"): extra[name] for name in extra}
    )
    return submit_line(
        connection, conf={"spark.a": "1"}, name="mirror A->B", variables=variables or {}, application=["job.py", "--x"]
    )


def test_a_connection_means_a_master_with_its_port_program_and_queue():
    assert _line("spark://host", 7077) == [
        *("spark-submit", "--master", "spark://host:7077", "--conf", "spark.a=1", "--name", "mirror A->B"),
        *("job.py", "--x"),
    ]
    # `AIRFLOW_CONN_SPARK_DEFAULT=spark://host:7077`
    assert _line("host", 7077)[:3] == ["spark-submit", "--master", "spark://host:7077"]
    line = _line("yarn", deploy_mode="client", queue="mirror", spark_binary="spark3-submit")
    assert line[:7] == ["spark3-submit", "--master", "yarn", "--deploy-mode", "client", "--queue", "mirror"]


def test_a_driver_in_the_cluster_gets_variables_and_a_namespace_as_settings():
    of_yarn, of_kubernetes = (
        _line(host, variables={"LEVEL": "DEBUG"}, deploy_mode="cluster") for host in ("yarn", "k8s://host")
    )
    assert "spark.yarn.appMasterEnv.LEVEL=DEBUG" in of_yarn
    assert "spark.kubernetes.driverEnv.LEVEL=DEBUG" in of_kubernetes
    assert "spark.kubernetes.namespace=mirror" in _line("k8s://host", namespace="mirror")


@pytest.mark.parametrize(
    ("host", "port", "extra", "what"),
    [
        ("yarn", None, {"keytab": "/k", "principal": "p"}, "keytab, principal"),
        ("spark://host", 7077, {"deploy_mode": "cluster"}, "deploy-mode cluster"),
    ],
    ids=["extras that are not carried over", "a driver that nobody waits for"],
)
def test_what_cannot_be_submitted_is_refused_by_name(host, port, extra, what):
    with pytest.raises(ConfigurationError, match=what):
        _line(host, port, **extra)

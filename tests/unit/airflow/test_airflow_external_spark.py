"""The command line of `spark-submit` for an Airflow connection, in a task outside of Airflow."""

from types import SimpleNamespace

import pytest

from mirror_lib.airflow.external.spark_submit import submit_line
from mirror_lib.errors import ConfigurationError


def _line(host, port=None, variables=None, **extra):
    connection = SimpleNamespace(
        conn_type="spark", host=host, port=port, extra_dejson={name.replace("_", "-"): extra[name] for name in extra}
    )
    return submit_line(
        connection, conf={"spark.a": "1"}, name="mirror A->B", variables=variables or {}, application=["job.py", "--x"]
    )


def test_a_port_belongs_to_the_master():
    assert _line("spark://host", 7077) == [
        *("spark-submit", "--master", "spark://host:7077", "--conf", "spark.a=1", "--name", "mirror A->B"),
        *("job.py", "--x"),
    ]


def test_a_connection_from_a_uri_means_a_standalone_master():
    # `AIRFLOW_CONN_SPARK_DEFAULT=spark://host:7077`
    assert _line("host", 7077)[:3] == ["spark-submit", "--master", "spark://host:7077"]


def test_the_connections_program_and_queue_are_used():
    line = _line("yarn", deploy_mode="client", queue="mirror", spark_binary="spark3-submit")

    assert line[:7] == ["spark3-submit", "--master", "yarn", "--deploy-mode", "client", "--queue", "mirror"]


@pytest.mark.parametrize(
    ("host", "variable"),
    [("yarn", "spark.yarn.appMasterEnv.LEVEL=DEBUG"), ("k8s://host", "spark.kubernetes.driverEnv.LEVEL=DEBUG")],
)
def test_a_driver_in_the_cluster_gets_variables_as_settings(host, variable):
    assert variable in _line(host, variables={"LEVEL": "DEBUG"}, deploy_mode="cluster")


def test_a_namespace_is_a_setting():
    assert "spark.kubernetes.namespace=mirror" in _line("k8s://host", namespace="mirror")


def test_extras_that_are_not_carried_over_are_refused_by_name():
    with pytest.raises(ConfigurationError, match="keytab, principal"):
        _line("yarn", keytab="/k", principal="p")


def test_a_driver_that_nobody_waits_for_is_refused():
    with pytest.raises(ConfigurationError, match="deploy-mode cluster"):
        _line("spark://host", 7077, deploy_mode="cluster")

"""The plugin: mounts the page in Airflow and adds it to the menus."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from mirror_lib.config.local_state import project_root
from mirror_lib.operator_limits import take_limits

PREFIX = "/replication"
#: Names in the `Host` header that Airflow answers, separated by blanks. Not set: all.
HOSTS_VARIABLE = "MIRROR_AIRFLOW_HOSTS"


take_limits(lambda section, name: conf.get(section, name, fallback=None))


def base_path() -> str:
    """Return the path under which Airflow is served, without a slash at its end: "" unless `[api] base_url` has one."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


class ReplicationPlugin(AirflowPlugin):  # type: ignore[misc]
    """The page "Replication"."""

    name = "replication"
    external_views: ClassVar[list[dict[str, Any]]] = [
        {
            "name": "Replication",
            "href": f"{base_path()}{PREFIX}/",
            "url_route": "replication",
            "destination": "nav",
            # With a category it would be in that menu only.
            "nav_top_level": True,
            "icon": f"{base_path()}{PREFIX}/static/icon.svg",
            "icon_dark_mode": f"{base_path()}{PREFIX}/static/icon-dark.svg",
        },
        {
            "name": "Replication",
            "href": f"{base_path()}{PREFIX}/?dag={{DAG_ID}}",
            "url_route": "replication-flow",
            "destination": "dag",
        },
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        """Created when the API server reads it: the other processes of Airflow load plugins too."""
        from mirror_lib.features.page.airflow_access import AirflowControl
        from mirror_lib.features.page.app import create_app
        from mirror_lib.features.page.flows import FlowSource

        app = create_app(FlowSource(os.environ, project_root()), AirflowControl())
        return [{"app": app, "url_prefix": PREFIX, "name": "Replication"}]

    @cached_property
    def fastapi_root_middlewares(self) -> list[dict[str, Any]]:
        """With `HOSTS_VARIABLE`: answer requests with these host names only, on all pages and routes of Airflow.

        A site whose name resolves to this machine would otherwise be able to use an Airflow without login through the
        browser of a user (DNS rebinding).
        """
        hosts = os.environ.get(HOSTS_VARIABLE, "").split()
        if not hosts:
            return []
        from starlette.middleware.trustedhost import TrustedHostMiddleware

        options = {"allowed_hosts": hosts, "www_redirect": False}
        return [{"middleware": TrustedHostMiddleware, "args": [], "kwargs": options, "name": "Replication: hosts"}]

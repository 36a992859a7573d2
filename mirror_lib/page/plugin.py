"""The plugin: mounts the page in Airflow and adds it to the menus."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, ClassVar

from mirror_lib.config import project_root
from mirror_lib.page.airflow_access import AirflowControl, AirflowPlugin, base_path

PREFIX = "/replication"


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
        from mirror_lib.page.app import create_app
        from mirror_lib.page.flows import FlowSource

        app = create_app(FlowSource(os.environ, project_root()), AirflowControl())
        return [{"app": app, "url_prefix": PREFIX, "name": "Replication"}]

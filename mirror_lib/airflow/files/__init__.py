"""From configuration files to DAGs: changed files, broken files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "broken_dags": ["mark"],
        "broken_files": ["broken_files_dag", "problems_of", "raise_for_broken_files"],
        "flow_dags": ["build_flow_dags", "config_files", "dags_of_flows", "runs_here"],
        "loaded_files": ["load_readable"],
    },
)

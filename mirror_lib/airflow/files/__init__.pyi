from .broken_dags import mark as mark
from .broken_files import broken_files_dag as broken_files_dag
from .broken_files import problems_of as problems_of
from .broken_files import raise_for_broken_files as raise_for_broken_files
from .flow_dags import build_flow_dags as build_flow_dags
from .flow_dags import config_files as config_files
from .flow_dags import dags_of_flows as dags_of_flows
from .loaded_files import load_readable as load_readable

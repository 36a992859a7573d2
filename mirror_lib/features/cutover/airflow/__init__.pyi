from .dag import build_cutover_dags as build_cutover_dags

from .dag import build_verify_dags as build_verify_dags

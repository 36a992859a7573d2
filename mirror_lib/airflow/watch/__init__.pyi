from .dag_schedule import flow_schedule as flow_schedule

from .plan import forecast_plan as forecast_plan

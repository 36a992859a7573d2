"""What forecasts add to the core."""

from mirror_lib.feature import Feature, Hook

FEATURE = Feature(
    name="forecast",
    summary="When a flow will have caught up, and whether retention deletes records before they are copied.",
    hooks={
        Hook.EXPECTATION: "mirror_lib.features.forecast.costs:expected_cost",
        Hook.FORECAST: "mirror_lib.features.forecast.plan:forecast_plan",
        Hook.PLAN: "mirror_lib.features.forecast.shown:look_at_plan",
    },
)

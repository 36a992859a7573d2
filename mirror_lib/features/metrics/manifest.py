"""What observations and metrics add to the core."""

from mirror_lib.feature import Command, Feature, Hook

FEATURE = Feature(
    name="metrics",
    summary="The lag of flows, stored at the end of each run, and metrics in Prometheus' format.",
    commands={
        "observe": Command(
            "mirror_lib.features.metrics.observe_command",
            "Read both clusters once and store the lag of the flow in the ledger, for `mirror metrics` and the page.",
            after="cutover",
        ),
        "metrics": Command(
            "mirror_lib.features.metrics.command",
            "Print metrics of all flows in Prometheus text format. Reads only the ledger.",
            after="observe",
        ),
    },
    hooks={Hook.OBSERVE: "mirror_lib.features.metrics.observation:observe_flow"},
    imports=("mirror_lib.features.metrics_file",),
)

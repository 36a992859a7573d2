"""What transforms add to the core."""

from mirror_lib.feature import Command, Feature, Hook

FEATURE = Feature(
    name="transforms",
    summary="Records changed between source and target: by Spark SQL, Python functions and Connect's transforms.",
    commands={
        "transform": Command(
            "mirror_lib.features.transforms.cli.commands", "The transforms of a flow.", after="backfill"
        ),
    },
    hooks={
        Hook.TRANSFORMS: "mirror_lib.features.transforms.file_settings.flow_transforms:TransformsReader",
        Hook.ROUTES: "mirror_lib.features.transforms.route_rows:record_routes",
        Hook.ROW_COPY: "spark_jobs.transforms.job:transform_copy",
    },
    imports=("fastavro", "google.protobuf", "mirror_lib.features.http_client", "sqlglot"),
    extra="transforms",
)

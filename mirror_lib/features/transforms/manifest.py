"""What transforms add to the core."""

from mirror_lib.feature import Feature

FEATURE = Feature(
    name="transforms",
    summary="Records changed between source and target: by Spark SQL, Python functions and Connect's transforms.",
    provides={
        "transforms": "mirror_lib.transform.file_settings.flow_transforms:TransformsReader",
        "row-copy": "spark_jobs.transforms.job:transform_copy",
    },
    imports=("fastavro", "google.protobuf", "sqlglot"),
    extra="transforms",
)

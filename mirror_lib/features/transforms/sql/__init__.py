"""Spark SQL of transforms, checked without Spark."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "expressions": ["CheckedSql", "check_column", "check_filter", "check_schema", "check_select"],
        "select_text": ["carry_columns"],
        "spark_functions": ["INFLUENCES"],
        "text": ["Finding"],
    },
)

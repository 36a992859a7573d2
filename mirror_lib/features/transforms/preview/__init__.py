"""Previews: records before and after their transforms."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "preview": ["Headers", "MadeRecord", "Preview", "PreviewResult", "RecordPlace", "SourceRecord"],
        "schemas": ["SchemaTexts"],
        "text": ["PreviewText", "summary"],
    },
)

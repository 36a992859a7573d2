"""Convert files of other replicators to files of this project."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "connectors": ["ImportedConnectors", "import_connectors"],
        "kinds": ["Recognised", "recognise"],
        "mirror_maker1": ["Imported", "MirrorMaker1", "all_topics_but", "import_mirror_maker_1"],
        "model": ["ConnectCluster"],
        "questions": ["Answers"],
        "topic_map": ["TranslatedFile", "translate_topic_map"],
        "written_file": ["Listed", "Placed"],
    },
)

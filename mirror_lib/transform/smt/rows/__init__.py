"""A chain of SMTs over rows by columns, as Spark and the reading half hand them over.

What looks into no key and no value works on whole columns (`columnar`); for all else records are made of rows, one
after the other, with no more in them than the chain looks at (`records`). Both give the same; `stage` chooses.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "model": ["MadeRows", "RefusedRowError"],
        "stage": ["SmtRows"],
    },
)

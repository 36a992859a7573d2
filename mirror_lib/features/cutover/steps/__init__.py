"""The steps of a cutover: before the freeze, the cut, the switch, the rollback."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "rollback": ["roll_back"],
    },
)

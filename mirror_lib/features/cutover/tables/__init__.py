"""The tables of cutovers, their rows, and what is read from and written to each."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "carriers": ["DIED", "CarrierRow", "Carriers", "QuestionRow"],
        "cutovers": ["CutoverStepRow", "Cutovers"],
    },
)

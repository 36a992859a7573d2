"""The states of a cutover or a return, and what to do in each. Pure."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cutover": ["Event", "Refusal", "State", "after", "choices"],
        "disaster": ["DisasterState", "STATES", "after_disaster", "copy_all_back", "do", "run_back"],
        "situation": [
            "INTERRUPTED",
            "NO",
            "NotNowError",
            "ROLLBACK",
            "RUN",
            "Situation",
            "answer",
            "await_taken",
            "newest_situations",
            "refusal_error",
            "require",
            "situation_of",
        ],
    },
)

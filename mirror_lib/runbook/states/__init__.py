"""States in which a cutover or a return can be, and the way on from each. Pure."""

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

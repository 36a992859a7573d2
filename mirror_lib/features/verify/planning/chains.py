"""Verification of a chain of transforms: its rows are made again and compared. Pure."""

from __future__ import annotations

from mirror_lib.features.transforms.model import Determinism, TransformChain

#: Stable codes of why a transformed partition is unverifiable.
NOT_DETERMINISTIC, ROUTED, NEEDS_SPARK = "not-deterministic", "routed", "needs-spark"
#: The sentence for a target partition that transforms send records to, where there is no Spark.
NEEDED_FOR_ROUTED = "records are routed to this partition by transforms: run the verification as a Spark job."


def may_give_several(chain: TransformChain) -> bool:
    """Return True if one record may become several, or if that is unknown, as for functions."""
    return any(each.one_to_many or each.function is not None for each in chain.transforms)


def why_unverifiable(chain: TransformChain) -> tuple[str, str] | None:
    """Return why rows that are made again may differ from those written: a stable code and a sentence."""
    if chain.determinism is not Determinism.YES:
        doubtful = [
            f"{each.name} ({'; '.join(str(reason) for reason in each.non_determinism) or 'it is a function'})"
            for each in chain.transforms
            if each.determinism is not Determinism.YES
        ]
        return NOT_DETERMINISTIC, (
            f"the transforms are not deterministic, so records cannot be compared: {', '.join(doubtful)}. If they "
            "are, set `deterministic = true`."
        )
    return None


def needs_spark(chain: TransformChain) -> str:
    """Return the sentence for a partition that cannot be compared without Spark."""
    return (
        f"its records are transformed ({', '.join(chain.names)}): run the verification as a Spark job (`spark-submit "
        "spark_jobs/verify.py`, or the flow's mirror_verify DAG)."
    )

"""The cases of the transforms bench, their contenders, and the settings of their transforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tools.bench.copiers.settings import Copier, CopySetup, properties
from tools.bench.transforms.java_transform import CLASS
from tools.bench.workloads.payments import LEFT_OUT, LEFT_OUT_HEADER, MASK, SCHEMA, field_names
from tools.bench.workloads.workload import WORKLOADS, BatchKind, Codec, Content, Workload

_CONNECT = "org.apache.kafka.connect.transforms"
_CARD_SHOWN = 4
#: The header that Connect's own transforms set in place of a mask.
INSERTED_HEADER, INSERTED_TEXT = "masked", "no"


class Contender(StrEnum):
    """The contenders; the value is the name in `--copiers`."""

    TRANSFORMED = "mirror"
    #: This project's copy of whole batches, without transforms.
    RAW = "mirror-raw"
    MM2_DEFAULT = "mm2-default"
    MM2_TUNED = "mm2-tuned"

    @property
    def label(self) -> str:
        """For tables."""
        return "mirror, raw" if self is Contender.RAW else self.copier.label

    @property
    def copier(self) -> Copier:
        """The copier whose settings it has."""
        return {
            Contender.TRANSFORMED: Copier.MIRROR,
            Contender.RAW: Copier.MIRROR,
            Contender.MM2_DEFAULT: Copier.MM2_DEFAULT,
            Contender.MM2_TUNED: Copier.MM2_TUNED,
        }[self]


class Outcome(StrEnum):
    """The expected content of the target."""

    #: Everything unchanged.
    SAME = "same"
    #: Payments except those of one country, each with its card masked.
    MASKED = "masked"
    #: The same payments unmasked, with an additional header: the closest result of Connect's own transforms.
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison.

    Attributes:
        name: for `--cases` and files.
        ours: settings of this project's transform, without the flow's prefix.
        smt: settings of MM2's chain; empty: no transforms.
        mm2_outcome: what MM2 writes.
        against: the peers, and how many times as fast this project must be.
    """

    name: str
    title: str
    workload: Workload
    ours: Mapping[str, str]
    smt: Mapping[str, str]
    contenders: tuple[Contender, ...]
    against: Mapping[Contender, float | None]
    our_outcome: Outcome = Outcome.SAME
    mm2_outcome: Outcome = Outcome.SAME

    def outcome(self, contender: Contender) -> Outcome:
        """Return what a contender writes."""
        if contender is Contender.RAW:
            return Outcome.SAME
        return self.our_outcome if contender is Contender.TRANSFORMED else self.mm2_outcome

    def properties(self, contender: Contender, setup: CopySetup) -> dict[str, str]:
        """Return the whole file of a copy."""
        chosen: Mapping[str, str] = {}
        if contender is not Contender.RAW:
            chosen = self.ours if contender is Contender.TRANSFORMED else self.smt
        return properties(setup) | {f"{setup.flow}.{name}": text for name, text in chosen.items()}

    def of_records(self, records: int) -> Case:
        """Return the case with another number of records."""
        return replace(self, workload=self.workload.scaled(records))


FILTER_AND_MASK, PASS_THROUGH = "filter-and-mask", "pass-through"
CASE_NAMES = (FILTER_AND_MASK, PASS_THROUGH)
#: How many times as fast as MM2 with an equivalent chain, and as tuned MM2 without transforms.
FILTER_AND_MASK_TIMES, PASS_THROUGH_TIMES = 1.5, 1.0

_PAYMENTS = Workload(
    name="payments-1kb",
    title="500 k x 1 kB, JSON, lz4, full batches",
    records=500_000,
    value_bytes=1000,
    codec=Codec.LZ4,
    records_per_batch=128,
    kind=BatchKind.FULL,
    content=Content.PAYMENTS,
)


def _mask_column() -> str:
    masked = f"concat('{MASK}', right(value.card, {_CARD_SHOWN}))"
    return ", ".join(f"{masked if name == 'card' else f'value.{name}'} AS {name}" for name in field_names())


#: This project: JSON with its schema, one comparison, and the same object with another card.
_OUR_FILTER_AND_MASK = {
    "mirror.transforms": "mask",
    "mirror.transform.mask.decode.value": "json",
    "mirror.transform.mask.schema.value": SCHEMA,
    "mirror.transform.mask.filter": f"value.country <> '{LEFT_OUT}'",
    "mirror.transform.mask.value": f"struct({_mask_column()})",
}
_OUR_PASS_THROUGH = {"mirror.transforms": "same", "mirror.transform.same.value": "value"}
_JAVA_SMT = {
    "transforms": "mask",
    "transforms.mask.type": CLASS,
    "transforms.mask.filter.field": "country",
    "transforms.mask.filter.value": LEFT_OUT,
    "transforms.mask.mask.field": "card",
    "transforms.mask.mask.text": MASK,
    "transforms.mask.mask.shown": str(_CARD_SHOWN),
}
_CONNECT_SMTS = {
    "transforms": "live,mark",
    "transforms.live.type": f"{_CONNECT}.Filter",
    "transforms.live.predicate": "blocked",
    "transforms.mark.type": f"{_CONNECT}.InsertHeader",
    "transforms.mark.header": INSERTED_HEADER,
    "transforms.mark.value.literal": INSERTED_TEXT,
    # MM2's own converter of headers accepts bytes alone.
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "predicates": "blocked",
    "predicates.blocked.type": f"{_CONNECT}.predicates.HasHeaderKey",
    "predicates.blocked.name": LEFT_OUT_HEADER,
}


def filter_and_mask(*, compiled: bool) -> Case:
    """Return the case: a third of JSON records dropped, and a card masked in the others.

    Args:
        compiled: True if MM2 has this project's Java transform; else it has the closest of Connect's own.
    """
    return Case(
        name=FILTER_AND_MASK,
        title="filter and mask" if compiled else "filter and mask (MM2: filter by header, insert a header)",
        workload=_PAYMENTS,
        ours=_OUR_FILTER_AND_MASK,
        smt=_JAVA_SMT if compiled else _CONNECT_SMTS,
        contenders=tuple(Contender),
        against={Contender.MM2_DEFAULT: FILTER_AND_MASK_TIMES, Contender.MM2_TUNED: None},
        our_outcome=Outcome.MASKED,
        mm2_outcome=Outcome.MASKED if compiled else Outcome.MARKED,
    )


def pass_through() -> Case:
    """Return the case of a transform that changes nothing, against MM2 without transforms."""
    return Case(
        name=PASS_THROUGH,
        title="pass-through (MM2: no transform)",
        workload=WORKLOADS[0],
        ours=_OUR_PASS_THROUGH,
        smt={},
        contenders=(Contender.TRANSFORMED, Contender.RAW, Contender.MM2_TUNED),
        against={Contender.MM2_TUNED: PASS_THROUGH_TIMES},
    )


def select_cases(names: Sequence[str], *, compiled: bool) -> tuple[Case, ...]:
    """Return the cases of these names, all of them without any.

    Raises:
        ValueError: one is unknown.
    """
    unknown = [name for name in names if name not in CASE_NAMES]
    if unknown:
        raise ValueError(f"no such case: {', '.join(unknown)}. Known: {', '.join(CASE_NAMES)}.")
    cases = (filter_and_mask(compiled=compiled), pass_through())
    return tuple(each for each in cases if not names or each.name in names)

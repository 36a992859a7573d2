"""A whole chain of SMTs as one function of a record, and what is to be known of it beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_lib.transform.smt import model
from mirror_lib.transform.smt.model import ChainSettings, ConverterKind
from mirror_lib.transform.smt.predicates import applies
from mirror_lib.transform.smt.record import RawRecord, Side, SmtRecord
from mirror_lib.transform.smt.runner import ChainRunner, apply_stage


@dataclass(frozen=True, slots=True)
class SmtChain:
    """The SMTs of a flow in their order. It pickles, holds no state, and may be called from several threads."""

    settings: ChainSettings
    #: Whether a key or value is decoded by its converter before an SMT works on it. MM2 does not: with false, every
    #: byte is what MM2 would write, where it would write anything. See `transform`.
    decodes: bool = True

    @property
    def deterministic(self) -> bool:
        """Whether the same record always gives the same bytes: no supported SMT looks at a clock or throws dice."""
        return True

    @property
    def may_drop(self) -> bool:
        """Whether some records do not arrive."""
        return self._has(model.Filter)

    @property
    def may_route(self) -> bool:
        """Whether some records go to another topic. None goes to another partition: MM2 sets it before the chain."""
        return self._has(model.RegexRouter, model.TimestampRouter)

    @property
    def may_change_key(self) -> bool:
        """Whether some records get another key."""
        return any(Side.KEY in stage.transform.changed_sides() for stage in self.settings.stages)

    @property
    def may_change_value(self) -> bool:
        """Whether some records get another value."""
        return any(Side.VALUE in stage.transform.changed_sides() for stage in self.settings.stages)

    @property
    def may_change_headers(self) -> bool:
        """Whether some records get other headers."""
        changes = self._has(model.InsertHeader, model.DropHeaders, model.HeaderFrom)
        return changes or self.settings.header_converter.kind is not ConverterKind.BYTES

    def apply(self, record: SmtRecord) -> SmtRecord | None:
        """What the chain makes of a record whose key and value are decoded already; None when it is dropped.

        Raises:
            SmtError: an SMT cannot take the record.
        """
        current: SmtRecord | None = record
        for stage in self.settings.stages:
            if current is None:
                break
            if applies(stage, current):
                current = apply_stage(stage, current)
        return current

    def transform(self, raw: RawRecord) -> RawRecord | None:
        """What the chain makes of a record as it stands in Kafka; None when it is dropped.

        A key or value is decoded when the first SMT works on it, so that records which predicates keep from all of them
        need not be of the converter's form, and written anew only if it was changed: else its bytes stay what they are.
        Headers are bytes to SMTs, as in MM2, and all are written by the header converter.

        Raises:
            SmtError: an SMT or a converter cannot take the record.
        """
        return self.runner().transform(raw)

    def runner(self) -> ChainRunner:
        """The chain made ready for many records."""
        return ChainRunner(self.settings, decodes=self.decodes)

    def _has(self, *kinds: type[model.Transform]) -> bool:
        return any(isinstance(stage.transform, kinds) for stage in self.settings.stages)

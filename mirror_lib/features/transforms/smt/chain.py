"""A whole chain of SMTs as one function of a record, and its properties."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.model import ChainSettings, ConverterKind
from mirror_lib.features.transforms.smt.predicates import applies
from mirror_lib.features.transforms.smt.record import RawRecord, Side, SmtRecord
from mirror_lib.features.transforms.smt.runner import ChainRunner, apply_stage


@dataclass(frozen=True, slots=True)
class SmtChain:
    """The SMTs of a flow in their order. It pickles, has no state, and may be called from several threads."""

    settings: ChainSettings
    #: True if a key or value is decoded by its converter before an SMT works on it. MM2 does not decode: with False,
    #: the output is MM2's byte by byte, where MM2 would write any. See `transform`.
    decodes: bool = True

    @property
    def may_drop(self) -> bool:
        """True if some records may be dropped."""
        return self._has(model.Filter)

    @property
    def may_route(self) -> bool:
        """True if some records may go to another topic. None goes to another partition: MM2 sets it before the
        chain.
        """
        return self._has(model.RegexRouter, model.TimestampRouter)

    @property
    def may_change_key(self) -> bool:
        """True if some records may get another key."""
        return any(Side.KEY in stage.transform.changed_sides() for stage in self.settings.stages)

    @property
    def may_change_value(self) -> bool:
        """True if some records may get another value."""
        return any(Side.VALUE in stage.transform.changed_sides() for stage in self.settings.stages)

    @property
    def may_change_headers(self) -> bool:
        """True if some records may get other headers."""
        changes = self._has(model.InsertHeader, model.DropHeaders, model.HeaderFrom)
        return changes or self.settings.header_converter.kind is not ConverterKind.BYTES

    def apply(self, record: SmtRecord) -> SmtRecord | None:
        """Apply the chain to a record with decoded key and value; return None if it is dropped.

        Raises:
            SmtError: an SMT rejects the record.
        """
        current: SmtRecord | None = record
        for stage in self.settings.stages:
            if current is None:
                break
            if applies(stage, current):
                current = apply_stage(stage, current)
        return current

    def transform(self, raw: RawRecord) -> RawRecord | None:
        """Apply the chain to a record with its bytes; return None if it is dropped.

        A key or value is decoded when the first SMT works on it, so that records which predicates exclude from all SMTs
        need not have the converter's format, and encoded again only if it was changed: otherwise its bytes stay the
        same. Headers are bytes to SMTs, as in MM2, and all are written by the header converter.

        Raises:
            SmtError: an SMT or a converter rejects the record.
        """
        return self.runner().transform(raw)

    def runner(self) -> ChainRunner:
        """Return the chain prepared for many records."""
        return ChainRunner(self.settings, decodes=self.decodes)

    def _has(self, *kinds: type[model.Transform]) -> bool:
        return any(isinstance(stage.transform, kinds) for stage in self.settings.stages)

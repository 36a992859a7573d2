"""A CycloneDX bill of materials of all locked packages: versions, digests, licences, dependents."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from tools.supply.licences import Licensed

_NAME = "batch-mirror"


def bill_of_materials(packages: Sequence[Licensed], *, version: str, lock: bytes) -> str:
    """Return the bill as JSON of CycloneDX 1.6.

    Args:
        packages: its content; packages for development alone are marked as excluded from the product.
        version: of this project.
        lock: the lock's bytes, which identify the bill.
    """
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, hashlib.sha256(lock).hexdigest()))
    product = Component(
        name=_NAME,
        version=version,
        type=ComponentType.APPLICATION,
        licenses=[LicenseExpression("Apache-2.0")],
        bom_ref=_NAME,
    )
    bom.metadata.component = product
    made: dict[str, list[Component]] = {}
    for each in packages:
        component = _component(each)
        made.setdefault(each.package.name, []).append(component)
        bom.components.add(component)
    wanted: dict[str, list[Component]] = {}
    for each in packages:
        for via in each.package.via:
            wanted.setdefault(via.partition(" ")[0].partition("[")[0], []).extend(made[each.package.name])
    bom.register_dependency(product, wanted.get(_NAME, []))
    for name, components in made.items():
        for component in components:
            bom.register_dependency(component, wanted.get(name, []))
    return str(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2))


def _component(licensed: Licensed) -> Component:
    package = licensed.package
    purl = PackageURL("pypi", None, package.name, package.version)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=purl,
        bom_ref=str(purl),
        scope=ComponentScope.REQUIRED if package.runtime else ComponentScope.EXCLUDED,
        licenses=[] if licensed.expression is None else [LicenseExpression(licensed.expression)],
        # One for each file of the version: wheels of every platform, and the sources.
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.hashes],
    )

"""`./run supply`: dependencies of this project (`./run audit`, `./run sbom`, `./run pin`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from mirror_lib.features.demo.jar_digests import check_jars, known_jars
from mirror_lib.features.demo.state import jars_dir
from tools.supply.bill_of_materials import bill_of_materials
from tools.supply.images import FILES, NoDigestError, ask_docker, images, pin
from tools.supply.licences import licences
from tools.supply.lockfile import LOCK, read_lock
from tools.supply.vulnerabilities import SERVICES, Audit, audit

#: Nothing wrong is known; something is; no service responded, or not about everything.
FINE, WRONG, NOT_ASKED = 0, 1, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code: 0 fine, 1 something is wrong, 2 wrong arguments, 3 the audit could not be made.
    """
    parser = argparse.ArgumentParser(prog="supply", description="What this project is made of.")
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("audit", help="known vulnerabilities, licences, and digests of fetched jars")
    asking.add_argument("--service", choices=SERVICES, action="append", help="ask this one only")
    making = commands.add_parser("sbom", help="a CycloneDX bill of materials as JSON")
    making.add_argument("--output", type=Path, metavar="FILE", help="write it there and not to the standard output")
    making.add_argument("--runtime", action="store_true", help="without what is for development alone")
    commands.add_parser("pin", help="put digests behind the images of docker-compose.yaml and deploy/Dockerfile")
    arguments = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if arguments.command == "pin":
        return _pin()
    return _audit(arguments.service or SERVICES) if arguments.command == "audit" else _sbom(arguments)


def _pin() -> int:
    try:
        found = pin({path: path.read_text(encoding="utf-8") for path in FILES}, ask_docker)
    except NoDigestError as error:
        _say(f"NOT ASKED {error}; nothing is written")
        return NOT_ASKED
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")
        _say(f"{path}: {', '.join(each.reference for each in images(text))}")
    return FINE


def _sbom(arguments: argparse.Namespace) -> int:
    lock = LOCK.read_bytes()
    packages = [each for each in read_lock(lock.decode()) if each.runtime or not arguments.runtime]
    text = bill_of_materials(licences(packages), version=version("batch-mirror"), lock=lock)
    if arguments.output is None:
        sys.stdout.write(text + "\n")
    else:
        arguments.output.write_text(text + "\n", encoding="utf-8")
        _say(f"{arguments.output}: {len(packages)} packages")
    return FINE


def _audit(services: Sequence[str]) -> int:
    packages = read_lock(LOCK.read_text(encoding="utf-8"))
    wrong = [
        f"{each.package.name} {each.package.version} is under {each.expression or 'a licence that nobody knows'}"
        for each in licences(packages)
        if not each.allowed
    ]
    _report("licences", f"{len(packages)} packages", wrong)
    jars = check_jars(known_jars(), jars_dir())
    _report("jars", f"{jars.checked} fetched files", jars.problems)
    asked = [audit(packages, services[0])]
    for service in services[1:]:
        if not asked[-1].complete and not asked[-1].vulnerable:
            asked.append(audit(packages, service))
    best = max(asked, key=lambda each: (bool(each.vulnerable), each.asked))
    vulnerable = [f"{each.name} {each.version}: {_ids(each.vulnerabilities)}" for each in best.vulnerable]
    if vulnerable or best.complete:
        _report("vulnerabilities", f"{best.asked} packages at {best.service}", vulnerable)
    if not best.complete:
        for each in asked:
            _say(f"NOT ASKED {each.service}: {_silence(each, len(packages))}")
    if wrong or jars.problems or vulnerable:
        return WRONG
    return FINE if best.complete else NOT_ASKED


def _silence(found: Audit, packages: int) -> str:
    if found.failure is not None:
        return found.failure
    some = ", ".join(found.silent[:5]) + (" and others" if len(found.silent) > 5 else "")
    return f"it answered for {found.asked} of {packages} packages, and not for {some}"


def _ids(vulnerabilities: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    return "; ".join(
        f"{name} (mended in {', '.join(fixed)})" if fixed else f"{name} (not mended)" for name, fixed in vulnerabilities
    )


def _report(what: str, looked_at: str, problems: Sequence[str]) -> None:
    _say(f"{'WRONG' if problems else 'fine '} {what}: {looked_at}, {len(problems)} problems")
    for problem in problems:
        _say(f"  {problem}")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())

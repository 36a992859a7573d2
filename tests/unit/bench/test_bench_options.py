"""The arguments of the comparison, and who copies first."""

import pytest

from bench.__main__ import main, make_options, parse_arguments
from bench.comparison.measure import Options, order
from bench.copiers.settings import Copier
from bench.workloads.workload import QUICK, WORKLOADS


def _options(*arguments: str) -> Options:
    return make_options(parse_arguments(arguments))


def test_without_arguments_everything_is_measured_once() -> None:
    assert _options() == Options(WORKLOADS, copiers=None, limit=True, partitions=8, processes=2, rounds=1, keep=False)


def test_the_client_loop_copies_small_batches_unless_it_is_named() -> None:
    full, small = WORKLOADS[0], WORKLOADS[3]

    assert _options().copiers_of(small) == tuple(Copier)
    assert _options().copiers_of(full) == (Copier.MM2_DEFAULT, Copier.MM2_TUNED, Copier.MIRROR)
    assert _options("--copiers", "client-loop").copiers_of(full) == (Copier.CLIENT_LOOP,)


def test_the_limit_is_measured_by_default_or_when_it_is_named_but_never_over_tls() -> None:
    workload = WORKLOADS[0]

    assert _options().measures_limit(workload)
    assert _options("--copiers", "mirror,limit").measures_limit(workload)
    assert not _options("--copiers", "mirror").measures_limit(workload)
    assert not _options("--quick").measures_limit(workload)
    assert not _options().measures_limit(workload.over_tls())


def test_the_limit_alone_can_be_asked_for() -> None:
    options = _options("--copiers", "limit")

    assert (options.copiers, options.limit) == ((), True)


def test_quick_takes_the_small_workloads() -> None:
    assert _options("--quick").workloads == QUICK


def test_quick_leaves_out_the_tuned_mm2_unless_it_is_named() -> None:
    assert _options("--quick").copiers == (Copier.MM2_DEFAULT, Copier.MIRROR)
    assert _options("--quick", "--copiers", "mm2-tuned").copiers == (Copier.MM2_TUNED,)


def test_a_scale_changes_records_and_nothing_else() -> None:
    scaled = _options("--workloads", "1kb-none", "--scale", "0.01").workloads

    assert scaled == (WORKLOADS[1].scaled(10_000),)
    assert scaled[0].title == "10 k x 1 kB, uncompressed, full batches"


def test_with_tls_every_workload_is_copied_in_clear_and_then_over_tls() -> None:
    clear, secured = _options("--tls", "--workloads", "1kb-none").workloads

    assert clear == WORKLOADS[1]
    assert (secured.name, secured.title) == ("1kb-none-tls", "1 M x 1 kB, uncompressed, full batches, over TLS")
    assert (secured.records, secured.codec, secured.tls) == (clear.records, clear.codec, True)


def test_a_tiny_scale_leaves_one_record() -> None:
    assert _options("--quick", "--scale", "0.0000001").workloads[0].records == 1


def test_records_are_of_the_present_unless_an_age_is_asked_for() -> None:
    present, old = _options(), _options("--record-age", "2d", "--workloads", "1kb-none", "--scale", "0.01", "--tls")

    assert {each.age_seconds for each in present.workloads} == {0}
    assert {each.age_seconds for each in old.workloads} == {2 * 86_400}
    assert old.workloads[1].title == "10 k x 1 kB, uncompressed, full batches, 2d old, over TLS"


def test_properties_of_our_flow_are_taken() -> None:
    assert _options("--set", "mirror.old.records.in.transactions=true").settings == {
        "mirror.old.records.in.transactions": "true"
    }


def test_copiers_are_chosen_by_name() -> None:
    assert _options("--copiers", "mirror, mm2-default").copiers == (Copier.MM2_DEFAULT, Copier.MIRROR)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workloads", "nope"), "no such workload: nope"),
        (("--copiers", "mm3"), "no such copier: mm3. Known: mm2-default, mm2-tuned, client-loop, mirror, limit"),
        (("--scale", "0"), "--scale"),
        (("--set", "tasks.max"), "not KEY=VALUE: tasks.max"),
    ],
)
def test_what_is_not_known_is_named_and_ends_with_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("argument", ["--repeat=0", "--partitions=-1", "--processes=two"])
def test_counts_are_positive_numbers(argument: str) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_arguments([argument])

    assert ended.value.code == 2


def test_another_copier_begins_each_time() -> None:
    copiers = tuple(Copier)
    orders = [order(copiers, turn) for turn in range(8)]

    assert orders[0] == copiers == orders[4]
    for place in range(4):
        assert sorted(found[place] for found in orders[:4]) == sorted(copiers)
    assert order((Copier.MIRROR,), 5) == (Copier.MIRROR,)
    assert order((), 1) == ()

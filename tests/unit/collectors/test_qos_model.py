"""Costs and reservations of mClock's bandwidth model, against worked examples and every profile."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, SCHEDULED
from cephqos_exporter.qos.config import EffectiveConfig
from cephqos_exporter.qos.cost_models import (
    BandwidthModel,
    Media,
    QosState,
    guess_media,
    has_model,
    read_qos,
)

MIB = 1024 * 1024
HDD = BandwidthModel(bandwidth=150 * MIB, iops=315)
SSD = BandwidthModel(bandwidth=1200 * MIB, iops=21500)

# Class -> reservation, weight, limit as the release sets them; limit 0 is none.
Profile = Mapping[str, tuple[float, float, float]]


def profile(
    client: tuple[float, float, float],
    recovery: tuple[float, float, float],
    best_effort: tuple[float, float, float],
) -> Profile:
    return {CLIENT: client, RECOVERY: recovery, BEST_EFFORT: best_effort}


BANDWIDTH_PROFILES = {
    ("18.2", "balanced"): profile((0.5, 1, 0), (0.5, 1, 0), (0, 1, 0.9)),
    ("18.2", "high_client_ops"): profile((0.6, 2, 0), (0.4, 1, 0), (0, 1, 0.7)),
    ("18.2", "high_recovery_ops"): profile((0.3, 1, 0), (0.7, 2, 0), (0, 1, 0)),
    ("20.2", "balanced"): profile((0.5, 1, 0), (0.5, 1, 0), (0.05, 2, 0.9)),
    ("20.2", "high_client_ops"): profile((0.6, 2, 0), (0.4, 1, 0), (0.05, 4, 0.7)),
    ("20.2", "high_recovery_ops"): profile((0.3, 1, 0), (0.7, 2, 0), (0.05, 2, 0)),
}
CAPACITY: Mapping[Media, float] = {"hdd": 315, "ssd": 21500}


def bandwidth_config(name: str, table: Profile, **more: str) -> EffectiveConfig:
    values = {
        "osd_mclock_max_sequential_bandwidth_hdd": str(150 * MIB),
        "osd_mclock_max_sequential_bandwidth_ssd": str(1200 * MIB),
        "osd_mclock_max_capacity_iops_hdd": "315.000000",
        "osd_mclock_max_capacity_iops_ssd": "21500.000000",
        "osd_mclock_profile": name,
        "osd_op_num_shards": "0",
        "osd_op_num_shards_hdd": "1",
        "osd_op_num_shards_ssd": "8",
    }
    for cls, (reservation, weight, limit) in table.items():
        option = f"osd_mclock_scheduler_{cls}"
        values |= {f"{option}_res": f"{reservation:f}", f"{option}_wgt": str(weight)}
        values[f"{option}_lim"] = f"{limit:f}"
    return EffectiveConfig(values={**values, **more})


def read(config: EffectiveConfig, media: Media, shards: int) -> QosState:
    return read_qos(config, media=media, shards=shards)


@pytest.mark.parametrize(("model", "cost_per_io"), [(HDD, 499_322), (SSD, 58_525)])
def test_the_default_cost_per_io_is_bandwidth_over_iops(
    model: BandwidthModel, cost_per_io: int
) -> None:
    assert round(model.cost_per_io) == cost_per_io


@pytest.mark.parametrize("model", [HDD, SSD])
def test_an_item_up_to_cost_per_io_is_one_normalised_op(model: BandwidthModel) -> None:
    for size in (0, 1, 4096, 32768, model.cost_per_io):
        assert model.normalised(size) == 1


def test_an_item_above_cost_per_io_costs_its_bytes() -> None:
    assert SSD.normalised(65536) == pytest.approx(65536 / 58525.1, rel=1e-4)
    assert SSD.normalised(MIB) == pytest.approx(17.92, abs=0.01)
    assert HDD.normalised(MIB) == pytest.approx(2.1)


def test_half_of_21500_is_10750_normalised_ops() -> None:
    table = BANDWIDTH_PROFILES["18.2", "balanced"]
    client = read(bandwidth_config("balanced", table), "ssd", 8).classes[CLIENT]
    assert client.reservation == 10_750


@pytest.mark.parametrize("shards", [1, 8])
@pytest.mark.parametrize("media", ["hdd", "ssd"])
@pytest.mark.parametrize(("release", "name"), list(BANDWIDTH_PROFILES))
def test_every_profile_of_the_bandwidth_model_is_read_as_shares_of_the_capacity(
    release: str, name: str, media: Media, shards: int
) -> None:
    table = BANDWIDTH_PROFILES[release, name]
    qos = read(bandwidth_config(name, table), media, shards)
    assert qos.cost.iops == CAPACITY[media]
    for cls, (reservation, weight, limit) in table.items():
        settings = qos.classes[cls]
        assert settings.reservation_ratio == reservation
        assert settings.reservation == pytest.approx(reservation * CAPACITY[media])
        assert settings.weight == weight
        assert settings.limit_ratio == (limit or None)
        assert settings.limit == (pytest.approx(limit * CAPACITY[media]) if limit else None)


def test_a_custom_profile_is_read_like_any_other() -> None:
    table = profile((0.9, 3, 0), (0.05, 1, 1.0), (0.05, 1, 0.5))
    qos = read(bandwidth_config("custom", table), "ssd", 8)
    assert qos.classes[RECOVERY].limit == 21500
    assert qos.classes[BEST_EFFORT].limit == 10750


def test_the_mclock_of_a_release_without_the_model_is_an_error() -> None:
    assert has_model(bandwidth_config("balanced", BANDWIDTH_PROFILES["18.2", "balanced"]))
    early = EffectiveConfig(
        values={
            "osd_mclock_cost_per_io_usec_hdd": "25000",
            "osd_mclock_max_capacity_iops_hdd": "315",
            "osd_mclock_scheduler_client_res": "3294",
        }
    )
    assert not has_model(early)
    with pytest.raises(ValueError, match="mClock of this release is not supported"):
        read_qos(early, media="hdd", shards=5)


@pytest.mark.parametrize(("media", "model"), [("hdd", HDD), ("ssd", SSD)])
def test_under_wpq_a_release_without_the_model_counts_at_the_defaults_of_later_ones(
    media: Media, model: BandwidthModel
) -> None:
    config = EffectiveConfig(values={"osd_op_queue": "wpq"})
    qos = read_qos(config, media=media, shards=5, mclock=False)
    assert (qos.cost, qos.classes) == (model, {})


@pytest.mark.parametrize(("shards", "media"), [(1, "hdd"), (8, "ssd"), (4, None)])
def test_the_number_of_shards_tells_the_device_when_defaults_differ(
    shards: int, media: Media | None
) -> None:
    config = bandwidth_config("balanced", BANDWIDTH_PROFILES["18.2", "balanced"])
    assert guess_media(config, shards) == media


def test_with_shards_set_by_hand_a_measured_capacity_tells_the_device() -> None:
    config = bandwidth_config(
        "balanced", BANDWIDTH_PROFILES["18.2", "balanced"], osd_op_num_shards="8"
    )
    assert guess_media(config, 8) is None
    key = "osd_mclock_max_capacity_iops_hdd"
    measured = EffectiveConfig(config.values, {key: {"default": 315, "mon": 280, "final": 280}})
    assert guess_media(measured, 8) == "hdd"


def test_a_capacity_of_nothing_does_not_divide_by_zero() -> None:
    table = BANDWIDTH_PROFILES["18.2", "balanced"]
    config = bandwidth_config("balanced", table, osd_mclock_max_capacity_iops_hdd="0")
    assert read(config, "hdd", 1).cost.iops == 1


def test_an_option_that_is_not_a_number_names_itself() -> None:
    table = BANDWIDTH_PROFILES["18.2", "balanced"]
    config = bandwidth_config("balanced", table, osd_mclock_scheduler_client_res="half")
    with pytest.raises(ValueError, match="osd_mclock_scheduler_client_res"):
        read_qos(config, media="hdd", shards=1)


models = st.builds(BandwidthModel, bandwidth=st.floats(1e6, 1e10), iops=st.floats(10, 1e6))
sizes = st.integers(0, 64 * MIB)


@given(model=models, size=sizes, more=sizes)
def test_no_op_costs_less_than_one_and_a_larger_one_never_less(
    model: BandwidthModel, size: int, more: int
) -> None:
    assert model.normalised(size) >= 1
    assert model.normalised(size + more) >= model.normalised(size)


@given(
    capacity=st.floats(50, 80_000),
    shares=st.tuples(*[st.tuples(st.floats(0, 1), st.floats(0, 1)) for _ in SCHEDULED]),
)
def test_a_reservation_is_its_share_of_whatever_the_capacity_is(
    capacity: float, shares: tuple[tuple[float, float], ...]
) -> None:
    table = {c: (r, 1.0, lim) for c, (r, lim) in zip(SCHEDULED, shares, strict=True)}
    values = dict(bandwidth_config("custom", table).values)
    values["osd_mclock_max_capacity_iops_ssd"] = repr(capacity)
    qos = read(EffectiveConfig(values=values), "ssd", 8)
    for cls, (reservation, _, _) in table.items():
        assert qos.classes[cls].reservation == pytest.approx(
            reservation * capacity, rel=1e-5, abs=1e-6 * capacity
        )


# What 21.x does: the options stay as they are, and the profile's name decides.
IGNORED = profile((0, 1, 0), (0, 1, 0), (0, 1, 0))
LEFTOVERS = {
    "osd_mclock_scheduler_client_res": {"default": 0, "mon": 0.9, "final": 0.9},
    "osd_mclock_scheduler_background_best_effort_lim": {"default": 0, "mon": 0.1, "final": 0.1},
}


def config_of_21(name: str, *, leftovers: bool = False) -> EffectiveConfig:
    values = dict(bandwidth_config(name, IGNORED).values)
    if not leftovers:
        return EffectiveConfig(values=values)
    values |= {key: str(entry["final"]) for key, entry in LEFTOVERS.items()}
    return EffectiveConfig(values=values, differences=LEFTOVERS)


@pytest.mark.parametrize("leftovers", [False, True])
@pytest.mark.parametrize(
    ("name", "client", "recovery", "limit"),
    [
        ("balanced", 0.5, 0.5, 0.9),
        ("high_client_ops", 0.6, 0.4, 0.7),
        ("high_recovery_ops", 0.3, 0.7, None),
    ],
)
def test_a_profile_of_21_is_its_own_values_whatever_the_options_say(
    name: str, client: float, recovery: float, limit: float | None, leftovers: bool
) -> None:
    config = config_of_21(name, leftovers=leftovers)
    qos = read_qos(config, media="ssd", shards=8, release=21)
    assert qos.classes[CLIENT].reservation == pytest.approx(client * 21500)
    assert qos.classes[RECOVERY].reservation_ratio == recovery
    assert qos.classes[BEST_EFFORT].limit_ratio == limit
    # Its sources disagree about this one.
    assert qos.classes[BEST_EFFORT].reservation is None
    assert not qos.not_understood.found


@pytest.mark.parametrize(("name", "release"), [("balanced", 22), ("balanced", None), ("wild", 21)])
def test_a_profile_that_is_not_known_has_no_reservations_and_is_said(
    name: str, release: int | None
) -> None:
    qos = read_qos(config_of_21(name), media="ssd", shards=8, release=release)
    assert qos.classes == {}
    assert list(qos.not_understood.found) == ["profile"]


def test_a_custom_profile_of_21_is_what_the_options_say() -> None:
    config = config_of_21("custom", leftovers=True)
    qos = read_qos(config, media="ssd", shards=8, release=22)
    assert qos.classes[CLIENT].reservation_ratio == 0.9
    assert not qos.not_understood.found


def test_where_mclock_does_not_run_no_profile_is_missed() -> None:
    qos = read_qos(config_of_21("balanced"), media="hdd", shards=1, mclock=False)
    assert not qos.not_understood.found

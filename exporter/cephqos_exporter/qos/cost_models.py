"""What an operation costs and what is reserved for each class, in both generations of mClock.

Costs are in normalised ops: 1 is the cost of one small operation. An OSD's generation is known by
its options and not by its release, as the newer one was backported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Literal

from cephqos_base.profiles import PROFILE_OPTION, Share, shares_of
from cephqos_base.series import SCHEDULED
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.config import EffectiveConfig, Origin

Media = Literal["hdd", "ssd"]
MEDIA: tuple[Media, Media] = ("hdd", "ssd")

# The early model writes this where a class has no limit.
_EARLY_NO_LIMIT = 999_999

_BANDWIDTH_OPTION = "osd_mclock_max_sequential_bandwidth_"
_CAPACITY_OPTION = "osd_mclock_max_capacity_iops_"
_EARLY_PER_IO_OPTION = "osd_mclock_cost_per_io_usec"
_EARLY_PER_BYTE_OPTION = "osd_mclock_cost_per_byte_usec"


@dataclass(frozen=True, slots=True)
class BandwidthModel:
    """18.2 and later, and later 17.2: an operation costs its bytes, and at least `cost_per_io`."""

    bandwidth: float  # bytes/s
    iops: float
    name: str = "bandwidth"

    @property
    def cost_per_io(self) -> float:
        """Bytes that count as one normalised op."""
        return self.bandwidth / self.iops

    @property
    def capacity(self) -> float:
        return self.iops

    @property
    def capacity_bytes(self) -> float | None:
        return self.bandwidth

    def normalised(self, size: float) -> float:
        return max(size / self.cost_per_io, 1.0)


@dataclass(frozen=True, slots=True)
class EarlyModel:
    """16.2 and early 17.2: an operation costs a whole number of units, a small one 1.

    `per_io` and `per_byte` are in the scheduler's own units: seconds on HDDs, milliseconds on SSDs.
    """

    iops: float
    per_io: float
    per_byte: float
    name: str = "early"

    @property
    def capacity(self) -> float:
        return self.iops

    @property
    def capacity_bytes(self) -> float | None:
        return None

    def normalised(self, size: float) -> float:
        return max(1.0, _round_half_up(self.per_io + self.per_byte * size))


# Both have `capacity`, what the OSD believes it can do in normalised ops/s; `capacity_bytes`, the
# same in bytes/s, or None; and `normalised(size)`, the cost of an operation of so many bytes.
CostModel = BandwidthModel | EarlyModel


def _round_half_up(value: float) -> float:
    """Round as std::round in the scheduler does. Python's round() takes halves to even."""
    return float(floor(value + 0.5))


@dataclass(frozen=True, slots=True)
class ClassSettings:
    """What the configuration gives a class, for the whole OSD. Ratios are shares of the capacity.

    Each shard has a scheduler of its own, which gives the class this divided by the number of
    shards.
    """

    reservation_ratio: float | None  # None: not known
    reservation: float | None  # normalised ops/s
    limit_ratio: float | None  # None: no limit
    limit: float | None  # normalised ops/s
    weight: float  # 0: not known


@dataclass(frozen=True, slots=True)
class QosState:
    """The QoS settings of an OSD in force: how it charges and what it reserves."""

    cost: CostModel
    media: Media
    shards: int
    capacity_origin: Origin
    classes: Mapping[str, ClassSettings]  # that are known; empty if mClock does not run
    # The early model charges a recovery operation this configured size, whatever it moves.
    recovery_item_bytes: float | None
    not_understood: NotUnderstood = field(default_factory=NotUnderstood, compare=False)


def model_name(config: EffectiveConfig) -> str | None:
    """`bandwidth`, `early`, or None for an OSD that knows neither."""
    if f"{_BANDWIDTH_OPTION}ssd" in config:
        return "bandwidth"
    if f"{_EARLY_PER_IO_OPTION}_ssd" in config:
        return "early"
    return None


def guess_media(config: EffectiveConfig, shards: int) -> Media | None:
    """Whether the OSD took its device for rotational, from its settings; None if they do not say.

    An OSD does not report it on its socket. The early model sets the capacity of the other medium
    to 0. Else the number of shards shows it, if it was not set and the defaults of the two media
    differ. Else a capacity that was set for one medium only. If this returns None, the device
    itself may show it.
    """
    zero_capacity = [m for m in MEDIA if config.number(f"{_CAPACITY_OPTION}{m}") == 0]
    if len(zero_capacity) == 1:
        return "ssd" if zero_capacity == ["hdd"] else "hdd"
    by_shards = [m for m in MEDIA if config.number(f"osd_op_num_shards_{m}") == shards]
    if len(by_shards) == 1 and not config.number("osd_op_num_shards"):
        return by_shards[0]
    by_capacity = [m for m in MEDIA if config.origin(f"{_CAPACITY_OPTION}{m}") != "default"]
    return by_capacity[0] if len(by_capacity) == 1 else None


def needs_release(config: EffectiveConfig) -> bool:
    """Whether a built-in profile is in force whose values are not in the options (21.x).

    Then the option's default is 0, while every profile reserves something for clients.
    """
    return (
        model_name(config) == "bandwidth"
        and config.text(PROFILE_OPTION) != "custom"
        and config.default("osd_mclock_scheduler_client_res") == 0
    )


def read_qos(
    config: EffectiveConfig,
    *,
    media: Media,
    shards: int,
    mclock: bool = True,
    release: int | None = None,
) -> QosState | None:
    """The QoS settings in force, or None for an OSD without either model.

    `release` is needed if `needs_release`. `mclock`: whether mClock runs; else no class has
    settings.
    """
    name = model_name(config)
    if name is None:
        return None
    cost: CostModel = (
        _bandwidth_model(config, media) if name == "bandwidth" else _early_model(config, media)
    )
    not_understood = NotUnderstood()
    classes: Mapping[str, ClassSettings] = {}
    if mclock and needs_release(config):
        classes = _built_in_classes(config, cost.capacity, release, not_understood)
    elif mclock:
        read = _bandwidth_class if name == "bandwidth" else _early_class
        classes = {cls: read(config, cls, cost.capacity, shards) for cls in SCHEDULED}
    return QosState(
        cost=cost,
        media=media,
        shards=shards,
        capacity_origin=config.origin(f"{_CAPACITY_OPTION}{media}"),
        classes=classes,
        recovery_item_bytes=config.number("osd_recovery_cost") if name == "early" else None,
        not_understood=not_understood,
    )


def _built_in_classes(
    config: EffectiveConfig, capacity: float, release: int | None, not_understood: NotUnderstood
) -> Mapping[str, ClassSettings]:
    """What the built-in profile gives; the options may still have values of a custom one."""
    profile = config.text(PROFILE_OPTION) or ""
    shares = shares_of(release, profile)
    if shares is None:
        not_understood.add("profile", f"{profile} of release {release or 'unknown'}")
        return {}
    return {cls: settings_of(share, capacity) for cls, share in shares.items()}


def _required(config: EffectiveConfig, key: str) -> float:
    value = config.number(key)
    if value is None:
        raise ValueError(f"{key}: not a number in the OSD's configuration")
    return value


def _bandwidth_model(config: EffectiveConfig, media: Media) -> BandwidthModel:
    # The scheduler, too, takes at least 1 for both.
    return BandwidthModel(
        bandwidth=max(1.0, _required(config, f"{_BANDWIDTH_OPTION}{media}")),
        iops=max(1.0, _required(config, f"{_CAPACITY_OPTION}{media}")),
    )


def _early_model(config: EffectiveConfig, media: Media) -> EarlyModel:
    return EarlyModel(
        iops=_required(config, f"{_CAPACITY_OPTION}{media}"),
        per_io=_early_cost(config, _EARLY_PER_IO_OPTION, media),
        per_byte=_early_cost(config, _EARLY_PER_BYTE_OPTION, media),
    )


def _early_cost(config: EffectiveConfig, option: str, media: Media) -> float:
    override = config.number(option)
    if override:
        # The scheduler takes an override as it stands, without converting microseconds.
        return override
    scale = 1e6 if media == "hdd" else 1e3
    return _required(config, f"{option}_{media}") / scale


def _bandwidth_class(
    config: EffectiveConfig, cls: str, capacity: float, shards: int
) -> ClassSettings:
    option = f"osd_mclock_scheduler_{cls}"
    reservation, weight, limit = (_required(config, f"{option}_{x}") for x in ("res", "wgt", "lim"))
    return settings_of(Share(reservation, weight, limit), capacity)


def settings_of(share: Share, capacity: float) -> ClassSettings:
    return ClassSettings(
        reservation_ratio=share.reservation,
        reservation=None if share.reservation is None else share.reservation * capacity,
        limit_ratio=share.limit or None,
        limit=share.limit * capacity if share.limit else None,
        weight=share.weight or 0.0,
    )


def _early_class(config: EffectiveConfig, cls: str, capacity: float, shards: int) -> ClassSettings:
    """Reservation and limit are configured per shard, in operations per second."""
    option = f"osd_mclock_scheduler_{cls}"
    reservation = _required(config, f"{option}_res") * shards
    per_shard = _required(config, f"{option}_lim")
    limit = None if per_shard == 0 or per_shard >= _EARLY_NO_LIMIT else per_shard * shards
    return ClassSettings(
        reservation_ratio=reservation / capacity if capacity else 0.0,
        reservation=reservation,
        limit_ratio=None if limit is None or not capacity else limit / capacity,
        limit=limit,
        weight=_required(config, f"{option}_wgt"),
    )

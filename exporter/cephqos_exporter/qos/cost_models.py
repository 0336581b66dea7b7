"""What an operation costs and what is reserved for each class, in the bandwidth model of mClock.

Costs are in normalised ops: 1 is the cost of one small operation. An OSD has the model if it has
its options, whatever its release: the model was backported to late 17.2. The mClock of 16.2 and of
early 17.2 is another one, of which nothing is read. Under WPQ such an OSD's work is counted at the
costs that later releases have by default, so that a normalised op is the same everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from cephqos_base.profiles import CAPACITY_OPTION, PROFILE_OPTION, Share, shares_of
from cephqos_base.series import SCHEDULED
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.config import EffectiveConfig, Origin

Media = Literal["hdd", "ssd"]
MEDIA: tuple[Media, Media] = ("hdd", "ssd")

_BANDWIDTH_OPTION = "osd_mclock_max_sequential_bandwidth_"
# The defaults of 18.2, for an OSD without these options.
_DEFAULT_BANDWIDTH: Final[dict[Media, float]] = {"hdd": 150 << 20, "ssd": 1200 << 20}
DEFAULT_CAPACITY: Final[dict[Media, float]] = {"hdd": 315, "ssd": 21_500}


@dataclass(frozen=True, slots=True)
class BandwidthModel:
    """An operation costs its bytes, and at least `cost_per_io`."""

    bandwidth: float  # bytes/s
    iops: float

    @property
    def cost_per_io(self) -> float:
        """Bytes that count as one normalised op."""
        return self.bandwidth / self.iops

    def normalised(self, size: float) -> float:
        return max(size / self.cost_per_io, 1.0)


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

    cost: BandwidthModel
    media: Media
    shards: int
    capacity_origin: Origin
    classes: Mapping[str, ClassSettings]  # that are known; empty if mClock does not run
    not_understood: NotUnderstood = field(default_factory=NotUnderstood, compare=False)


def has_model(config: EffectiveConfig) -> bool:
    return f"{_BANDWIDTH_OPTION}ssd" in config


def guess_media(config: EffectiveConfig, shards: int) -> Media | None:
    """Whether the OSD took its device for rotational, from its settings; None if they do not say.

    An OSD does not report it on its socket. The number of shards shows it, if it was not set and
    the defaults of the two media differ. Else a capacity that was set for one medium only. If this
    returns None, the device itself may show it.
    """
    by_shards = [m for m in MEDIA if config.number(f"osd_op_num_shards_{m}") == shards]
    if len(by_shards) == 1 and not config.number("osd_op_num_shards"):
        return by_shards[0]
    by_capacity = [m for m in MEDIA if config.origin(f"{CAPACITY_OPTION}{m}") != "default"]
    return by_capacity[0] if len(by_capacity) == 1 else None


def needs_release(config: EffectiveConfig) -> bool:
    """Whether a built-in profile is in force whose values are not in the options (21.x).

    Then the option's default is 0, while every profile reserves something for clients.
    """
    return (
        has_model(config)
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
) -> QosState:
    """The QoS settings in force; ValueError if mClock runs in a release without this model.

    `release` is needed if `needs_release`. `mclock`: whether mClock runs; else no class has
    settings.
    """
    not_understood = NotUnderstood()
    if has_model(config):
        # The scheduler, too, takes at least 1 for both.
        cost = BandwidthModel(
            bandwidth=max(1.0, _required(config, f"{_BANDWIDTH_OPTION}{media}")),
            iops=max(1.0, _required(config, f"{CAPACITY_OPTION}{media}")),
        )
    elif mclock:
        raise ValueError("the mClock of this release is not supported: no bandwidth option")
    else:
        iops = config.number(f"{CAPACITY_OPTION}{media}") or DEFAULT_CAPACITY[media]
        cost = BandwidthModel(_DEFAULT_BANDWIDTH[media], iops)
    classes: Mapping[str, ClassSettings] = {}
    if mclock and needs_release(config):
        classes = _built_in_classes(config, cost.iops, release, not_understood)
    elif mclock:
        classes = {cls: _class_settings(config, cls, cost.iops) for cls in SCHEDULED}
    return QosState(
        cost=cost,
        media=media,
        shards=shards,
        capacity_origin=config.origin(f"{CAPACITY_OPTION}{media}"),
        classes=classes,
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


def _class_settings(config: EffectiveConfig, cls: str, capacity: float) -> ClassSettings:
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

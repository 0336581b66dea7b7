"""Sizes and numbers as people read them."""

from cephqos_loadgen.plan.parts import Images, Objects


def size(value: float) -> str:
    """512 B, 17.6 MiB, 1.95 TiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"


def count(number: int, what: str) -> str:
    """1 image, 10,000,000 objects."""
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def objects(planned: Objects) -> str:
    return f"{count(planned.count, 'object')} of {size(planned.size)}"


def images(planned: Images) -> str:
    filled = "written through once" if planned.prefill else "left empty"
    return f"{count(planned.count, 'image')} of {size(planned.size)}, {filled}"

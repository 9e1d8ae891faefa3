"""Where an index is to be served: memory and rates of a machine or a card."""

from __future__ import annotations

import re
from typing import NamedTuple

from hippogpu.capacity.rates import TWO_CORES, Rates, card_rates
from hippogpu.errors import UsageError

GIB = 2**30


class Device(NamedTuple):
    """Memory for arrays and work, in bytes; is_gpu says whether it is a card's."""

    name: str
    memory_bytes: int
    rates: Rates
    is_gpu: bool = False


class Card(NamedTuple):
    """A card by what its maker publishes: GB of memory, GB/s, GFLOP/s of float32 and of dense 16-bit
    products.
    """

    memory_gb: int
    bandwidth_gbs: float
    gflops: float
    tensor_gflops: float


CARDS: dict[str, Card] = {
    "l4": Card(24, 300, 30_300, 121_000),
    "rtx4090": Card(24, 1_008, 82_600, 165_000),
    "a100": Card(80, 2_039, 19_500, 312_000),
    "h100": Card(80, 3_350, 66_900, 990_000),
    "h200": Card(141, 4_800, 66_900, 990_000),
    "b200": Card(180, 8_000, 80_000, 2_250_000),
}
DEFAULT_RAM_GIB = 24
# A driver, its context and the allocator's own rounding; on a host the system and Python.
FREE_SHARE = 0.92


def device_from_name(text: str, rates: Rates = TWO_CORES) -> Device:
    """ "cpu", "cpu:64" (GiB of memory), a card's name, or "gpu:48" for a card of that many GB; UsageError for others.

    A card that is named by its memory alone has the bandwidth of the smallest one listed that has as much.
    """
    name = text.strip().lower()
    sized = re.fullmatch(r"(?:(cpu|gpu):)?(\d+(?:\.\d+)?)", name)
    if name == "cpu" or (sized and sized[1] != "gpu"):
        gib = float(sized[2]) if sized else DEFAULT_RAM_GIB
        return _checked(Device(f"cpu, {gib:g} GiB", int(gib * GIB), rates), text)
    if sized:
        return _checked(_card(f"gpu, {sized[2]} GB", _like(float(sized[2])), rates, gb=float(sized[2])), text)
    if name in CARDS:
        return _card(name, CARDS[name], rates, gb=CARDS[name].memory_gb)
    raise UsageError(
        f"There is no device '{text}'. Name cpu, cpu:GIB, gpu:GB, or one of these cards: {', '.join(CARDS)}."
    )


def _like(gb: float) -> Card:
    return min(CARDS.values(), key=lambda card: (card.memory_gb < gb, abs(card.memory_gb - gb), card.bandwidth_gbs))


def _card(name: str, card: Card, rates: Rates, *, gb: float) -> Device:
    return Device(
        name, int(gb * 1e9), card_rates(card.bandwidth_gbs, card.gflops, card.tensor_gflops, host=rates), is_gpu=True
    )


def _checked(device: Device, text: str) -> Device:
    if device.memory_bytes <= 0:
        raise UsageError(f"A device needs memory. Got '{text}'.")
    return device

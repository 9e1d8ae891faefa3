"""What an index of any size takes: memory, disk, time, and which settings make it fit; before anything is built."""

from __future__ import annotations

from hippogpu.capacity.counts import PUBLISHED, Counts, Proportions, counted, foreseen, proportions_of
from hippogpu.capacity.devices import CARDS, Device, device_from_name
from hippogpu.capacity.encoders import PlannedEncoder, encoder_from_name
from hippogpu.capacity.planning import IndexPlan, plan_index, settings_toml
from hippogpu.capacity.rates import TWO_CORES, Rates, rates_toml, read_rates
from hippogpu.capacity.sampling import sample_of, sampled_proportions

__all__ = [
    "CARDS",
    "PUBLISHED",
    "TWO_CORES",
    "Counts",
    "Device",
    "IndexPlan",
    "PlannedEncoder",
    "Proportions",
    "Rates",
    "counted",
    "device_from_name",
    "encoder_from_name",
    "foreseen",
    "plan_index",
    "proportions_of",
    "rates_toml",
    "read_rates",
    "sample_of",
    "sampled_proportions",
    "settings_toml",
]

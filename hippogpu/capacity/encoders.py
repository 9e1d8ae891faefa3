"""How wide an encoder's vectors are, and how long a text takes it."""

from __future__ import annotations

from typing import NamedTuple

from hippogpu.capacity.devices import Device
from hippogpu.errors import UsageError

BYTES_A_TOKEN = 4.2
"""UTF-8 bytes of English a token."""


class PlannedEncoder(NamedTuple):
    """An encoder by name; parameters that a token is multiplied with, 0 where nothing is known of its speed.

    share : of the rates text_ms and letter_ms, measured with minilm on the CPU, that its seconds are; 0: not by them
    """

    name: str
    width: int
    parameters: float = 0.0
    share: float = 0.0


KNOWN = {
    "minilm": PlannedEncoder("minilm", 384, 1.06e7, 1.0),
    "contriever": PlannedEncoder("contriever", 768, 8.5e7),
    "bge-m3": PlannedEncoder("bge-m3", 1024, 3.0e8),
    "qwen3-embedding-0.6b": PlannedEncoder("qwen3-embedding-0.6b", 1024, 4.4e8),
    "qwen3-embedding-8b": PlannedEncoder("qwen3-embedding-8b", 4096, 7.0e9),
    "nv-embed-v2": PlannedEncoder("nv-embed-v2", 4096, 7.1e9),
}
DEFAULT_HASHING_WIDTH, HASHING_SHARE = 256, 0.006
_MOST_WIDTH = 1 << 20


def encoder_from_name(text: str) -> PlannedEncoder:
    """An encoder by its name, hashing:WIDTH, or a width alone, of whose speed nothing is known; UsageError for others.

    A name may have a prefix such as st: and an organisation before a slash.
    """
    name = text.strip().lower().removeprefix("st:").split("#")[-1].split("/")[-1]
    if name.isdigit():
        return PlannedEncoder(f"width {name}", _width(int(name), text))
    if name.split(":")[0] == "hashing":
        width = name.partition(":")[2] or str(DEFAULT_HASHING_WIDTH)
        if width.isdigit():
            return PlannedEncoder(name, _width(int(width), text), share=HASHING_SHARE)
    aliases = {"all-minilm-l6-v2": "minilm"}
    found = KNOWN.get(aliases.get(name, name))
    if found is None:
        raise UsageError(
            f"How wide the vectors of '{text}' are is not known here. Give the width as a number (--encoder 768), or "
            f"one of {', '.join(KNOWN)}, hashing:WIDTH."
        )
    return found


def encode_seconds(encoder: PlannedEncoder, device: Device, texts: int, letters: int) -> float | None:
    """Seconds to encode so many texts of so many bytes in all; None where nothing is known of the encoder's speed.

    minilm on the CPU: by measured rates. Else arithmetic: 2 · parameters · tokens at the product rate, of 16-bit
    tensor cores on a card, and no faster than the host cuts texts into tokens.
    """
    rates = device.rates
    if encoder.share and not (device.is_gpu and encoder.parameters):
        return encoder.share * (texts * rates.text_ms + letters * rates.letter_ms) / 1e3
    if not encoder.parameters:
        return None
    products = 2 * encoder.parameters * letters / BYTES_A_TOKEN / (rates.encode_gflops * 1e9)
    return max(products, letters / (rates.tokenise_mbs * 1e6))


def _width(width: int, text: str) -> int:
    if not 1 <= width <= _MOST_WIDTH:
        raise UsageError(f"The width of a vector must be 1 to {_MOST_WIDTH:,}. Got '{text}'.")
    return width

"""How vLLM runs an encoder, and how that is spelled behind its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

from hippogpu.config.checks import check_types, require
from hippogpu.errors import ConfigError

Pooling = Literal["model", "mean", "cls", "last"]
_NUMBERS: dict[Any, Callable[[str], Any]] = {int: int, float: float}


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How vLLM runs an encoder.

    pooling         how the vectors of the tokens become one: "model" as the model's own files say
    window          most tokens read of one text; 0 for the model's own
    dtype           number type of the weights ("auto", "float32", "bfloat16", …)
    tensor_parallel GPUs that share the model
    gpu_memory      share of each GPU's memory that vLLM may take, in (0, 1]
    in_flight       most texts in one step of the engine
    """

    pooling: Pooling = "model"
    window: int = 0
    dtype: str = "auto"
    tensor_parallel: int = 1
    gpu_memory: float = 0.9
    in_flight: int = 1024

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("tensor_parallel", "in_flight"):
            require(self, name, getattr(self, name) >= 1, "at least 1")
        require(self, "window", self.window >= 0, "0 (the model's own) or more")
        require(self, "gpu_memory", 0.0 < self.gpu_memory <= 1.0, "in (0, 1]")


def read_settings(text: str) -> VllmSettings:
    """The settings of "window=512&gpu_memory=0.5"; "" gives the defaults. ConfigError for what is none of them."""
    values: dict[str, Any] = {}
    hints = get_type_hints(VllmSettings)
    for item in text.split("&") if text else []:
        key, _, value = item.partition("=")
        if key not in hints:
            known = ", ".join(setting.name for setting in fields(VllmSettings))
            raise ConfigError(f"The encoder 'vllm' has no setting '{key}'. Its settings are: {known}.")
        if key in values:
            raise ConfigError(f"The setting '{key}' of the encoder 'vllm' is given twice. Leave one of them out.")
        values[key] = _value(key, value, hints[key])
    return VllmSettings(**values)


def _value(key: str, text: str, hint: Any) -> Any:
    try:
        return _NUMBERS.get(hint, str)(text)
    except ValueError as error:
        raise ConfigError(f"The setting '{key}' of the encoder 'vllm' must be a number. Got '{text}'.") from error

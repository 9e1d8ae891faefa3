"""Every method by its name."""

from __future__ import annotations

from collections.abc import Mapping

from hippogpu.config import MethodName
from hippogpu.errors import UsageError
from hippogpu.methods.dense import DENSE
from hippogpu.methods.hippo2 import HIPPO2
from hippogpu.methods.seam import Method

METHODS: Mapping[MethodName, Method] = {method.name: method for method in (HIPPO2, DENSE)}


def method_of(name: MethodName) -> Method:
    """The method of that name; UsageError when there is none."""
    if name not in METHODS:
        raise UsageError(f"There is no method '{name}'. Choose one of: {', '.join(METHODS)}.")
    return METHODS[name]

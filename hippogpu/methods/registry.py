"""Every method by its name."""

from __future__ import annotations

from collections.abc import Mapping

from hippogpu.config import MethodName
from hippogpu.errors import UsageError
from hippogpu.methods.bm25 import BM25
from hippogpu.methods.dense import DENSE
from hippogpu.methods.ensemble import ENSEMBLE
from hippogpu.methods.fusion import fusion_of
from hippogpu.methods.hippo import HIPPO
from hippogpu.methods.hippo1 import HIPPO1, NEIGHBOURS, SEEDS_ONLY
from hippogpu.methods.hippo2 import HIPPO2
from hippogpu.methods.seam import Method

_SINGLE = (HIPPO, HIPPO2, HIPPO1, DENSE, BM25, ENSEMBLE, SEEDS_ONLY, NEIGHBOURS)
_BY_NAME: Mapping[MethodName, Method] = {method.name: method for method in _SINGLE}

METHODS: Mapping[MethodName, Method] = {**_BY_NAME, "fusion": fusion_of(_BY_NAME)}


def method_of(name: MethodName) -> Method:
    """The method of that name; UsageError when there is none."""
    if name not in METHODS:
        raise UsageError(f"There is no method '{name}'. Choose one of: {', '.join(METHODS)}.")
    return METHODS[name]

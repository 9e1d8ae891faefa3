"""FAISS on GPUs: where its memory is, and how an index is put there. Not run on a GPU yet."""

from __future__ import annotations

from typing import Any, NamedTuple

from hippogpu.errors import HippoError

MOST_ON_GPU = 2048
"""FAISS selects no more rows, and looks at no more cells, in one search on a GPU."""
CODE_BYTES = (1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96)
"""Bytes a row for which FAISS has a search of its own on a GPU."""


class Gpus(NamedTuple):
    """All GPUs that FAISS sees, with the resources of each."""

    faiss: Any
    devices: tuple[int, ...]
    resources: tuple[Any, ...]


def all_gpus(faiss: Any, *, temporary_bytes: int) -> Gpus:
    """Every GPU, with so much memory for the intermediate results of each; HippoError where FAISS sees none."""
    count = faiss.get_num_gpus()
    if not count:
        raise HippoError(
            "FAISS sees no GPU: is faiss-cpu installed beside CuPy? Install the extra cuda12 or cuda13, which bring "
            'faiss-gpu, or set fact_store = "own".'
        )
    resources = []
    for _ in range(count):
        one = faiss.StandardGpuResources()
        one.setTempMemory(temporary_bytes)
        resources.append(one)
    return Gpus(faiss, tuple(range(count)), tuple(resources))


def flat_on(gpus: Gpus, width: int, place: int, *, half: bool) -> Any:
    """An empty flat index by inner product on one of the GPUs, in float16 or float32."""
    config = gpus.faiss.GpuIndexFlatConfig()
    config.device, config.useFloat16 = gpus.devices[place], half
    return gpus.faiss.GpuIndexFlatIP(gpus.resources[place], width, config)


def spread(gpus: Gpus, index: Any) -> Any:
    """A copy of an index of cells on the GPUs: on one the whole, on several a share of its rows each."""
    pieces = index.pq.M
    if pieces not in CODE_BYTES:
        raise HippoError(
            f"FAISS searches no codes of {pieces} bytes on a GPU, only of {', '.join(map(str, CODE_BYTES))}. "
            'Set fact_store = "own".'
        )
    faiss = gpus.faiss
    options = faiss.GpuMultipleClonerOptions()
    options.shard, options.common_ivf_quantizer = len(gpus.devices) > 1, True
    # Rows are compared again by what is stored of them, so the tables of a question may be in float16; beyond 48 bytes
    # a row those in float32 would not fit the memory that a block of threads shares.
    options.useFloat16, options.indicesOptions = True, faiss.INDICES_32_BIT
    return faiss.index_cpu_to_gpu_multiple_py(list(gpus.resources), index, options, list(gpus.devices))

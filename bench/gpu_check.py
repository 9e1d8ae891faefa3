"""The one script for a machine with a GPU: the contract, a sanitizer where there is one, then times.

Needs hippogpu and CuPy (extra cuda12 or cuda13) and nothing else: FAISS, cuGraph, torch and vLLM are reported as
absent. It makes its own data. Exit 2 without a device, 1 when a check failed; what failed is not timed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.checks import Check, all_passed, equal
from bench.report import machine, print_checks, print_rows, write_json
from hippogpu.backends.devices import Device, find_device

RESULT = Path("gpu_check.json")
OPTIONAL = {"faiss": ("faiss-gpu", "faiss-gpu-cuvs"), "pylibcugraph": ("pylibcugraph-cu13", "pylibcugraph-cu12"),
            "torch": ("torch",), "vllm": ("vllm",)}  # fmt: skip
CUPY = ("cupy-cuda13x", "cupy-cuda12x")
LIMIT_S = 540.0
SANITIZER_S = 120
FULL_PASSAGES, QUICK_PASSAGES = 100_000, 10_000


def gpu_check(
    quick: Annotated[bool, typer.Option("--quick", help="A graph of 10,000 passages and fewer batches.")] = False,
    json: Annotated[Path, typer.Option(help="Where the result goes.")] = RESULT,
    contract_only: Annotated[bool, typer.Option("--contract-only", help="Small graphs of the contract alone.")] = False,
) -> None:
    """Check and time the CUDA backend on this machine's GPU, in under 10 minutes."""
    found = find_device()
    if found.device is None:
        print(f"gpu_check needs an NVIDIA GPU and CuPy: {found.reason}. Nothing was run.", file=sys.stderr)
        raise typer.Exit(2)
    if contract_only:
        small_contract()
        return
    started = time.monotonic()
    result = about(found.device, quick=quick)
    checks = [*contracts(), *optional_checks()]
    sanitized = sanitize()
    result |= {"sanitizer": sanitized, "stages": [], "skipped": []}
    checks.append(equal("the sanitizer finds nothing", sanitized["errors"], sanitized["wanted"]))
    if all_passed(checks):
        checks += measure(result, quick=quick, started=started)
    result |= {"checks": [check._asdict() for check in checks], "passed": all_passed(checks)}
    result["seconds"] = round(time.monotonic() - started, 1)
    write_json(json, result)
    show(result, checks)
    raise typer.Exit(0 if result["passed"] else 1)


def about(device: Device, *, quick: bool) -> dict[str, Any]:
    """The card, the driver, and every version that matters."""
    cupy = next((f"{name} {version(name)}" for name in CUPY if installed(name)), "unknown build")
    optional = {
        module: next((f"{name} {version(name)}" for name in names if installed(name)), "absent")
        for module, names in OPTIONAL.items()
    }
    return {"benchmark": "gpu_check", "quick": quick, "machine": machine(), "device": device._asdict(), "cupy": cupy,
            "optional": optional}  # fmt: skip


def installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def contracts() -> Iterator[Check]:
    """The whole contract on cuda, on its cuSPARSE path, and on cugraph where that is installed."""
    from hippogpu.backends import load_backend
    from hippogpu.backends.cuda import CudaBackend
    from hippogpu.testing.backends import check_backend

    yield kept("contract, cuda", lambda: check_backend(lambda budget: load_backend("cuda", budget_bytes=budget)))
    yield kept("contract, cuda through cuSPARSE", lambda: check_backend(lambda budget: CudaBackend(budget, "cusparse")))
    if importlib.util.find_spec("pylibcugraph") is not None:
        yield kept(
            "contract, cugraph", lambda: check_backend(lambda budget: load_backend("cugraph", budget_bytes=budget))
        )


def kept(name: str, promise: Callable[[], None]) -> Check:
    """Passes when the call returns; else the words of its failure are what was found."""
    try:
        promise()
    except Exception as error:
        # Whatever a device or a driver raises is the finding.
        return Check(name, f"{type(error).__name__}: {error}", "kept", False)
    return Check(name, "kept", "kept", True)


def optional_checks() -> Iterator[Check]:
    """A tensor of torch on the device is taken without a copy, where torch is installed."""
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    from hippogpu.backends.cuda import CudaBackend

    if torch.cuda.is_available():
        tensor = torch.ones((3, 4), device="cuda")
        yield equal("a torch tensor is taken without a copy", CudaBackend().put(tensor).data.ptr, tensor.data_ptr())


def small_contract() -> None:
    """Parts of the contract that reach every kernel; small, as a sanitizer slows them a hundredfold."""
    from hippogpu.backends import load_backend
    from hippogpu.testing import backends as contract
    from hippogpu.testing.graphs import hub_graph, small_graph

    cuda = load_backend("cuda", budget_bytes=2**20)
    for batch in (1, 4, 7):
        contract.check_solve(cuda, hub_graph(1000), batch=batch)
    contract.check_topk(cuda, keys=1000, batch=7)
    contract.check_select_ties(cuda)
    push_once(cuda, small_graph(1000))


def push_once(cuda: Any, graph: Any) -> None:
    """A ranking and a residual, whose kernels the parts of the contract above leave out."""
    import numpy as np

    from hippogpu.backends import PassagePart, SparseSeeds

    put, columns = cuda.put_graph(graph), np.ones((graph.nodes, 3), np.float32)
    cuda.residual(put, columns, columns, damping=0.5)
    ones = np.ones(50, np.float32)
    part = PassagePart(cuda.put(np.eye(50, 8)), cuda.put(ones), np.eye(2, 8), ones[:2], ones[:2])
    seeds = SparseSeeds(np.array([0, 2, 3]), np.array([1, 7, 9], np.int32), np.ones(3))
    cuda.rank_diffused(put, part, seeds, 5, damping=0.5, epsilon=1e-3, least_epsilon=1e-6)


def sanitize() -> dict[str, Any]:
    """What compute-sanitizer says of the small contract: `errors` is its exit code."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return {"tool": "absent", "errors": None, "wanted": None}
    command = [tool, "--error-exitcode", "9", sys.executable, "-m", "bench.gpu_check", "--contract-only"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SANITIZER_S, check=False)
    except subprocess.TimeoutExpired:
        return {"tool": "compute-sanitizer", "errors": f"not done after {SANITIZER_S} s", "wanted": 0}
    return {
        "tool": "compute-sanitizer",
        "errors": run.returncode,
        "wanted": 0,
        "last_words": run.stdout[-2000:] + run.stderr[-2000:],
    }


def measure(result: dict[str, Any], *, quick: bool, started: float) -> list[Check]:
    """Fills the result's stages, until the time is up; returns the checks that stood before them."""
    from bench import gpu_stages as stages
    from bench.gpu_time import copy_gbs
    from hippogpu.backends.cuda import CudaBackend

    cuda = CudaBackend(2 * 2**30)
    batches, most = ((1, 32), 64) if quick else ((1, 4, 7, 8, 32, 64), 256)
    result["copy_gbs"] = copy_gbs(cuda._cupy)
    copy = result["copy_gbs"]["median"]
    work = stages.make_work(QUICK_PASSAGES if quick else FULL_PASSAGES, most)
    result["graph"] = {"passages": len(work.vectors), "nodes": work.graph.nodes, "nonzeros": work.graph.nonzeros}
    checks = list(stages.check_work(work))
    if not all_passed(checks):
        return checks
    ranked = stages.Ranked([], [])
    timed: dict[str, Callable[[], Any]] = {
        "steps": lambda: stages.time_steps(cuda, work, batches, copy),
        "solves": lambda: stages.time_solves(cuda, work, (1, 32), copy),
        "topk": lambda: stages.time_topk(cuda, work, (1, 32, most), copy),
        "rank": lambda: stages.rank(cuda, work, (1, 32, most), copy),
    }
    for name, run in timed.items():
        if time.monotonic() - started > LIMIT_S:
            result["skipped"].append(f"{name}: {LIMIT_S:.0f} s were over")
            continue
        made = run()
        ranked = made if name == "rank" else ranked
        result["stages"] += [each._asdict() for each in (made.stages if name == "rank" else made)]
    return checks + ranked.checks


def show(result: dict[str, Any], checks: list[Check]) -> None:
    """Checks and stages as tables."""
    console = Console() if sys.stdout.isatty() else Console(width=150)
    console.print(f"{result['device']['name']}, driver for CUDA {result['device']['driver']}, {result['cupy']}")
    print_checks(checks, console)
    rows = [[each["name"], each["batch"], each["ms"], each["copy_percent"], each["note"]] for each in result["stages"]]
    print_rows("times", ["stage", "batch", "ms", "% of copy bandwidth", ""], rows, console)


if __name__ == "__main__":
    typer.run(gpu_check)

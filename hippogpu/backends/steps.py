"""How many steps a solver takes, and the weight of each."""

from __future__ import annotations

import math

from hippogpu.config import LinearSolver


def power_steps(damping: float, tolerance: float) -> int:
    """Steps after which the power iteration's L1 error is at most `tolerance`: 21 for 1e-6 at damping 0.5."""
    if damping == 0.0:
        return 1
    return max(1, math.ceil(math.log(tolerance / 2) / math.log(damping)))


def chebyshev_contraction(damping: float) -> float:
    """Factor by which a Chebyshev step shrinks the error in the end, on a spectrum in [1 − d, 1 + d]: 0.268 at 0.5."""
    return damping / (1.0 + math.sqrt(1.0 - damping * damping))


def chebyshev_steps(damping: float, tolerance: float) -> int:
    """Steps after which the error is at most `tolerance` of the first one, in the norm weighed by 1 ÷ degree: 12 for
    1e-6 at damping 0.5. The last step is a plain one and contracts by the damping.
    """
    if damping == 0.0:
        return 1
    return 1 + max(0, math.ceil(math.log(tolerance / (2 * damping)) / math.log(chebyshev_contraction(damping))))


def steps_for(solver: LinearSolver, damping: float, tolerance: float) -> int:
    """Steps that a solver takes to the tolerance."""
    return (power_steps if solver == "power" else chebyshev_steps)(damping, tolerance)


def step_weights(solver: LinearSolver, damping: float, steps: int) -> list[float]:
    """The ω of each step of x ← ω·(d·A·D⁻¹·x + (1 − d)·s − x₋₁) + x₋₁: ones for power.

    The last step is a plain one, ω = 1: it needs no x₋₁, and it smooths what is left.
    """
    weights = [1.0] * steps
    if solver == "chebyshev":
        for number in range(1, steps - 1):
            weights[number] = 1.0 / (1.0 - damping**2 * weights[number - 1] / (2.0 if number == 1 else 4.0))
    return weights

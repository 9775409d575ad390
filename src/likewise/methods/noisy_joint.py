"""The noisy joint objective as one of the methods of `likewise.methods.dispatch`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InputError
from likewise.inference import fit_joint as fit_judgements
from likewise.inference.fit import NOISES
from likewise.methods.problem import Problem
from likewise.methods.result import FitResult
from likewise.training.checkpoints import Checkpoints
from likewise.training.replay_cache import ReplayCache


def fit_joint(
    problem: Problem,
    transition: NDArray[np.float64] | str | None,
    noise: str,
    checkpoints: Checkpoints | None = None,
) -> FitResult:
    """EM on the judgement graph (`likewise.inference`), told in the words of every method.

    Nothing is held out of the items: each is predicted by networks that did not see it. The score
    is the negative log evidence of a judgement.
    """
    if noise not in NOISES:
        raise InputError(f"noise must be one of {', '.join(NOISES)}, not {noise!r}.")
    result = fit_judgements(
        problem.items,
        problem.pairs,
        problem.n_classes,
        network=problem.network,
        noise=noise,  # type: ignore[arg-type]
        transition=transition,
        random_state=problem.seed,
        device=problem.device,
        replay_cache=None if checkpoints is None else ReplayCache(checkpoints),
    )
    evidence = [row["evidence"] for row in result.history]
    return FitResult(
        method="joint",
        model=result.module,
        last_model=result.module,
        transition=result.transition,
        history=[_row(row) for row in result.history],
        best_epoch=int(np.argmax(evidence)),
        score=-max(evidence) / len(problem.pairs),
        choice=result.choice,
        channel=result.channel,
        annotators=result.annotators or None,
        posterior=result.posterior,
    )


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A round as a row of the history, without the clock: the same seed gives the same model."""
    return {"epoch": row["round"] - 1, **{k: v for k, v in row.items() if k != "seconds"}}

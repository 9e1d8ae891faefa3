"""Recognition memory by a local cross-encoder: a model that reads question and fact together and scores the pair."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from hippogpu.errors import ConfigError, UsageError, require_extra
from hippogpu.methods.filter import Verdict
from hippogpu.store.mapped import sha256_of
from hippogpu.types import AnyFloats, KeptFact

THRESHOLD = 0.5


class CrossEncoderFilter:
    """Keeps the facts that a cross-encoder scores at least `threshold` beside the question, in (0, 1).

    name_or_folder is a model that sentence-transformers knows (extra st): a folder, or a name that may be downloaded.
    `name` has a digest of a folder's files, so that a run of another model in its place is not gone on with.
    The model must have one output; its sigmoid is the score. All pairs of a call go through it in batches.
    ConfigError when the model cannot be loaded or has several outputs.
    """

    def __init__(self, name_or_folder: str, *, threshold: float = THRESHOLD, batch_size: int = 64) -> None:
        if not name_or_folder:
            raise ConfigError(
                "The filter 'cross-encoder' needs a model. Name one, or its folder, by 'filter_model' under [search]."
            )
        if not 0.0 < threshold < 1.0:
            raise UsageError(f"The threshold of a cross-encoder must lie in (0, 1). Got {threshold}.")
        digest = _digest(Path(name_or_folder))
        self.name = f"cross-encoder-{name_or_folder}-{threshold:g}{digest and f' (sha256 {digest})'}"
        self._threshold, self._batch_size = threshold, batch_size
        self._model = _loaded(name_or_folder)

    def __call__(self, questions: Sequence[str], candidates: Sequence[Sequence[KeptFact]]) -> list[Verdict]:
        """One verdict a question, in order; UsageError when the two are not of one length."""
        if len(questions) != len(candidates):
            raise UsageError(f"{len(questions)} questions with {len(candidates)} lists of facts. Pass one list each.")
        pairs = [
            (question, " ".join(fact[:3])) for question, row in zip(questions, candidates, strict=True) for fact in row
        ]
        scores = self._scores(pairs)
        ends = pairwise([0, *accumulate(len(row) for row in candidates)])
        return [Verdict(tuple(self._above(scores[start:end]))) for start, end in ends]

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> AnyFloats:
        """The score of each pair, in (0, 1) but for rounding."""
        if not pairs:
            return np.empty(0, np.float64)
        # Models bring activations of their own: some a sigmoid, some none. One that changes nothing makes them alike.
        outputs = self._model.predict(
            list(pairs), batch_size=self._batch_size, show_progress_bar=False, activation_fn=_as_they_are
        )
        return expit(np.asarray(outputs, np.float64).reshape(len(pairs)))

    def _above(self, scores: AnyFloats) -> list[int]:
        return np.flatnonzero(scores >= self._threshold).tolist()


def _digest(folder: Path) -> str:
    """16 hex digits of the names and bytes of the files in a folder, "" when it is none: a model made anew is told."""
    if not folder.is_dir():
        return ""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{sha256_of(path)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _as_they_are(outputs: Any) -> Any:
    return outputs


def _loaded(name: str) -> Any:
    """The model that sentence-transformers makes of the name."""
    library: Any = require_extra(
        "sentence_transformers", package="sentence-transformers", extra="st", purpose="The filter 'cross-encoder'"
    )
    try:
        model = library.CrossEncoder(name)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The cross-encoder '{name}' cannot be loaded: {error}. Name a model or a folder that "
            "sentence-transformers can read."
        ) from error
    if model.num_labels != 1:
        raise ConfigError(
            f"The cross-encoder '{name}' has {model.num_labels} outputs, and a filter needs one score. Name a model "
            "for ranking."
        )
    return model

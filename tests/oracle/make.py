"""Writes expected.npz beside this file: python tests/oracle/make.py (needs the extra 'minilm').

It holds small vectors of every text of the shipped corpus (MiniLM's, projected to 24 columns and rounded to whole
numbers, so that no model is needed to read them) and, from the naive peer and igraph's PRPACK on those vectors, the
mass of each passage for each question under both profiles. Nothing of hippogpu but its encoder takes part.
"""

from __future__ import annotations

import numpy as np
from peers import EXPECTED, StoredEmbedder, key_of, read_source, run_peer, stored_texts

from hippogpu.config import PROFILES
from hippogpu.embed import default_embedder, encode_all

COLUMNS = 24


def main() -> None:
    source, texts = read_source(), stored_texts()
    rows = encode_all(texts, default_embedder()).astype(np.float64)
    basis = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:COLUMNS]
    projected = rows @ basis.T
    numbers = np.rint(127 * projected / np.abs(projected).max(axis=1, keepdims=True)).astype(np.int8)
    embedder = StoredEmbedder(texts, numbers)
    masses = {name: run_peer(source, embedder, name).answers for name in PROFILES}
    np.savez_compressed(
        EXPECTED,
        key=key_of(texts),
        numbers=numbers,
        **{f"mass_{name}": np.array([answer.mass for answer in answers]) for name, answers in masses.items()},
    )
    print(f"{len(texts)} texts, {EXPECTED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

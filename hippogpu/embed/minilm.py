"""all-MiniLM-L6-v2 on a CPU without torch: matrix products in BLAS, everything between them in compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Lock
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from hippogpu.embed.weights import SHA256, WEIGHTS, MiniLMFiles, find_minilm
from hippogpu.errors import ConfigError
from hippogpu.text import readable
from hippogpu.types import Floats, Ints, Longs

WINDOW = 256
WIDTH = 384
_LAYERS = 6
# Tokens of one pass through the layers. 256 to 1024 are equally fast within noise; 2048 was 4 to 7 % slower.
BATCH_TOKENS = 1024
# Texts tokenised at once: enough to sort by length, few enough that their ids stay small in memory.
_TOKENISE_TEXTS = 8192


class _Layer(NamedTuple):
    qkv: Floats
    qkv_bias: Floats
    out: Floats
    out_bias: Floats
    out_gain: Floats
    out_shift: Floats
    wide: Floats
    wide_bias: Floats
    narrow: Floats
    narrow_bias: Floats
    narrow_gain: Floats
    narrow_shift: Floats


class _Model(NamedTuple):
    words: Floats
    positions: Floats
    gain: Floats
    shift: Floats
    layers: tuple[_Layer, ...]


class MiniLM:
    """The default embedder: 384 numbers a text, 256 tokens of it read, no instructions.

    threads is how many batches run at once, each with one BLAS thread; by default as many as BLAS would use.
    Calls from several threads take turns. While a call of more than one batch runs, BLAS is set to one thread in
    the whole process, and back when it ends.
    """

    name = f"all-MiniLM-L6-v2@{SHA256[WEIGHTS][:8]}"
    width = WIDTH
    window = WINDOW
    query_to_fact = ""
    query_to_passage = ""

    def __init__(self, files: MiniLMFiles | None = None, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"The 'threads' of the minilm encoder must be at least 1. Got {threads}.")
        weights, tokenizer = files or find_minilm()
        self._model = _load(load_file(weights))
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._blas = ThreadpoolController().select(user_api="blas")
        self._threads = threads or max((library["num_threads"] for library in self._blas.info()), default=1)
        self._lock = Lock()

    def encode(self, texts: Sequence[str], *, instruction: str = "") -> Floats:
        """Unit vectors of the texts, (len(texts), 384) float32, rows in the order given.

        A text beyond 256 tokens is cut to its first 254 and the two special ones. The instruction is put before
        each text. A lone surrogate is read as U+FFFD.
        """
        numbers: dict[str, int] = {}
        places = [numbers.setdefault(instruction + text, len(numbers)) for text in texts]
        distinct = sorted(numbers, key=len)
        rows = np.empty((len(distinct), WIDTH), np.float32)
        with self._lock:
            for begin in range(0, len(distinct), _TOKENISE_TEXTS):
                block = distinct[begin : begin + _TOKENISE_TEXTS]
                rows[[numbers[text] for text in block]] = self._encode_block(self._ids(block))
        return rows[places]

    def token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each whole text has, its two special ones included, nothing cut."""
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast([readable(text) for text in texts])]

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast([readable(text) for text in texts])
        return [_cut(encoding.ids) for encoding in encodings]

    def _encode_block(self, ids: list[list[int]]) -> Floats:
        out = np.empty((len(ids), WIDTH), np.float32)
        groups = _groups([len(row) for row in ids], self._threads)

        def encode_group(group: list[int]) -> None:
            starts = np.zeros(len(group) + 1, np.int64)
            np.cumsum([len(ids[i]) for i in group], out=starts[1:])
            tokens = np.fromiter(chain.from_iterable(ids[i] for i in group), np.int32, int(starts[-1]))
            out[group] = _forward(self._model, tokens, starts)

        if len(groups) == 1:
            encode_group(groups[0])
            return out
        with self._blas.limit(limits=1), ThreadPoolExecutor(self._threads) as pool:
            for _ in pool.map(encode_group, groups):
                pass
        return out


def _cut(ids: list[int]) -> list[int]:
    return ids if len(ids) <= WINDOW else [*ids[: WINDOW - 1], ids[-1]]


def _groups(lengths: list[int], threads: int) -> list[list[int]]:
    """Rows in ascending length, cut into groups of about BATCH_TOKENS; smaller when that would leave a thread idle."""
    budget = min(BATCH_TOKENS, max(-(-sum(lengths) // threads), WINDOW))
    groups: list[list[int]] = []
    used = budget
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if used + lengths[row] > budget:
            groups.append([])
            used = 0
        groups[-1].append(row)
        used += lengths[row]
    return groups


def _forward(model: _Model, ids: Ints, starts: Longs) -> Floats:
    """Unit vectors of the texts whose tokens lie end to end in ids, (texts, 384)."""
    # The compiler is loaded by the first text, not by opening an index.
    from hippogpu.embed import minilm_kernels as kernels

    tokens = len(ids)
    x, y, context = (np.empty((tokens, WIDTH), np.float32) for _ in range(3))
    qkv = np.empty((tokens, 3 * WIDTH), np.float32)
    wide = np.empty((tokens, 4 * WIDTH), np.float32)
    kernels.look_up(ids, starts, model.words, model.positions, model.gain, model.shift, x)
    for layer in model.layers:
        np.dot(x, layer.qkv, out=qkv)
        kernels.attention(qkv, layer.qkv_bias, starts, context)
        np.dot(context, layer.out, out=y)
        kernels.add_and_normalise(x, y, layer.out_bias, layer.out_gain, layer.out_shift)
        np.dot(x, layer.wide, out=wide)
        kernels.gelu(wide, layer.wide_bias)
        np.dot(wide, layer.narrow, out=y)
        kernels.add_and_normalise(x, y, layer.narrow_bias, layer.narrow_gain, layer.narrow_shift)
    out = np.empty((len(starts) - 1, WIDTH), np.float32)
    kernels.pool(x, starts, out)
    return out


def _load(tensors: dict[str, Floats]) -> _Model:
    positions = tensors["embeddings.position_embeddings.weight"] + tensors["embeddings.token_type_embeddings.weight"][0]
    gain, shift = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
    layers = tuple(_layer(tensors, f"encoder.layer.{i}.") for i in range(_LAYERS))
    return _Model(tensors["embeddings.word_embeddings.weight"], positions, gain, shift, layers)


def _layer(tensors: dict[str, Floats], at: str) -> _Layer:
    def matrix(*names: str) -> Floats:
        return np.ascontiguousarray(np.concatenate([tensors[f"{at}{name}.weight"] for name in names]).T)

    def vector(*names: str) -> Floats:
        return np.concatenate([tensors[f"{at}{name}"] for name in names])

    projections = [f"attention.self.{name}" for name in ("query", "key", "value")]
    return _Layer(
        qkv=matrix(*projections),
        qkv_bias=vector(*(f"{name}.bias" for name in projections)),
        out=matrix("attention.output.dense"),
        out_bias=vector("attention.output.dense.bias"),
        out_gain=vector("attention.output.LayerNorm.weight"),
        out_shift=vector("attention.output.LayerNorm.bias"),
        wide=matrix("intermediate.dense"),
        wide_bias=vector("intermediate.dense.bias"),
        narrow=matrix("output.dense"),
        narrow_bias=vector("output.dense.bias"),
        narrow_gain=vector("output.LayerNorm.weight"),
        narrow_shift=vector("output.LayerNorm.bias"),
    )

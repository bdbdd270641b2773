"""Small random models of several architectures."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from rstar2cli.engines.base import Completion, Request, Sampling

VOCAB = 300
_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}


def make_model(kind: str, dtype: torch.dtype = torch.float32, seed: int = 0) -> Any:
    """A model whose next-token distribution is neither flat nor a single token."""
    torch.manual_seed(seed)
    grouped = {**_SIZES, "num_key_value_heads": 2}
    if kind == "qwen3-tied":
        model = Qwen3ForCausalLM(Qwen3Config(**grouped, head_dim=32, tie_word_embeddings=True))
    elif kind == "llama":
        model = LlamaForCausalLM(LlamaConfig(**grouped, tie_word_embeddings=False))
    elif kind == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**grouped, tie_word_embeddings=False))
    else:
        model = GPTNeoXForCausalLM(GPTNeoXConfig(**_SIZES))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3) if parameter.dim() > 1 else parameter.add_(0.05 * torch.randn_like(parameter))
    return model.to(dtype).eval()


def reference_logprobs(model: Any, request: Request, completion: Completion) -> torch.Tensor:
    """Log-probs of the completion by a plain forward pass, at the request's temperature."""
    ids = torch.tensor([[*request.prompt_ids, *completion.ids]])
    with torch.no_grad():
        scores = model(ids).logits[0].float() / (request.sampling.temperature or 1.0)
    chosen = torch.tensor(completion.ids)[:, None]
    return scores.log_softmax(-1)[len(request.prompt_ids) - 1 : -1].gather(1, chosen)[:, 0]


def requests(
    count: int, *, max_tokens: int = 20, stop_ids: tuple[int, ...] = (), temperature: float = 0.7
) -> list[Request]:
    """Requests over three prompts of different lengths that share beginnings."""
    prompts = [[1, 2, 3, 4, 5], [1, 2, 3, 9] * 8, [7]]
    return [
        Request(
            prompt_ids=prompts[index % 3],
            max_tokens=max_tokens + index,
            stop_ids=stop_ids,
            seed=index,
            sampling=Sampling(temperature=temperature),
        )
        for index in range(count)
    ]

"""Tokens a second of the embedded engine beside transformers' own generate(), on a model of SmolLM2-135M's shape.

64 requests in groups of 8 that share a prompt of 110 tokens. `even`: each writes 64 tokens, the
best case of a static batch. `uneven`: lognormal lengths around 60, as rollouts have them: a
static batch computes finished rows to the longest one's end. Weights are random: speed does not
depend on them. Says how busy the machine was: a busy machine makes both numbers worthless.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rstar2cli.engines.base import Request, Sampling
from rstar2cli.engines.config import EngineConfig
from rstar2cli.engines.transformers_engine import TransformersEngine
from rstar2cli.policy.devices import pick_device, pick_dtype

GROUP, PROMPT = 8, 110


def make_model(dtype: torch.dtype) -> Any:
    """A random model with the sizes of SmolLM2-135M."""
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rope_theta=100000.0,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).to(dtype).eval()


def make_requests(count: int, lengths: list[int]) -> list[Request]:
    """Requests whose prompts are shared by groups."""
    draw = random.Random(0)
    prompts = [[draw.randrange(100, 49000) for _ in range(PROMPT)] for _ in range(-(-count // GROUP))]
    return [
        Request(prompt_ids=prompts[i // GROUP], max_tokens=lengths[i], stop_ids=[], seed=i, sampling=Sampling())
        for i in range(count)
    ]


def with_engine(engine: TransformersEngine, requests: list[Request]) -> float:
    """Tokens a second, prompts included in the time."""
    begun = time.perf_counter()
    made = sum(len(future.result().ids) for future in [engine.submit(request) for request in requests])
    return made / (time.perf_counter() - begun)


def with_generate(model: Any, requests: list[Request]) -> float:
    """Useful tokens a second of one static batch, which runs to its longest row."""
    ids = torch.tensor([list(request.prompt_ids) for request in requests])
    longest = max(request.max_tokens for request in requests)
    begun = time.perf_counter()
    with torch.inference_mode():
        model.generate(ids, do_sample=True, top_k=0, max_new_tokens=longest, min_new_tokens=longest, pad_token_id=0)
    return sum(request.max_tokens for request in requests) / (time.perf_counter() - begun)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter requests, under a minute")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    options = parser.parse_args()
    count, mean = (16, 16) if options.quick else (64, 64)
    draw = random.Random(1)
    uneven = [min(8 * mean, max(2, round(draw.lognormvariate(0, 0.8) * mean * 0.9))) for _ in range(count)]
    dtype = pick_dtype("auto", pick_device("cpu"))
    model = make_model(dtype)
    engine = TransformersEngine(model, EngineConfig(max_running=64), "random")
    with_engine(engine, make_requests(8, [4] * 8))  # kernels are chosen on first use
    figures: dict[str, Any] = {
        "dtype": str(dtype),
        "threads": torch.get_num_threads(),
        "load_before": os.getloadavg()[0],
    }
    for name, lengths in (("even", [mean] * count), ("uneven", uneven)):
        requests = make_requests(count, lengths)
        figures[name] = {
            "engine_tokens_per_s": round(with_engine(engine, requests), 1),
            "generate_tokens_per_s": round(with_generate(model, requests), 1),
        }
    engine.close()
    figures["load_after"] = os.getloadavg()[0]
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()

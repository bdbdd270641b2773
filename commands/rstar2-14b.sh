#!/usr/bin/env bash
# The paper's recipe at its size: Qwen3-14B-Base, SFT, three stages of RL, evaluation (arXiv 2508.20722).
#
#   MODEL=… SFT=… PROBLEMS=… HELDOUT=… RUN=runs/14b bash commands/rstar2-14b.sh
#
# MODEL     Qwen3-14B-Base
# SFT       conversations: 165K of function calls, 30K of instructions, 27K of chat
# PROBLEMS  the 42K integer-answer problems of the paper, decontaminated against the benchmarks
# HELDOUT   problems to measure on, AIME 2024 and 2025 for example
#
# The paper took a week on 64 MI300X. What this version does otherwise: training keeps a whole model on every
# device, which is 250 GiB of weights, gradients and AdamW for 14B parameters, more than a MI300X has; the files
# are therefore the recipe, and run as they are with models of up to about 4B.
# mi300x-fsdp2.yaml is the launch configuration for sharded training, which is refused until it is supported.
# Rollouts use one engine, on the first process. Every stage starts with a new optimizer; the paper resets it
# before stage 3 alone.
set -euo pipefail

: "${MODEL:?}" "${SFT:?}" "${PROBLEMS:?}" "${HELDOUT:?}"
RUN=${RUN:-runs/rstar2-14b}
SETTINGS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/rstar2-14b

rstar2 sft "$SFT" -m "$MODEL" -c "$SETTINGS/sft.toml" -o "$RUN/sft"
rstar2 eval "$HELDOUT" -m "$RUN/sft" -c "$SETTINGS/eval.toml" -o "$RUN/eval-sft"

rstar2 train-rl "$PROBLEMS" -m "$RUN/sft" -c "$SETTINGS/rl-stage1.toml" -o "$RUN/rl-stage1"
rstar2 train-rl "$PROBLEMS" -m "$RUN/rl-stage1" -c "$SETTINGS/rl-stage2.toml" -o "$RUN/rl-stage2"

# Stage 3 leaves out what the policy of stage 2 solves 8 times of 8
rstar2 rollout "$PROBLEMS" -m "$RUN/rl-stage2" -c "$SETTINGS/rollout.toml" -o "$RUN/filter"
rstar2 sql "select 'problem/1' as kind, p.id, p.source, p.prompt, p.answer, p.answer_kind from p
            where p.id not in (select problem_id from r group by problem_id having sum(reward) = 8)" \
  "p=$PROBLEMS" "r=$RUN/filter" --format jsonl | rstar2 curate - -o "$RUN/problems-stage3"
rstar2 train-rl "$RUN/problems-stage3" -m "$RUN/rl-stage2" -c "$SETTINGS/rl-stage3.toml" -o "$RUN/rl-stage3"

rstar2 eval "$HELDOUT" -m "$RUN/rl-stage3" -c "$SETTINGS/eval.toml" -o "$RUN/eval-rl"
rstar2 diff "sft=$RUN/eval-sft" "rl=$RUN/eval-rl" --on problem_id

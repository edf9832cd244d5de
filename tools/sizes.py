"""Files that are too large for the repository: GitHub warns at 50 MiB and refuses 100.

Command line: `python -m tools.sizes FILE …`; without names, every tracked file.
"""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from lib import paths

LIMIT = 48 * 2**20


def too_large(files: Iterable[Path], limit: int = LIMIT) -> list[Path]:
    """Those above `limit` bytes; a name without a file is passed over."""
    return [file for file in files if file.is_file() and file.stat().st_size > limit]


def tracked() -> list[Path]:
    """What git has of this checkout."""
    git = ["git", "ls-files", "-z"]
    listed = subprocess.run(git, cwd=paths.ROOT, capture_output=True, encoding="utf-8", check=True)
    return [paths.ROOT / name for name in listed.stdout.split("\0") if name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Name each file that is too large; 1 if there is one."""
    names = sys.argv[1:] if arguments is None else arguments
    large = too_large(map(Path, names) if names else tracked())
    for file in large:
        size = file.stat().st_size / 2**20
        print(f"{file}: {size:.1f} MiB, more than {LIMIT // 2**20}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())

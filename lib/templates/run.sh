#!/bin/sh
# Runs @GRIDS@ where there is no network: checks and unpacks the parts beside it, installs their wheels
# into a folder of their own, runs, and leaves finished runs in runs.tar.gz, for `python -m lib runs import`.
# A second call goes on where the first one stood. It needs Python @PYTHON@ with torch.
#
#   sh run.sh [--minutes N] [--prepare] [--models] [--work FOLDER] [options of `python -m lib grid`]
#
# MINUTES and PYTHON, the interpreter, may also be set in the environment.

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
[ -f "$here/manifest.json" ] || here=$PWD  # Slurm runs a copy of this file, in the folder of sbatch
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    echo "error: $python is not there, or no Python 3.11 to 3.13: name another, PYTHON=/path/to/python@PYTHON@ sh run.sh" >&2
    exit 2
fi
exec "$python" -P - "$here" @DIGEST@ --minutes "${MINUTES:-@MINUTES@}" "$@" <<'END_OF_PROGRAM'
@PROGRAM@
END_OF_PROGRAM

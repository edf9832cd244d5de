"""One run: from its job to its folder."""

from lib.runs.asked import departures, parameters, resolve, split
from lib.runs.experiment import run, run_job
from lib.runs.folder import Run, collect
from lib.runs.inputs import model_path, portable
from lib.runs.job import Job

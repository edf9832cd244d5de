"""The Chromium that is on this machine."""

import os
import shutil


def chromium() -> str | None:
    """The system's Chromium, or the one that `CHROMIUM` names; None where there is none."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

"""Where accounts, deployments, journals and data of an operator live: one folder, `ASSAY_HOME`.

Only paths. Nothing is created here; whoever writes makes the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "ASSAY_HOME"


def home() -> Path:
    """The folder that `ASSAY_HOME` names, else the platform's folder for application data."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path  # here: it is the rare case, and commands must start fast

    return user_data_path("assay")

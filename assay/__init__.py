"""The submitter's side: development chain, deployment, tasks and results.

In Python, `train` posts a task, `attach` finds it again, and `data` reads training data. Names in `__all__`
are loaded on first use, so `import assay` and the start of a command load neither torch nor web3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay import data as data
    from assay.consent import prompt as prompt
    from assay.errors import NotConfirmed as NotConfirmed
    from assay.pricing import Price as Price
    from assay.training.handle import Handle as Handle
    from assay.training.handle import attach as attach
    from assay.training.posting import train as train
    from assay.watching.callbacks import Callback as Callback
    from assay.watching.callbacks import TensorBoard as TensorBoard
    from assay.watching.progress import Progress as Progress

_PLACES = {
    "Callback": "assay.watching.callbacks",
    "Handle": "assay.training.handle",
    "NotConfirmed": "assay.errors",
    "Price": "assay.pricing",
    "Progress": "assay.watching.progress",
    "TensorBoard": "assay.watching.callbacks",
    "attach": "assay.training.handle",
    "data": "assay.data",
    "prompt": "assay.consent",
    "train": "assay.training.posting",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_PLACES[name])
    return module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})

"""Worker processes of one machine that train one bundle together (`protocol.program.parallel`).

`Workers` starts and watches them, `worker` is what each runs. They are given a folder and hashes, and speak JSON by the
line over pipes; a state lies in a file between them. Nothing is pickled, nothing listens but gloo on the loopback
interface. A worker whose parent is gone, killed or not, ends at once. `Workers` itself is in `pool`, which needs torch.
"""

from protocol.execution.workers.errors import TooLittleMemory, WorkerFailed, WorkerLost, WorkersError

__all__ = ["TooLittleMemory", "WorkerFailed", "WorkerLost", "WorkersError"]

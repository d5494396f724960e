"""Worker processes of one machine that train one bundle together (`protocol.program.parallel`).

`Workers` starts and watches them, `worker` is what each runs. They are given a folder and hashes, and exchange lines
of JSON over pipes; states are exchanged in a file. Nothing is pickled, and only gloo listens, on the loopback
interface. A worker whose parent has ended, even if killed, ends at once. `Workers` itself is in `pool`, which needs
torch.
"""

from protocol.execution.workers.errors import TooLittleMemory, WorkerFailed, WorkerLost, WorkersError

__all__ = ["TooLittleMemory", "WorkerFailed", "WorkerLost", "WorkersError"]

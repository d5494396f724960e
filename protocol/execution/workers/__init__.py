"""Worker processes of one machine that train one bundle together (`protocol.program.parallel`).

`Workers` starts and watches them; each runs the module `worker`. A worker receives only a folder and some
hashes. The worker and its parent exchange messages as lines of JSON over pipes, and pass states through a
file. Nothing is pickled, and only gloo listens, on the loopback interface. A worker ends at once when its
parent ends, even if the parent is killed. `Workers` is in `pool`, which needs torch.
"""

from protocol.execution.workers.errors import TooLittleMemory, WorkerFailed, WorkerLost, WorkersError

__all__ = ["TooLittleMemory", "WorkerFailed", "WorkerLost", "WorkersError"]

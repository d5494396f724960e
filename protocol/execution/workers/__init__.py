"""Worker processes of one machine that train one bundle together (`protocol.program.parallel`).

`Workers` starts and watches them; each runs the module `worker`. A worker receives only a folder and some
hashes. The worker exchanges lines of JSON with its parent over pipes, and states in a file. Nothing is
pickled, and only gloo listens, on the loopback interface. A worker ends at once when its parent ends, even if
the parent is killed. `Workers` is in `pool`, which needs torch.
"""

from protocol.execution.workers.errors import TooLittleMemory, WorkerFailed, WorkerLost, WorkersError

__all__ = ["TooLittleMemory", "WorkerFailed", "WorkerLost", "WorkersError"]

"""Settings of a process: freed memory is reused, and the garbage collector is off during imports."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from protocol.node.process import importing

ROUNDS = """
import resource, sys
import numpy as np
from protocol.node.process import keep_memory
if sys.argv[1] == "kept" and not keep_memory():
    sys.exit("the library took no setting")
for _ in range(10):
    blocks = [np.ones(3 << 20, np.uint8) for _ in range(40)]  # 120 MiB in blocks of 3: glibc returns them each time
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def faults(how: str) -> int:
    run = subprocess.run([sys.executable, "-c", ROUNDS, how], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is glibc's")
def test_memory_that_was_freed_is_not_taken_from_the_system_again() -> None:
    assert 2 * faults("kept") < faults("usual")


@pytest.mark.parametrize("was", [True, False])
def test_no_garbage_is_looked_for_while_modules_are_imported(was: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if was else gc.disable)()
        with importing():
            assert not gc.isenabled()
        assert gc.isenabled() == was
        with pytest.raises(ImportError), importing():
            raise ImportError
        assert gc.isenabled() == was
    finally:
        gc.unfreeze()
        (gc.enable if before else gc.disable)()

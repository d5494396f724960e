"""`python -m tests.notebook.executing FILE OUTPUT`: execute a notebook while its tasks' periods pass quickly,
and write it with its outputs.
"""

from __future__ import annotations

import sys

from tests.e2e.guide import RPC
from tests.e2e.hurrying import Hurrying

CELL_SECONDS = 400


def main(file: str, output: str) -> None:
    """Execute all cells, and write the notebook in any case. Raises CellExecutionError if a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)
    with Hurrying(RPC):
        try:
            NotebookClient(notebook, timeout=CELL_SECONDS, kernel_name="python3").execute()
        finally:
            nbformat.write(notebook, output)


if __name__ == "__main__":
    main(*sys.argv[1:])

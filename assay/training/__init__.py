"""`assay.train`: posts a training from Python and returns the handle of its task. The package `assay` exports
`train`, `attach` and `Handle`, and loads them on first use.

`posting` captures a training and posts it; `handle` defines the handle of a posted task; `display` shows the
task's progress, in a notebook too; `loading` loads the task's result into a model; `quiet` chooses the
output.
"""

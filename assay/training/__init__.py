"""`assay.train`: posts a training from Python and returns the handle of its task. `assay` exports the names
lazily.

`posting` captures and posts; `handle` is for the task afterwards; `display` shows its progress, in a
notebook too; `loading` loads its result into a model; `quiet` chooses the output.
"""

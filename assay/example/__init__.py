"""The folder that `assay init` writes: a model to change, and its task file. Copied, never imported."""

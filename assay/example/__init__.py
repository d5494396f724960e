"""The files that `assay init` copies into a new folder: a model to change, and its task file. The model is
never imported from here.
"""

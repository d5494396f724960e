"""Scripts that `make`, npm, forge and mkdocs run."""

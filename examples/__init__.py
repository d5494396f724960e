"""Example tasks: Python files with the training code, and TOML files with the terms for `assay submit`."""

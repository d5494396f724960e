"""Example tasks: Python files with the training code and, for some tasks, TOML files with the terms for
`assay submit`.
"""

"""Example tasks to submit: for each a TOML file with the terms and a Python file with the training code."""

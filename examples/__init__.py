"""Tasks that a newcomer can submit: a TOML file with the terms and a Python file with the training code."""

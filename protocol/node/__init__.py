"""What the three command lines share: home folder, settings, output, exit codes, logs, signals.

Nothing here knows of chains, programs or numbers, and nothing heavy is imported, so that `--help` is quick.
"""

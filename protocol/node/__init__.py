"""Infrastructure of commands and nodes: home folder, settings, options, output, exit codes, logs, HTTP.

The package has two halves. The modules here and in `monitoring` import only `protocol.errors` and each other
from the project, so every layer may use them. Those that `--help` needs import no heavy package but Typer, so
that `--help` is quick. The other half, `protocol.node.party`, is above `protocol.chain` and uses it.
"""

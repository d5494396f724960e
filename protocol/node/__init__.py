"""Infrastructure of commands and nodes: home folder, settings, options, output, exit codes, logs, HTTP.

There are two halves. From the project, the modules here and in `monitoring` import only each other and
`protocol.errors`, so every layer may use them. Those that `--help` needs import no heavy package but Typer,
so that it is quick. `protocol.node.party` is above `protocol.chain` and uses it.
"""

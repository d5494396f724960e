"""Infrastructure of commands and nodes: home folder, settings, options, output, exit codes, logs, HTTP.

There are two halves. The modules here import only each other and `protocol.errors` from the project, and
heavy packages only when they are used, so that `--help` is quick and every layer may use them.
`protocol.node.party` is above `protocol.chain` and uses it.
"""

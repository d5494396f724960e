"""What every command and node needs around its work: home folder, settings, options, output, exit codes, logs, HTTP.

Two halves. The modules here import nothing of the project but `protocol.errors`, and nothing heavy until it is used, so
that `--help` is quick and every layer above may use them. `protocol.node.party` knows the chain and stands above it.
"""

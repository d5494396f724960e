"""Code shared by the parties that act on a chain: connection, data folder, tokens, settings, the loop of a
node.

This is the outer half of `protocol.node`. It may import everything else in `protocol`, but no party.
"""

"""What the parties that act on a chain share: connection, data folder, tokens, settings, the loop of a node.

The outer half of `protocol.node`: it may import everything else in `protocol`, and no party.
"""

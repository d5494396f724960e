"""The solver: the party that bids, stakes, trains, commits checkpoints and defends them."""

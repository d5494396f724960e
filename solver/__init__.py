"""The party that bids, stakes, trains, commits checkpoints and defends them."""

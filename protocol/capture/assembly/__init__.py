"""Stage 6: batch draw, lowered graph and update are assembled into one step program."""

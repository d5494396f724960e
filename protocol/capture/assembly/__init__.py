"""Stage 6: batch draw, lowered graph and update become one step program."""

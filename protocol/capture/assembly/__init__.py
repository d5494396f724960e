"""Stage 7: assembles the batch draw, the lowered graphs and the updates into one step program."""

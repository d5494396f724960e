"""The game as pure functions: what to claim, what to open, what a proof holds (dispute.md sections 4 to 6).

`challenger.next_move` and `defender.next_move` map a `GameView` and our own `Run` to a `Move`; the chain client sends
it. `looks` numbers second looks, `accusing` chooses and opens the chunk for an accusation (audit.md section 6). Nothing
here talks to a chain, a disk or a network.
"""

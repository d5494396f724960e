"""The typed client of the contracts: a development chain, deployment, accounts, reads, transactions and
events.

All code that talks to a chain is here; `protocol.dispute` decides the moves. Import the modules one by one,
because web3 takes most of a second to load. The main entry point is `client.connect`; others are `devnet`,
`deploy`, `accounts`, `events` and `game_view`. `errors` defines the errors that the modules raise.
"""

from protocol.chain.late_keyfiles import put_off

put_off()

"""Whether lanes train well: held-out loss beside one lane alone and beside all-reduce, for many ways to exchange.

`make lanes-study` plays what is not played yet, writes docs/lanes.json and docs/lanes.md, and says what is left; with
`--page` only the page. All that lanes do is done by their programs (`protocol.lanes`); other rules of exchange, for
comparison, are plain torch.
"""

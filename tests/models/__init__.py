"""Common models and training patterns: `make coverage-suite` captures each and compares it with torch.

| module | what it is |
|---|---|
| `entry` | what an entry is, and how a family lists its entries |
| `families` | the entries, one module per kind of model, built from installed libraries |
| `check` | checks one entry: capture, preflight, kernels against bodies, losses against float32 |
| `running` | runs many entries, each in a process with a time limit; keeps results, resumable |
| `page` | writes docs/models.md |
"""

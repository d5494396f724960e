"""Models and patterns of training that people have: `make coverage-suite` captures each and compares it with torch.

| module | what it is |
|---|---|
| `entry` | what an entry is, and how a family lists its own |
| `families` | the entries, one module for each kind of model; from installed libraries' configuration classes |
| `check` | one entry: captured, preflighted, equal to its trace, followed beside float32 |
| `running` | many entries, each in a process with a limit; what has come of them, resumable |
| `page` | docs/models.md |
"""

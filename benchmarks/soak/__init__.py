"""What running nodes take over many tasks: memory, files, threads, disk, and questions to the chain."""

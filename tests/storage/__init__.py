"""What is kept in and read from an S3 server that really runs: moto's, in its own process."""

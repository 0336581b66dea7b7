"""What a client feels: small reads and writes against a pool, measured (`--role probe`)."""

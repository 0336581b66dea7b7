"""Archives: one folder per run, versioned, checksummed, whole or not there at all."""

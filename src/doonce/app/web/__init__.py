"""The service's HTTP side: strict, bounded, and without a word about anybody else's work."""

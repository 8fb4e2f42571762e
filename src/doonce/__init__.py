"""External calls that happen once, or say that nobody knows."""

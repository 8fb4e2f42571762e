"""Stand-ins for providers that cannot be run here: they speak real HTTP and remember every request."""

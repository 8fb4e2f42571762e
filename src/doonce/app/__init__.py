"""Composition: the one place that knows every part. The embedded library and the service are made of the same parts."""

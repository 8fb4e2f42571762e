"""The durable-work kernel: when work runs, who may run it, and what order holds. Remote outcomes live elsewhere."""

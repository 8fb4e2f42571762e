"""Commands: accepted once per handoff key, or rejected for ever; immutable afterwards, and ended at most once."""

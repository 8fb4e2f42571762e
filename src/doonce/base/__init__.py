"""Pure mechanisms that every other folder stands on; imports nothing else of this package."""

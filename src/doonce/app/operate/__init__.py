"""What operators see and decide: the story of anything by its id, how a deployment stands, cancel, resolve."""

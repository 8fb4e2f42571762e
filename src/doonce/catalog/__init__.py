"""What providers are (packs), how one organization uses them (bindings), and the immutable views of both."""

"""Effects: the journal of every call out, the dispatcher that makes each once, and what settles an unknown outcome."""

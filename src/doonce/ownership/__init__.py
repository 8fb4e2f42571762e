"""Who may act: one active deployment and epoch per work family. Only an operator's transfer moves it."""

"""Deliveries from providers: believed only when their verifier says so, and durable before they are answered."""

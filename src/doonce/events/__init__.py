"""Events: what a receipt tells, derived once, never changed."""

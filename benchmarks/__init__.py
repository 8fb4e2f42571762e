"""Measurements: `python -m benchmarks` runs them all against one PostgreSQL. `docs/benchmarks.md` says what each is."""

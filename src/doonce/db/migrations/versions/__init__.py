"""One module a step, made by `scripts/make_migration.py` and read by a person; never changed after a release."""

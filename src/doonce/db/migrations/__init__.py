"""Every schema this product ever had, as explicit steps. They only go forward: a step back is a restored backup.

Each is one half (`db/steps.py`). What a half before may do: make tables, add columns that are nullable or have a
default, give a column a default, add indexes, unique ones only over a new nullable column. Everything else is a half
after, also dropping an index: on the MySQL wire the older release's statements name it.
"""

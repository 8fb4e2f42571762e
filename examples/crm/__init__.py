"""A small application that keeps people's titles, and tells another system of each change exactly once.

leads.py      the application: its tables, the change, what a completion means to it
settings.py   its configuration file
serve.py      its process: the completion inbox and the relay
__main__.py   its command line
"""

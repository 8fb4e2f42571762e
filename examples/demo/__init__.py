"""The demo: five stories, told by real processes that are killed, stopped and raced, and checked from outside.

stage.py       the processes, their folder, waiting for facts
scene.py       the deployment that all stories play in: service, provider, application
stories.py     once; nobody knows; too late
cards.py       a server that nobody here wrote
deliveries.py  every delivery is one event
race.py        one of the two racing processes
"""

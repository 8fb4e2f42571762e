"""Principals: as whom doonce acts at a provider, in which generation, with which sealed token."""

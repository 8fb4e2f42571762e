"""The command line: each command is a few lines over the same parts as the service."""

from doonce.app.cli.root import main

__all__ = ["main"]

"""Imports every owner's tables, as the composition does."""

import importlib
import pkgutil

import doonce


def import_tables() -> None:
    """Make the metadata whole. The application's side has its own."""
    for module in pkgutil.walk_packages(doonce.__path__, "doonce."):
        owner = module.name.removeprefix("doonce.").split(".")[0]
        if module.name.endswith((".tables", ".incarnation")) and owner != "runtime":
            importlib.import_module(module.name)

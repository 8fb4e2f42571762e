"""The one import rule that the layers in pyproject.toml cannot say, since `app` is above both folders."""

import grimp


def test_only_effects_makes_outbound_calls() -> None:
    """PROTOCOL D5: every call to a provider is a fenced, journaled attempt, so nothing else can reach the client."""
    graph = grimp.build_graph("doonce", cache_dir=None)
    assert graph.modules
    found = [
        f"{importer} imports {module}"
        for module in graph.modules
        if f"{module}.".startswith("doonce.http.")
        for importer in graph.find_modules_that_directly_import(module)
        if not f"{importer}.".startswith(("doonce.http.", "doonce.effects."))
    ]
    assert not found

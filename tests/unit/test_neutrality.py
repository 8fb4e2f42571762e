"""What the tree must not hold: providers in the mechanisms, addresses of registries, files too long to read."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

MADE_HERE = {
    ".git",
    ".venv",
    "var",
    "dist",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
}

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# A provider is a definition pack, and an application's objects are its binding: neither is known to src/.
FOREIGN_WORDS = re.compile(
    r"hubspot|outreach|salesforce|prospect|carddav|radicale|vcard|\blead\b|\bcontact\b", re.IGNORECASE
)

# In parts, so that this file names none of them.
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("yarnpkg", "com"),
            ("deb", "debian", "org"),
            ("security", "debian", "org"),
            ("archive", "ubuntu", "com"),
            ("crates", "io"),
            ("proxy", "golang", "org"),
            ("rubygems", "org"),
            ("docker", "io"),
            ("ghcr", "io"),
        )
    ),
    re.IGNORECASE,
)


def source_files() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]


def modules() -> list[Path]:
    return [path for path in source_files() if path.suffix == ".py"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def project_files() -> Iterator[Path]:
    """What is, or would be, committed; without git, all but what the project's own commands make."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        names = listing.split("\0")
    else:
        names = [name_of(path) for path in ROOT.rglob("*") if not MADE_HERE & {*path.relative_to(ROOT).parts}]
    return (ROOT / name for name in names if name and (ROOT / name).is_file())


@pytest.mark.parametrize("path", source_files(), ids=name_of)
def test_no_provider_and_no_application_object_is_named_under_src(path: Path) -> None:
    lines = [name_of(path), *path.read_text().splitlines()]
    found = [
        f"line {number}: {line.strip()}" for number, line in enumerate(lines) if FOREIGN_WORDS.search(line)
    ]
    assert not found, f"{name_of(path)} names what belongs into a pack or a binding"


def test_no_package_registry_is_named_anywhere() -> None:
    found = [
        f"{name_of(path)}: {match.group()}"
        for path in project_files()
        for match in REGISTRY_HOSTS.finditer(path.read_bytes().decode(errors="replace"))
    ]
    assert not found, "whoever installs this says where from"


def test_the_locks_hold_hashes_and_no_addresses() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert locks
    for path in locks:
        lines = path.read_text().splitlines()
        assert not [
            line for line in lines if "://" in line or line.lstrip().startswith(("-i", "--index", "--find"))
        ]
        assert sum("--hash=sha256:" in line for line in lines) >= sum("==" in line for line in lines) > 0


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_can_be_read_at_a_sitting(path: Path) -> None:
    text = path.read_text()
    lines = len(text.splitlines())
    a_list_of_columns = path.is_relative_to(SOURCE / "doonce/db/migrations/versions")
    assert lines <= MODULE_LINES_MAX or a_list_of_columns, (
        f"{name_of(path)} has {lines} lines; two modules would read better"
    )
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, (
                f"{name_of(path)}:{node.lineno}: {node.name} has {length} lines"
            )

"""The simulations run the kernel's transactions, on the same small databases as its store tests."""

from tests.store.work.conftest import kernel_postgres, places

__all__ = ["kernel_postgres", "places"]

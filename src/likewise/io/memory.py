"""Memory that was freed, handed back to the system: allocators keep it for the next time."""

from __future__ import annotations

import contextlib
import ctypes


def release_freed() -> None:
    """Hand it back: Arrow and the C library, which do not use what the other one keeps."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)

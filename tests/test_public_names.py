from __future__ import annotations

import subprocess
import sys

import dataforge

HEAVY = (
    "torch transformers polars aiohttp litellm xllamacpp sentence_transformers numba rich networkx "
    "datasketch vllm ray"
)


def test_every_public_name_is_there() -> None:
    assert all(hasattr(dataforge, name) for name in dataforge.__all__)


def test_importing_dataforge_imports_nothing_heavy() -> None:
    names = "[getattr(dataforge, name) for name in dataforge.__all__]"
    code = (
        f"import sys, dataforge; {names}; print([m for m in '{HEAVY}'.split() if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"

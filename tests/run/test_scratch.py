"""What a run looks up on disk says in one line that the disk is full."""

from __future__ import annotations

import subprocess
import sys

FILL = """
import resource
from dataforge.errors import RunError
from dataforge.run.seed import Seed, SeedStore
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    SeedStore.of("", (Seed(str(n), f"{n} " * 200) for n in range(100_000)))
except RunError as error:
    print(error)
"""


def test_a_folder_for_temporary_files_that_is_full_is_told_of_in_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", FILL], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("the folder for temporary files takes no more (")
    assert done.stdout.count("\n") == 1

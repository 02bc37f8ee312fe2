"""What every test shares: hypothesis without a deadline, since no test here asserts a time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared", deadline=None)
settings.load_profile("shared")

"""Which rows or texts say again what an earlier one has said."""

"""What nodes promise and which walks follow from it: pure, no I/O, no model."""

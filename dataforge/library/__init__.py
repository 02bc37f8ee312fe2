"""Content found by path and referred to by name: one loader a content folder."""

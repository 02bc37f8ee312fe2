"""Samples on disk."""

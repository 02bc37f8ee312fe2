"""Graphs as pictures: a page to explore, an image, and Mermaid text."""

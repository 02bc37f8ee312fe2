"""Walks executed, journalled and resumed."""

"""Pure checks of text, each returning what it found and where."""

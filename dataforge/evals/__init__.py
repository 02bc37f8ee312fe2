"""How well judges agree with labels."""

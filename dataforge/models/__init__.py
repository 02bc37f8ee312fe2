"""Language models behind one interface, whatever runs them."""

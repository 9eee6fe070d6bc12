"""What the magics are made of: parsing, the sessions of this notebook, the words of ``%copilot``, waiting."""

"""Tests about the house itself: what importing costs, the public names, the import contracts, the wheel."""

"""What only a GPU can show: ``python -m property_tests.gpu [--json PATH]``.  Not collected by pytest."""

"""The same questions put to other people's implementations, which run in processes of their own."""

"""The explorer: its evaluator against Python, and the page in a real browser."""

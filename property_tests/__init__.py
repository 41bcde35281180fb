"""All tests of `tilelayout` and `lowering`. CONTRIBUTING.md says where a new one goes."""

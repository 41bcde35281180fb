"""The measurements that the documentation quotes; each module here is one command, `python -m benchmarks.NAME`.

README.md says what is measured and how.  Nothing here is a test: a busy machine is not a bug.
"""

"""The command line: what it answers, its exit codes, its errors, and that it is a good citizen of a shell."""

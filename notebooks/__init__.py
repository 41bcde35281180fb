"""The notebooks that teach, and what keeps their stored outputs true (`session`, `refresh`)."""

"""The memory room: policy. What is stored, what it replaces, what comes back and within which budget."""

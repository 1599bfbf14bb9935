"""A route: its records, what they fold to, and how it is read from and written to the store."""

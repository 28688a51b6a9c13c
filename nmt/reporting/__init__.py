"""A report on models: one standalone HTML file."""

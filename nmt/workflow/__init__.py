"""The commands without the command line: one function each."""

"""What the commands do, without the command line: one function each."""

"""`python -m nmt` is the same as `nmt`."""

from nmt.cli import main

main()

"""`python -m memsvc` is the command line."""

from memsvc.cli import main

main()

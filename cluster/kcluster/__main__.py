"""`python -m kcluster`: the same as the command `kcluster`.

Owns: nothing.  Never: anything but the call.
"""

from kcluster.cli.main import main

if __name__ == "__main__":
    main()

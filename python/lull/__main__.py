"""`python -m lull` and the command `lull` of a wheel: the program that came with this package."""
import os
import sys


def main():
    from lull._library import Error, command
    try:
        path = command()
        os.execv(path, ["lull", *sys.argv[1:]])
    except (Error, OSError) as error:
        print(f"lull: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

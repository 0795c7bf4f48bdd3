"""`python -m lull` and the command `lull` of a wheel: the program that came with this package."""
import os
import sys


def main():
    from lull._library import Error, command
    try:
        path = command()
        if not os.access(path, os.X_OK):  # a wheel that was only unpacked has lost the mode
            os.chmod(path, 0o755)
        os.execv(path, ["lull", *sys.argv[1:]])
    except (Error, OSError) as error:
        print(f"lull: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())

"""What the tests that are a list of functions share."""
import os
import sys
import tempfile


def run_tests(name, tests):
    """Run those that the command line names behind the build folder, or all, in a folder of their own."""
    wanted = sys.argv[2:]
    tests = [t for t in tests if not wanted or t.__name__ in wanted]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in tests:
            test()
        os.chdir("/")
    print(f"{name}: PASSED {len(tests)} tests")

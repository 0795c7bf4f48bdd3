#!/usr/bin/env python3
"""`lull why` on the corpus: the tables in doc/accuracy.md are what it says today, and it keeps to its answers.

Usage: test_corpus.py BUILD [NAME...]
"""
import csv
import os
import sys
import unittest

import runner

BUILD = os.path.abspath(sys.argv[1])
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(TOP, "test", "corpus")
LULL = os.path.join(BUILD, "lull")


class Corpus(unittest.TestCase):
    def test_the_table_is_what_it_says(self):
        done = runner.run([os.path.join(CORPUS, "accuracy.py"), LULL, "--check", os.path.join(TOP, "doc", "accuracy.md")])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_answers_stay_when_less_is_seen(self):
        done = runner.run([os.path.join(CORPUS, "stability.py"), LULL, "--every", "7", "--most", "0.05"])
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_each_program_has_its_recording(self):
        with open(os.path.join(CORPUS, "labels.tsv")) as f:
            names = sorted(row["name"] for row in csv.DictReader(f, delimiter="\t"))
        recordings = sorted(n[:-len(".lull")] for n in os.listdir(os.path.join(CORPUS, "data")) if n != "second")
        second = [n[:-len(".lull")] for n in os.listdir(os.path.join(CORPUS, "data", "second"))]
        programs = sorted(os.path.splitext(n)[0] for n in os.listdir(os.path.join(CORPUS, "programs")))
        self.assertEqual(names, recordings)
        self.assertEqual(names, programs)
        self.assertFalse(set(second) - set(names))


if __name__ == "__main__":
    runner.main(__name__, sys.argv[2:])

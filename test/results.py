"""What a test program said: which cases passed, failed and were skipped.

Two ways of saying it are understood. Ours, a line on stdout when a case ends:

    ok NAME
    FAILED NAME
    skipped NAME: REASON

and that of cmocka, where a line "skipped: REASON" comes before a skip.
"""
import re
import signal

OURS = re.compile(r"^(ok|FAILED|skipped) ([^\s:]+)(?:: (.*))?$")
CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED|RUN)\s+\] ([^\s:]+)$")
WHY = re.compile(r"^skipped: (.*)$")


class Case:
    def __init__(self, name, output=(), reason=""):
        self.name, self.output, self.reason = name, list(output), reason


class Outcome:
    """The cases of a program by what became of them."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []
        self.took_s = 0

    @classmethod
    def broken(cls, why):
        outcome = cls()
        outcome.failed.append(Case("start", [why]))
        return outcome

    def n_cases(self):
        return len(self.passed) + len(self.failed) + len(self.skipped)

    def summary(self):
        parts = [f"{len(self.passed)} ok"] if self.passed else []
        parts += [f"{len(self.failed)} FAILED"] if self.failed else []
        parts += [f"{len(self.skipped)} skipped"] if self.skipped else []
        return ", ".join(parts)

    def add(self, how, case):
        {"ok": self.passed, "failed": self.failed, "skipped": self.skipped}[how.lower()].append(case)


def how_it_ended(status):
    """A sentence on a status that is not 0."""
    if isinstance(status, str):
        return status
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def read_cases(lines):
    """The outcome of all cases that say how they ended, and the lines after the last of them."""
    outcome, since, reason = Outcome(), [], ""
    seen = set()
    for line in lines:
        found = OURS.match(line) or CMOCKA.match(line)
        why = WHY.match(line)
        if why:
            reason = why.group(1)
        if not found:
            since.append(line)
            continue
        how, name = found.group(1), found.group(2)
        if how == "RUN":
            since, reason = [], ""
            continue
        if name in seen:  # cmocka lists what failed once more at the end
            continue
        seen.add(name)
        if found.re is OURS:
            reason = found.group(3) or ""
        outcome.add(how, Case(name, since, reason or "no reason given"))
        since, reason = [], ""
    return outcome, since


def read_one(lines, status):
    """A program that is one case: its status tells, or a line "skipped: REASON"."""
    outcome = Outcome()
    reason = next((WHY.match(line).group(1) for line in lines if WHY.match(line)), None)
    if status != 0:
        outcome.failed.append(Case("all", lines + [how_it_ended(status)]))
    elif reason:
        outcome.skipped.append(Case("all", lines, reason))
    else:
        outcome.passed.append(Case("all"))
    return outcome


def read(text, status, is_one_case=False):
    """The outcome of a program that printed `text` and ended with `status`: a number, or a sentence if it was ended."""
    lines = text.splitlines()
    if is_one_case:
        return read_one(lines, status)
    outcome, rest = read_cases(lines)
    if status != 0 and (not outcome.failed or not isinstance(status, int) or status < 0):
        outcome.failed.append(Case("end", rest + [how_it_ended(status)]))
    elif not outcome.n_cases():
        outcome.failed.append(Case("end", rest + ["it ran no test"]))
    return outcome

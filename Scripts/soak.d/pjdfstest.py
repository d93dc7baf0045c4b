"""pjdfstest in eight settings: four kinds of folder, as root with allow_other (A to D) and as a user (E to H)."""

import os
import re
import subprocess

import harness

KINDS = {"A": "suite", "B": "suites", "C": "service", "D": "item"}
PLACES = {"suite": "defaults/pjd", "suites": "defaults", "service": "keychain/generic/pjd",
          "item": "keychain/generic/pjd/item"}
LINE = re.compile(r"(not )?ok (\d+)(?: - tried '(.*)', expected (.*), got (.*)| (?!#)(.*))?")
# `namegen` and `namegen_len` of pjdfstest: of all that its calls take, names and nothing else look so.
NAME = re.compile(r"(?:pjdfstest_)?[0-9a-f]{32,}")


class Place:
    """A folder of a mount in which the files of pjdfstest run."""

    def __init__(self, home, kind):
        self.home = home
        self.kind = kind
        self.path = home.path(PLACES[kind])

    def prepare(self):
        os.makedirs(self.path, exist_ok=True)

    def clean(self):
        """Empties the folder, and says what could not be removed."""
        harness.empty(self.path)
        left = os.listdir(self.path)
        if self.kind != "suites":
            harness.empty(self.home.path("defaults"), keeping=["pjd"])
        return left


class Judgement:
    """Judges the lines of one file: a failure is excluded by a rule, or because it follows from one that was.

    It follows if it names a file or folder whose making or changing was refused before, or, where pjdfstest prints no
    call, if anything in the file was refused before.
    """

    def __init__(self, setting, file, exclusions):
        self.setting, self.file, self.exclusions = setting, file, exclusions
        self.names = set()
        self.has_refusal = False

    def excludes(self, tried, expected, got):
        names = set(NAME.findall(tried))
        if self.exclusions.reason(self.setting, self.file, tried, expected, got):
            self.names |= names
            self.has_refusal = True
            return True
        if names & self.names or (not tried and self.has_refusal):
            self.names |= names
            return True
        return False


def run_file(tests, file, place, seconds):
    """The lines of a test's output and what went wrong with the test itself."""
    try:
        result = subprocess.run(["sh", os.path.join(tests, file)], cwd=place.path, capture_output=True, timeout=seconds,
                                stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        return harness.text(error.stdout or b"").splitlines(), f"did not end in {seconds} s"
    return result.stdout.decode(errors="replace").splitlines(), None


def judge(result, setting, file, lines, exclusions):
    judgement = Judgement(setting, file, exclusions)
    planned, seen = 0, 0
    for line in lines:
        if line.startswith("1.."):
            planned = int(line[3:])
        found = LINE.match(line)
        if not found:
            continue
        seen += 1
        failed, number, tried, expected, got, remark = found.groups()
        if "# TODO" in line:
            # A deviation that pjdfstest knows of itself.
            result.exclude()
        elif not failed:
            result.ok()
        elif judgement.excludes(tried or "", expected or "", got or remark or ""):
            result.exclude()
        else:
            result.fail(f"{setting} {file} {line}")
    for number in range(seen, planned):
        if judgement.excludes("", "", "not run"):
            result.exclude()
        else:
            result.fail(f"{setting} {file}: {seen} of {planned} assertions ran")


def passed_before():
    """How many have to pass in a setting."""
    with open(os.path.join(os.path.dirname(__file__), "pjdfstest.passed")) as lines:
        return {line.split()[0]: int(line.split()[1]) for line in lines if not line.startswith("#")}


def run_setting(options, setting, files, tests, exclusions):
    result = harness.Result(f"pjdfstest {setting}")
    is_root = setting in "ABCD"
    kind = KINDS[setting if is_root else chr(ord(setting) - 4)]
    with harness.Home(options, setting) as home:
        home.mount("keychain=vault", *(["allow_other"] if is_root else []))
        if is_root:
            os.chmod(options.scratch, 0o711)
            os.chmod(home.folder, 0o711)
        place = Place(home, kind)
        for file in files:
            place.prepare()
            lines, trouble = run_file(tests, file, place, options.seconds or 900)
            judge(result, setting, file, lines, exclusions)
            if trouble:
                result.fail(f"{setting} {file}: {trouble}")
            if not home.is_alive():
                result.fail(f"{setting} {file}: the process of the mount ended")
                home.kill()
                home.mount("keychain=vault", *(["allow_other"] if is_root else []))
                continue
            left = place.clean()
            result.check(not left, f"{setting} {file}: left behind: {left[:5]}")
    print(result.line(), flush=True)
    return result


def main():
    options = harness.arguments(settings="ABCD")
    root = os.path.join(os.path.dirname(__file__), "pjdfstest")
    tests = os.path.join(root, "tests")
    files = sorted(os.path.relpath(os.path.join(folder, name), tests)
                   for folder, _, names in os.walk(tests) for name in names if name.endswith(".t"))
    exclusions = harness.Exclusions("pjdfstest")
    wanted = [word for word in options.only or options.settings]
    chosen = [word for word in wanted if "/" in word]
    files = [file for file in files if not chosen or any(file.startswith(word) for word in chosen)]
    settings = [letter for letter in options.settings if letter in wanted or not set(wanted) & set("ABCDEFGH")]
    if not settings:
        return
    total = harness.Result(f"pjdfstest {''.join(settings)}")
    for setting in settings:
        result = run_setting(options, setting, files, tests, exclusions)
        if not chosen and result.passed < passed_before().get(setting, 0):
            total.fail(f"{setting}: only {result.passed} passed, {passed_before()[setting]} did before")
        total.passed += result.passed
        total.failed += result.failed
        total.excluded += result.excluded
    if not chosen and set(settings) == set(options.settings):
        # Cases that can fail as root are tested there.
        for line in exclusions.stale(options.settings, "" if "A" in options.settings else "ABCD"):
            print(f"no longer applies: {line}")
    total.end()


main()

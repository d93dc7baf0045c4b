"""stress-ng's stressors of files and folders, each for a time in each kind of folder."""

import os
import subprocess

import harness

# It makes a folder of its own in each: a suite in `defaults`, an item in a service's folder.
PLACES = ["defaults", "keychain/generic/service"]
STRESSORS = """access chattr chdir chmod chown copy-file dentry dir dirdeep dirmany dnotify dup fallocate fcntl fiemap
    filename flock fpunch fsize fstat getdent hdd inotify iomix link locka lockf lockofd mknod open rename symlink
    sync-file touch utime verity xattr""".split()


def run(options, home, result, exclusions, place, stressor):
    folder = home.path(place)
    os.makedirs(folder, exist_ok=True)
    seconds = max(1, int(options.seconds or 1))
    # Its own check of what it wrote, two of each, and no look at the whole machine.
    command = ["stress-ng", f"--{stressor}", "2", "--timeout", str(seconds), "--verify", "--temp-path", folder,
               "--seed", str(options.seed), "--no-oom-adjust"]
    try:
        ended = subprocess.run(command, cwd=options.scratch, capture_output=True, timeout=seconds + 120)
        output, code = (ended.stdout + ended.stderr).decode(errors="replace"), ended.returncode
    except subprocess.TimeoutExpired:
        output, code = "soak: hangs", -1
    if not home.is_alive():
        result.fail(f"{place} {stressor}: the process of the mount ended")
        home.kill()
        home.mount("keychain=vault")
        return
    if code == 0:
        result.ok()
    elif code != -1 and exclusions.reason(place, stressor, str(code), output):
        result.exclude()
    else:
        result.fail(f"{place} {stressor} ended with {code}: {' / '.join(output.splitlines()[2:])[:700]}")
    harness.empty(folder)


def main():
    options = harness.arguments()
    result = harness.Result("stress-ng")
    exclusions = harness.Exclusions("stress-ng")
    with harness.Home(options) as home:
        home.mount("keychain=vault")
        for place in PLACES:
            for stressor in options.only or STRESSORS:
                run(options, home, result, exclusions, place, stressor)
            home.check_descriptors(result, place)
            doctor = home.run("doctor")
            result.check(doctor.returncode == 0, f"{place}: doctor: {harness.text(doctor.stdout)}")
        home.unmount()
    if not options.only:
        for line in exclusions.stale():
            print(f"no longer applies: {line}")
    result.end()


main()

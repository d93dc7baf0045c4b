"""Any call, with any flag and offset, on `.keyhole/status` and `.keyhole/events`, while the log of events moves.

The process of the mount has to live, and every line that a reader of `events` gets has to be a line of the log.
"""

import collections
import errno
import fcntl
import json
import mmap
import os
import random
import select
import signal
import sys
import time

import harness

FLAGS = [os.O_NONBLOCK, os.O_APPEND, os.O_TRUNC, os.O_CREAT, os.O_EXCL, os.O_DIRECT, os.O_SYNC, os.O_DIRECTORY,
         os.O_NOFOLLOW, os.O_NOATIME, os.O_PATH, os.O_TMPFILE]
EDGES = [0, 1, 2, 511, 512, 4095, 4096, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 4097,
         2**63 - 2, 2**63 - 1]
FIONREAD, FS_IOC_GETFLAGS, TCGETS = 0x541B, 0x80086601, 0x5401
WORKERS = 4


class Interrupted(Exception):
    """A call that blocked was ended by a signal, as Ctrl-C does."""


def interrupt(*_):
    raise Interrupted


class Fuzzer:
    """Makes random calls, and remembers the last of them."""

    def __init__(self, point, seed):
        self.random = random.Random(seed)
        self.folder = os.path.join(point, ".keyhole")
        self.descriptors = []
        self.last = collections.deque(maxlen=60)
        self.errors = collections.Counter()
        self.count = 0
        self.calls = [self.open, self.open, self.close, self.read, self.read, self.read, self.pread, self.pread, self.pread,
                      self.seek, self.write, self.truncate, self.sync, self.poll, self.map, self.lock, self.allocate,
                      self.send, self.control, self.attributes, self.change, self.names, self.duplicate, self.stat]

    def path(self):
        return os.path.join(self.folder, self.random.choice(["status", "events", "events"]))

    def offset(self):
        roll = self.random.random()
        if roll < 0.4:
            return self.random.randrange(0, 200_000)
        edge = self.random.choice(EDGES)
        return max(0, min(2**63 - 1, edge + self.random.choice([0, 0, -1, 1, -2, 2, self.random.randrange(-5000, 5000)])))

    def size(self):
        return self.random.choice([0, 1, 2, 7, 100, 511, 4096, 65535, 65536, 131072, 1 << 20])

    def status_file(self):
        """A descriptor of `status`: pages of `events` in the kernel's cache can wait for the next event, and a program that
        touches them, or looks at the process with ps(1), then waits in a way that no signal ends (TESTING.md)."""
        descriptor = os.open(os.path.join(self.folder, "status"), os.O_RDONLY)
        self.descriptors.append(descriptor)
        return descriptor

    def any(self):
        return self.random.choice(self.descriptors) if self.descriptors else self.open()

    def open(self):
        while len(self.descriptors) >= 16:
            self.close()
        access = self.random.choice([os.O_RDONLY] * 6 + [os.O_RDWR, os.O_WRONLY])
        flags = os.O_NONBLOCK if self.random.random() < 0.85 else 0
        while self.random.random() < 0.3:
            flags |= self.random.choice(FLAGS)
        path = self.path()
        self.note("open", path, access | flags)
        self.descriptors.append(os.open(path, access | flags, 0o600))
        return self.descriptors[-1]

    def close(self):
        if self.descriptors:
            descriptor = self.descriptors.pop(self.random.randrange(len(self.descriptors)))
            self.note("close", descriptor)
            os.close(descriptor)

    def read(self):
        descriptor, size = self.any(), self.size()
        self.note("read", descriptor, size)
        os.read(descriptor, size)

    def pread(self):
        descriptor, size, offset = self.any(), self.size(), self.offset()
        self.note("pread", descriptor, size, offset)
        if self.random.random() < 0.2:
            os.preadv(descriptor, [bytearray(self.random.choice([1, size + 1])), bytearray(size)], offset)
        else:
            os.pread(descriptor, size, offset)

    def seek(self):
        descriptor, whence = self.any(), self.random.choice([0, 0, 1, 2, 3, 4])
        offset = self.offset() * self.random.choice([1, 1, -1])
        self.note("lseek", descriptor, offset, whence)
        os.lseek(descriptor, offset, whence)

    def write(self):
        descriptor, size, offset = self.any(), self.random.choice([0, 1, 5000]), self.offset()
        self.note("pwrite", descriptor, size, offset)
        if self.random.random() < 0.5:
            os.write(descriptor, bytes(size))
        else:
            os.pwrite(descriptor, bytes(size), offset)

    def truncate(self):
        target, size = self.random.choice([self.any(), self.path()]), self.offset()
        self.note("truncate", target, size)
        os.truncate(target, size)

    def sync(self):
        descriptor = self.any()
        self.note("fsync", descriptor)
        self.random.choice([os.fsync, os.fdatasync])(descriptor)

    def poll(self):
        descriptor = self.any()
        self.note("poll", descriptor)
        poll = select.poll()
        poll.register(descriptor, self.random.choice([select.POLLIN, select.POLLOUT, 0xFFFF]))
        poll.poll(self.random.choice([0, 0, 5]))

    def map(self):
        descriptor, size = self.status_file(), self.random.choice([1, 4096, 65536])
        offset = self.random.choice([0, self.offset() // 4096 * 4096])
        self.note("mmap", descriptor, size, offset)
        kind = self.random.choice([mmap.MAP_PRIVATE, mmap.MAP_SHARED])
        with mmap.mmap(descriptor, size, kind, mmap.PROT_READ, offset=offset) as pages:
            # A page that is not there, or not any more, is SIGBUS for the program that touches it.
            self.in_child(lambda: pages[self.random.randrange(size)])

    def in_child(self, body):
        pid = os.fork()
        if pid == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
            body()
            os._exit(0)
        try:
            if os.WIFSIGNALED(os.waitpid(pid, 0)[1]):
                self.errors["SIGBUS"] += 1
        except Interrupted:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def lock(self):
        descriptor = self.any()
        self.note("lock", descriptor)
        kind = self.random.choice([fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN]) | fcntl.LOCK_NB
        self.random.choice([fcntl.flock, fcntl.lockf])(descriptor, kind)

    def allocate(self):
        descriptor, offset, size = self.any(), self.offset(), 1 + self.size()
        self.note("fallocate", descriptor, offset, size)
        if self.random.random() < 0.5:
            os.posix_fallocate(descriptor, offset, size)
        else:
            os.posix_fadvise(self.status_file(), offset, size, self.random.randrange(6))

    def send(self):
        descriptor, offset, size = self.any(), self.offset(), self.size()
        self.note("sendfile, splice, copy_file_range", descriptor, offset, size)
        with open("/dev/null", "wb") as null:
            call = self.random.randrange(3)
            if call == 0:
                os.sendfile(null.fileno(), descriptor, offset, size)
            elif call == 1:
                reading, writing = os.pipe2(os.O_NONBLOCK)
                try:
                    os.splice(descriptor, writing, size, offset_src=offset)
                finally:
                    os.close(reading)
                    os.close(writing)
            else:
                os.copy_file_range(descriptor, self.any(), size, offset, self.offset())

    def control(self):
        descriptor = self.any()
        request = self.random.choice([FIONREAD, FS_IOC_GETFLAGS, TCGETS, self.random.randrange(2**32)])
        self.note("ioctl", descriptor, hex(request))
        fcntl.ioctl(descriptor, request, bytes(1024))

    def attributes(self):
        path = self.path()
        name = self.random.choice(["user.keyhole.type", "user.keyhole.name", "user.x", "security.selinux", "user." + "n" * 250])
        self.note("xattr", path, name)
        call = self.random.randrange(4)
        if call == 0:
            os.getxattr(path, name)
        elif call == 1:
            os.setxattr(path, name, bytes(self.random.choice([0, 1, 4096, 65536])))
        elif call == 2:
            os.listxattr(path)
        else:
            os.removexattr(path, name)

    def change(self):
        path = self.path()
        self.note("chmod, chown, utime", path)
        call = self.random.randrange(3)
        if call == 0:
            os.chmod(path, self.random.randrange(0o10000))
        elif call == 1:
            os.chown(path, self.random.choice([-1, 0, os.getuid()]), -1)
        else:
            os.utime(path, ns=(self.offset(), self.offset()))

    def names(self):
        path = self.path()
        other = os.path.join(self.folder, self.random.choice(["status", "events", "x", "../defaults/fuzz/x", "../x"]))
        self.note("names", path, other)
        call = self.random.choice([os.rename, os.link, os.symlink, lambda *_: os.unlink(path), lambda *_: os.mkdir(other),
                                   lambda *_: os.listdir(self.folder), lambda *_: os.listdir(path),
                                   lambda *_: os.rmdir(self.folder), lambda *_: os.mknod(other), lambda *_: os.statvfs(path)])
        call(path, other)

    def duplicate(self):
        if len(self.descriptors) < 16:
            self.note("dup", self.any())
            self.descriptors.append(os.dup(self.any()))

    def stat(self):
        self.note("stat")
        os.fstat(self.any())
        os.stat(self.path())

    def note(self, *call):
        self.last.append(call)

    def step(self):
        self.count += 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
            self.random.choice(self.calls)()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupted:
            self.errors["interrupted"] += 1
        except (OSError, ValueError, OverflowError, SystemError) as error:
            number = getattr(error, "errno", None)
            self.errors[errno.errorcode.get(number, type(error).__name__)] += 1
            if number in (errno.ENOTCONN, errno.ECONNABORTED):
                return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return True


def work(point, seed, deadline, count, report):
    """One process of the fuzzer, from fork(2) to its end."""
    signal.signal(signal.SIGALRM, interrupt)
    fuzzer = Fuzzer(point, seed)
    alive = True
    while alive and time.monotonic() < deadline and fuzzer.count < count:
        try:
            alive = fuzzer.step()
        except Interrupted:
            # The timer rang between the call and its removal.
            continue
    lines = [] if alive else [" ".join(map(str, call)) for call in fuzzer.last]
    with open(report, "w") as file:
        json.dump({"count": fuzzer.count, "errors": fuzzer.errors, "last": lines}, file)
    os._exit(0)


class Reader:
    """Reads `events` as `tail -f` does, and checks each line."""

    def __init__(self, home):
        self.descriptor = os.open(home.path(".keyhole/events"), os.O_RDONLY | os.O_NONBLOCK)
        self.rest = b""
        self.sequence = 0
        self.lines = 0

    def read_all(self, pieces=1000):
        """Reads what there is, in so many pieces at most. Raises ValueError for a line that is none of the log's."""
        try:
            for _ in range(pieces):
                self.take(os.read(self.descriptor, 1 << 12))
        except BlockingIOError:
            return

    def take(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in filter(bytes.strip, lines):
            self.lines += 1
            event = json.loads(line)
            if event["kind"] != "overflow":
                if event["seq"] <= self.sequence:
                    raise ValueError(f"line {event['seq']} after {self.sequence}")
                self.sequence = event["seq"]


def move_log(home, number):
    """A burst of changes: first more than the log keeps, then few, of which each pushes a line out of it."""
    folder = home.path("defaults/fuzz")
    for index in range(20 if number % 50 else 1100):
        with open(f"{folder}/k{index % 50}", "w") as file:
            file.write(f"{number * 2000 + index}\n")


def watch(home, reader, result, deadline, workers):
    """Moves the log and reads it until the time is over, a worker ends early, or the mount does."""
    number = 0
    pending = set(workers)
    while time.monotonic() < deadline and pending and home.is_alive():
        move_log(home, number)
        number += 1
        # Now and then it falls behind, and must get the line that says so.
        reader.read_all(pieces=1000 if number % 3 else 1)
        with open(home.path(".keyhole/status")) as file:
            json.load(file)
        pending -= {pid for pid in pending if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)}
    return number


def end_in_time(home, result, workers, deadline):
    """Processes that wait in the kernel for an answer of the mount are freed by its end only."""
    descriptors = [os.pidfd_open(pid) for pid in workers]
    waiting = set(descriptors)
    while waiting and time.monotonic() < deadline:
        waiting -= set(select.select(list(waiting), [], [], max(0, deadline - time.monotonic()))[0])
    if waiting:
        result.fail(f"{len(waiting)} processes hang in a call")
        home.end_process()
    for descriptor in descriptors:
        os.close(descriptor)


def main():
    options = harness.arguments()
    seconds = options.seconds or 30
    result = harness.Result("control-files")
    with harness.Home(options) as home:
        home.mount("keychain=vault")
        os.mkdir(home.path("defaults/fuzz"))
        deadline = time.monotonic() + seconds
        count = (options.count or sys.maxsize) // WORKERS
        reports, workers = [], []
        for index in range(WORKERS):
            reports.append(f"{options.scratch}/report{index}")
            pid = os.fork()
            if pid == 0:
                work(home.point, options.seed * 1000 + index, deadline, count, reports[-1])
            workers.append(pid)
        reader = Reader(home)
        bursts = 0
        try:
            bursts = watch(home, reader, result, deadline, workers)
        except (OSError, ValueError) as error:
            result.fail(f"a reader of the log: {error!r}, the mount is {'alive' if home.is_alive() else 'dead'}")
        end_in_time(home, result, workers, deadline + 30)
        signals = collections.Counter()
        for pid in workers:
            _, status = os.waitpid(pid, 0)
            if os.WIFSIGNALED(status):
                signals[os.WTERMSIG(status)] += 1
        os.close(reader.descriptor)
        errors = collections.Counter()
        for path in reports:
            if os.path.exists(path):
                with open(path) as file:
                    report = json.load(file)
                result.ok(report["count"])
                errors.update(report["errors"])
                for line in report["last"]:
                    print(f"  {os.path.basename(path)}: {line}")
        print(f"{bursts} bursts of changes, {reader.lines} lines read, answers: {dict(errors.most_common())}", flush=True)
        result.check(not signals, f"processes of the fuzzer ended by signals: {dict(signals)}")
        if result.check(home.is_alive(), "the process of the mount ended"):
            home.check_descriptors(result, "events")
            doctor = home.run("doctor")
            result.check(doctor.returncode == 0, f"doctor: {harness.text(doctor.stdout)}")
            home.unmount()
    result.end()


main()

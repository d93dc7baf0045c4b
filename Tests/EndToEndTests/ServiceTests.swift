import Testing

/// The mount as a service of systemd's: what it tells, and that the unit files do what they say.
@Suite(.timeLimit(.minutes(2))) struct ServiceTests {
  /// Plays the service manager: prints what `keyhole mount` sends to its socket, and unmounts after the third
  /// sign of life. The mount gives one each millisecond, so that it is asking itself when it is unmounted.
  private static let standIn = """
    import os, socket, subprocess, sys
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = sys.argv[1]
    listener.bind("\\0" + address[1:] if address.startswith("@") else address)
    environment = dict(os.environ, NOTIFY_SOCKET=address, WATCHDOG_USEC="2000")
    process = subprocess.Popen(["keyhole", "mount", "--foreground", os.environ["MOUNT"]], env=environment)
    signs = 0
    try:
        while True:
            message = listener.recv(4096).decode()
            if message == "WATCHDOG=1":
                signs += 1
                if signs == 3: unmounting = subprocess.Popen(["keyhole", "unmount", os.environ["MOUNT"]])
                continue
            print(message.replace(os.environ["MOUNT"], "MOUNT"), flush=True)
            if message.startswith("STOPPING"): break
        print(process.wait(), unmounting.wait())
    finally:
        process.terminate()
    """

  @Test(arguments: ["$OUT/notify", "@keyhole-test-$$"])
  func itTellsTheServiceManagerHowItIs(address: String) async throws {
    try await withWorld { world in
      try world.check(
        "cat > \"$OUT/manager.py\"; python3 \"$OUT/manager.py\" \"\(address)\"",
        prints: "READY=1\nSTATUS=mounted on MOUNT\nSTOPPING=1\nSTATUS=unmounted\n0 0\n",
        sending: Array(Self.standIn.utf8))
    }
  }

  /// Kills the mount ten times while it asks itself, and prints how each ended.
  private static let killing = """
    import os, socket, subprocess, sys
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(sys.argv[1])
    for index in range(10):
        environment = dict(os.environ, NOTIFY_SOCKET=sys.argv[1], WATCHDOG_USEC="2000")
        process = subprocess.Popen(["keyhole", "mount", "--foreground", os.environ["MOUNT"]], env=environment)
        signs = 0
        while signs <= index:
            signs += listener.recv(4096) == b"WATCHDOG=1"
        process.kill()
        listener.setblocking(False)
        try:
            print(process.wait(timeout=60), flush=True)
            while True: listener.recv(4096)
        except BlockingIOError: listener.setblocking(True)
        subprocess.run(["fusermount3", "-u", "-z", os.environ["MOUNT"]], check=True)
    """

  @Test func itEndsWhenItIsKilledWhileItAsksItself() async throws {
    try await withWorld { world in
      try world.check(
        "cat > \"$OUT/killing.py\"; python3 \"$OUT/killing.py\" \"$OUT/notify\"",
        prints: String(repeating: "-9\n", count: 10), sending: Array(Self.killing.utf8))
    }
  }

  @Test func withoutAServiceManagerNothingIsMissing() async throws {
    try await withWorld { world in
      try world.check(
        "NOTIFY_SOCKET=/nonexistent keyhole mount \"$MOUNT\"; ls \"$MOUNT\"; keyhole unmount \"$MOUNT\"",
        prints: "defaults\nkeychain\ntemplates\nviews\n")
    }
  }

  private static let canVerify = System.exists("/usr/bin/systemd-analyze")

  /// `systemd-analyze verify` wants the command to be there, so the units name the one under test.
  @Test(.enabled(if: canVerify, "systemd-analyze is not installed."))
  func theUnitsAreSound() async throws {
    try await withWorld { world in
      try world.check(
        """
        mkdir "$OUT/units"; cp \(Products.helpers)/systemd/*.service \(Products.helpers)/systemd/examples/*mount "$OUT/units"
        sed -i "s|/usr/bin/keyhole|\(Products.keyhole)|" "$OUT"/units/*; cd "$OUT/units"
        systemd-analyze verify --man=no ./keyhole.service ./keyhole@web.service ./srv-keyhole.mount ./srv-keyhole.automount 2>&1 | grep -F "$OUT" || true
        systemd-analyze security --offline=true --threshold=50 ./keyhole@web.service > /dev/null
        """)
    }
  }

  private static let canRun =
    Privileges.isRoot && System.exists("/usr/lib/systemd/systemd") && System.exists("/sys/fs/cgroup")

  /// A real `systemd --user`: ready when the mount answers, back after `kill -9`, gone after stop.
  ///
  /// It believes that systemd booted the machine if /run/systemd/system is there. `BootAsRootTests` has one that did.
  @Test(.enabled(if: canRun, "This needs root and an installed systemd."))
  func userServiceRunsAsRoot() async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root,
        """
        group=keyhole-test-$(cat /proc/sys/kernel/random/uuid)
        for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
          [ -e $tree/cgroup.procs ] || continue
          mkdir -p $tree/$group && echo $$ > $tree/$group/cgroup.procs
        done
        leave() {
          for tree in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
            [ -e $tree/$group ] || continue
            echo $$ > $tree/cgroup.procs; find $tree/$group -depth -type d -exec rmdir {} +
          done
        }
        trap leave EXIT
        mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system; mkdir -m 700 /run/user; export XDG_RUNTIME_DIR=/run/user
        mkdir -p ~/.config/systemd/user
        sed 's|/usr/bin/keyhole|/home/bin/keyhole|; s|^RestartSec=.*|RestartSec=50ms|' /home/sbin/systemd/keyhole.service > ~/.config/systemd/user/keyhole.service
        unshare --cgroup /usr/lib/systemd/systemd --user 2> ~/log & manager=$!
        until systemctl --user is-system-running > ~/state 2>&1; do kill -0 $manager || { cat ~/log; exit 1; }; done
        systemctl --user start keyhole && systemctl --user is-active keyhole && ls ~/Keyhole | head -n 2
        keyhole set defaults/s/k 1
        before=$(systemctl --user show -P MainPID keyhole); kill -9 "$before"
        renewed() { case $(systemctl --user show -P MainPID keyhole) in 0 | "$before") return 1 ;; esac; }
        until renewed && [ "$(systemctl --user is-active keyhole)" = active ]; do :; done
        cat ~/Keyhole/defaults/s/k; systemctl --user show -P StatusText keyhole | sed "s|$HOME|HOME|"
        systemctl --user stop keyhole; ls -A ~/Keyhole; systemctl --user is-active keyhole
        kill $manager; wait $manager
        """, prints: "active\ndefaults\nkeychain\n1\nmounted on HOME/Keyhole\ninactive\n")
    }
  }
}

import Glibc
import KeyringHarness
import Synchronization
import Testing

/// A mount whose keyring does not answer, or whose bus is gone.
@Suite(.serialized, .timeLimit(.minutes(3))) struct HangingServiceTests: KeyringMountTesting {
  let bus: PrivateBus

  init() throws { bus = try Self.keyring() }

  @Test func hangingServiceHarmsItsCallersOnly() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("mkdir $MOUNT/defaults/s; cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      bus.signalKeyring(SIGSTOP)
      defer { bus.signalKeyring(SIGCONT) }
      // More than Dispatch has threads, and every one of them can be interrupted.
      let script = """
        for n in $(seq 40); do timeout 5 cat $MOUNT/keychain/generic/S/A/value >/dev/null 2>&1 & done
        echo 7 > $MOUNT/defaults/s/k; cat $MOUNT/defaults/s/k; ls $MOUNT/keychain/generic
        setsid timeout -s INT 1 cat $MOUNT/keychain/generic/S/A/value 2>/dev/null; echo $?; kill $(jobs -p); wait
        """
      try keyhole.check(script, prints: "7\nS\n124\n")
      let waited = """
        began=$(date +%s); cat $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Input/output error'
        [ $(($(date +%s) - began)) -le 10 ] && echo in time
        """
      try keyhole.check(waited, prints: "1\nin time\n")
      bus.signalKeyring(SIGCONT)
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
    }
  }

  @Test func secretThatAHangingServiceIsToTakeCanBeLookedAt() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      let path = keyhole / "keychain/generic/S/A/value"
      let file = try OpenFile(path, O_WRONLY | O_TRUNC)
      try file.write("another")
      bus.signalKeyring(SIGSTOP)
      defer { bus.signalKeyring(SIGCONT) }
      let isClosed = Atomic(false)
      let closer = Thread {
        try? file.close()
        isClosed.store(true, ordering: .sequentiallyConsistent)
      }
      for _ in 0..<20 { _ = try System.status(path) }
      let wasClosed = isClosed.load(ordering: .sequentiallyConsistent)
      #expect(!wasClosed)
      bus.signalKeyring(SIGCONT)
      closer.join()
      #expect(try keyhole.cat("keychain/generic/S/A/value") == "another")
    }
  }

  @Test func hangingServiceThatWasNeverUnlockedHarmsItsCallersOnly() async throws {
    try bus.lock()
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("mkdir $MOUNT/defaults/s; ls $MOUNT/keychain", prints: "generic\ninternet\nother\n")
      bus.signalKeyring(SIGSTOP)
      defer { bus.signalKeyring(SIGCONT) }
      let script = """
        for n in $(seq 40); do timeout 5 ls $MOUNT/keychain/generic >/dev/null 2>&1 & done
        echo 7 > $MOUNT/defaults/s/k; cat $MOUNT/defaults/s/k
        setsid timeout -s INT 1 cat $MOUNT/keychain/generic/S/A/value 2>/dev/null; echo $?; kill $(jobs -p); wait
        """
      try keyhole.check(script, prints: "7\n124\n")
    }
  }

  @Test func busThatComesBackWorksWithoutAnotherMount() async throws {
    try store("s3cret", "service S account A")
    try await withKeyhole("keychain=secret-service", environment: [address]) { keyhole in
      try keyhole.check("mkdir $MOUNT/defaults/s; cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
      bus.stop()
      try keyhole.check(
        "cat $MOUNT/keychain/generic/S/A/value 2>&1 | grep -c 'Input/output error'", prints: "1\n")
      try keyhole.check("echo 7 > $MOUNT/defaults/s/k; cat $MOUNT/defaults/s/k", prints: "7\n")
      try bus.startBus()
      try bus.startKeyring()
      try keyhole.check("cat $MOUNT/keychain/generic/S/A/value", prints: "s3cret")
    }
  }
}

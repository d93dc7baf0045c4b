import Glibc
import LossyFileSystem
import PowerLossProgram
import Testing

extension PowerLossTests {
  /// The contents that the mount has to show after a power loss, and the disk that it left.
  private struct Promise {
    let disk: LossyDisk
    /// A script that prints it, and what it prints.
    let script: String
    let text: String
  }

  /// Writes a round of settings and secrets through the mount, each acknowledged in its own way.
  private static func write(_ round: Int, _ keyhole: KeyholeMount) throws {
    _ = try keyhole.run(
      """
      echo 'setting \(round)' | dd of=defaults/app/key\(round) conv=fsync status=none
      echo \(round) > defaults/app/count; sync defaults/app/count
      mkdir -p keychain/generic/service/me\(round)
      echo 'secret \(round)' > keychain/generic/service/me\(round)/value
      echo 'last \(round)' | dd of=keychain/generic/service/last/value conv=fsync status=none
      """)
  }

  private static func promise(_ round: Int, _ disk: LossyDisk) -> Promise {
    let script = """
      for i in $(seq \(round)); do cat defaults/app/key$i keychain/generic/service/me$i/value; echo; done
      cat defaults/app/count keychain/generic/service/last/value
      """
    let lines = (1...round).map { "setting \($0)\nsecret \($0)\n" }.joined()
    return Promise(disk: disk, script: script, text: lines + "\(round)\nlast \(round)")
  }

  @Test(.timeLimit(.minutes(2))) func mountShowsWhatItSynchronised() throws {
    let promises = try withMount(Self.home(), cuts: .never) { mount in
      let keyhole = try KeyholeMount(stores: mount.path)
      _ = try keyhole.run("mkdir -p defaults/app keychain/generic/service/last")
      return try (1...10).map { round in
        try Self.write(round, keyhole)
        return Self.promise(round, mount.disk)
      }
    }
    for (index, promise) in promises.enumerated() {
      for survival in Survival.all(seed: UInt64(index)) {
        try withSurvivor(of: promise.disk, survival) { root in
          let keyhole = try KeyholeMount(stores: root)
          #expect(try keyhole.run(promise.script) == promise.text, "round \(index + 1), \(survival)")
        }
      }
    }
  }

  @Test(.timeLimit(.minutes(2))) func movedKeyHasOneOfItsNames() throws {
    let disk = try withMount(Self.home(), cuts: .never) { mount in
      let keyhole = try KeyholeMount(stores: mount.path)
      _ = try keyhole.run("mkdir defaults/a defaults/b; echo text > defaults/a/key; sync defaults/a/key")
      _ = try keyhole.run("echo text > defaults/b/other; sync defaults/b/other")
      return mount.disk
    }
    let disks = try withMount(disk, cuts: PowerCuts(share: 1, seed: 0)) { mount in
      let keyhole = try KeyholeMount(stores: mount.path)
      _ = try keyhole.run("mv defaults/a/key defaults/b/key")
      return mount.cuts.disks + [mount.disk]
    }
    for seed in UInt64(0)..<4 {
      try Self.forEachLoss(disks, seed: seed * 100) { root, _ in
        let suites = try SuiteWork(root: root).contents()
        #expect(suites["a"]?["key"] == "text" || suites["b"]?["key"] == "text")
      }
    }
    #expect(disks.count > 10)
  }
}

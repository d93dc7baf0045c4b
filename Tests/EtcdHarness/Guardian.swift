import Glibc

/// A process that kills others when this one ends, however that happens.
final class Guardian: Sendable {
  private let process: pid_t
  private let writer: Int32

  init() throws {
    let (reading, writing) = try Program.pipe()
    defer { close(reading) }
    writer = writing
    let script = """
      while read -r what process; do
        if [ "$what" = . ]; then break; fi
        if [ "$what" = + ]; then all="$all $process "; else all=${all%" $process "*}${all#*" $process "}; fi
      done
      kill -9 $all 2>/dev/null
      """
    // In a session of its own: what ends this process on a terminal does not end it.
    process = try Program.spawn(["setsid", "sh", "-c", script], [reading, 1, 2])
  }

  deinit {
    // A process with a copy of the pipe, or a thread with descriptors of its own, does not put off the end.
    write(".\n")
    close(writer)
    Program.waitForEnd(process)
  }

  func add(_ process: pid_t) { write("+ \(process)\n") }

  func remove(_ process: pid_t) { write("- \(process)\n") }

  private func write(_ line: String) {
    _ = unsafe line.utf8CString.withUnsafeBytes { unsafe Glibc.write(writer, $0.baseAddress, $0.count - 1) }
  }
}

import Glibc

/// The processors that a process may run on, as taskset(1) lists them.
struct Processors {
  var list: String

  /// Moves a process with all the threads that it has now; those that they start inherit it.
  func take(_ process: Int) throws(Failure) {
    try Program(path: "/usr/bin/taskset", arguments: ["-a", "-c", "-p", list, String(process)]).run()
  }

  /// Runs `body` with the processes on `processor`, and gives them back to `all`.
  static func pin(
    _ processes: [Int], to processor: Processors, and all: Processors, _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    for process in processes { try processor.take(process) }
    try body()
    for process in processes { try all.take(process) }
  }
}

/// The numbers of a process's threads.
func threads(of process: Int) throws(Failure) -> [Int] {
  let tasks = "/proc/\(process)/task"
  guard let folder = unsafe opendir(tasks) else { throw Failure.system(tasks) }
  defer { unsafe closedir(folder) }
  var threads: [Int] = []
  while let entry = unsafe readdir(folder) {
    let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    if let thread = Int(name) { threads.append(thread) }
  }
  return threads
}

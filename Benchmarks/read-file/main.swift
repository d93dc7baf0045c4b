// Writes a file to standard output: what a command of Swift costs that does nothing else.
import Glibc

let descriptor = unsafe open(CommandLine.arguments[1], O_RDONLY | O_CLOEXEC)
guard descriptor >= 0 else { exit(1) }
unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { buffer in
  while true {
    let count = unsafe read(descriptor, buffer.baseAddress, buffer.count)
    guard count > 0 else { exit(count == 0 ? 0 : 1) }
    guard unsafe write(1, buffer.baseAddress, count) == count else { exit(1) }
  }
}

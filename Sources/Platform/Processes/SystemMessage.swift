import Glibc

/// The text of strerror(3) for a number of errno(3).
package func systemMessage(_ error: Int32) -> String {
  guard let text = unsafe strerror(error) else { return "error \(error)" }
  return unsafe String(cString: text)
}

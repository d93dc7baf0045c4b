/// The text of strerror(3) for a number of errno(3).
package func systemMessage(_ error: Int32) -> String { Errno(rawValue: error).description }

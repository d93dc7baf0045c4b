import Glibc

/// A function of the C library that Swift's Glibc module leaves out.
func cFunction<Function>(_ name: String, as type: Function.Type) -> Function {
  // SAFETY: the caller gives the function's own type, and it stays loaded until the process ends.
  guard let symbol = unsafe dlsym(nil, name) else { preconditionFailure("no \(name) in the C library") }
  return unsafe unsafeBitCast(symbol, to: type)
}

// Writes a file to standard output by Foundation: what a command of Swift costs that contains Foundation and does nothing else.
import Foundation

let file = URL(fileURLWithPath: CommandLine.arguments[1])
FileHandle.standardOutput.write(try Data(contentsOf: file))
